import type { PageName } from "../state/router.svelte";

export type Shortcut = { do: "go"; page: PageName } | { do: "help" } | { do: "next" };

export interface Key {
  key: string;
  ctrl: boolean;
  alt: boolean;
  meta: boolean;
}

const BY_NUMBER: Record<string, PageName> = {
  "1": "approvals",
  "2": "live",
  "3": "traces",
  "4": "agents",
  "5": "settings",
};
const AFTER_G: Record<string, PageName> = {
  a: "approvals",
  l: "live",
  t: "traces",
  n: "agents",
  s: "settings",
};
const SEQUENCE_MS = 1200;

/** Recognises shortcuts, among them the two keys of `g a`. */
export class Shortcuts {
  #gAt = -Infinity;

  /** `single` says whether keys without Ctrl count: they don't while somebody types. */
  take(key: Key, single: boolean, at: number): Shortcut | undefined {
    const page = BY_NUMBER[key.key];
    if (key.ctrl && !key.alt && !key.meta && page) return { do: "go", page };
    if (!single || key.ctrl || key.alt || key.meta) return undefined;
    const target = AFTER_G[key.key];
    const afterG = at - this.#gAt < SEQUENCE_MS;
    this.#gAt = key.key === "g" ? at : -Infinity;
    if (afterG && target) return { do: "go", page: target };
    if (key.key === "?") return { do: "help" };
    if (key.key === "n") return { do: "next" };
    return undefined;
  }
}
