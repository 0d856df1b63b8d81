//! What can go wrong with the log.

use std::path::PathBuf;

use bodyguard_protocol::ui::AskState;
use bodyguard_protocol::{AskId, Digest, ErrorCode, Fault};

/// A log operation that wasn't done. Nothing of it is stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Another process owns the data folder. 0 where its number can't be read.
    #[error("the data folder is in use by process {pid}")]
    Owned {
        /// The owner's process.
        pid: u32,
    },
    /// The log was written by a newer version. Its files are left as they are.
    #[error("the log has format {found}, and this version knows formats up to {known}; use a newer version")]
    Newer {
        /// The format found.
        found: u32,
        /// The newest format this version knows.
        known: u32,
    },
    /// The file isn't a log of this program.
    #[error("{} is not a log of this program", .0.display())]
    Foreign(PathBuf),
    /// The folder belongs to another user.
    #[error("{} belongs to another user", .0.display())]
    Exposed(PathBuf),
    /// There is no log yet.
    #[error("there is no log in {}", .0.display())]
    NoLog(PathBuf),
    /// The ask isn't in the state that the move starts from.
    #[error("the request is already {actual:?}")]
    AskConflict {
        /// Where it stands.
        actual: AskState,
    },
    /// The ask machine has no such arrow.
    #[error("a request can't go from {from:?} to {to:?}")]
    IllegalMove {
        /// From.
        from: AskState,
        /// To.
        to: AskState,
    },
    /// No such ask.
    #[error("there is no request {0}")]
    UnknownAsk(AskId),
    /// The ask exists already.
    #[error("the request {0} exists already")]
    AskExists(AskId),
    /// What is said to be shown isn't what the digest is of.
    #[error("the shown digest isn't the digest of what is shown")]
    ShownMismatch,
    /// No such session.
    #[error("there is no such session")]
    UnknownSession,
    /// The session exists already, or its trace does.
    #[error("the session exists already")]
    SessionExists,
    /// The session ended.
    #[error("the session has ended")]
    SessionEnded,
    /// A destructive act without a block.
    #[error("a destructive act needs an authorization block")]
    BlockMissing,
    /// The block is for something else; the field says what differs.
    #[error("the authorization block is for another {0}")]
    BlockMismatch(&'static str),
    /// The block was used before.
    #[error("the authorization block was used before")]
    BlockUsed,
    /// The digest isn't the action's.
    #[error("the action digest isn't the digest of the action")]
    ActionMismatch,
    /// No such edge.
    #[error("there is no such edge")]
    UnknownEdge,
    /// The edge has its outcome already.
    #[error("the edge has ended already")]
    EdgeEnded,
    /// No such trace.
    #[error("there is no such trace")]
    UnknownTrace,
    /// A record that has a function of its own.
    #[error("a `{0}` record can't be appended by itself")]
    NotAppendable(&'static str),
    /// A value that canonical JSON can't carry.
    #[error("not representable: {0}")]
    Unrepresentable(Fault),
    /// A record that doesn't read back.
    #[error("leaf {seq} doesn't read back: {reason}")]
    Unreadable {
        /// Which leaf.
        seq: u64,
        /// Why.
        reason: String,
    },
    /// The disk is full, or so nearly that an outcome might not fit.
    #[error("no room to record: {0}")]
    NoRoom(String),
    /// The storage failed.
    #[error("the log can't be used: {0}")]
    Storage(String),
    /// No such blob.
    #[error("there is no blob {0}")]
    BlobMissing(Digest),
    /// The blob's bytes aren't what its name says.
    #[error("the blob {0} was changed")]
    BlobChanged(Digest),
    /// There is no signed checkpoint that covers the trace's beginning.
    #[error("no signed checkpoint covers this trace yet")]
    NoCheckpoint,
    /// The log was closed.
    #[error("the log is closed")]
    Closed,
}

impl LogError {
    /// Whether the storage itself failed, so that nothing of a whole transaction holds.
    pub(crate) const fn is_storage(&self) -> bool {
        matches!(self, Self::NoRoom(_) | Self::Storage(_))
    }

    /// An I/O error with what was tried.
    pub(crate) fn io(what: &str, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Self::NoRoom(format!("{what}: {error}"))
            }
            _ => Self::Storage(format!("{what}: {error}")),
        }
    }
}

impl From<rusqlite::Error> for LogError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::NoRoom(error.to_string()),
            Some(_) | None => Self::Storage(error.to_string()),
        }
    }
}

impl From<LogError> for Fault {
    fn from(error: LogError) -> Self {
        let code = match &error {
            LogError::NoRoom(_) => ErrorCode::NoRoomToRecord,
            LogError::UnknownAsk(_) => ErrorCode::UnknownEscalation,
            LogError::UnknownSession | LogError::SessionEnded => ErrorCode::UnknownSession,
            LogError::BlockMissing => ErrorCode::AuthorizationRequired,
            LogError::BlockMismatch(_) | LogError::BlockUsed | LogError::ActionMismatch => {
                ErrorCode::AuthorizationFailure
            }
            LogError::AskConflict { actual } => conflict_code(*actual),
            LogError::BlobMissing(_) | LogError::UnknownTrace | LogError::UnknownEdge => ErrorCode::NotFound,
            LogError::Unrepresentable(fault) => fault.code,
            LogError::IllegalMove { .. }
            | LogError::AskExists(_)
            | LogError::ShownMismatch
            | LogError::SessionExists
            | LogError::EdgeEnded
            | LogError::NotAppendable(_) => ErrorCode::Internal,
            LogError::Owned { .. }
            | LogError::Newer { .. }
            | LogError::Foreign(_)
            | LogError::Exposed(_)
            | LogError::NoLog(_)
            | LogError::Unreadable { .. }
            | LogError::Storage(_)
            | LogError::BlobChanged(_)
            | LogError::NoCheckpoint
            | LogError::Closed => ErrorCode::StorageFailure,
        };
        Self::new(code, error.to_string())
    }
}

const fn conflict_code(actual: AskState) -> ErrorCode {
    match actual {
        AskState::Denied => ErrorCode::DeniedByPerson,
        AskState::Expired => ErrorCode::Expired,
        AskState::Withdrawn => ErrorCode::Withdrawn,
        AskState::Superseded => ErrorCode::Superseded,
        AskState::Interrupted => ErrorCode::Interrupted,
        AskState::Open => ErrorCode::AuthorizationRequired,
        AskState::Approved | AskState::Claimed | AskState::Executing | AskState::Done => {
            ErrorCode::AuthorizationFailure
        }
    }
}
