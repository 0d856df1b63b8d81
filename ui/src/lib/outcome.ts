import type { ActionType, EdgeSummary, OutcomeStatus } from "../rpc";

const READS: ActionType[] = ["file_read", "screen_capture"];

/**
 * How an act ended, with everything that was refused as `blocked`. Whatever isn't a read runs only after a
 * yes, by a person or the policy: without one it was refused, also where the computer was what refused.
 */
export function endOf(edge: EdgeSummary): OutcomeStatus | undefined {
  const refused = edge.approved_by === undefined && !READS.includes(edge.action_type);
  return edge.outcome_status && refused ? "blocked" : edge.outcome_status;
}
