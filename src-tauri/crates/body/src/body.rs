//! The contract between the supervisor and a body.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use bodyguard_policy::ViewScope;
use bodyguard_protocol::ui::HealthCheck;
use bodyguard_protocol::{
    Digest, Fault, FileEntry, FileKind, GitState, MonitorInfo, OutcomeStatus, PerceptionQuery, ProcessEntry,
    StableFields, TypedAction, WindowInfo,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::Permit;

/// A boxed future of a body's answer.
pub type BodyFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// The body of one session.
///
/// Every method but [`Body::act`] is free of side effects (OS-011 §5.7). Faults carry the codes of
/// `protocol`; `body_lost` means that the body ended, and that an act in flight may have happened.
pub trait Body: Send + Sync {
    /// What contains the commands of this body: known from the start, and part of every binding.
    fn sandbox(&self) -> SandboxInfo;

    /// The stable fields (OS-011 §5.3) with `cwd`, an absolute path or one relative to the root.
    ///
    /// # Errors
    /// `outside_workspace`, `not_found`; `not_yet_supported` where the repository can't be read
    /// truthfully, such as one with reftable.
    fn stable<'a>(&'a self, cwd: &'a str) -> BodyFuture<'a, StableState>;

    /// Looks, within a scope that the policy opened.
    ///
    /// # Errors
    /// `denied_by_policy` where the scope is for another mode or root; `no_display`,
    /// `outside_workspace`, `not_found`, `not_yet_supported`.
    fn perceive(&self, scope: ViewScope, query: PerceptionQuery) -> BodyFuture<'_, Perception>;

    /// Resolves an action's target and freezes what it is bound to. Only after the policy did not
    /// deny it, because the answer tells what exists. Inspecting a resolved action again gives the
    /// same resolved action, and the same binding as long as nothing it is bound to has changed.
    ///
    /// # Errors
    /// Whatever would keep the action from being carried out, such as `match_count_mismatch`.
    fn inspect<'a>(&'a self, action: &'a TypedAction) -> BodyFuture<'a, Inspection>;

    /// Whether what a resolved action is bound to is still what was approved.
    ///
    /// # Errors
    /// `state_changed`, with what changed.
    fn recheck<'a>(&'a self, resolved: &'a TypedAction, binding: &'a Value) -> BodyFuture<'a, ()>;

    /// Carries out exactly the action that the permit names, once. The body compares the action's
    /// digest and the binding with the permit again at the moment of acting.
    ///
    /// # Errors
    /// `authorization_failure` where the permit is for another action, `state_changed` where the
    /// binding no longer holds; in both cases nothing was done. `body_lost` where it may have been.
    fn act(&self, permit: Permit, resolved: TypedAction, cancel: CancellationToken) -> BodyFuture<'_, Effect>;

    /// How the parts of this body stand.
    fn health(&self) -> BodyFuture<'_, Vec<HealthCheck>>;
}

/// The stable fields and what goes with them in a payload (OS-011 §6.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StableState {
    /// What the state hash covers.
    pub fields: StableFields,
    /// The application of the focused window; not hashed.
    pub focused_app: String,
    /// The repository of the working directory.
    pub git: GitState,
}

/// What a perception found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Perception {
    /// The stable fields.
    pub state: StableState,
    /// What the mode adds to the payload, without entries, monitors, windows and pixels.
    pub payload: Value,
    /// Mode `filesystem` with the profile `bodyos.readme.v0`: the digest over all that is in the workspace.
    pub fs_snapshot: Option<Digest>,
    /// Mode `filesystem`: entries sorted by path, their `reference` still empty.
    pub entries: Vec<FileEntry>,
    /// Mode `process`: what the session's commands started, their `reference` still empty.
    pub processes: Vec<ProcessEntry>,
    /// Mode `screen`: the monitors.
    pub monitors: Vec<MonitorInfo>,
    /// Mode `screen`: the windows that aren't the supervisor's own, topmost first.
    pub windows: Vec<WindowInfo>,
    /// Mode `screen`: the first monitor.
    #[serde(skip)]
    pub image: Option<Image>,
}

/// An action, resolved and bound, with what a person needs to see of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// The action with its target resolved and `before_sha256` filled in.
    pub resolved: TypedAction,
    /// What it is bound to. Its canonical digest is the block's `binding_digest`.
    pub binding: Value,
    /// What it would do.
    pub review: Review,
    /// What is expected of it (OS-011 §8.1).
    pub prediction: Value,
}

/// What an action would do, exact and unescaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Review {
    /// A command, or a program that goes on.
    Command {
        /// The program that is started; for text, the shell.
        program: Program,
        /// Files of the workspace that it would run, as far as can be told from its words.
        scripts: Vec<Script>,
        /// The absolute working directory.
        cwd: String,
        /// The whole environment it runs with.
        env: BTreeMap<String, String>,
    },
    /// A change of a file.
    Edit {
        /// The real file, after following links.
        path: String,
        /// The text before. Where the file isn't UTF-8, each foreign byte `b` stands as the private
        /// character U+10FE00 + b, so that different bytes never look alike.
        before: String,
        /// The text after, in the same way.
        after: String,
        /// The offset of the first byte that isn't UTF-8.
        first_foreign_byte: Option<u64>,
        /// Bytes before.
        bytes_before: u64,
        /// Bytes after.
        bytes_after: u64,
        /// Whether the place runs code later, such as a hook.
        runs_later: bool,
    },
    /// A file that is made.
    New {
        /// Where.
        path: String,
        /// Its text, as in [`Review::Edit`].
        text: String,
        /// The offset of the first byte that isn't UTF-8.
        first_foreign_byte: Option<u64>,
        /// Bytes.
        bytes: u64,
        /// Permission bits in octal.
        permissions: String,
        /// Whether the place runs code later.
        runs_later: bool,
    },
    /// A file or folder that is deleted.
    Delete {
        /// Where.
        path: String,
        /// All that goes: itself first, with an empty path.
        entries: Vec<DeletedEntry>,
        /// Whether the place runs code later.
        runs_later: bool,
    },
    /// A look at a file.
    Read {
        /// The real file, after following links.
        path: String,
        /// Bytes.
        size: u64,
    },
    /// Keys or clicks.
    Input {
        /// The window that gets them; none where the pointer only moves over nothing.
        window: Option<WindowInfo>,
        /// Where, in physical pixels of the desktop.
        point: Option<(i32, i32)>,
    },
    /// A signal.
    Signal {
        /// The words that the process was started with.
        command: String,
    },
    /// A picture.
    Capture {
        /// The monitor's name.
        monitor: String,
        /// Physical pixels of the captured region.
        width: u32,
        /// Physical pixels of the captured region.
        height: u32,
    },
}

/// One thing that is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedEntry {
    /// Relative to what is deleted.
    pub path: String,
    /// What kind.
    pub kind: FileKind,
    /// Bytes; 0 for a folder.
    pub size: u64,
}

/// A program as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The name as it was written.
    pub name: String,
    /// Where it is.
    pub path: String,
    /// The digest of its content, which the binding pins.
    pub sha256: Digest,
    /// Whether it lies in the workspace, where the agent can write.
    pub inside_workspace: bool,
}

/// A file of the workspace that a command would run; the binding pins its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// The absolute path.
    pub path: String,
    /// The digest of its content.
    pub sha256: Digest,
}

/// What came of an act.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// How it ended. A command that ran and exited other than 0 is a `failure` without `error`.
    pub status: OutcomeStatus,
    /// Evidence by action type.
    pub observed: Value,
    /// Why not, if the body cut it off or could not start it.
    pub error: Option<Fault>,
    /// The picture of a capture.
    #[serde(skip)]
    pub image: Option<Image>,
    /// Milliseconds it took.
    pub latency_ms: u64,
}

/// An encoded picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// `image/png` or `image/jpeg`.
    pub media_type: String,
    /// The encoded file.
    pub bytes: Vec<u8>,
    /// Pixels of the picture.
    pub width: u32,
    /// Pixels of the picture.
    pub height: u32,
    /// Pixels of the picture per physical pixel, at most 1.
    pub scale: f64,
}

/// What contains the commands of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxInfo {
    /// How strong it is, as the self-test found at the start.
    pub level: SandboxLevel,
    /// The digest over level and facts: the block's `sandbox_digest`.
    pub digest: Digest,
    /// Label and value, for people: network, files, user.
    pub facts: Vec<(String, String)>,
}

/// How strong a containment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// Namespaces by bubblewrap, tested.
    Bubblewrap,
    /// Nothing real runs.
    Simulated,
    /// None: commands are refused with `sandbox_unavailable`.
    None,
}
