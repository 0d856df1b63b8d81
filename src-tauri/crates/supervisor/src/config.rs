//! How a supervisor is started, and why it may not start.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use bodyguard_policy::PresenceRule;
use bodyguard_protocol::Clock;
use bodyguard_protocol::ui::HealthCheck;

/// Makes the presence rule from the names of the enrolled devices.
pub type PresenceFactory = Arc<dyn Fn(BTreeSet<String>) -> Arc<dyn PresenceRule> + Send + Sync>;

/// Looks at what works on this machine; may take some seconds and runs on a thread of its own.
pub type HealthProbe = Arc<dyn Fn() -> Vec<HealthCheck> + Send + Sync>;

/// How a supervisor is started.
#[derive(Clone)]
pub struct Config {
    /// The data folder; made by [`crate::init`] or at the first start.
    pub data_dir: PathBuf,
    /// The body host's program.
    pub body_program: PathBuf,
    /// The presence rule.
    pub presence: PresenceFactory,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The machine's health.
    pub health: HealthProbe,
    /// Whose things it uses.
    pub surroundings: Surroundings,
}

/// Whose signing key, display and variables a supervisor uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surroundings {
    /// The person's.
    Person,
    /// Nobody's: a new key that is only kept in memory, no display, no variables. A data folder that
    /// has a key already can't be signed for this way.
    Apart,
}

/// Why a supervisor didn't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another process owns the data folder.
    #[error("Bodyguard already runs on this data folder (process {pid})")]
    Owned {
        /// That process.
        pid: u32,
    },
    /// The log can't be opened.
    #[error("the log can't be opened: {0}")]
    Log(String),
    /// A folder can't be made or has the wrong modes.
    #[error("{path}: {source}")]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
