//! What is recorded. Every record is one leaf: the RFC 8785 bytes of
//! `{v, kind, at, boot_ms, …}`, kept verbatim and never written anew. Fields that a later version
//! added are ignored when read and stay in the bytes.

mod acts;
mod asks;

use bodyguard_protocol::{
    ActionType, AskId, Block, Digest, ErrorCode, OutcomeStatus, QueryMode, ReplayOf, SessionId, StableFields,
    StateHash, StateProfile, Timestamp, TraceId, TraceOutcome, WorkspaceName,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use acts::{Intent, IntentRecord, Outcome, OutcomeRecord};
pub use asks::{AskMoved, AskRecord, MoveNote};

use crate::settings::{ChangeNote, SettingChange};

/// The version of every record of this program version.
pub const RECORD_VERSION: u32 = 1;

/// One leaf as it is hashed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// [`RECORD_VERSION`].
    pub v: u32,
    /// When it was recorded.
    pub at: Timestamp,
    /// The boot clock then, in milliseconds.
    pub boot_ms: u64,
    /// What.
    #[serde(flatten)]
    pub record: Record,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// The log's first leaf.
    Created(Created),
    /// The supervisor started.
    Started(Started),
    /// A session began, and its trace.
    SessionBegan(SessionBegan),
    /// A session ended, and its trace.
    SessionEnded(SessionEnded),
    /// An agent looked.
    Perceived(Box<Perceived>),
    /// An ask was opened; by [`crate::Log::open_ask`].
    AskOpened(Box<AskRecord>),
    /// An ask moved on; by [`crate::Log::move_ask`] and what implies a move.
    AskMoved(Box<AskMoved>),
    /// A block was signed.
    BlockIssued(Box<BlockIssued>),
    /// An act is about to happen; by [`crate::Log::commit_intent`].
    Intent(Box<Intent>),
    /// An act ended; by [`crate::Log::record_outcome`].
    Outcome(Box<Outcome>),
    /// An attempt that was refused without anything being done: the escalation of OS-011 §5.2. Acts
    /// by [`crate::Log::refuse_act`].
    Refused(Box<Refused>),
    /// An event on the decision bar that doesn't count as a person's.
    PresenceRefused(PresenceRefused),
    /// A setting changed; by [`crate::Log::change`].
    SettingChanged(SettingChanged),
    /// A policy text came into force.
    PolicyLoaded(PolicyLoaded),
    /// A person stopped everything.
    Stopped(Stopped),
    /// A person let agents go on.
    Resumed(Stopped),
    /// An act or a session was cut off; by [`crate::Log::recover`].
    Interrupted(Interrupted),
}

impl Record {
    /// The kind as it stands in the leaf.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Created(_) => "created",
            Self::Started(_) => "started",
            Self::SessionBegan(_) => "session_began",
            Self::SessionEnded(_) => "session_ended",
            Self::Perceived(_) => "perceived",
            Self::AskOpened(_) => "ask_opened",
            Self::AskMoved(_) => "ask_moved",
            Self::BlockIssued(_) => "block_issued",
            Self::Intent(_) => "intent",
            Self::Outcome(_) => "outcome",
            Self::Refused(_) => "refused",
            Self::PresenceRefused(_) => "presence_refused",
            Self::SettingChanged(_) => "setting_changed",
            Self::PolicyLoaded(_) => "policy_loaded",
            Self::Stopped(_) => "stopped",
            Self::Resumed(_) => "resumed",
            Self::Interrupted(_) => "interrupted",
        }
    }

    /// The trace it belongs to.
    pub fn trace_id(&self) -> Option<&TraceId> {
        match self {
            Self::SessionBegan(r) => Some(&r.trace_id),
            Self::SessionEnded(r) => Some(&r.trace_id),
            Self::Perceived(r) => Some(&r.trace_id),
            Self::AskOpened(r) => r.trace_id.as_ref(),
            Self::AskMoved(r) => r.trace_id.as_ref(),
            Self::BlockIssued(r) => Some(&r.block.payload.trace_id),
            Self::Intent(r) => Some(&r.trace_id),
            Self::Outcome(r) => Some(&r.trace_id),
            Self::Refused(r) => r.trace_id.as_ref(),
            Self::Interrupted(r) => Some(&r.trace_id),
            Self::Created(_)
            | Self::Started(_)
            | Self::PresenceRefused(_)
            | Self::SettingChanged(_)
            | Self::PolicyLoaded(_)
            | Self::Stopped(_)
            | Self::Resumed(_) => None,
        }
    }
}

/// The log's beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Created {
    /// 128 random bits in hexadecimal; the checkpoints' origin names it.
    pub log_id: String,
}

/// A start of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The program's version.
    pub version: String,
    /// The process.
    pub pid: u32,
    /// Which boot of the machine.
    pub boot_id: String,
}

/// A session's beginning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionBegan {
    /// The session.
    pub session_id: SessionId,
    /// Its trace.
    pub trace_id: TraceId,
    /// `name@workspace`.
    pub agent_id: String,
    /// The workspace.
    pub workspace: WorkspaceName,
    /// The workspace's root.
    pub workspace_root: String,
    /// `linux`, `macos` or `windows`.
    pub os_family: String,
    /// Which fields the state hashes cover.
    pub state_profile: StateProfile,
    /// What the agent said it wants; untrusted text.
    pub goal: Option<String>,
    /// Anything else worth keeping, such as the sandbox's level, or what the session replays.
    #[serde(default)]
    pub metadata: Value,
}

impl SessionBegan {
    /// What it replays, if it is a replay.
    pub fn replay_of(&self) -> Option<ReplayOf> {
        ReplayOf::deserialize(self.metadata.get("replay_of")?).ok()
    }
}

/// A session's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    /// The session.
    pub session_id: SessionId,
    /// Its trace.
    pub trace_id: TraceId,
    /// How the trace ended.
    pub outcome: TraceOutcome,
    /// Why it ended.
    pub reason: String,
}

/// A look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Perceived {
    /// The session.
    pub session_id: SessionId,
    /// Its trace.
    pub trace_id: TraceId,
    /// What was looked at.
    pub mode: QueryMode,
    /// The generation it dates its refs with.
    pub generation: u64,
    /// The state's hash.
    pub state_hash: StateHash,
    /// The rule that permitted it.
    pub policy_id: String,
    /// The block, where a person had to permit it. Used up by this record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Block>,
    /// The picture that the agent got, as a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<Digest>,
    /// What `state_hash` covers, so that a replay can say which field differs. Without the title of
    /// the focused window, which belongs to the screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenState>,
}

/// The stable fields of a state but for the focused window's title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each field is that of `StableFields`")]
pub struct SeenState {
    pub cwd: String,
    pub git_head: String,
    pub key_process_names: Vec<String>,
    pub env_fingerprint: Digest,
}

impl From<&StableFields> for SeenState {
    fn from(fields: &StableFields) -> Self {
        Self {
            cwd: fields.cwd.clone(),
            git_head: fields.git_head.clone(),
            key_process_names: fields.key_process_names.clone(),
            env_fingerprint: fields.env_fingerprint.clone(),
        }
    }
}

/// A signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockIssued {
    /// The block.
    pub block: Block,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// The escalation's id, as the agent was told.
    pub escalation_id: String,
    /// The session, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Its trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<TraceId>,
    /// `name@workspace`.
    pub agent_id: String,
    /// What was attempted; secrets are replaced before it is stored.
    pub attempted: Value,
    /// Why not.
    pub code: ErrorCode,
    /// One sentence.
    pub reason: String,
    /// The rule that denies, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_id: Option<String>,
    /// Where it stands in its trace, if it was an act of a known state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<RefusedEdge>,
}

/// The edge of an act that was refused (OS-011 §4.3): nothing was done, and the state stayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefusedEdge {
    /// From 1 in each trace, without gaps; given by [`crate::Log::refuse_act`].
    pub edge_id: u64,
    /// What kind of action.
    pub action_type: ActionType,
    /// The state as it was last seen.
    pub state: StateHash,
    /// `blocked`, or `failure` where the environment didn't permit it.
    pub status: OutcomeStatus,
    /// The ask that ended without a yes, or whose yes came to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_id: Option<AskId>,
}

/// An event that doesn't count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresenceRefused {
    /// The ask on the bar.
    pub ask_id: AskId,
    /// The event's source device, if it had one.
    pub device: Option<String>,
    /// `pointer` or `key`.
    pub event: String,
    /// Whether another client sent it.
    pub sent: bool,
    /// Why it doesn't count.
    pub reason: String,
}

/// A change of settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChanged {
    /// What changed.
    pub change: SettingChange,
    /// Who and why.
    pub note: ChangeNote,
}

/// A policy in force from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyLoaded {
    /// For which workspace.
    pub workspace: WorkspaceName,
    /// The digest of the text.
    pub digest: Digest,
    /// The text.
    pub text: String,
}

/// A stop or its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// Who, such as the person's name.
    pub by: String,
    /// By which way, such as `tray`.
    pub way: String,
}

/// Something that was cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupted {
    /// The session.
    pub session_id: SessionId,
    /// Its trace.
    pub trace_id: TraceId,
    /// The edge; absent where the session itself was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_id: Option<u64>,
    /// What cut it off.
    pub reason: String,
}
