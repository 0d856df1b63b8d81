import { expect, test } from "vitest";

import { isAbsolutePath, isName } from "./names";

test("names are what the supervisor takes", () => {
  for (const name of ["a", "claude", "Claude-2.1_x", "9", "a".repeat(64)]) expect(isName(name)).toBe(true);
  for (const name of ["", "-a", ".a", "a b", "ä", "a/b", "a\n", "a".repeat(65)])
    expect(isName(name)).toBe(false);
});

test("folders are full paths", () => {
  expect(isAbsolutePath("/home/mira")).toBe(true);
  expect(isAbsolutePath("C:\\work")).toBe(true);
  expect(isAbsolutePath("work")).toBe(false);
  expect(isAbsolutePath("~/work")).toBe(false);
});
