//! Interaction traces (OS-011 §4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::{Authorization, OutcomeStatus, Provenance, StateHash, SurpriseSignal, Timestamp, TraceId, TypedAction};

/// How a trace ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the specification's own")]
pub enum TraceOutcome {
    Success,
    Partial,
    Failure,
    Aborted,
}

/// Where a trace was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEnvironment {
    /// `linux`, `macos` or `windows`.
    pub os_family: String,
    /// The workspace's name.
    pub workspace: String,
    /// The workspace's root, which replay maps to another.
    pub workspace_root: String,
}

/// A session's acts in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InteractionTrace {
    /// A ULID.
    pub trace_id: TraceId,
    /// Always `os`.
    pub body_subtype: String,
    /// Always `bodyguard`.
    pub provider: String,
    /// `name@workspace`.
    pub agent_id: String,
    /// When the session began.
    pub started_at: Timestamp,
    /// When it ended; absent while it runs.
    pub ended_at: Option<Timestamp>,
    /// Where.
    pub environment: TraceEnvironment,
    /// One edge per admitted act.
    pub edges: Vec<TraceEdge>,
    /// What the agent said it wants; untrusted text.
    pub goal: Option<String>,
    /// How it ended; absent while it runs.
    pub outcome: Option<TraceOutcome>,
    /// `os_family`, `state_profile` and other notes.
    pub metadata: Value,
}

/// One act (OS-011 §4.3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEdge {
    /// From 1, without gaps.
    pub edge_id: u64,
    /// The state at admission.
    pub state_before: StateHash,
    /// The action with its resolved target.
    pub typed_action: TypedAction,
    /// The state afterwards.
    pub state_after: StateHash,
    /// Milliseconds the body took.
    pub latency_ms: u64,
    /// How it ended.
    pub outcome_status: OutcomeStatus,
    /// Evidence by action type.
    pub observed_outcome: Option<Value>,
    /// The block, for destructive actions.
    pub authorization: Option<Authorization>,
    /// In what it came out otherwise than predicted (OS-011 §8.2); absent where it didn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surprise: Option<SurpriseSignal>,
    /// Who acted.
    pub provenance: Provenance,
}
