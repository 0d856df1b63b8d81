import { expect, test } from "vitest";

import { replayWords } from "./words";

test("a replay says what it replays", () => {
  const trace_id = "01KB2M8Q6V3T9X000000000001";
  expect(replayWords({ trace_id, from_edge: 2, to_edge: 5 })).toBe(`Replay of ${trace_id}, acts 2 to 5`);
  expect(replayWords({ trace_id, from_edge: 2, to_edge: 2 })).toBe(`Replay of ${trace_id}, act 2`);
});
