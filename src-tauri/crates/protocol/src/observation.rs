//! Observations (OS-011 §3.2, §6.2).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::{Digest, Provenance, StateHash, StateProfile, Timestamp};

/// One perception of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// Always `os`.
    pub body_subtype: String,
    /// The hash of the stable fields.
    pub state_hash: StateHash,
    /// Which fields the hash covers.
    pub state_profile: StateProfile,
    /// When.
    pub observed_at: Timestamp,
    /// What this perception's refs are dated with.
    pub generation: u64,
    /// The stable fields, and what the mode adds: `entries`, `processes`, `env` and `history`, `monitors` and
    /// `windows`.
    pub payload: Value,
    /// What each ref names.
    pub refs: BTreeMap<String, RefInfo>,
    /// Who observed.
    pub provenance: Provenance,
}

/// What a ref names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields of the things named")]
pub enum RefInfo {
    File { path: String, file_kind: FileKind },
    Monitor { index: u32, name: String, width: u32, height: u32 },
    Process { command: String },
    Window { title: String, app: String },
}

/// What an entry of a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum FileKind {
    File,
    Folder,
    Link,
    Other,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// The ref of this perception; empty until the supervisor dates it.
    #[serde(rename = "ref", default)]
    pub reference: String,
    /// The absolute path, lossless: bytes that aren't UTF-8 as `\u{fffd}` with `path_exact` false.
    pub path: String,
    /// Whether `path` names the file exactly.
    pub path_exact: bool,
    /// What it is.
    pub kind: FileKind,
    /// Bytes.
    pub size: u64,
    /// Octal permissions, such as `0644`.
    pub permissions: String,
    /// Whether the body can write it.
    pub writable: bool,
    /// Digest of the content of small regular files (1 MiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<Digest>,
}

/// A process that the session's commands started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessEntry {
    /// The ref of this perception; empty until the supervisor dates it.
    #[serde(rename = "ref", default)]
    pub reference: String,
    /// How an action names it without a ref: `process:` with its number and when it started.
    #[serde(default)]
    pub target: String,
    /// The words that it was started with.
    pub command: String,
    /// `running`, `sleeping`, `waiting`, `stopped` or `ended`.
    pub state: String,
    /// Of a spawned program that ended: its exit code; absent where a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Of a spawned program that a signal ended: which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Of a spawned program: the end of what it wrote to standard output and standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tail: Option<String>,
}

/// A repository's state, read without running any program of the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct GitState {
    /// `sha1:…`, `sha256:…`, `unborn:<branch>`, or `none` without a repository.
    pub head: String,
    /// The branch; absent when detached or without a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub branch: Option<String>,
    /// Whether tracked files differ from HEAD or the index; absent without a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub dirty: Option<bool>,
}

/// A monitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it; pixels are physical")]
pub struct MonitorInfo {
    pub index: u32,
    pub name: String,
    pub x: i32,
    pub y: i32,
    pub width: u32,
    pub height: u32,
    /// Physical pixels per logical pixel.
    pub scale: String,
}

/// A window that isn't the supervisor's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it; pixels are physical")]
pub struct WindowInfo {
    /// The ref of this perception; empty until the supervisor dates it.
    #[serde(rename = "ref", default)]
    pub reference: String,
    /// How an action names it without a ref: `window:` and its number.
    #[serde(default)]
    pub target: String,
    pub title: String,
    pub app: String,
    pub x: i32,
    pub y: i32,
    pub width: u32,
    pub height: u32,
    pub focused: bool,
    /// Whether what is typed there can run commands, as in a terminal or a launcher.
    #[serde(default)]
    pub runs_commands: bool,
}
