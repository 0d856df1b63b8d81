//! The same contract in memory: for conformance, and for trying things without a world.
//!
//! Deterministic: equal configurations and equal calls give equal answers, pictures among them.

mod input;
mod programs;
mod shell;
mod world;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bodyguard_policy::ViewScope;
use bodyguard_protocol::action::{FileWrite, WriteMode};
use bodyguard_protocol::ui::{CheckStatus, HealthCheck};
use bodyguard_protocol::{
    ActionType, Digest, ErrorCode, Fault, FileEntry, FileKind, GitState, MonitorInfo, OutcomeStatus, Params,
    PerceptionQuery, QueryMode, StableFields, StateProfile, TypedAction, WindowInfo, canonical_digest,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::body::{Body, BodyFuture};
use crate::client::check_scope;
use crate::edit::lossless_text;
use crate::host::{fingerprint, observed_read, region_of};
use crate::{
    DeletedEntry, Effect, Inspection, Limits, Perception, Permit, Program, Review, SandboxInfo, SandboxLevel,
    StableState, apply_edits, changes_what_runs_later, runs_later,
};
use input::Typed;
use programs::Programs;
use world::{World, monitor, picture};

/// What a simulated workspace holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatorConfig {
    /// The root as targets name it, absolute.
    pub root: String,
    /// Files by path relative to the root.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The repository's state.
    pub git: GitState,
    /// The key processes that "run".
    pub key_processes: Vec<String>,
    /// The workspace's variables.
    pub env_allow: BTreeMap<String, String>,
    /// The focused window's title.
    pub focused_title: String,
    /// The focused window's application.
    pub focused_app: String,
}

impl SimulatorConfig {
    /// A small project: a readme, a source file, a repository with one commit, an editor in front.
    pub fn for_root(root: &str) -> Self {
        let files = [("README.md", "# Sample\n"), ("src/main.rs", "fn main() {\n    println!(\"hello\");\n}\n")];
        Self {
            root: root.trim_end_matches('/').to_owned(),
            files: files.into_iter().map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).collect(),
            git: GitState {
                head: "sha1:8f3c2a1d9b7e6f5a4c3b2a1908f7e6d5c4b3a291".to_owned(),
                branch: Some("main".to_owned()),
                dirty: Some(false),
            },
            key_processes: Vec::new(),
            env_allow: BTreeMap::new(),
            focused_title: "main.rs - Editor".to_owned(),
            focused_app: "Editor".to_owned(),
        }
    }
}

/// Files and a screen that several bodies can act on, as several sessions do on one folder.
#[derive(Debug, Clone)]
pub struct SimulatedWorld(Arc<Mutex<World>>);

impl SimulatedWorld {
    /// A new one.
    pub fn new(config: &SimulatorConfig) -> Self {
        Self(Arc::new(Mutex::new(World {
            root: config.root.clone(),
            files: config.files.clone(),
            dirty: config.git.dirty,
            typed: Typed::default(),
        })))
    }
}

/// A body without a world outside of this process.
#[derive(Debug)]
pub struct SimulatorBody {
    config: SimulatorConfig,
    sandbox: SandboxInfo,
    limits: Limits,
    world: SimulatedWorld,
    programs: Mutex<Programs>,
}

impl SimulatorBody {
    /// A body over the files of a configuration, alone with them.
    pub fn new(config: SimulatorConfig) -> Self {
        let world = SimulatedWorld::new(&config);
        Self::in_world(config, world)
    }

    /// A body beside others in a world of the same configuration.
    pub fn in_world(config: SimulatorConfig, world: SimulatedWorld) -> Self {
        let facts = vec![("containment".to_owned(), "simulated: nothing real runs".to_owned())];
        let level = SandboxLevel::Simulated;
        // Text without numbers is always representable; an empty digest would still name no other containment.
        let digest = canonical_digest(&(level, &facts)).unwrap_or_else(|_| Digest::of(b""));
        Self {
            sandbox: SandboxInfo { level, digest, facts },
            limits: Limits::default(),
            world,
            programs: Mutex::default(),
            config,
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        // A file is replaced whole, so the map is never half changed.
        self.world.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn programs(&self) -> MutexGuard<'_, Programs> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self, cwd: &str) -> Result<StableState, Fault> {
        let world = self.world();
        let cwd = world.folder(cwd)?;
        let git = GitState { dirty: world.dirty, ..world.head(&self.config.git) };
        let mut names = self.config.key_processes.clone();
        names.sort();
        names.dedup();
        let fields = StableFields {
            cwd: format!("workspace:/{cwd}"),
            focused_window_title: self.config.focused_title.clone(),
            git_head: git.head.clone(),
            key_process_names: names,
            env_fingerprint: fingerprint(&self.config.env_allow)?,
        };
        Ok(StableState { fields, focused_app: self.config.focused_app.clone(), git })
    }

    fn look(&self, query: &PerceptionQuery) -> Result<Perception, Fault> {
        let mut seen = Perception {
            state: self.state("")?,
            payload: json!({}),
            fs_snapshot: None,
            entries: Vec::new(),
            processes: Vec::new(),
            monitors: Vec::new(),
            windows: Vec::new(),
            image: None,
        };
        match query.mode {
            QueryMode::Filesystem => {
                let scope = query.scope.as_deref().unwrap_or_default();
                seen.entries = self.world().entries(scope, query.depth, self.limits.hash_bytes)?;
                seen.payload = json!({ "scope": self.world().absolute(scope)?, "truncated": false });
                if query.profile == StateProfile::ReadmeV0 {
                    let files = self.world().files.clone();
                    let known = files.iter().map(|(path, bytes)| (path, "0644", Digest::of(bytes)));
                    seen.fs_snapshot = Some(canonical_digest(&known.collect::<Vec<_>>())?);
                }
            }
            QueryMode::Git => {}
            QueryMode::Screen => {
                let screen = monitor();
                seen.windows.push(self.window(&screen));
                seen.image = Some(picture(&screen, None, &Default::default())?);
                seen.payload = self.world().typed.seen();
                seen.monitors.push(screen);
            }
            // Its commands end before they are answered; what was spawned may go on.
            QueryMode::Process => seen.processes = self.programs().entries(),
            QueryMode::Shell => seen.payload = json!({ "env": self.config.env_allow }),
            QueryMode::Full => return Err(Fault::invalid("query.mode", "`full` is looked at part by part")),
        }
        Ok(seen)
    }

    fn window(&self, screen: &MonitorInfo) -> WindowInfo {
        let (title, app) = (self.config.focused_title.clone(), self.config.focused_app.clone());
        let (width, height) = (screen.width, screen.height);
        let target = "window:1".to_owned();
        WindowInfo { target, title, app, width, height, focused: true, ..WindowInfo::default() }
    }

    fn resolve(&self, action: &TypedAction) -> Result<Inspection, Fault> {
        let world = self.world();
        let mut resolved = action.clone();
        let (binding, review, prediction) = match &mut resolved.params {
            Params::ShellExec(shell) => {
                resolved.target = world.absolute_folder(&action.target)?;
                let argv = shell::argv(shell)?;
                let name = shell::builtin(&argv)?.to_owned();
                let program = Program {
                    path: format!("/bin/{name}"),
                    sha256: Digest::of(name.as_bytes()),
                    name,
                    inside_workspace: false,
                };
                let binding = json!({ "type": "shell_exec", "cwd": resolved.target, "program": program.path });
                let env = shell.env.clone();
                (
                    binding,
                    Review::Command { program, scripts: Vec::new(), cwd: resolved.target.clone(), env },
                    Value::Null,
                )
            }
            Params::FileRead(_) => {
                resolved.target = world.absolute(&action.target)?;
                let size = world.file(&action.target)?.len() as u64;
                let binding = json!({ "type": "file_read", "path": resolved.target });
                (binding, Review::Read { path: resolved.target.clone(), size }, json!({ "size": size }))
            }
            Params::FileEdit(edit) => {
                resolved.target = world.absolute(&action.target)?;
                let before = world.file(&action.target)?;
                let after = apply_edits(before, &edit.edits, self.limits.edit_bytes);
                change(action.kind, &resolved.target, before, &mut edit.before_sha256, after)?
            }
            Params::FileWrite(write) if write.mode == WriteMode::Create => {
                resolved.target = world.absent(&action.target)?;
                new_file(action.kind, &resolved.target, write)?
            }
            Params::FileWrite(write) => {
                resolved.target = world.absolute(&action.target)?;
                let before = world.file(&action.target)?;
                let after = written(write, before);
                change(action.kind, &resolved.target, before, &mut write.before_sha256, after)?
            }
            Params::FileDelete(delete) => {
                let entries = world.tree(&action.target)?;
                resolved.target = world.absolute(&action.target)?;
                if entries.len() > 1 && !delete.recursive {
                    let fault = Fault::new(ErrorCode::NotRegularFile, "it is a folder that isn't empty");
                    return Err(fault.at("action.target").hint("say `recursive: true` to delete all of it"));
                }
                let path = resolved.target.clone();
                let tree = canonical_digest(&entries)?;
                let prediction = deleted(&path, &entries);
                let runs_later = changes_what_runs_later(action.kind, &path);
                let binding = json!({ "type": action.kind, "path": path, "tree": tree });
                (binding, Review::Delete { path, entries, runs_later }, prediction)
            }
            Params::KeyboardInput(_) | Params::MouseClick(_) | Params::MouseDrag(_) => {
                let screen = monitor();
                let window = self.window(&screen);
                let (binding, review) = input::resolve(&mut resolved, &screen, window)?;
                (binding, review, Value::Null)
            }
            Params::ProcessSpawn(spawn) => return programs::inspect_spawn(&world, action, spawn),
            Params::ProcessSignal(_) => return self.programs().inspect_signal(action),
            Params::ScreenCapture(capture) => {
                let screen = monitor();
                if action.target != "monitor:0" {
                    return Err(Fault::new(ErrorCode::NotFound, "there is only monitor:0").at("action.target"));
                }
                let region = region_of(&screen, capture.region)?;
                let review =
                    Review::Capture { monitor: screen.name.clone(), width: region.width, height: region.height };
                let prediction = json!({ "width": region.width, "height": region.height });
                (json!({ "type": "screen_capture", "monitor": screen.name }), review, prediction)
            }
        };
        Ok(Inspection { resolved, binding, review, prediction })
    }

    fn still(&self, resolved: &TypedAction, bound: &Digest) -> Result<(), Fault> {
        let changed =
            |why: &str| Fault::new(ErrorCode::StateChanged, format!("it is no longer what was approved: {why}"));
        let now = self.resolve(resolved).map_err(|fault| changed(&fault.message))?;
        if now.resolved == *resolved && canonical_digest(&now.binding)? == *bound {
            return Ok(());
        }
        Err(changed("what it is bound to has changed"))
    }

    fn carry_out(&self, resolved: &TypedAction) -> Result<Effect, Fault> {
        let mut image = None;
        let mut status = OutcomeStatus::Success;
        let observed = match &resolved.params {
            Params::ShellExec(shell) => {
                let ran = shell::run(&self.world(), shell, &resolved.target)?;
                if ran.exit_code != 0 {
                    status = OutcomeStatus::Failure;
                }
                ran.observed(shell, &resolved.target)
            }
            Params::FileRead(read) => {
                let world = self.world();
                let file = world.file(&resolved.target)?;
                let from = usize::try_from(read.offset).unwrap_or(usize::MAX).min(file.len());
                let end = from.saturating_add(usize::try_from(read.limit).unwrap_or(usize::MAX)).min(file.len());
                let bytes = file.get(from..end).unwrap_or_default();
                observed_read(&resolved.target, bytes, read, end < file.len(), file.len() as u64)?
            }
            Params::FileEdit(edit) => {
                let mut world = self.world();
                let after = apply_edits(world.file(&resolved.target)?, &edit.edits, self.limits.edit_bytes)?;
                world.replace(&resolved.target, edit.before_sha256.as_ref(), after)?
            }
            Params::FileWrite(write) => {
                let mut world = self.world();
                let before =
                    if write.mode == WriteMode::Append { world.file(&resolved.target)?.clone() } else { Vec::new() };
                let after = written(write, &before)?;
                world.replace(&resolved.target, write.before_sha256.as_ref(), after)?
            }
            Params::FileDelete(_) => {
                let mut world = self.world();
                let observed = deleted(&resolved.target, &world.tree(&resolved.target)?);
                world.remove(&resolved.target)?;
                observed
            }
            Params::KeyboardInput(_) | Params::MouseClick(_) | Params::MouseDrag(_) => {
                let window = self.window(&monitor());
                self.world().typed.take(resolved, &window)
            }
            Params::ProcessSpawn(spawn) => {
                // In this order everywhere: the world, then the programs.
                let world = self.world();
                self.programs().spawn(&world, &resolved.target, spawn)?
            }
            Params::ProcessSignal(wanted) => self.programs().signal(&resolved.target, wanted.signal)?,
            Params::ScreenCapture(capture) => {
                let screen = monitor();
                let taken = picture(&screen, capture.region, capture)?;
                let observed = json!({
                    "monitor": screen.name,
                    "width": taken.width,
                    "height": taken.height,
                    "scale": taken.scale,
                    "media_type": taken.media_type,
                    "masked_windows": 0,
                });
                image = Some(taken);
                observed
            }
        };
        Ok(Effect { status, observed, error: None, image, latency_ms: 0 })
    }
}

/// The content after a write.
fn written(write: &FileWrite, before: &[u8]) -> Result<Vec<u8>, Fault> {
    let bytes = write.bytes()?;
    Ok(if write.mode == WriteMode::Append { [before, &bytes].concat() } else { bytes })
}

/// Binding, review and prediction of other content for a file; fills in `before_sha256`.
fn change(
    kind: ActionType,
    path: &str,
    before: &[u8],
    expected: &mut Option<Digest>,
    after: Result<Vec<u8>, Fault>,
) -> Result<(Value, Review, Value), Fault> {
    let digest = Digest::of(before);
    if expected.as_ref().is_some_and(|expected| *expected != digest) {
        let message = format!("the file has {digest}");
        return Err(Fault::new(ErrorCode::BeforeHashMismatch, message).at("action.params.before_sha256"));
    }
    let after = after?;
    *expected = Some(digest.clone());
    let (text, first_foreign_byte) = lossless_text(before);
    let review = Review::Edit {
        path: path.to_owned(),
        before: text,
        after: lossless_text(&after).0,
        first_foreign_byte,
        bytes_before: before.len() as u64,
        bytes_after: after.len() as u64,
        runs_later: runs_later(path),
    };
    let binding = json!({ "type": kind, "path": path, "before_sha256": digest });
    Ok((binding, review, json!({ "after_sha256": Digest::of(&after), "bytes": after.len() })))
}

fn new_file(kind: ActionType, path: &str, write: &FileWrite) -> Result<(Value, Review, Value), Fault> {
    let bytes = write.bytes()?;
    let (text, first_foreign_byte) = lossless_text(&bytes);
    let review = Review::New {
        path: path.to_owned(),
        text,
        first_foreign_byte,
        bytes: bytes.len() as u64,
        permissions: format!("{:04o}", write.permission_bits()?),
        runs_later: runs_later(path),
    };
    let binding = json!({ "type": kind, "path": path, "before_sha256": null });
    Ok((binding, review, json!({ "after_sha256": Digest::of(&bytes), "bytes": bytes.len() })))
}

fn deleted(path: &str, entries: &[DeletedEntry]) -> Value {
    let bytes: u64 = entries.iter().map(|entry| entry.size).sum();
    json!({ "path": path, "deleted": entries.len(), "bytes": bytes })
}

impl Body for SimulatorBody {
    fn sandbox(&self) -> SandboxInfo {
        self.sandbox.clone()
    }

    fn stable<'a>(&'a self, cwd: &'a str) -> BodyFuture<'a, StableState> {
        Box::pin(async move { self.state(cwd) })
    }

    fn perceive(&self, scope: ViewScope, query: PerceptionQuery) -> BodyFuture<'_, Perception> {
        Box::pin(async move {
            check_scope(&scope, &query, &self.config.root)?;
            self.look(&query)
        })
    }

    fn inspect<'a>(&'a self, action: &'a TypedAction) -> BodyFuture<'a, Inspection> {
        Box::pin(async move { self.resolve(action) })
    }

    fn recheck<'a>(&'a self, resolved: &'a TypedAction, binding: &'a Value) -> BodyFuture<'a, ()> {
        Box::pin(async move { self.still(resolved, &canonical_digest(binding)?) })
    }

    fn act(&self, permit: Permit, resolved: TypedAction, cancel: CancellationToken) -> BodyFuture<'_, Effect> {
        Box::pin(async move {
            permit.admits(&resolved)?;
            if cancel.is_cancelled() {
                return Err(Fault::new(ErrorCode::Cancelled, "cancelled before anything was done"));
            }
            self.still(&resolved, permit.binding_digest())?;
            self.carry_out(&resolved)
        })
    }

    fn health(&self) -> BodyFuture<'_, Vec<HealthCheck>> {
        let check = HealthCheck {
            name: "sandbox".to_owned(),
            status: CheckStatus::Ok,
            detail: "simulated: nothing real runs".to_owned(),
            advice: None,
        };
        Box::pin(std::future::ready(Ok(vec![check])))
    }
}

fn entry(path: String, kind: FileKind, size: u64, content_hash: Option<Digest>) -> FileEntry {
    let permissions = if kind == FileKind::Folder { "0755" } else { "0644" };
    FileEntry {
        reference: String::new(),
        path,
        path_exact: true,
        kind,
        size,
        permissions: permissions.to_owned(),
        writable: true,
        content_hash,
    }
}
