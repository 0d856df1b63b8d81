//! Records of asks.

use bodyguard_protocol::ui::{AskState, DecisionKind, DecisionView};
use bodyguard_protocol::{AskId, Block, Digest, SessionId, Timestamp, TraceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question to the person. Kept verbatim: give it the recorded form of an action
/// ([`crate::redact::Redactor::action`]) where the exact one holds secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskRecord {
    /// The ask.
    pub ask_id: AskId,
    /// What is decided.
    pub ask_kind: DecisionKind,
    /// The session; absent for a change of settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Its trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<TraceId>,
    /// `name@workspace`, or `you`.
    pub agent_id: String,
    /// The action, query or change in JSON.
    pub subject: Value,
    /// The digest of the exact subject, which a block signs as `action_digest`.
    pub action_digest: Digest,
    /// What the asker needs again at dispatch: binding, prediction, digests.
    #[serde(default)]
    pub context: Value,
    /// What is shown.
    pub view: DecisionView,
    /// The digest of `view`.
    pub shown_digest: Digest,
    /// The rule that asks.
    pub policy_id: String,
    /// When it was asked.
    pub opened_at: Timestamp,
    /// The boot clock then, in milliseconds.
    pub opened_boot_ms: u64,
    /// Which boot of the machine that clock belongs to; see [`crate::Log::boot_id`].
    pub boot_id: String,
    /// Milliseconds until it lapses.
    pub ttl_ms: u64,
}

/// Why an ask moved.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MoveNote {
    /// The person's reason, or what ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The input device that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The block that a yes signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Block>,
}

/// A move of an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskMoved {
    /// The ask.
    pub ask_id: AskId,
    /// The ask's trace; filled in by the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<TraceId>,
    /// From.
    pub from: AskState,
    /// To.
    pub to: AskState,
    /// Why.
    pub note: MoveNote,
}
