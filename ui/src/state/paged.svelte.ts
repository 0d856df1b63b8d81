import { SvelteMap } from "svelte/reactivity";

import { pagesFor, type Span } from "../lib/windowing";
import { RpcFault } from "../rpc";

export interface Page<T> {
  total: number;
  offset: number;
  items: T[];
}

const PAGE_SIZE = 100;
const PAGES_KEPT = 8;

/** A window onto a list of the back end: the pages in view and a few more, never the whole. */
export class PagedList<T> {
  total = $state(0);
  loaded = $state(false);
  fault = $state.raw<RpcFault>();
  #pages = new SvelteMap<number, T[]>();
  // What is under way or out of date isn’t drawn.
  /* eslint-disable svelte/prefer-svelte-reactivity */
  #loading = new Set<number>();
  #stale = new Set<number>();
  /* eslint-enable svelte/prefer-svelte-reactivity */
  #seen: number[] = [];
  #fetch: (offset: number, limit: number) => Promise<Page<T>>;

  constructor(fetch: (offset: number, limit: number) => Promise<Page<T>>) {
    this.#fetch = fetch;
  }

  /** A row, or undefined while its page isn't here. */
  at(row: number): T | undefined {
    return this.#pages.get(Math.floor(row / PAGE_SIZE))?.[row % PAGE_SIZE];
  }

  /** Makes sure that some rows are here or on their way. */
  want(span: Span): void {
    for (const page of pagesFor(span, PAGE_SIZE)) {
      this.#keep(page);
      if (!this.#pages.has(page) || this.#stale.has(page)) void this.#load(page);
    }
  }

  /** Loads again what is here; what is shown stays until its successor has come. */
  async refresh(): Promise<void> {
    for (const page of this.#pages.keys()) this.#stale.add(page);
    const inView = this.#seen.slice(-2);
    await Promise.all((inView.length > 0 ? inView : [0]).map((page) => this.#load(page)));
  }

  #keep(page: number): void {
    this.#seen = [...this.#seen.filter((other) => other !== page), page].slice(-PAGES_KEPT);
    for (const old of this.#pages.keys()) {
      if (!this.#seen.includes(old)) this.#pages.delete(old);
    }
  }

  async #load(page: number): Promise<void> {
    if (this.#loading.has(page)) {
      this.#stale.add(page);
      return;
    }
    this.#loading.add(page);
    this.#stale.delete(page);
    try {
      const answer = await this.#fetch(page * PAGE_SIZE, PAGE_SIZE);
      this.#pages.set(page, answer.items);
      this.total = answer.total;
      this.loaded = true;
      this.fault = undefined;
    } catch (thrown) {
      this.fault = RpcFault.from(thrown);
      this.#stale.delete(page); // no loop of failures; the next refresh tries again
    } finally {
      this.#loading.delete(page);
    }
    if (this.#stale.has(page)) await this.#load(page);
  }
}
