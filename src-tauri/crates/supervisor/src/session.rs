//! One agent's session in one workspace.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bodyguard_body::{Body, StableState};
use bodyguard_protocol::ui::SessionState;
use bodyguard_protocol::{
    AgentName, Digest, ErrorCode, Fault, FileEntry, GitState, MonitorInfo, ProcessEntry, Ref, RefInfo, RefKind,
    ReplayOf, SessionId, StateHash, Timestamp, TraceId, WindowInfo,
};
use bodyguard_trace::{WorkspaceBody, WorkspaceRow};
use tokio_util::sync::CancellationToken;

use crate::bodies::EndedBody;

/// A session. Its id can't be guessed, and only its own agent can name it.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) trace_id: TraceId,
    pub(crate) agent: AgentName,
    pub(crate) workspace: WorkspaceRow,
    pub(crate) goal: Option<String>,
    /// What it replays. A replay's session is Bodyguard's own: its agent can't name it.
    pub(crate) replay_of: Option<ReplayOf>,
    /// Whether its body has a display to look at.
    pub(crate) has_screen: bool,
    /// Held while an act is dispatched, so that one session does one thing at a time. Never held
    /// while a person is waited for.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Held while a replay is begun, so that a session has one at a time.
    pub(crate) replaying: tokio::sync::Mutex<()>,
    /// Cancelled when the session ends.
    pub(crate) ended: CancellationToken,
    body: Mutex<Arc<dyn Body>>,
    body_lost: AtomicBool,
    look: Mutex<Look>,
}

/// What the session last saw and did.
pub(crate) struct Look {
    /// Raised by each perception and each executed mutation.
    pub(crate) generation: u64,
    /// The last perception; acts need one that is current.
    pub(crate) perceived: Option<Perceived>,
    /// What the current perception's refs name.
    pub(crate) refs: BTreeMap<String, String>,
    /// The windows that the current perception showed, topmost first.
    pub(crate) windows: Vec<WindowInfo>,
    /// Whether it was one of the screen.
    pub(crate) sees_screen: bool,
    /// The processes that it showed.
    pub(crate) processes: Vec<ProcessEntry>,
    pub(crate) state: SessionState,
    pub(crate) last_active_at: Timestamp,
    pub(crate) edges: u32,
    pub(crate) screenshot: Option<(Digest, Timestamp)>,
    pub(crate) git: GitState,
    pub(crate) focused_window: String,
    pub(crate) state_hash: Option<StateHash>,
}

/// The last perception.
#[derive(Clone)]
pub(crate) struct Perceived {
    pub(crate) generation: u64,
    pub(crate) state: StableState,
}

impl Session {
    #[allow(clippy::too_many_arguments, reason = "a session is made in one place from these")]
    pub(crate) fn new(
        id: SessionId,
        trace_id: TraceId,
        agent: AgentName,
        workspace: WorkspaceRow,
        goal: Option<String>,
        now: Timestamp,
        body: Arc<dyn Body>,
        has_screen: bool,
    ) -> Self {
        let look = Look {
            generation: 0,
            perceived: None,
            refs: BTreeMap::new(),
            windows: Vec::new(),
            sees_screen: false,
            processes: Vec::new(),
            state: SessionState::Running,
            last_active_at: now,
            edges: 0,
            screenshot: None,
            git: GitState { head: "none".into(), branch: None, dirty: None },
            focused_window: String::new(),
            state_hash: None,
        };
        Self {
            id,
            trace_id,
            agent,
            workspace,
            goal,
            replay_of: None,
            has_screen,
            turn: tokio::sync::Mutex::new(()),
            replaying: tokio::sync::Mutex::new(()),
            ended: CancellationToken::new(),
            body: Mutex::new(body),
            body_lost: AtomicBool::new(false),
            look: Mutex::new(look),
        }
    }

    /// `name@workspace`, as traces say it (`REQUIREMENTS` resolution 17).
    pub(crate) fn agent_id(&self) -> String {
        format!("{}@{}", self.agent, self.workspace.name)
    }

    /// Whether its desktop is one of its own.
    pub(crate) fn is_private(&self) -> bool {
        self.workspace.body == WorkspaceBody::Private
    }

    pub(crate) fn look(&self) -> MutexGuard<'_, Look> {
        self.look.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn body(&self) -> Arc<dyn Body> {
        Arc::clone(&self.body.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace_body(&self, body: Arc<dyn Body>) {
        *self.body.lock().unwrap_or_else(PoisonError::into_inner) = body;
        self.body_lost.store(false, Ordering::SeqCst);
    }

    /// Takes the body out; the last that holds it ends it.
    pub(crate) fn take_body(&self) -> Arc<dyn Body> {
        let mut body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        let ended: Arc<dyn Body> = Arc::new(EndedBody(body.sandbox()));
        std::mem::replace(&mut *body, ended)
    }

    /// Notes a fault of the body, so that the next call starts a new one.
    pub(crate) fn note_fault(&self, fault: &Fault) {
        if fault.code == ErrorCode::BodyLost {
            self.body_lost.store(true, Ordering::SeqCst);
        }
    }

    pub(crate) fn body_is_lost(&self) -> bool {
        self.body_lost.load(Ordering::SeqCst)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.look().state == SessionState::Running
    }

    /// What a target written as a ref names now.
    ///
    /// # Errors
    /// `stale_ref` where the ref is of an older perception (OS-011 §5.1), `not_found` where no
    /// perception issued it.
    pub(crate) fn resolve_ref(&self, text: &str) -> Result<String, Fault> {
        let reference: Ref = text.parse()?;
        let look = self.look();
        if reference.generation != look.generation {
            let message =
                format!("`{text}` is from generation {}, and this is {}", reference.generation, look.generation);
            return Err(Fault::new(ErrorCode::StaleRef, message)
                .at("action.target")
                .hint("perceive again and use a ref of that observation"));
        }
        look.refs.get(text).cloned().ok_or_else(|| {
            Fault::new(ErrorCode::NotFound, format!("no perception issued `{text}`")).at("action.target")
        })
    }
}

impl Look {
    /// Begins the next generation with a perception, and dates its refs.
    pub(crate) fn perceive(
        &mut self,
        state: StableState,
        entries: &mut [FileEntry],
        processes: &mut [ProcessEntry],
        monitors: &[MonitorInfo],
        windows: &mut [WindowInfo],
    ) -> BTreeMap<String, RefInfo> {
        self.generation += 1;
        let generation = self.generation;
        let name = |kind, index: usize| Ref { kind, number: index as u64 + 1, generation }.to_string();
        let mut targets = BTreeMap::new();
        let mut infos = BTreeMap::new();
        for (index, entry) in entries.iter_mut().enumerate() {
            entry.reference = name(RefKind::File, index);
            // A path that isn't exact can't name the file, so its ref resolves to nothing.
            if entry.path_exact {
                targets.insert(entry.reference.clone(), entry.path.clone());
            }
            infos.insert(entry.reference.clone(), RefInfo::File { path: entry.path.clone(), file_kind: entry.kind });
        }
        for (index, process) in processes.iter_mut().enumerate() {
            process.reference = name(RefKind::Process, index);
            targets.insert(process.reference.clone(), process.target.clone());
            infos.insert(process.reference.clone(), RefInfo::Process { command: process.command.clone() });
        }
        for (index, monitor) in monitors.iter().enumerate() {
            let reference = name(RefKind::Monitor, index);
            targets.insert(reference.clone(), format!("monitor:{}", monitor.index));
            let (width, height) = (monitor.width, monitor.height);
            infos.insert(
                reference,
                RefInfo::Monitor { index: monitor.index, name: monitor.name.clone(), width, height },
            );
        }
        for (index, window) in windows.iter_mut().enumerate() {
            window.reference = name(RefKind::Window, index);
            targets.insert(window.reference.clone(), window.target.clone());
            let info = RefInfo::Window { title: window.title.clone(), app: window.app.clone() };
            infos.insert(window.reference.clone(), info);
        }
        self.refs = targets;
        self.git = state.git.clone();
        self.focused_window.clone_from(&state.fields.focused_window_title);
        self.windows = windows.to_vec();
        self.sees_screen = !monitors.is_empty();
        self.processes = processes.to_vec();
        self.perceived = Some(Perceived { generation, state });
        infos
    }

    /// Begins the next generation with a mutation: every ref is stale from now on (OS-011 §5.1).
    pub(crate) fn mutated(&mut self) {
        self.generation += 1;
        self.refs.clear();
        self.windows.clear();
        self.sees_screen = false;
        self.processes.clear();
    }

    /// The current perception.
    ///
    /// # Errors
    /// `perceive_required` where there was none since the last mutation (OS-011 §7.1).
    pub(crate) fn fresh(&self) -> Result<Perceived, Fault> {
        let fresh = self.perceived.as_ref().filter(|perceived| perceived.generation == self.generation);
        fresh.cloned().ok_or_else(|| {
            Fault::new(ErrorCode::PerceiveRequired, "nothing was perceived since the last change")
                .hint("call body_os_perceive first, then act on what it shows")
        })
    }
}
