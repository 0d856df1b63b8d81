import { call, RpcFault, type AskId, type Digest } from "../rpc";
import { Latest } from "../lib/latest";

interface Shown {
  ask_id: AskId;
  shown_digest: Digest;
  end_shown: boolean;
}

/**
 * Tells the shell which ask the page shows, and whether its end has been in view. That raises, arms and
 * lowers the native bar. It can't decide.
 */
class Bar {
  fault = $state.raw<RpcFault>();
  /** For which ask the bar stands. It takes room from the page, so what is in view is judged after that. */
  raised = $state.raw<AskId>();
  #shown: Shown | undefined;
  #sender = new Latest<Shown | undefined>(async (shown) => {
    try {
      await (shown ? call("ask_shown", shown) : call("ask_hidden"));
      this.raised = shown?.ask_id;
      this.fault = undefined;
    } catch (thrown) {
      this.fault = RpcFault.from(thrown);
    }
  });

  show(ask_id: AskId, shown_digest: Digest): void {
    if (this.#shown?.ask_id === ask_id && this.#shown.shown_digest === shown_digest) return;
    this.#set({ ask_id, shown_digest, end_shown: false });
  }

  /** The end of what is shown of this ask has been in view. */
  reachEnd(ask_id: AskId, shown_digest: Digest): void {
    if (this.#shown?.ask_id !== ask_id || this.#shown.shown_digest !== shown_digest) return;
    if (!this.#shown.end_shown) this.#set({ ask_id, shown_digest, end_shown: true });
  }

  hide(): void {
    if (this.#shown) this.#set(undefined);
  }

  /** Says it again, after something may have been missed. */
  repeat(): void {
    if (this.#shown) this.#sender.send(this.#shown);
  }

  #set(shown: Shown | undefined): void {
    this.#shown = shown;
    this.#sender.send(shown);
  }
}

export const bar = new Bar();
