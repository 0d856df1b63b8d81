//! Parameters by action type. Unknown fields are refused; defaults are written out after parsing,
//! so that the digest covers them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Digest;

/// Runs a command in the workspace's containment. Exactly one of `command` and `argv`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellExec {
    /// Text for `sh -c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// A program and its arguments, run without a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// Variables added to the workspace's own environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Text for standard input; closed when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Milliseconds until the command is ended, 1 to 3,600,000.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// Whether the command may use the network. Not available in this version.
    #[serde(default)]
    pub network: bool,
    /// Bytes of output kept per stream (head and tail), up to 4 MiB.
    #[serde(default = "default_output_bytes")]
    pub max_output_bytes: u64,
}

/// Reads a regular file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRead {
    /// First byte.
    #[serde(default)]
    pub offset: u64,
    /// Bytes to read at most, up to 16 MiB.
    #[serde(default = "default_read_limit")]
    pub limit: u64,
    /// How the content comes back.
    #[serde(default)]
    pub encoding: TextEncoding,
}

/// How file content is carried in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TextEncoding {
    /// As text; refused with `not_utf8` where it isn't.
    #[default]
    Utf8,
    /// As base64.
    Base64,
}

/// Replaces exact text in a regular file, atomically.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileEdit {
    /// Replacements, applied in order, each to the result of the one before.
    pub edits: Vec<Edit>,
    /// The digest that the file must have before. Filled in at admission where the agent left it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_sha256: Option<Digest>,
}

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The exact text to find; not empty.
    pub old: String,
    /// What replaces it.
    pub new: String,
    /// How often `old` must occur; all occurrences are replaced.
    #[serde(default = "default_count")]
    pub expected_count: u64,
}

/// Captures a monitor, or a region of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScreenCapture {
    /// The image format.
    #[serde(default)]
    pub format: CaptureFormat,
    /// Pixels the picture is at most wide; scaled down beyond that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_width: Option<u32>,
    /// `[x, y, width, height]` in physical pixels of the monitor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<[u32; 4]>,
}

/// An image format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum CaptureFormat {
    #[default]
    Png,
    Jpeg,
}

impl CaptureFormat {
    /// The media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
        }
    }
}

const fn default_timeout_ms() -> u64 {
    120_000
}

const fn default_output_bytes() -> u64 {
    64 * 1024
}

const fn default_read_limit() -> u64 {
    1024 * 1024
}

const fn default_count() -> u64 {
    1
}
