import { describe, expect, test } from "vitest";

import { moveCursor, pagesFor, scrollToRow, visibleRows } from "./windowing";

describe("windows onto lists", () => {
  test("only what is in view and a little more is drawn", () => {
    expect(visibleRows(0, 400, 40, 100_000, 5)).toEqual({ from: 0, to: 15 });
    expect(visibleRows(40_010, 400, 40, 100_000, 5)).toEqual({ from: 995, to: 1016 });
    expect(visibleRows(3_999_600, 400, 40, 100_000, 5)).toEqual({ from: 99_985, to: 100_000 });
  });

  test("short, empty and overscrolled lists", () => {
    expect(visibleRows(0, 400, 40, 3, 5)).toEqual({ from: 0, to: 3 });
    expect(visibleRows(0, 400, 40, 0)).toEqual({ from: 0, to: 0 });
    expect(visibleRows(99_999, 400, 40, 3, 5)).toEqual({ from: 3, to: 3 });
    expect(visibleRows(-50, 400, 40, 3, 0)).toEqual({ from: 0, to: 3 });
  });

  test("scrolling goes just far enough", () => {
    expect(scrollToRow(0, 400, 40, 5)).toBe(0);
    expect(scrollToRow(0, 400, 40, 10)).toBe(40);
    expect(scrollToRow(400, 400, 40, 2)).toBe(80);
  });

  test("pages of a span", () => {
    expect(pagesFor({ from: 95, to: 205 }, 100)).toEqual([0, 1, 2]);
    expect(pagesFor({ from: 100, to: 200 }, 100)).toEqual([1]);
    expect(pagesFor({ from: 5, to: 5 }, 100)).toEqual([]);
  });

  test("keys move the cursor and stop at the ends", () => {
    expect(moveCursor("j", 0, 3, 10)).toBe(1);
    expect(moveCursor("ArrowDown", 2, 3, 10)).toBe(2);
    expect(moveCursor("k", 0, 3, 10)).toBe(0);
    expect(moveCursor("ArrowUp", -1, 3, 10)).toBe(2);
    expect(moveCursor("j", -1, 3, 10)).toBe(0);
    expect(moveCursor("PageDown", 5, 1000, 10)).toBe(15);
    expect(moveCursor("End", 5, 1000, 10)).toBe(999);
    expect(moveCursor("Home", 5, 1000, 10)).toBe(0);
    expect(moveCursor("x", 5, 1000, 10)).toBeUndefined();
    expect(moveCursor("j", 0, 0, 10)).toBeUndefined();
  });
});
