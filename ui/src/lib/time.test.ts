import { describe, expect, test } from "vitest";

import { ago, countdown, dateTime, duration, secondsLeft } from "./time";

const NOW = Date.parse("2026-11-30T15:31:07.000Z");
const before = (ms: number) => new Date(NOW - ms).toISOString();

describe("time", () => {
  test("how long ago", () => {
    expect(ago(before(2_000), NOW)).toBe("just now");
    expect(ago(before(-9_000), NOW)).toBe("just now");
    expect(ago(before(59_999), NOW)).toBe("59 s ago");
    expect(ago(before(61_000), NOW)).toBe("1 min ago");
    expect(ago(before(3_600_000 * 23), NOW)).toBe("23 h ago");
    expect(ago(before(3_600_000 * 24), NOW)).toBe("1 day ago");
    expect(ago(before(3_600_000 * 72), NOW)).toBe("3 days ago");
    expect(ago("never", NOW)).toBe("");
  });

  test("apr_08 the countdown never promises more time than there is", () => {
    expect(secondsLeft(new Date(NOW + 29_999).toISOString(), NOW)).toBe(29);
    expect(secondsLeft(new Date(NOW).toISOString(), NOW)).toBe(0);
    expect(secondsLeft(new Date(NOW - 5_000).toISOString(), NOW)).toBe(0);
    expect(secondsLeft("never", NOW)).toBe(0);
    expect(countdown(245)).toBe("4:05");
    expect(countdown(0)).toBe("0:00");
    expect(countdown(3_723)).toBe("1:02:03");
  });

  test("dates say the year only if it is another one", () => {
    expect(dateTime("2026-11-30T15:04:05.000Z", NOW)).toBe("30 Nov, 15:04:05");
    expect(dateTime("2025-01-02T03:04:05.000Z", NOW)).toBe("2 Jan 2025, 03:04:05");
    expect(dateTime("what", NOW)).toBe("what");
  });

  test("durations", () => {
    expect(duration(0)).toBe("0 ms");
    expect(duration(2_440)).toBe("2.4 s");
    expect(duration(59_970)).toBe("1 min 0 s");
    expect(duration(200_000)).toBe("3 min 20 s");
    expect(duration(7_260_000)).toBe("2 h 1 min");
  });
});
