//! What the host does for each request.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bodyguard_protocol::action::{FileDelete, FileWrite, ProcessSpawn, ShellExec};
use bodyguard_protocol::ui::{CheckStatus, HealthCheck};
use bodyguard_protocol::{
    Digest, ErrorCode, Fault, MonitorInfo, OutcomeStatus, Params, PerceptionQuery, QueryMode, StateProfile,
    TypedAction, canonical_digest,
};
use serde_json::{Value, json};

use super::cancel::Cancel;
use super::command::{self, Fields, Programs, Words};
use super::files::{Place, Root};
use super::inner::Spec;
use super::input::{Aim, Input};
use super::sandbox::{self, Held, OwnDesktop, Running, Sandbox, User};
use super::screen::{Screen, region_of};
use super::shell::{self, Bounds};
use super::spawned::Spawned;
use super::spawner::Spawner;
use super::{delete, edit, held, read, signal, snapshot, state, write};
use crate::edit::lossless_text;
use crate::frame::{Answer, ImageHead, Request};
use crate::{
    BodyConfig, Effect, Image, Inspection, Perception, Review, SandboxInfo, SandboxLevel, StableState,
    changes_what_runs_later, runs_later,
};

pub(super) type Reply = (Answer, Option<Vec<u8>>);

#[derive(Debug)]
pub(super) struct Host {
    config: BodyConfig,
    /// The variables that everything started here sees.
    env: BTreeMap<String, String>,
    root: Root,
    spawner: Spawner,
    sandbox: Result<Sandbox, String>,
    info: SandboxInfo,
    screen: Screen,
    input: Input,
    programs: Programs,
    spawned: Spawned,
}

impl Host {
    pub(super) fn start(config: BodyConfig) -> Result<Self, Fault> {
        let root = Root::open(&config.root)?;
        let spawner = Spawner::start().map_err(|e| Fault::internal(e.to_string()))?;
        let user = User::for_root(&root)?;
        let desktop = OwnDesktop::of(&config)?;
        let own = desktop.as_ref().map(OwnDesktop::variables);
        let env = config.env_allow.clone().into_iter().chain(own.into_iter().flatten()).collect();
        let sandbox = Sandbox::find(user, desktop).and_then(|sandbox| {
            self_test(&sandbox, &spawner, &root)?;
            Ok(sandbox)
        });
        let info = sandbox::describe(&sandbox.as_ref().map(|_| user).map_err(Clone::clone), config.private_desktop)?;
        let screen = Screen::new(config.hidden_pids.clone());
        Ok(Self {
            config,
            env,
            root,
            spawner,
            sandbox,
            info,
            screen,
            input: Input::new(),
            programs: Programs::default(),
            spawned: Spawned::default(),
        })
    }

    /// Lets go of whatever is held of keyboard and mouse.
    pub(super) fn let_go(&self) {
        self.input.let_go();
    }

    pub(super) fn sandbox(&self) -> &SandboxInfo {
        &self.info
    }

    pub(super) fn answer(&self, request: Request, cancel: &Cancel) -> Result<Reply, Fault> {
        match request {
            Request::Stable { cwd } => Ok((Answer::Stable(self.stable(&cwd)?), None)),
            Request::Perceive { query } => {
                let mut seen = self.perceive(&query)?;
                let (head, bytes) = beside(seen.image.take());
                Ok((Answer::Perception(Box::new(seen), head), bytes))
            }
            Request::Inspect { action } => Ok((Answer::Inspection(Box::new(self.inspect(&action)?.0)), None)),
            Request::Recheck { action, binding } => {
                self.still(&action, &canonical_digest(&binding)?)?;
                Ok((Answer::Unchanged, None))
            }
            Request::Act { action, action_digest, binding_digest } => {
                let mut effect = self.act(&action, &action_digest, &binding_digest, cancel)?;
                let (head, bytes) = beside(effect.image.take());
                Ok((Answer::Effect(Box::new(effect), head), bytes))
            }
            Request::Health => Ok((Answer::Health(self.health()), None)),
            Request::Start(_) | Request::Cancel { .. } => Err(Fault::internal("not a request that is answered")),
        }
    }

    fn stable(&self, cwd: &str) -> Result<StableState, Fault> {
        let place = self.root.resolve(cwd)?;
        self.root.folder(&place)?;
        let focused = self.screen.focused();
        state::stable(&self.root, &place, focused, &self.config.key_processes, &self.config.env_allow)
    }

    fn perceive(&self, query: &PerceptionQuery) -> Result<Perception, Fault> {
        let mut seen = Perception {
            state: self.stable("")?,
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
                let place = self.root.resolve(query.scope.as_deref().unwrap_or_default())?;
                let listing = read::list(&self.root, &place, query.depth, &self.config.limits)?;
                seen.entries = listing.entries;
                if query.profile == StateProfile::ReadmeV0 {
                    seen.fs_snapshot = Some(snapshot::digest(&self.root, &self.config.limits)?);
                }
                seen.payload = json!({ "scope": place.absolute, "truncated": listing.truncated });
            }
            // The state already says it all.
            QueryMode::Git => {}
            QueryMode::Screen => {
                let look = self.screen.look()?;
                (seen.monitors, seen.windows, seen.payload) = (look.monitors, look.windows, look.payload);
                seen.image = Some(look.capture.image);
            }
            QueryMode::Process => seen.processes = self.spawned.listing(),
            QueryMode::Shell => seen.payload = json!({ "env": self.config.env_allow }),
            QueryMode::Full => return Err(Fault::invalid("query.mode", "`full` is looked at part by part")),
        }
        Ok(seen)
    }

    /// Resolves an action; also what acting on it needs.
    fn inspect(&self, action: &TypedAction) -> Result<(Inspection, Ready), Fault> {
        match &action.params {
            Params::ShellExec(shell) => self.inspect_shell(action, shell),
            Params::FileWrite(write) => self.inspect_write(action, write),
            Params::FileEdit(edit) => {
                let place = self.root.resolve(&action.target)?;
                let planned = edit::plan(&self.root, &place, edit, self.config.limits.edit_bytes)?;
                Ok(changed_file(action, place, planned))
            }
            Params::FileDelete(delete) => self.inspect_delete(action, delete),
            Params::FileRead(_) => {
                let place = self.root.resolve(&action.target)?;
                let (_, stat) = self.root.regular(&place)?;
                let size = u64::try_from(stat.st_size).unwrap_or(0);
                let review = Review::Read { path: place.absolute.clone(), size };
                let binding = json!({ "type": "file_read", "path": place.absolute });
                let resolved = TypedAction { target: place.absolute.clone(), ..action.clone() };
                Ok((inspection(resolved, binding, review, json!({ "size": size })), Ready::Read(place)))
            }
            Params::KeyboardInput(_) | Params::MouseClick(_) | Params::MouseDrag(_) => {
                let (found, aim) = self.input.inspect(&self.screen, action)?;
                Ok((found, Ready::Input(aim)))
            }
            Params::ProcessSpawn(spawn) => self.inspect_spawn(action, spawn),
            Params::ProcessSignal(_) => {
                let (inspection, aim) = signal::inspect(action)?;
                Ok((inspection, Ready::Signal(aim)))
            }
            Params::ScreenCapture(capture) => {
                let monitor = self.screen.monitor(&action.target)?;
                let region = region_of(&monitor, capture.region)?;
                let (width, height) = (region.width, region.height);
                let review = Review::Capture { monitor: monitor.name.clone(), width, height };
                let binding = json!({
                    "type": "screen_capture",
                    "monitor": { "name": monitor.name, "at": [monitor.x, monitor.y], "size": [monitor.width, monitor.height] },
                });
                let prediction = json!({ "width": width, "height": height });
                Ok((inspection(action.clone(), binding, review, prediction), Ready::Capture(monitor, region)))
            }
        }
    }

    fn inspect_shell(&self, action: &TypedAction, shell: &ShellExec) -> Result<(Inspection, Ready), Fault> {
        let cwd = self.root.resolve(&action.target)?;
        let processes = self.config.limits.processes;
        let words = Words::of_shell(shell);
        let found = command::resolve(&self.root, &cwd, words, &self.env, processes, &self.programs)?;
        let env = found.spec.env.clone();
        let review = Review::Command { program: found.program, scripts: found.scripts, cwd: cwd.absolute.clone(), env };
        let resolved = TypedAction { target: cwd.absolute, ..action.clone() };
        // Nothing is known of a command's effects before it has run once.
        Ok((inspection(resolved, found.binding, review, Value::Null), Ready::Shell(found.spec)))
    }

    fn inspect_spawn(&self, action: &TypedAction, spawn: &ProcessSpawn) -> Result<(Inspection, Ready), Fault> {
        let cwd = self.root.resolve(spawn.cwd.as_deref().unwrap_or_default());
        let cwd = cwd.map_err(|fault| fault.at(Fields::SPAWN.cwd))?;
        let words = Words::of_spawn(&action.target, spawn);
        let processes = self.config.limits.processes;
        let found = command::resolve(&self.root, &cwd, words, &self.env, processes, &self.programs)?;
        // A bare name stays one; a path is the real file.
        let target = if action.target.contains('/') { found.program.path.clone() } else { action.target.clone() };
        let env = found.spec.env.clone();
        let review = Review::Command { program: found.program, scripts: found.scripts, cwd: cwd.absolute, env };
        let resolved = TypedAction { target, ..action.clone() };
        Ok((inspection(resolved, found.binding, review, Value::Null), Ready::Spawn(found.spec)))
    }

    fn inspect_write(&self, action: &TypedAction, write: &FileWrite) -> Result<(Inspection, Ready), Fault> {
        let (place, plan) = write::plan(&self.root, &action.target, write, self.config.limits.edit_bytes)?;
        let (bytes, bits) = match plan {
            write::Plan::Change(planned) => return Ok(changed_file(action, place, planned)),
            write::Plan::New { bytes, bits } => (bytes, bits),
        };
        let (text, first_foreign_byte) = lossless_text(&bytes);
        let review = Review::New {
            path: place.absolute.clone(),
            text,
            first_foreign_byte,
            bytes: bytes.len() as u64,
            permissions: format!("{bits:04o}"),
            runs_later: runs_later(&place.relative),
        };
        let binding = json!({ "type": action.kind, "path": place.absolute, "before_sha256": null });
        let prediction = json!({ "after_sha256": Digest::of(&bytes), "bytes": bytes.len() });
        let resolved = TypedAction { target: place.absolute.clone(), ..action.clone() };
        Ok((inspection(resolved, binding, review, prediction), Ready::New(place, bytes, bits)))
    }

    fn inspect_delete(&self, action: &TypedAction, delete: &FileDelete) -> Result<(Inspection, Ready), Fault> {
        let doomed = delete::plan(&self.root, &action.target, delete, &self.config.limits)?;
        let path = doomed.place.absolute.clone();
        let review = Review::Delete {
            path: path.clone(),
            entries: doomed.entries(),
            runs_later: changes_what_runs_later(action.kind, &doomed.place.relative),
        };
        let binding = json!({ "type": action.kind, "path": path, "tree": doomed.digest()? });
        let prediction = deleted(&doomed);
        let resolved = TypedAction { target: path, ..action.clone() };
        Ok((inspection(resolved, binding, review, prediction), Ready::Delete(doomed)))
    }

    /// Resolves a resolved action again; whatever differs from what was bound is a change of state.
    fn still(&self, resolved: &TypedAction, bound: &Digest) -> Result<Ready, Fault> {
        let changed = |what: &str| {
            Fault::new(ErrorCode::StateChanged, format!("it is no longer what was approved: {what}"))
                .at("action.target")
                .hint("look again, and ask again if it is still wanted")
        };
        let (now, ready) = self.inspect(resolved).map_err(|fault| changed(&fault.message))?;
        if now.resolved != *resolved {
            return Err(changed("the name leads elsewhere now"));
        }
        if canonical_digest(&now.binding)? != *bound {
            return Err(changed("what it is bound to has changed"));
        }
        Ok(ready)
    }

    fn act(
        &self,
        action: &TypedAction,
        action_digest: &Digest,
        binding_digest: &Digest,
        cancel: &Cancel,
    ) -> Result<Effect, Fault> {
        if action.digest()? != *action_digest {
            return Err(Fault::new(ErrorCode::AuthorizationFailure, "the permit is for another action"));
        }
        let started = Instant::now();
        let ready = self.still(action, binding_digest)?;
        if cancel.wanted() {
            return Err(Fault::new(ErrorCode::Cancelled, "cancelled before anything was done"));
        }
        let (observed, image) = match (ready, &action.params) {
            (Ready::Shell(spec), Params::ShellExec(shell)) => return self.run(&spec, shell, cancel),
            (Ready::Input(aim), _) => return self.input.act(&self.screen, action, &aim, cancel),
            (Ready::Spawn(spec), _) => {
                let slot = self.spawned.slot()?;
                let (running, _) = self.launch(&spec, None)?;
                return Spawned::follow(slot, running, spec);
            }
            (Ready::Signal(aim), Params::ProcessSignal(wanted)) => {
                (signal::send(&aim, &action.target, wanted.signal)?, None)
            }
            (Ready::Edit(place, planned), _) => {
                edit::replace(&self.root, &place, &planned)?;
                let after = Digest::of(&planned.after);
                let bytes = planned.after.len();
                (
                    json!({ "path": place.absolute, "before_sha256": planned.before_sha256, "after_sha256": after, "bytes": bytes }),
                    None,
                )
            }
            (Ready::New(place, bytes, bits), _) => {
                write::create(&self.root, &place, &bytes, bits)?;
                (
                    json!({ "path": place.absolute, "before_sha256": null, "after_sha256": Digest::of(&bytes), "bytes": bytes.len() }),
                    None,
                )
            }
            (Ready::Delete(doomed), _) => {
                let left = delete::delete(&self.root, &doomed, &self.config.limits)?;
                let status = if left.is_some() { OutcomeStatus::Partial } else { OutcomeStatus::Success };
                let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                return Ok(Effect { status, observed: deleted(&doomed), error: left, image: None, latency_ms });
            }
            (Ready::Read(place), Params::FileRead(wanted)) => (read::read(&self.root, &place, wanted)?, None),
            (Ready::Capture(monitor, region), Params::ScreenCapture(wanted)) => {
                let taken = self.screen.capture(&monitor, region, wanted.format, wanted.max_width)?;
                let Image { width, height, scale, ref media_type, .. } = taken.image;
                let observed = json!({
                    "monitor": monitor.name,
                    "region": [region.x, region.y, region.width, region.height],
                    "width": width,
                    "height": height,
                    "scale": scale,
                    "media_type": media_type,
                    "masked_windows": taken.masked,
                });
                (observed, Some(taken.image))
            }
            _ => return Err(Fault::internal("the parameters don't belong to the action's type")),
        };
        let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Effect { status: OutcomeStatus::Success, observed, error: None, image, latency_ms })
    }

    /// Starts a command in the sandbox; also what of the workspace it sees in a special way.
    fn launch(&self, spec: &Spec, stdin: Option<&str>) -> Result<(Running, Held), Fault> {
        let sandbox = self.sandbox.as_ref().map_err(|why| sandbox::unavailable(why))?;
        let held = held::held(&self.root);
        let running = sandbox.start(&self.spawner, &self.root, &held, spec, stdin)?;
        Ok((running, held))
    }

    fn run(&self, spec: &Spec, shell: &ShellExec, cancel: &Cancel) -> Result<Effect, Fault> {
        let bounds = Bounds {
            timeout: Duration::from_millis(shell.timeout_ms),
            kept_bytes: shell.max_output_bytes,
            output_bytes: self.config.limits.output_bytes.max(shell.max_output_bytes),
        };
        let (running, held) = self.launch(spec, shell.stdin.as_deref())?;
        let mut effect = shell::finish(running, spec, shell.stdin.is_some(), bounds, cancel)?;
        // What exists is held; what a command makes new can only be told.
        let made: Vec<String> = held::held(&self.root)
            .places
            .into_iter()
            .filter(|(path, read_only)| *read_only && !held.places.iter().any(|(held, _)| held == path))
            .map(|(path, _)| self.root.place(&path).absolute)
            .collect();
        if let Value::Object(observed) = &mut effect.observed {
            observed.insert("runs_later_created".to_owned(), json!(made));
        }
        Ok(effect)
    }

    fn health(&self) -> Vec<HealthCheck> {
        let contained = self.info.level == SandboxLevel::Bubblewrap;
        let facts: Vec<String> = self.info.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let advice = "install bubblewrap and allow user namespaces; commands are refused until then";
        let sandbox =
            check("sandbox", if contained { CheckStatus::Ok } else { CheckStatus::Failed }, facts.join("; "), advice);
        let screen = match self.screen.monitors() {
            Ok(monitors) => check("display", CheckStatus::Ok, format!("{} monitor(s)", monitors.len()), ""),
            Err(fault) => check(
                "display",
                CheckStatus::Warning,
                fault.message,
                "start it in a desktop session to let agents see the screen",
            ),
        };
        vec![sandbox, screen]
    }
}

/// What an inspected action needs to be carried out.
enum Ready {
    Shell(Spec),
    Spawn(Spec),
    Signal(signal::Aim),
    New(Place, Vec<u8>, u32),
    Edit(Place, edit::Planned),
    Delete(delete::Doomed),
    Read(Place),
    Capture(MonitorInfo, super::screen::Rect),
    Input(Aim),
}

/// Binding, review and prediction of other content for a file; fills in `before_sha256`.
fn changed_file(action: &TypedAction, place: Place, planned: edit::Planned) -> (Inspection, Ready) {
    let (before, first_foreign_byte) = lossless_text(&planned.before);
    let review = Review::Edit {
        path: place.absolute.clone(),
        before,
        after: lossless_text(&planned.after).0,
        first_foreign_byte,
        bytes_before: planned.before.len() as u64,
        bytes_after: planned.after.len() as u64,
        runs_later: runs_later(&place.relative),
    };
    let binding = json!({ "type": action.kind, "path": place.absolute, "before_sha256": planned.before_sha256 });
    let prediction = json!({ "after_sha256": Digest::of(&planned.after), "bytes": planned.after.len() });
    let mut resolved = TypedAction { target: place.absolute.clone(), ..action.clone() };
    match &mut resolved.params {
        Params::FileEdit(edit) => edit.before_sha256 = Some(planned.before_sha256.clone()),
        Params::FileWrite(write) => write.before_sha256 = Some(planned.before_sha256.clone()),
        _ => {}
    }
    (inspection(resolved, binding, review, prediction), Ready::Edit(place, planned))
}

/// How much goes: predicted, and reported.
fn deleted(doomed: &delete::Doomed) -> Value {
    let entries = doomed.entries();
    let bytes: u64 = entries.iter().map(|entry| entry.size).sum();
    json!({ "path": doomed.place.absolute, "deleted": entries.len(), "bytes": bytes })
}

fn inspection(resolved: TypedAction, binding: Value, review: Review, prediction: Value) -> Inspection {
    Inspection { resolved, binding, review, prediction }
}

fn beside(image: Option<Image>) -> (Option<ImageHead>, Option<Vec<u8>>) {
    image.map(ImageHead::split).unzip()
}

fn check(name: &str, status: CheckStatus, detail: String, advice: &str) -> HealthCheck {
    let advice = (status != CheckStatus::Ok).then(|| advice.to_owned());
    HealthCheck { name: name.to_owned(), status, detail, advice }
}

/// Runs a command in the sandbox and looks at what it could see, before anything relies on it.
fn self_test(sandbox: &Sandbox, spawner: &Spawner, root: &Root) -> Result<(), String> {
    let text = "id -u; readlink /proc/self/ns/net; readlink /proc/self/ns/pid; grep -E '^Cap(Eff|Bnd)' /proc/self/status | tr -d '0\\n'";
    let argv = ["/bin/sh", "-c", text].map(str::to_owned).to_vec();
    let env = BTreeMap::from([("PATH".to_owned(), sandbox::PATH.to_owned())]);
    let spec = Spec { program: "/bin/sh".to_owned(), argv, env, cwd: "/".to_owned(), processes: 64, goes_on: false };
    let running = sandbox.start(spawner, root, &Held::default(), &spec, None).map_err(|fault| fault.message)?;
    let bounds = Bounds { timeout: Duration::from_secs(10), kept_bytes: 4096, output_bytes: 1 << 20 };
    let effect = shell::finish(running, &spec, false, bounds, &Cancel::default()).map_err(|fault| fault.message)?;
    let said = effect.observed.get("stdout").and_then(Value::as_str).unwrap_or_default().to_owned();
    let lines: Vec<&str> = said.lines().collect();
    let own = |name: &str| std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap_or_default();
    match lines[..] {
        ["0", ..] => Err("commands would run as root".to_owned()),
        [_, network, _, _] if own("net").as_os_str() == network => Err("commands would have the network".to_owned()),
        [_, _, processes, _] if own("pid").as_os_str() == processes => {
            Err("commands would see other processes".to_owned())
        }
        [_, _, _, "CapEff:\tCapBnd:\t"] => Ok(()),
        _ => Err(format!("the self-test failed: {}", effect.observed)),
    }
}
