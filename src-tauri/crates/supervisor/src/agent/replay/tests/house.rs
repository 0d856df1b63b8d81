//! A supervisor with a workspace, an agent and a person.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bodyguard_policy::{EnrolledDevices, EventKind, NativeEvent, Presence};
use bodyguard_protocol::ui::{AskDetail, AskState, UiReply, UiRequest, UiResponse};
use bodyguard_protocol::{
    ActionOutcome, AskId, OutcomeStatus, PerceptionQuery, ReplayId, ReplayResult, SessionId, TraceId,
};
use bodyguard_trace::{RecordedEdge, RecordedTrace};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::{
    ActCall, AgentHandle, Config, EnsureSession, HumanHandle, InitOptions, PerceiveCall, Refusal, ReplayCall,
    Supervisor, Surroundings, SystemClock, Waiting, init, token_file,
};

/// Commands run as this user when the tests run as root.
const USER: u32 = 54_321;
/// How long anything may take on a machine that compiles meanwhile.
const SOON: Duration = Duration::from_secs(60);

/// All of it. Dropping it ends the bodies and removes the folder.
pub(super) struct House {
    pub(super) supervisor: Supervisor,
    pub(super) agent: AgentHandle,
    pub(super) human: HumanHandle,
    pub(super) session: SessionId,
    pub(super) trace: TraceId,
    folder: TempDir,
}

/// The program stands beside the tests: `cargo build --workspace --bins` makes it.
fn body_program() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let program = folder.join("bodyguard-body");
    assert!(program.exists(), "build the programs first: cargo build --workspace --bins");
    program
}

fn give(path: &Path) {
    if rustix::process::geteuid().is_root() {
        chown(path, Some(USER), Some(USER)).unwrap();
    }
}

fn no_display(wait: Duration) -> Waiting {
    Waiting { wait, cancel: CancellationToken::new(), progress: Arc::new(drop) }
}

impl House {
    /// A repository without commits in `ws`, whose head is `unborn:main`; the agents `alice` and `bob`;
    /// the policy that asks before every change.
    pub(super) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let data_dir = folder.path().join("data");
        let mut workspaces = Vec::new();
        for name in ["ws", "other"] {
            let root = folder.path().join(name);
            for part in ["", ".git", ".git/objects", ".git/refs"] {
                std::fs::create_dir(root.join(part)).unwrap();
                give(&root.join(part));
            }
            std::fs::write(root.join(".git/config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
            std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            give(&root.join(".git/config"));
            give(&root.join(".git/HEAD"));
            workspaces.push((name.parse().unwrap(), root, None));
        }
        let agents = ["alice", "bob"].map(|name| (name.parse().unwrap(), Vec::new())).to_vec();
        init(InitOptions { data_dir: data_dir.clone(), workspaces, agents, ..InitOptions::default() }).await.unwrap();
        let config = Config {
            data_dir: data_dir.clone(),
            body_program: body_program(),
            presence: Arc::new(|names| Arc::new(EnrolledDevices::new(names))),
            clock: Arc::new(SystemClock),
            health: Arc::new(Vec::new),
            surroundings: Surroundings::Apart,
        };
        let supervisor = Supervisor::start(config).await.unwrap();
        let token = std::fs::read_to_string(token_file(&data_dir, &"alice".parse().unwrap())).unwrap();
        let agent = supervisor.authenticate(token.trim()).await.unwrap();
        let begun = agent.ensure_session(wish("ws")).await.unwrap();
        let (human, session, trace) = (supervisor.human(), begun.session_id, begun.trace_id);
        Self { supervisor, agent, human, session, trace, folder }
    }

    pub(super) async fn agent(&self, name: &str) -> AgentHandle {
        let file = token_file(self.supervisor.data_dir(), &name.parse().unwrap());
        self.supervisor.authenticate(std::fs::read_to_string(file).unwrap().trim()).await.unwrap()
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.agent.core
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("ws").join(name)
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    pub(super) fn put(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
        give(&self.path(name));
    }

    pub(super) fn get(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(super) fn remove(&self, names: &[&str]) {
        for name in names {
            std::fs::remove_file(self.path(name)).unwrap();
        }
    }

    /// Another state, from outside.
    pub(super) fn change_head(&self, branch: &str) {
        self.put(".git/HEAD", &format!("ref: refs/heads/{branch}\n"));
    }

    /// `sh -c COMMAND` in the workspace.
    pub(super) fn shell(&self, command: &str) -> Value {
        json!({"type": "shell_exec", "command": command, "cwd": self.path("")})
    }

    pub(super) fn write(&self, name: &str, content: &str) -> Value {
        json!({"type": "file_write", "target": self.path(name), "params": {"content": content}})
    }

    /// Looks, acts, and decides what is asked.
    pub(super) async fn act(&self, action: Value, approve: bool) -> ActionOutcome {
        let words = None;
        let query = PerceptionQuery::default();
        let look = PerceiveCall { query, words: None, waiting: no_display(SOON) };
        self.agent.perceive(&self.session, look).await.unwrap();
        let call = ActCall { action, words, waiting: no_display(SOON) };
        let acting = self.agent.act(&self.session, call);
        tokio::pin!(acting);
        tokio::select! {
            reply = &mut acting => reply.unwrap().outcome,
            _ = self.decide(approve) => acting.await.unwrap().outcome,
        }
    }

    /// Records acts that a person permits and that succeed.
    pub(super) async fn record(&self, actions: &[Value]) {
        for action in actions {
            let outcome = self.act(action.clone(), true).await;
            assert_eq!(outcome.outcome_status, OutcomeStatus::Success, "{outcome:?}");
        }
    }

    /// The ask that waits for the person.
    pub(super) async fn asked(&self) -> AskDetail {
        loop {
            if let Some((id, _)) = self.human.open_asks().await.unwrap().into_iter().next() {
                let reply = self.human.request(UiRequest::Ask { ask_id: id }).await;
                let UiReply::Ok(UiResponse::Ask(detail)) = reply else { panic!("{reply:?}") };
                // It is on record a moment before it can be answered.
                if detail.state == AskState::Open && self.is_known(&detail.view.ask_id) {
                    return *detail;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Says yes or no to the ask that waits; gives what was shown.
    pub(super) async fn decide(&self, approve: bool) -> AskDetail {
        let detail = self.asked().await;
        if approve {
            self.approve(&detail).await;
        } else {
            self.human.deny(&detail.view.ask_id, Some("not now".into()), None).await.unwrap();
        }
        detail
    }

    pub(super) async fn approve(&self, detail: &AskDetail) {
        let rule = EnrolledDevices::new(["mouse".to_owned()]);
        let event = NativeEvent { device: Some("mouse".into()), kind: EventKind::Pointer, sent: false };
        let presence = Presence::witness(&rule, &event, &detail.view.ask_id, &detail.shown_digest).unwrap();
        self.human.approve(&detail.view.ask_id, presence).await.unwrap();
    }

    pub(super) fn call(&self, wait: Duration) -> ReplayCall {
        ReplayCall {
            trace_id: self.trace.clone(),
            from_edge: None,
            to_edge: None,
            dry_run: false,
            words: None,
            waiting: no_display(wait),
        }
    }

    /// Replays the session's trace to its end, while a person does what `person` says.
    pub(super) async fn replay_beside<T>(&self, person: impl Future<Output = T>) -> (ReplayResult, T) {
        let (result, done) = tokio::join!(self.agent.replay(&self.session, self.call(SOON)), person);
        (result.unwrap(), done)
    }

    /// Replays with nobody to decide anything.
    pub(super) async fn replay_alone(&self) -> ReplayResult {
        self.agent.replay(&self.session, self.call(SOON)).await.unwrap()
    }

    pub(super) async fn poll(&self, id: &ReplayId, wait: Duration) -> Result<ReplayResult, Refusal> {
        self.agent.poll_replay(&self.session, id, no_display(wait)).await
    }

    pub(super) async fn edges(&self, trace: &TraceId) -> Vec<RecordedEdge> {
        self.core().log.reader().recorded_edges(trace, 1, 1_000).await.unwrap()
    }

    pub(super) async fn recorded(&self, trace: &TraceId) -> RecordedTrace {
        self.core().log.reader().recorded_trace(trace).await.unwrap().unwrap()
    }

    pub(super) async fn leaves(&self) -> u64 {
        self.core().log.reader().counts().await.unwrap().leaves
    }

    pub(super) async fn log_holds(&self) {
        let report = bodyguard_trace::verify(self.core().log.reader(), self.core().keys.list()).await.unwrap();
        let view = report.view();
        assert!(view.ok, "{:?}", view.problems);
    }

    pub(super) fn is_known(&self, ask: &AskId) -> bool {
        self.core().pendings.get(ask).is_some()
    }
}

pub(super) fn wish(workspace: &str) -> EnsureSession {
    EnsureSession { workspace: Some(workspace.parse().unwrap()), ..EnsureSession::default() }
}

/// Waits until something holds; a test that waits in vain fails.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what} didn't happen");
}
