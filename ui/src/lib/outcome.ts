import type { EdgeSummary, OutcomeStatus } from "../rpc";

/** How an act ended, with everything that was refused as `blocked`, also where the computer refused it. */
export function endOf(edge: EdgeSummary): OutcomeStatus | undefined {
  return edge.refused ? "blocked" : edge.outcome_status;
}
