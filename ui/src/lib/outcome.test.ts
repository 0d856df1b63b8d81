import { expect, test } from "vitest";

import type { EdgeSummary } from "../rpc";
import { endOf } from "./outcome";

const edge = (rest: Partial<EdgeSummary>): EdgeSummary => ({
  edge_id: 1,
  action_type: "shell_exec",
  summary: "make",
  refused: false,
  latency_ms: 0,
  at: "2026-11-30T12:00:00.000Z",
  ...rest,
});

test("r16 what was refused is blocked, whoever refused it", () => {
  expect(endOf(edge({ refused: true, outcome_status: "blocked" }))).toBe("blocked");
  expect(endOf(edge({ refused: true, outcome_status: "failure" }))).toBe("blocked");
  expect(endOf(edge({ refused: true, outcome_status: "timeout" }))).toBe("blocked");
});

test("r16 what ran ended as it ended, and what runs hasn't ended", () => {
  expect(endOf(edge({ outcome_status: "failure" }))).toBe("failure");
  expect(endOf(edge({ outcome_status: "success" }))).toBe("success");
  expect(endOf(edge({}))).toBeUndefined();
});
