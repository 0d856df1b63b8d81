//! Replay: a recorded trace carried out again, edge by edge, until the first difference (OS-011 §5.4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::{AskId, ErrorCode, OutcomeError, Prediction, Provenance, ReplayId, StateHash, TraceId};

/// What a trace is a replay of; stands in its metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct ReplayOf {
    /// The recorded trace.
    pub trace_id: TraceId,
    /// The first of its edges that was asked for.
    #[ts(type = "number")]
    pub from_edge: u64,
    /// The last of its edges that was asked for.
    #[ts(type = "number")]
    pub to_edge: u64,
}

/// How a replay stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayStatus {
    /// It goes on, or waits for a person.
    Running,
    /// Every edge came out as recorded.
    Success,
    /// It stopped after something had been carried out.
    Partial,
    /// It stopped before anything was carried out.
    Failure,
    /// It was stopped by a person, the agent, or the end of its session.
    Aborted,
}

/// What came of a replay (OS-011 §5.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayResult {
    /// How it stands.
    pub status: ReplayStatus,
    /// Whether it was only predicted: nothing was done, asked or recorded.
    pub dry_run: bool,
    /// Names the replay for the next call; absent where it never began.
    pub replay_id: Option<ReplayId>,
    /// The new trace, which holds what was carried out; absent where it never began.
    pub trace_id: Option<TraceId>,
    /// The trace that is replayed.
    pub replayed_trace_id: TraceId,
    /// Edges of the replayed trace that came out as recorded, in order. In a dry run, those foreseen.
    pub edges_replayed: Vec<u64>,
    /// Edges of the replayed trace that nothing was carried out for when it was recorded, nor now.
    pub edges_skipped: Vec<u64>,
    /// The edge of the replayed trace at which it stopped; none after it was carried out.
    pub failed_at_edge: Option<u64>,
    /// Why it stopped.
    pub reason: Option<ErrorCode>,
    /// The recorded state hash, where it stopped because of the state.
    pub expected_hash: Option<StateHash>,
    /// The state hash found instead.
    pub actual_hash: Option<StateHash>,
    /// What differs, field by field as far as that is known; null where nothing differs.
    pub divergence_details: Option<Vec<Difference>>,
    /// The ask that a person has to decide before it goes on. It is taken with `replay_id`.
    pub escalation_id: Option<AskId>,
    /// What it waits for or does now, in one sentence.
    pub waiting_for: Option<String>,
    /// What each edge would come to; in a dry run only.
    pub predictions: Option<Vec<ForeseenEdge>>,
    /// Why it stopped, in words and with what to do.
    pub error: Option<OutcomeError>,
    /// Who replayed.
    pub provenance: Provenance,
}

/// One difference between what was recorded and what is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// A stable field of the state, or a path such as `outcome_status`.
    pub field: String,
    /// As recorded; absent where only a hash of it is on record or it may not be seen.
    pub expected: Option<Value>,
    /// As found; absent where it may not be seen.
    pub actual: Option<Value>,
}

/// What one edge would come to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForeseenEdge {
    /// The edge of the replayed trace.
    pub edge_id: u64,
    /// Whether it is predicted from the very state it would find. False once an edge before it would
    /// change something, because a dry run changes nothing.
    pub exact: bool,
    /// The prediction, as for an act.
    pub prediction: Prediction,
}
