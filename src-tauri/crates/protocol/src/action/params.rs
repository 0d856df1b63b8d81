//! Parameters by action type. Unknown fields are refused; defaults are written out after parsing,
//! so that the digest covers them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::keys::{Chord, Modifier};
use crate::{Digest, Fault};

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

/// Writes a regular file, atomically. Exactly one of `content` and `content_base64`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileWrite {
    /// The content as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The content as base64, for bytes that aren't text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_base64: Option<String>,
    /// What becomes of a file that is there already.
    #[serde(default)]
    pub mode: WriteMode,
    /// Permission bits of a new file in octal, `0644` when absent. A file that is there keeps its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// The digest that the content must have, as a check on its way here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_sha256: Option<Digest>,
    /// The digest that the file must have before. Filled in at admission where the agent left it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_sha256: Option<Digest>,
}

impl FileWrite {
    /// The bytes to write.
    ///
    /// # Errors
    /// `invalid_argument` unless exactly one of `content` and valid `content_base64` is there.
    pub fn bytes(&self) -> Result<Vec<u8>, Fault> {
        match (&self.content, &self.content_base64) {
            (Some(text), None) => Ok(text.clone().into_bytes()),
            (None, Some(text)) => BASE64
                .decode(text)
                .map_err(|error| Fault::invalid("action.params.content_base64", format!("not base64: {error}"))),
            _ => Err(Fault::invalid("action.params.content", "give exactly one of `content` and `content_base64`")),
        }
    }

    /// The permission bits of a new file.
    ///
    /// # Errors
    /// `invalid_argument` where they aren't three octal digits, with or without a leading zero.
    pub fn permission_bits(&self) -> Result<u32, Fault> {
        let text = self.permissions.as_deref().unwrap_or("0644");
        let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
        let bits = u32::from_str_radix(digits, 8).ok().filter(|_| digits.len() == 3 && !digits.starts_with('+'));
        let help = "three octal digits such as `0644`; bits that lend a program's rights aren't set";
        bits.ok_or_else(|| Fault::invalid("action.params.permissions", help))
    }
}

/// What a write does with a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteMode {
    /// Refuses it with `already_exists`: makes a new file only.
    #[default]
    Create,
    /// Replaces its content; the file must be there.
    Overwrite,
    /// Adds to its end; the file must be there.
    Append,
}

/// Deletes a regular file, or a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileDelete {
    /// Whether a folder may be deleted with all that is in it.
    #[serde(default)]
    pub recursive: bool,
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

/// Types text, or presses keys, in a window. Exactly one of `text` and `keys`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyboardInput {
    /// Text to type, any Unicode; a newline is Enter, a tab is Tab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Chords to press one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<Chord>>,
    /// Milliseconds that each chord stays down, up to 10,000.
    #[serde(default)]
    pub hold_ms: u64,
    /// Whether the text is a secret: the record holds a commitment in its place.
    #[serde(default)]
    pub secret: bool,
}

/// Clicks at a point, turns the wheel there, or only moves the pointer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MouseClick {
    /// Which button, or which way to turn the wheel; `none` only moves.
    #[serde(default)]
    pub button: MouseButton,
    /// How often: 1 to 3, of a wheel 1 to 50; 0 for `none`. 1 (or 0 for `none`) when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clicks: Option<u32>,
    /// Keys held meanwhile.
    #[serde(default)]
    pub modifiers: Vec<Modifier>,
    /// Which half of a click.
    #[serde(default)]
    pub phase: ClickPhase,
}

/// Drags from the target along points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MouseDrag {
    /// Points after the first, `[x, y]` in physical pixels of the desktop; 1 to 256.
    pub path: Vec<[i32; 2]>,
    /// The button that is held; no wheel.
    #[serde(default)]
    pub button: MouseButton,
    /// Milliseconds from first to last point, up to 10,000.
    #[serde(default = "default_drag_ms")]
    pub duration_ms: u64,
    /// Keys held meanwhile.
    #[serde(default)]
    pub modifiers: Vec<Modifier>,
}

/// A button of the mouse, a turn of its wheel, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum MouseButton {
    #[default]
    Left,
    Right,
    Middle,
    Back,
    Forward,
    WheelUp,
    WheelDown,
    WheelLeft,
    WheelRight,
    None,
}

impl MouseButton {
    /// Whether it turns the wheel.
    pub const fn is_wheel(self) -> bool {
        matches!(self, Self::WheelUp | Self::WheelDown | Self::WheelLeft | Self::WheelRight)
    }
}

/// Which half of a click.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClickPhase {
    /// Down and up.
    #[default]
    Click,
    /// Down; the button is let go by `up`, at the latest after ten seconds.
    Down,
    /// Up.
    Up,
}

/// Starts a program in the workspace's containment; it runs until it ends, or the session does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessSpawn {
    /// The program's arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// The working directory; the workspace's root when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables added to the workspace's own environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Whether the program may use the network. Not available in this version.
    #[serde(default)]
    pub network: bool,
}

/// Sends a signal to a process of the session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessSignal {
    /// Which.
    #[serde(default)]
    pub signal: Signal,
}

/// A signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the system's own")]
pub enum Signal {
    #[serde(rename = "SIGHUP", alias = "HUP")]
    Hup,
    #[serde(rename = "SIGINT", alias = "INT")]
    Int,
    #[serde(rename = "SIGQUIT", alias = "QUIT")]
    Quit,
    #[serde(rename = "SIGKILL", alias = "KILL")]
    Kill,
    #[serde(rename = "SIGUSR1", alias = "USR1")]
    Usr1,
    #[serde(rename = "SIGUSR2", alias = "USR2")]
    Usr2,
    #[default]
    #[serde(rename = "SIGTERM", alias = "TERM")]
    Term,
    #[serde(rename = "SIGCONT", alias = "CONT")]
    Cont,
    #[serde(rename = "SIGSTOP", alias = "STOP")]
    Stop,
}

impl Signal {
    /// The name, such as `SIGTERM`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hup => "SIGHUP",
            Self::Int => "SIGINT",
            Self::Quit => "SIGQUIT",
            Self::Kill => "SIGKILL",
            Self::Usr1 => "SIGUSR1",
            Self::Usr2 => "SIGUSR2",
            Self::Term => "SIGTERM",
            Self::Cont => "SIGCONT",
            Self::Stop => "SIGSTOP",
        }
    }
}

const fn default_drag_ms() -> u64 {
    300
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
