import { expect, test } from "vitest";

import type { EdgeSummary } from "../rpc";
import { endOf } from "./outcome";

const edge = (rest: Partial<EdgeSummary>): EdgeSummary => ({
  edge_id: 1,
  action_type: "shell_exec",
  summary: "make",
  latency_ms: 0,
  at: "2026-11-30T12:00:00.000Z",
  ...rest,
});

test("r16 what ended without the yes it needs was refused", () => {
  expect(endOf(edge({ outcome_status: "blocked", error: "denied_by_person" }))).toBe("blocked");
  expect(endOf(edge({ outcome_status: "failure", error: "state_changed" }))).toBe("blocked");
  expect(endOf(edge({ outcome_status: "timeout", error: "timeout" }))).toBe("blocked");
});

test("r16 what ran ended as it ended, and what runs hasn't ended", () => {
  expect(endOf(edge({ outcome_status: "failure", approved_by: "mira" }))).toBe("failure");
  expect(endOf(edge({ outcome_status: "success", approved_by: "policy:website/allow" }))).toBe("success");
  expect(endOf(edge({}))).toBeUndefined();
});

test("r16 a read needs no yes, so only its status tells", () => {
  expect(endOf(edge({ action_type: "file_read", outcome_status: "failure" }))).toBe("failure");
  expect(endOf(edge({ action_type: "file_read", outcome_status: "blocked" }))).toBe("blocked");
});
