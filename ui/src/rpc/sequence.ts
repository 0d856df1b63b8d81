/** What the next event's number says. */
export type Sequence = "first" | "next" | "gap" | "old";

/** Watches the numbers of events. They count up by one; anything else means that something was missed. */
export class SequenceWatch {
  #last: number | undefined;

  get last(): number | undefined {
    return this.#last;
  }

  /** Where counting starts: the number that a full answer was known to include. */
  startAt(last: number): void {
    this.#last = Math.max(last, this.#last ?? 0);
  }

  take(seq: number): Sequence {
    const last = this.#last;
    if (last !== undefined && seq <= last) return "old";
    this.#last = seq;
    if (last === undefined) return "first";
    return seq === last + 1 ? "next" : "gap";
  }

  /** Whether the supervisor has counted further than this window. */
  isBehind(last: number): boolean {
    return this.#last === undefined || last > this.#last;
  }
}
