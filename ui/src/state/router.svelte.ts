import type { AgentName, AskId, SessionId, TraceId } from "../rpc";

export const PAGES = ["approvals", "live", "traces", "agents", "settings"] as const;
export type PageName = (typeof PAGES)[number];

/** Where the person is: the page, and what is selected on each. */
class Router {
  page = $state<PageName>("approvals");
  ask = $state<AskId>();
  session = $state<SessionId>();
  trace = $state<TraceId>();
  edge = $state<number>();
  agent = $state<AgentName>();
  /** From where the last change was proposed, and the ask it became. */
  proposed = $state.raw<{ ask: AskId; page: PageName }>();

  go(page: PageName): void {
    this.page = page;
  }

  showAsk(ask: AskId): void {
    this.ask = ask;
    this.page = "approvals";
  }

  showTrace(trace: TraceId | undefined, edge?: number): void {
    this.trace = trace;
    this.edge = edge;
    this.page = "traces";
  }
}

export const router = new Router();
