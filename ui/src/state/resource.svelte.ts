import { RpcFault } from "../rpc";

/**
 * One answer of the back end, kept fresh. Requests don't pile up: while one is under way, any number of
 * calls to `refresh` lead to exactly one more.
 */
export class Resource<T> {
  data = $state.raw<T>();
  fault = $state.raw<RpcFault>();
  #fetch: () => Promise<T>;
  #running: Promise<void> | undefined;
  #again = false;
  #used = false;

  constructor(fetch: () => Promise<T>) {
    this.#fetch = fetch;
  }

  /** Fetches, and resolves when an answer that is not older than this call is here. */
  refresh(): Promise<void> {
    this.#used = true;
    if (this.#running) {
      this.#again = true;
    } else {
      this.#running = this.#run().finally(() => (this.#running = undefined));
    }
    return this.#running;
  }

  /** Fetches if somebody has looked at it before. */
  touch(): void {
    if (this.#used) void this.refresh();
  }

  /** Replaces the answer by one that is known to be newer. */
  put(data: T): void {
    this.data = data;
  }

  #takeAgain(): boolean {
    const again = this.#again;
    this.#again = false;
    return again;
  }

  async #run(): Promise<void> {
    do {
      try {
        const data = await this.#fetch();
        this.data = data;
        this.fault = undefined;
      } catch (thrown) {
        this.fault = RpcFault.from(thrown);
      }
    } while (this.#takeAgain());
  }
}
