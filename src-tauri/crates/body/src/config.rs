//! What a body is given at its start.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The workspace, desktop and limits of one body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyConfig {
    /// The workspace's root folder, absolute.
    pub root: String,
    /// The X display, such as `:1`; none, no screen.
    pub display: Option<String>,
    /// Whether the display is one of the session's own, which its programs may use.
    #[serde(default)]
    pub private_desktop: bool,
    /// The cookie file of the display.
    pub xauthority: Option<String>,
    /// The address of the accessibility bus; never the session bus, where the keyring lives.
    pub at_spi_bus: Option<String>,
    /// Process names that count in the state.
    pub key_processes: Vec<String>,
    /// The workspace's own variables; their digest counts in the state, and commands see them.
    pub env_allow: BTreeMap<String, String>,
    /// Processes whose windows don't exist for the agent: the supervisor.
    pub hidden_pids: Vec<u32>,
    /// What is too much.
    pub limits: Limits,
}

impl BodyConfig {
    /// A body for a folder, without a display and with the limits that ship.
    pub fn for_root(root: impl Into<String>) -> Self {
        Self {
            root: root.into(),
            display: None,
            private_desktop: false,
            xauthority: None,
            at_spi_bus: None,
            key_processes: Vec::new(),
            env_allow: BTreeMap::new(),
            hidden_pids: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// Limits of a body, in bytes and counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The largest file that an edit touches.
    pub edit_bytes: u64,
    /// The largest file whose content is hashed in a listing.
    pub hash_bytes: u64,
    /// Entries of one listing.
    pub entries: usize,
    /// Entries of a snapshot of the whole workspace.
    pub snapshot_entries: usize,
    /// Bytes of all files of such a snapshot together.
    pub snapshot_bytes: u64,
    /// Output of one command and stream after which it is ended.
    pub output_bytes: u64,
    /// Processes and threads that one command may have.
    pub processes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            edit_bytes: 4 * 1024 * 1024,
            hash_bytes: 1024 * 1024,
            entries: 2_000,
            snapshot_entries: 50_000,
            snapshot_bytes: 1024 * 1024 * 1024,
            output_bytes: 64 * 1024 * 1024,
            processes: 1_024,
        }
    }
}
