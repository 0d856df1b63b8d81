//! The closed set of eleven typed actions (OS-011 §3.3) and their parameters.

mod check;
mod keys;
mod params;
mod parse;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use ts_rs::TS;

pub use keys::{Chord, Key, Modifier};
pub use params::{
    CaptureFormat, ClickPhase, Edit, FileDelete, FileEdit, FileRead, FileWrite, KeyboardInput, MouseButton, MouseClick,
    MouseDrag, ProcessSignal, ProcessSpawn, ScreenCapture, ShellExec, Signal, TextEncoding, WriteMode,
};
pub use parse::ActRequest;

use crate::{Digest, Fault, canonical_digest};

/// What kind of action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the specification's own")]
pub enum ActionType {
    ShellExec,
    FileRead,
    FileWrite,
    FileEdit,
    FileDelete,
    KeyboardInput,
    MouseClick,
    MouseDrag,
    ScreenCapture,
    ProcessSpawn,
    ProcessSignal,
}

impl ActionType {
    /// All eleven, in the specification's order.
    pub const ALL: [Self; 11] = [
        Self::ShellExec,
        Self::FileRead,
        Self::FileWrite,
        Self::FileEdit,
        Self::FileDelete,
        Self::KeyboardInput,
        Self::MouseClick,
        Self::MouseDrag,
        Self::ScreenCapture,
        Self::ProcessSpawn,
        Self::ProcessSignal,
    ];

    /// The name on the wire, such as `shell_exec`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ShellExec => "shell_exec",
            Self::FileRead => "file_read",
            Self::FileWrite => "file_write",
            Self::FileEdit => "file_edit",
            Self::FileDelete => "file_delete",
            Self::KeyboardInput => "keyboard_input",
            Self::MouseClick => "mouse_click",
            Self::MouseDrag => "mouse_drag",
            Self::ScreenCapture => "screen_capture",
            Self::ProcessSpawn => "process_spawn",
            Self::ProcessSignal => "process_signal",
        }
    }

    /// Whether the action changes the world, so that it needs an authorization block.
    pub const fn is_destructive(self) -> bool {
        !matches!(self, Self::FileRead | Self::ScreenCapture)
    }

    /// Whether it works the keyboard or the mouse.
    pub const fn is_input(self) -> bool {
        matches!(self, Self::KeyboardInput | Self::MouseClick | Self::MouseDrag)
    }
}

/// One typed action in its canonical shape (OS-011 §6.3). After admission `target` is the resolved
/// path, monitor or window, no longer a ref, so that the digest names the thing itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TypedAction {
    /// What kind of action.
    #[serde(rename = "type")]
    pub kind: ActionType,
    /// A ref, an absolute path, `monitor:N`, `window:N`, `point:X,Y` (physical pixels of the desktop) or
    /// `process:N`. For `shell_exec` the working directory, for `process_spawn` the program.
    pub target: String,
    /// The parameters of this type.
    pub params: Params,
    /// Affordance ids that must hold when the action is admitted.
    #[serde(default)]
    pub preconditions: Vec<String>,
}

/// The parameters are read as those of the type: several types' parameters look alike.
impl<'de> Deserialize<'de> for TypedAction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw {
            #[serde(rename = "type")]
            kind: ActionType,
            target: String,
            params: Value,
            #[serde(default)]
            preconditions: Vec<String>,
        }
        let Raw { kind, target, params, preconditions } = Raw::deserialize(deserializer)?;
        let params = Params::read(kind, params).map_err(D::Error::custom)?;
        Ok(Self { kind, target, params, preconditions })
    }
}

impl TypedAction {
    /// The digest that a block authorises: RFC 8785 over the whole action.
    ///
    /// # Errors
    /// As [`canonical_digest`].
    pub fn digest(&self) -> Result<Digest, Fault> {
        canonical_digest(self)
    }
}

/// The parameters by action type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(missing_docs, reason = "each variant is its type's parameters")]
pub enum Params {
    ShellExec(ShellExec),
    FileRead(FileRead),
    FileWrite(FileWrite),
    FileEdit(FileEdit),
    FileDelete(FileDelete),
    KeyboardInput(KeyboardInput),
    MouseClick(MouseClick),
    MouseDrag(MouseDrag),
    ScreenCapture(ScreenCapture),
    ProcessSpawn(ProcessSpawn),
    ProcessSignal(ProcessSignal),
}

impl Params {
    /// The parameters of an action of this type.
    ///
    /// # Errors
    /// Where they aren't.
    pub(crate) fn read(kind: ActionType, value: Value) -> Result<Self, serde_path_to_error::Error<serde_json::Error>> {
        use serde_path_to_error::deserialize as from_value;
        match kind {
            ActionType::ShellExec => from_value(value).map(Self::ShellExec),
            ActionType::FileRead => from_value(value).map(Self::FileRead),
            ActionType::FileWrite => from_value(value).map(Self::FileWrite),
            ActionType::FileEdit => from_value(value).map(Self::FileEdit),
            ActionType::FileDelete => from_value(value).map(Self::FileDelete),
            ActionType::KeyboardInput => from_value(value).map(Self::KeyboardInput),
            ActionType::MouseClick => from_value(value).map(Self::MouseClick),
            ActionType::MouseDrag => from_value(value).map(Self::MouseDrag),
            ActionType::ScreenCapture => from_value(value).map(Self::ScreenCapture),
            ActionType::ProcessSpawn => from_value(value).map(Self::ProcessSpawn),
            ActionType::ProcessSignal => from_value(value).map(Self::ProcessSignal),
        }
    }
}
