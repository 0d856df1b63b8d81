//! What a perception asks for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::StateProfile;

/// The query modes of `&body.os`. Each is a policy action of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the specification's own")]
pub enum QueryMode {
    Screen,
    Filesystem,
    Process,
    Shell,
    Git,
    Full,
}

impl QueryMode {
    /// All modes.
    pub const ALL: [Self; 6] = [Self::Screen, Self::Filesystem, Self::Process, Self::Shell, Self::Git, Self::Full];
    /// What `full` is put together from.
    pub const PARTS: [Self; 5] = [Self::Filesystem, Self::Git, Self::Process, Self::Shell, Self::Screen];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Screen => "screen",
            Self::Filesystem => "filesystem",
            Self::Process => "process",
            Self::Shell => "shell",
            Self::Git => "git",
            Self::Full => "full",
        }
    }

    /// The policy action that governs it, such as `perceive_screen`.
    pub const fn policy_action(self) -> &'static str {
        match self {
            Self::Screen => "perceive_screen",
            Self::Filesystem => "perceive_filesystem",
            Self::Process => "perceive_process",
            Self::Shell => "perceive_shell",
            Self::Git => "perceive_git",
            Self::Full => "perceive_full",
        }
    }
}

/// A perception query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerceptionQuery {
    /// What to look at.
    #[serde(default = "default_mode")]
    pub mode: QueryMode,
    /// For `filesystem`: the folder to list, the workspace's root when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// For `filesystem`: levels to descend, 1 to 8.
    #[serde(default = "default_depth")]
    pub depth: u8,
    /// Which fields the state hash covers.
    #[serde(default)]
    pub profile: StateProfile,
}

impl Default for PerceptionQuery {
    fn default() -> Self {
        Self { mode: default_mode(), scope: None, depth: default_depth(), profile: StateProfile::default() }
    }
}

const fn default_mode() -> QueryMode {
    QueryMode::Filesystem
}

const fn default_depth() -> u8 {
    2
}
