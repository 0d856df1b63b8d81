//! The one typed error that agents and the window switch on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A stable error code. Codes are never renamed or reused; new ones may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// A person must decide first; `escalation_id` names the ask.
    AuthorizationRequired,
    /// It was permitted and still runs; `escalation_id` names it for the next call.
    InProgress,
    /// A block, token or proof that doesn't hold: forged, expired, reused, foreign.
    AuthorizationFailure,
    /// The policy denies it. Nothing outside the policy is ever evaluated.
    DeniedByPolicy,
    /// A person said no.
    DeniedByPerson,
    /// Nobody decided in time. Not a denial by a person.
    Expired,
    /// The ask was taken back: its session ended, or the agent cancelled.
    Withdrawn,
    /// The ask was replaced by another.
    Superseded,
    /// It was cut off; it may have had effects and is never repeated by itself.
    Interrupted,
    /// A ref of an older perception (OS-011 §5.1).
    StaleRef,
    /// No perception since the last mutation (OS-011 §7.1).
    PerceiveRequired,
    /// What was approved is no longer what is there.
    StateChanged,
    /// A replay's state differs from the recorded one.
    StateHashMismatch,
    /// A replayed act came out, or would come out, otherwise than recorded.
    OutcomeMismatch,
    /// A trace recorded on another family of operating systems.
    OsFamilyMismatch,
    /// A trace or edge that can't be replayed: it still runs, was cut off, or isn't on record whole.
    NotReplayable,
    /// Not in the current affordance set (OS-011 §5.2).
    NotAfforded,
    /// A stated precondition doesn't hold.
    PreconditionFailed,
    /// A value of the wrong type or range.
    InvalidArgument,
    /// A field that isn't part of the schema.
    UnknownField,
    /// The same field twice.
    DuplicateField,
    /// A NUL byte in text that the system would cut there.
    NulByte,
    /// Not JSON.
    ParseError,
    /// A path outside the workspace, or one that leaves it through a link.
    OutsideWorkspace,
    /// No such file, window, process, trace or replay.
    NotFound,
    /// Something of that name is there already.
    AlreadyExists,
    /// A folder, pipe, device, socket or a file with several links.
    NotRegularFile,
    /// Larger than the stated limit.
    TooLarge,
    /// Not valid UTF-8 where text was asked for.
    NotUtf8,
    /// An edit whose `old` is empty.
    EmptyMatch,
    /// An edit whose `old` doesn't occur as often as expected.
    MatchCountMismatch,
    /// An edit whose `old` would match only with other line endings.
    LineEndingMismatch,
    /// The file isn't the one the caller named by hash.
    BeforeHashMismatch,
    /// Too long for a person to read before deciding.
    TooLongToReview,
    /// No such session, or another agent's.
    UnknownSession,
    /// A token that no agent has.
    UnknownAgent,
    /// A workspace that isn't assigned to this agent, whether or not it exists.
    WorkspaceNotAssigned,
    /// No such ask, or another agent's.
    UnknownEscalation,
    /// A limit on waiting asks, actions per hour, output or disk.
    BudgetExceeded,
    /// Part of OS-011, but not in this version.
    NotYetSupported,
    /// The signing key can't be reached, so nothing can be authorised.
    SignerUnavailable,
    /// No display for this action.
    NoDisplay,
    /// No containment on this machine, and the policy demands it.
    SandboxUnavailable,
    /// The program named isn't there.
    ProgramNotFound,
    /// It took longer than allowed.
    Timeout,
    /// The requester cancelled.
    Cancelled,
    /// The body host ended while acting.
    BodyLost,
    /// No room to record, so nothing may be done.
    NoRoomToRecord,
    /// The log can't be written.
    StorageFailure,
    /// A person is using keyboard or mouse of the same desktop.
    PersonActive,
    /// A person pressed stop.
    Stopped,
    /// Bodyguard isn't running, so there is nobody to ask.
    NotRunning,
    /// The operating system said no.
    PermissionDenied,
    /// A fault of ours.
    Internal,
}

/// A typed error: what happened, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What to switch on.
    pub code: ErrorCode,
    /// One plain sentence.
    pub message: String,
    /// The offending field as a path, such as `params.edits[0].old`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub field: Option<String>,
    /// What the caller can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub hint: Option<String>,
}

impl Fault {
    /// A fault with a code and a sentence.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), field: None, hint: None }
    }

    /// A value that doesn't fit, with the field's path.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message).at(field)
    }

    /// Names the offending field.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Says what the caller can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A fault of ours, not the caller's.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }
}
