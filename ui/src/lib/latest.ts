/**
 * Sends values one after the other, never two at once, so that they arrive in order. Values that were
 * overtaken before their turn are left out; the last one is always sent.
 */
export class Latest<T> {
  #send: (value: T) => Promise<void>;
  #waiting: { value: T } | undefined;
  #busy = false;

  constructor(send: (value: T) => Promise<void>) {
    this.#send = send;
  }

  send(value: T): void {
    this.#waiting = { value };
    if (!this.#busy) void this.#drain();
  }

  async #drain(): Promise<void> {
    this.#busy = true;
    try {
      while (this.#waiting) {
        const { value } = this.#waiting;
        this.#waiting = undefined;
        await this.#send(value);
      }
    } finally {
      this.#busy = false;
    }
  }
}
