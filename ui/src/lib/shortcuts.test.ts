import { expect, test } from "vitest";

import { Shortcuts } from "./shortcuts";

const key = (name: string, ctrl = false) => ({ key: name, ctrl, alt: false, meta: false });

test("two keys in time go to a page", () => {
  const shortcuts = new Shortcuts();
  expect(shortcuts.take(key("g"), true, 0)).toBeUndefined();
  expect(shortcuts.take(key("t"), true, 500)).toEqual({ do: "go", page: "traces" });
  expect(shortcuts.take(key("t"), true, 600)).toBeUndefined();
  shortcuts.take(key("g"), true, 1_000);
  expect(shortcuts.take(key("t"), true, 5_000)).toBeUndefined();
});

test("while somebody types only Ctrl counts", () => {
  const shortcuts = new Shortcuts();
  expect(shortcuts.take(key("?"), false, 0)).toBeUndefined();
  expect(shortcuts.take(key("g"), false, 0)).toBeUndefined();
  expect(shortcuts.take(key("a"), false, 1)).toBeUndefined();
  expect(shortcuts.take(key("2", true), false, 2)).toEqual({ do: "go", page: "live" });
  expect(shortcuts.take(key("?"), true, 3)).toEqual({ do: "help" });
});
