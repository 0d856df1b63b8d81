//! Authorization blocks: a signed yes to exactly one action, once (OS-011 §4.4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{AskId, Digest, SessionId, StateHash, Timestamp, TraceId};

/// The version of [`BlockPayload`].
pub const SCHEMA_BLOCK_V1: u32 = 1;

/// What a block is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    /// One act.
    Act,
    /// One perception that the policy asks about.
    View,
    /// One edge of a replay.
    Replay,
}

/// How it was shown that a person, or a policy a person chose, said yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Proof {
    /// A native event whose source device the person enrolled.
    Click {
        /// The device's name.
        device: String,
    },
    /// A policy that permits without asking.
    Policy {
        /// The rule's id.
        rule: String,
    },
}

/// What is signed, as RFC 8785 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[ts(rename = "BlockPayload")]
pub struct BlockPayload {
    /// [`SCHEMA_BLOCK_V1`].
    pub version: u32,
    /// What it is for.
    pub kind: BlockKind,
    /// The digest of the action with its resolved target.
    pub action_digest: Digest,
    /// The state at admission.
    pub state_before: StateHash,
    /// The digest of what the action is bound to: file, window, program.
    pub binding_digest: Digest,
    /// The digest of what the person saw; for a policy's yes, of the action itself.
    pub shown_digest: Digest,
    /// The digest of the containment it runs in.
    pub sandbox_digest: Digest,
    /// The digest of the policy text in force.
    pub policy_digest: Digest,
    /// `name@workspace`.
    pub agent_id: String,
    /// The session it is for.
    pub session_id: SessionId,
    /// The trace that records it.
    pub trace_id: TraceId,
    /// The ask it answers; absent where the policy permits without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub ask_id: Option<AskId>,
    /// The rule that asked or permitted, `policy:<workspace>/<rule>`.
    pub policy_id: String,
    /// The person's name at this computer, or `policy:<workspace>/<rule>`.
    pub approved_by: String,
    /// When.
    pub approved_at: Timestamp,
    /// Until when it can be used.
    pub expires_at: Timestamp,
    /// How the yes was shown.
    pub proof: Proof,
    /// 128 random bits in hexadecimal.
    pub nonce: String,
    /// Always 1.
    pub uses: u32,
}

/// One signature over the payload's RFC 8785 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct BlockSignature {
    /// `ed25519:` and the first 16 hexadecimal digits of the key's SHA-256.
    pub key_id: String,
    /// 64 bytes in hexadecimal.
    pub value: String,
}

/// A payload with its token and signatures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct Block {
    /// What is signed.
    #[serde(flatten)]
    pub payload: BlockPayload,
    /// `sha256:` over the payload's RFC 8785 bytes.
    pub authorization_token: Digest,
    /// By keys on the supervisor's own list.
    pub signatures: Vec<BlockSignature>,
}

/// The block as it stands on an edge and in an outcome: the five fields of OS-011 §4.4 with this
/// project's extensions.
pub type Authorization = Block;
