//! Settings that live in the log's tables: agents, workspaces, devices, keys, and single values.

use bodyguard_protocol::{AgentName, AskId, Digest, Timestamp, WorkspaceName};
use serde::{Deserialize, Serialize};

/// An agent and what it may choose among.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRow {
    /// Its name.
    pub name: AgentName,
    /// The digest of its token; the token itself is never stored here.
    pub token_sha256: Digest,
    /// The workspaces assigned to it.
    pub workspaces: Vec<WorkspaceName>,
    /// When it was first added; kept when the row is replaced.
    pub added_at: Timestamp,
}

/// What acts in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceBody {
    /// This machine, with the person's own desktop.
    Host,
    /// This machine, with a desktop of each session's own.
    Private,
    /// A simulation in memory.
    Simulator,
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceRow {
    /// Its name.
    pub name: WorkspaceName,
    /// The root folder.
    pub root: String,
    /// What acts there.
    pub body: WorkspaceBody,
    /// The policy template it began with.
    pub template: String,
    /// Process names that count in its state hash.
    pub key_processes: Vec<String>,
    /// Environment variables that its commands see.
    pub env_allow: Vec<String>,
}

/// An input device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRow {
    /// Its name.
    pub name: String,
    /// `pointer` or `keyboard`.
    pub kind: String,
    /// Whether its events count as the person's.
    pub enrolled: bool,
}

/// A signing key's public half.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRow {
    /// `ed25519:…`.
    pub key_id: String,
    /// The public key in hexadecimal.
    pub public_key: String,
    /// Where the private half is.
    pub kept_in: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether new blocks are signed with it. At most one key is current.
    pub current: bool,
}

/// One change of settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "setting", rename_all = "snake_case")]
pub enum SettingChange {
    /// Adds an agent or replaces it.
    Agent(AgentRow),
    /// Removes an agent.
    AgentRemoved {
        /// Which.
        name: AgentName,
    },
    /// Adds a workspace or replaces it.
    Workspace(WorkspaceRow),
    /// Adds a device or replaces it.
    Device(DeviceRow),
    /// Removes a device.
    DeviceRemoved {
        /// Which.
        name: String,
    },
    /// Adds a key or replaces it; a current key takes the place of the one before.
    Key(KeyRow),
    /// Sets a single value, such as `phrase`.
    Value {
        /// Its name.
        key: String,
        /// The value.
        value: String,
    },
}

/// Who changed a setting, and why it was allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeNote {
    /// The person's name, or `bodyguard` for what happens by itself.
    pub by: String,
    /// The ask that decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_id: Option<AskId>,
    /// The input device that decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

impl ChangeNote {
    /// A change that nobody had to be asked about.
    pub fn by(who: impl Into<String>) -> Self {
        Self { by: who.into(), ask_id: None, device: None }
    }
}
