import { call, listen, RpcFault, SequenceWatch, type BarView, type UiEvent } from "../rpc";
import { Resource } from "./resource.svelte";
import { router } from "./router.svelte";

/** An event, or word that some were missed and everything shown has to be fetched again. */
export type Signal = UiEvent | { event: "refetch" };

/** How long an event may be on its way before a higher number elsewhere counts as a gap. */
const IN_FLIGHT_MS = 500;
const HEARTBEAT_MS = 20_000;

class Supervisor {
  readonly overview = new Resource(() => call("overview"));
  readonly asks = new Resource(() => call("asks"));
  readonly sessions = new Resource(() => call("sessions"));
  readonly agents = new Resource(() => call("agents"));
  readonly health = new Resource(() => call("health"));
  readonly settings = new Resource(() => call("settings"));
  /** The decision bar, as far as events told. */
  bar = $state.raw<BarView | null>(null);
  /** What went wrong when the window itself asked for something. */
  failure = $state.raw<RpcFault>();
  #watch = new SequenceWatch();
  #listeners = new Set<(signal: Signal) => void>();

  /** Listens, then fetches: whatever happens in between is heard. Returns how to stop. */
  async start(): Promise<() => void> {
    const unlisten = await listen((event) => this.#receive(event));
    await Promise.all([this.overview.refresh(), this.asks.refresh()]);
    this.#watch.startAt(this.overview.data?.last_event ?? 0);
    const check = () => void this.#checkBehind();
    const timer = setInterval(check, HEARTBEAT_MS);
    window.addEventListener("focus", check);
    return () => {
      unlisten();
      clearInterval(timer);
      window.removeEventListener("focus", check);
    };
  }

  /** Hands every signal on; returns how to stop. Fits an effect. */
  on(listener: (signal: Signal) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Runs something the person asked for; a fault is kept to be shown. */
  async attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await work();
      this.failure = undefined;
      return result;
    } catch (thrown) {
      this.failure = RpcFault.from(thrown);
      return undefined;
    }
  }

  #receive(event: UiEvent): void {
    const sequence = this.#watch.take(event.seq);
    if (sequence === "old") return;
    if (sequence === "gap") this.#refetch();
    this.#apply(event);
    this.#tell(event);
  }

  #apply(event: UiEvent): void {
    switch (event.event) {
      case "ask_changed":
        this.overview.touch();
        this.asks.touch();
        break;
      case "session_changed":
        this.overview.touch();
        this.sessions.touch();
        break;
      case "edge_added":
        this.sessions.touch();
        break;
      case "agents_changed":
        this.agents.touch();
        break;
      case "health_changed":
        this.overview.touch();
        this.health.touch();
        this.settings.touch();
        this.agents.touch();
        break;
      case "show_ask":
        router.showAsk(event.ask_id);
        break;
      case "bar_changed":
        this.bar = event.bar;
        break;
      case "stopped_changed":
        if (this.overview.data) this.overview.put({ ...this.overview.data, stopped: event.stopped });
        this.overview.touch();
        this.asks.touch();
        break;
    }
  }

  #refetch(): void {
    for (const resource of [
      this.overview,
      this.asks,
      this.sessions,
      this.agents,
      this.health,
      this.settings,
    ]) {
      resource.touch();
    }
    this.#tell({ event: "refetch" });
  }

  #tell(signal: Signal): void {
    for (const listener of this.#listeners) listener(signal);
  }

  /** Finds a gap that no later event has shown. */
  async #checkBehind(): Promise<void> {
    await this.overview.refresh();
    const counted = this.overview.data?.last_event;
    if (counted === undefined || !this.#watch.isBehind(counted)) return;
    await new Promise((resolve) => setTimeout(resolve, IN_FLIGHT_MS));
    if (!this.#watch.isBehind(counted)) return;
    this.#watch.startAt(counted);
    this.#refetch();
  }
}

export const supervisor = new Supervisor();
