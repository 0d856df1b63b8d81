//! A workspace, a policy that allows everything in it, a log, and a real body host.
//!
//! A permit has no constructor for tests: each act here is decided, signed, accepted and recorded as
//! in the product.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod desktop;

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bodyguard_body::{Body, BodyConfig, Effect, HostBody, Inspection, Perception, Permit};
use bodyguard_policy::{
    Authorized, Containment, Decision, Draft, Expectation, KeyList, Operation, Policy, Request, Resource, Signer,
    accept, issue_by_policy,
};
use bodyguard_protocol::action::ActRequest;
use bodyguard_protocol::{
    ActionType, Block, BlockKind, Clock, ErrorCode, Fault, Moment, OutcomeStatus, PerceptionQuery, SessionId,
    StateProfile, Timestamp, TraceId, TypedAction, canonical_digest,
};
use bodyguard_trace::{IntentRecord, Log, OutcomeRecord, Record, SessionBegan};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Commands run as this user when the tests run as root.
pub(crate) const USER: u32 = 54_321;

const POLICY: &str = r#"
@id("all")
permit (principal, action, resource);
"#;

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Moment {
            wall: Timestamp::from_millis(i64::try_from(now.as_millis()).unwrap()),
            boot_ms: u64::try_from(boot.tv_sec).unwrap() * 1000 + u64::try_from(boot.tv_nsec).unwrap() / 1_000_000,
        }
    }
}

/// The workspace and all that stands around it. Dropping it ends the host and removes the folder.
pub(crate) struct Lab<B: Body> {
    pub(crate) body: B,
    folder: tempfile::TempDir,
    root: String,
    log: Log,
    policy: Policy,
    signer: Signer,
    session: SessionId,
    trace: TraceId,
    nonce: AtomicU64,
}

/// A fresh folder with a workspace in it; also where it is.
pub(crate) fn workspace() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    // Commands of another user must be able to pass through it.
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let root = folder.path().join("ws");
    std::fs::create_dir(&root).unwrap();
    give(&root);
    (folder, root)
}

/// Gives a path to the user that commands run as, where the tests may do that.
pub(crate) fn give(path: &Path) {
    if rustix::process::geteuid().is_root() {
        chown(path, Some(USER), Some(USER)).unwrap();
    }
}

pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_bodyguard-body"))
}

/// A lab with a host and no display.
pub(crate) async fn lab() -> Lab<HostBody> {
    lab_with(|_| {}).await
}

pub(crate) async fn lab_with(change: impl FnOnce(&mut BodyConfig)) -> Lab<HostBody> {
    let (folder, root) = workspace();
    let mut config = BodyConfig::for_root(root.to_str().unwrap());
    change(&mut config);
    let body = HostBody::spawn(program(), config).unwrap();
    Lab::around(body, folder, root.to_str().unwrap()).await
}

impl<B: Body> Lab<B> {
    pub(crate) async fn around(body: B, folder: tempfile::TempDir, root: &str) -> Self {
        let log = Log::open(&folder.path().join("data"), Arc::new(SystemClock)).unwrap();
        let (session, trace) =
            (SessionId::from_random([7; 16]), "01JBDYGRD00000000000000000".parse::<TraceId>().unwrap());
        let began = SessionBegan {
            session_id: session.clone(),
            trace_id: trace.clone(),
            agent_id: "tester@lab".to_owned(),
            workspace: "lab".parse().unwrap(),
            workspace_root: root.to_owned(),
            os_family: "linux".to_owned(),
            state_profile: StateProfile::default(),
            goal: None,
            metadata: Value::Null,
        };
        log.append(Record::SessionBegan(began)).await.unwrap();
        let signer = Signer::from_seed([3; 32]);
        let policy = Policy::parse("lab.cedar", POLICY).unwrap();
        Self { body, folder, root: root.to_owned(), log, policy, signer, session, trace, nonce: AtomicU64::new(1) }
    }

    pub(crate) fn root(&self) -> &Path {
        Path::new(&self.root)
    }

    pub(crate) fn outside(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    /// Writes a file of the workspace, owned as commands need it.
    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(name);
        if let Some(parent) = path.parent().filter(|parent| !parent.exists()) {
            std::fs::create_dir_all(parent).unwrap();
            let mut above = parent.to_owned();
            while above != self.root() {
                give(&above);
                above.pop();
            }
        }
        std::fs::write(&path, bytes).unwrap();
        give(&path);
        path
    }

    pub(crate) fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.root().join(name)).unwrap()
    }

    fn decide(&self, operation: Operation, resource: Resource) -> Decision {
        let (workspace, agent) = ("lab".parse().unwrap(), "tester".parse().unwrap());
        let containment = Containment::Reduced;
        self.policy.decide(&Request { workspace: &workspace, agent: &agent, operation, resource, containment })
    }

    pub(crate) async fn inspect(&self, action: Value) -> Result<Inspection, Fault> {
        self.body.inspect(&ActRequest::parse(&action)?.action).await
    }

    /// Signed by the policy where the action changes something, else the right to read.
    fn authorize(
        &self,
        action: &TypedAction,
        decision: &Decision,
        expect: &Expectation,
    ) -> (Authorized, Option<Block>) {
        if !action.kind.is_destructive() {
            return (decision.allow_read(expect).unwrap(), None);
        }
        let draft = Draft {
            kind: BlockKind::Act,
            action_digest: expect.action_digest.clone(),
            state_before: expect.state_before.clone(),
            binding_digest: expect.binding_digest.clone(),
            shown_digest: expect.action_digest.clone(),
            sandbox_digest: expect.sandbox_digest.clone(),
            policy_digest: expect.policy_digest.clone(),
            agent_id: expect.agent_id.clone(),
            session_id: self.session.clone(),
            trace_id: self.trace.clone(),
            ask_id: None,
            policy_id: decision.policy_id(),
        };
        let now = SystemClock.now();
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.nonce.fetch_add(1, Ordering::Relaxed).to_ne_bytes());
        let block = issue_by_policy(&self.signer, draft, decision, now.wall, 60_000, nonce).unwrap();
        let mut keys = KeyList::new();
        keys.add_signer(&self.signer);
        (accept(&block, &keys, expect, now).unwrap(), Some(block))
    }

    /// The whole way to a permit.
    pub(crate) async fn permit(&self, inspection: &Inspection) -> Permit {
        let action = &inspection.resolved;
        let decision = self.decide(Operation::Act(action.kind), resource(action));
        let state = self.body.stable("").await.unwrap().fields.hash().unwrap();
        let (action_digest, binding_digest) =
            (action.digest().unwrap(), canonical_digest(&inspection.binding).unwrap());
        let expect = Expectation {
            kind: BlockKind::Act,
            action_digest: action_digest.clone(),
            state_before: state.clone(),
            binding_digest,
            shown_digest: None,
            sandbox_digest: self.body.sandbox().digest,
            policy_digest: self.policy.digest().clone(),
            agent_id: "tester@lab".to_owned(),
            session_id: self.session.clone(),
            trace_id: self.trace.clone(),
            ask_id: None,
            approved_boot_ms: None,
        };
        let (authorized, block) = self.authorize(action, &decision, &expect);
        let intent = IntentRecord {
            session_id: self.session.clone(),
            trace_id: self.trace.clone(),
            action: action.clone(),
            action_digest,
            state_before: state,
            binding: inspection.binding.clone(),
            prediction: inspection.prediction.clone(),
            ask_id: None,
            policy_id: decision.policy_id(),
            authorization: block,
        };
        let committed = self.log.commit_intent(intent).await.unwrap();
        let outcome = OutcomeRecord {
            status: OutcomeStatus::Success,
            state_after: None,
            latency_ms: 0,
            observed: None,
            error: None,
            picture: None,
            surprise: None,
        };
        // The log wants each intent ended before the next; what the act does isn't its subject here.
        self.log.record_outcome(committed.reference(), outcome).await.unwrap();
        Permit::mint(authorized, committed).unwrap()
    }

    /// Inspects, gets a permit, acts.
    pub(crate) async fn act(&self, action: Value) -> Result<Effect, Fault> {
        let inspection = self.inspect(action).await?;
        let permit = self.permit(&inspection).await;
        self.body.act(permit, inspection.resolved, CancellationToken::new()).await
    }

    pub(crate) async fn perceive(&self, query: Value) -> Result<Perception, Fault> {
        let query: PerceptionQuery = serde_json::from_value(query).unwrap();
        let workspace = Resource::Workspace { path: self.root.clone(), inside_workspace: true };
        let screen = Resource::Screen { monitor: "monitor:0".to_owned(), private: false };
        let resource = if query.mode == bodyguard_protocol::QueryMode::Screen { screen } else { workspace };
        let scope = self.decide(Operation::Perceive(query.mode), resource).view_scope(&self.root).unwrap();
        self.body.perceive(scope, query).await
    }

    pub(crate) async fn shell(&self, command: &str) -> Effect {
        self.act(serde_json::json!({"type":"shell_exec","command":command,"cwd":self.root})).await.unwrap()
    }
}

fn resource(action: &TypedAction) -> Resource {
    match action.kind {
        ActionType::ShellExec | ActionType::ProcessSpawn => {
            Resource::Command { program: None, text: "test".to_owned(), cwd_inside_workspace: true, network: false }
        }
        ActionType::ScreenCapture => Resource::Screen { monitor: action.target.clone(), private: false },
        ActionType::ProcessSignal => Resource::Process { command: "test".to_owned() },
        ActionType::KeyboardInput | ActionType::MouseClick | ActionType::MouseDrag => {
            Resource::Window { title: "test".to_owned(), app: "test".to_owned(), runs_commands: false, private: false }
        }
        _ => Resource::Path { path: action.target.clone(), inside_workspace: true, runs_later: false },
    }
}

/// The code of a refusal.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Fault>) -> ErrorCode {
    result.unwrap_err().code
}
