import { describe, expect, test } from "vitest";

import { SequenceWatch } from "./sequence";

describe("the numbers of events", () => {
  test("count up by one", () => {
    const watch = new SequenceWatch();
    watch.startAt(4);
    expect(watch.take(5)).toBe("next");
    expect(watch.take(6)).toBe("next");
  });

  test("a hole is a gap, once", () => {
    const watch = new SequenceWatch();
    watch.startAt(4);
    expect(watch.take(7)).toBe("gap");
    expect(watch.take(8)).toBe("next");
  });

  test("what was counted already is old", () => {
    const watch = new SequenceWatch();
    watch.startAt(4);
    expect(watch.take(4)).toBe("old");
    expect(watch.take(5)).toBe("next");
    expect(watch.take(5)).toBe("old");
  });

  test("an event before the first answer doesn't count backwards", () => {
    const watch = new SequenceWatch();
    expect(watch.take(9)).toBe("first");
    watch.startAt(8);
    expect(watch.last).toBe(9);
    expect(watch.take(10)).toBe("next");
  });

  test("an answer shows a gap that no event has shown", () => {
    const watch = new SequenceWatch();
    expect(watch.isBehind(0)).toBe(true);
    watch.startAt(4);
    expect(watch.isBehind(4)).toBe(false);
    expect(watch.isBehind(5)).toBe(true);
  });
});
