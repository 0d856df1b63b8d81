use bodyguard_protocol::{ErrorCode, Fault};

/// Why a policy text isn't accepted, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct PolicyError {
    /// The file's name as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what helps if that is known.
    pub message: String,
}

impl From<PolicyError> for Fault {
    fn from(error: PolicyError) -> Self {
        Self::new(ErrorCode::InvalidArgument, error.to_string()).at("policy")
    }
}
