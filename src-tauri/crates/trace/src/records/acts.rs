//! Records of acts.

use bodyguard_protocol::{
    ActionType, AskId, Block, Digest, OutcomeError, OutcomeStatus, SessionId, StateHash, SurpriseSignal, TraceId,
    TypedAction,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What [`crate::Log::commit_intent`] is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntentRecord {
    /// The session.
    pub session_id: SessionId,
    /// Its trace.
    pub trace_id: TraceId,
    /// The action with its resolved target, exact; secrets are replaced before it is stored.
    pub action: TypedAction,
    /// The digest of `action`.
    pub action_digest: Digest,
    /// The state at admission.
    pub state_before: StateHash,
    /// What the action is bound to.
    pub binding: Value,
    /// What the body expects to come of it.
    pub prediction: Value,
    /// The ask that it answers; must be `claimed`, and is moved to `executing`.
    pub ask_id: Option<AskId>,
    /// The rule that permitted or asked.
    pub policy_id: String,
    /// The block, for destructive actions.
    pub authorization: Option<Block>,
}

/// An act about to happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// The session.
    pub session_id: SessionId,
    /// Its trace.
    pub trace_id: TraceId,
    /// From 1 in each trace, without gaps.
    pub edge_id: u64,
    /// `name@workspace`.
    pub agent_id: String,
    /// What kind of action.
    pub action_type: ActionType,
    /// The action; secret values as commitments.
    pub action: Value,
    /// The digest of the exact action.
    pub action_digest: Digest,
    /// Whether `action` differs from the exact action.
    #[serde(default)]
    pub redacted: bool,
    /// The state at admission.
    pub state_before: StateHash,
    /// What the action is bound to.
    pub binding: Value,
    /// What the body expects to come of it.
    pub prediction: Value,
    /// The ask that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_id: Option<AskId>,
    /// The rule that permitted or asked.
    pub policy_id: String,
    /// The block, for destructive actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Block>,
}

/// What [`crate::Log::record_outcome`] is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutcomeRecord {
    /// How it ended.
    pub status: OutcomeStatus,
    /// The state afterwards; the state before where it couldn't be read.
    pub state_after: Option<StateHash>,
    /// Milliseconds the body took.
    pub latency_ms: u64,
    /// Evidence; secrets are replaced before it is stored.
    pub observed: Option<Value>,
    /// Why not, if not. `interrupted`, `body_lost` and `cancelled` leave the
    /// ask `interrupted` instead of `done`.
    pub error: Option<OutcomeError>,
    /// A picture, as a blob.
    pub picture: Option<Digest>,
    /// In what it came out otherwise than predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surprise: Option<SurpriseSignal>,
}

/// The end of an act.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The session.
    pub session_id: SessionId,
    /// Its trace.
    pub trace_id: TraceId,
    /// Which edge.
    pub edge_id: u64,
    /// The leaf of the intent.
    pub intent_seq: u64,
    /// What is recorded of it.
    #[serde(flatten)]
    pub outcome: OutcomeRecord,
}
