//! Outcomes and provenance (OS-011 §6.5, §5.5).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::{Authorization, CAPABILITY, ErrorCode, Fault, PROVIDER, StateHash, Timestamp, TraceId};

/// How an act ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeStatus {
    /// Done.
    Success,
    /// Done in part.
    Partial,
    /// The environment did not permit it.
    Failure,
    /// The policy or a person did not permit it, or not yet.
    Blocked,
    /// It took longer than allowed and was ended.
    Timeout,
}

/// Where a record comes from; never lost on the way (OS-011 §5.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct Provenance {
    /// Always `bodyguard`.
    pub provider: String,
    /// Always `&body.os`.
    pub capability: String,
    /// The operation, such as `act`.
    pub operation: String,
    /// When.
    pub timestamp: Timestamp,
    /// `name@workspace`.
    pub agent_id: String,
}

impl Provenance {
    /// The provenance of one operation for one agent.
    pub fn new(operation: &str, timestamp: Timestamp, agent_id: impl Into<String>) -> Self {
        Self {
            provider: PROVIDER.to_owned(),
            capability: CAPABILITY.to_owned(),
            operation: operation.to_owned(),
            timestamp,
            agent_id: agent_id.into(),
        }
    }
}

/// The typed error of an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct OutcomeError {
    /// What to switch on.
    pub code: ErrorCode,
    /// One plain sentence.
    pub message: String,
    /// The offending field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub field: Option<String>,
    /// What the agent can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub hint: Option<String>,
    /// The ask to poll, or the escalation that a refusal raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub escalation_id: Option<String>,
}

impl From<Fault> for OutcomeError {
    fn from(fault: Fault) -> Self {
        Self { code: fault.code, message: fault.message, field: fault.field, hint: fault.hint, escalation_id: None }
    }
}

/// What an act would come to (OS-011 §5.7, §8.4). Nothing was done, asked or recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// What the policy says to it now.
    pub decision: Foreseen,
    /// The rule that says so; absent where the action isn't admitted for another reason.
    pub policy_id: Option<String>,
    /// How it would end, if it is permitted.
    pub outcome_status: OutcomeStatus,
    /// The state now; absent where nothing was looked at because the policy comes first.
    pub state_before: Option<StateHash>,
    /// The state afterwards; absent where it can't be told, as for a new command or a click.
    pub state_after: Option<StateHash>,
    /// Milliseconds that acts of this type, or the very same command, took before, the median; absent
    /// without any.
    pub latency_ms: Option<u64>,
    /// What would be observed, as far as it can be told: exact for files; for a command, how the very
    /// same one ended last in this workspace.
    pub predicted_outcome: Option<Value>,
    /// Why it would not be done.
    pub error: Option<OutcomeError>,
    /// Who predicted.
    pub provenance: Provenance,
}

/// What a policy says to an act that isn't done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Foreseen {
    /// It would run without a question.
    Allowed,
    /// A person would be asked.
    Asked,
    /// It would be refused.
    Refused,
}

/// What came of one act.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionOutcome {
    /// How it ended.
    pub outcome_status: OutcomeStatus,
    /// The state before; absent where nothing was looked at because the policy came first.
    pub state_before: Option<StateHash>,
    /// The state after; equal to before where nothing ran.
    pub state_after: Option<StateHash>,
    /// Milliseconds the body took; 0 where nothing ran.
    pub latency_ms: u64,
    /// Evidence by action type, such as `stdout` or `content`.
    pub observed_outcome: Option<Value>,
    /// Why not, if not.
    pub error: Option<OutcomeError>,
    /// The trace that records it.
    pub trace_id: TraceId,
    /// Its edge in the trace; absent where nothing was admitted.
    pub edge_id: Option<u64>,
    /// The block that authorised it, for destructive actions.
    pub authorization: Option<Authorization>,
    /// Who acted.
    pub provenance: Provenance,
}
