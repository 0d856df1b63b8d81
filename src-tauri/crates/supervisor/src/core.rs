//! What all handles share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bodyguard_body::StableState;
use bodyguard_policy::{Budgets, PresenceRule};
use bodyguard_protocol::ui::{HealthCheck, SessionState, UiEventKind};
use bodyguard_protocol::{AgentName, AskId, Digest, ErrorCode, Fault, Moment, SessionId, TraceOutcome};
use bodyguard_trace::{Log, LogError, Record, SessionEnded, Started, Stopped};
use tokio::sync::watch;

use crate::agent::Replays;
use crate::ask::Pendings;
use crate::bodies::Bodies;
use crate::desktop::Desktop;
use crate::events::Events;
use crate::human::{BarContent, Counts, HumanHandle};
use crate::init::{ASK_SECONDS, DEFAULT_ASK_SECONDS};
use crate::keys::Keys;
use crate::policies::Policies;
use crate::session::Session;
use crate::{AgentHandle, Config, StartError};

/// The supervisor of one data folder.
#[derive(Clone)]
pub struct Supervisor {
    core: Arc<Core>,
}

/// The state behind the handles.
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) log: Log,
    pub(crate) events: Events,
    pub(crate) policies: Policies,
    pub(crate) bodies: Bodies,
    pub(crate) keys: Keys,
    pub(crate) budgets: Budgets,
    pub(crate) pendings: Pendings,
    pub(crate) desktop: Desktop,
    pub(crate) replays: Replays,
    pub(crate) bar: watch::Sender<Option<BarContent>>,
    pub(crate) counts: watch::Sender<Counts>,
    pub(crate) connections: Mutex<HashMap<AgentName, Connections>>,
    pub(crate) health: Mutex<Vec<HealthCheck>>,
    pub(crate) devices_present: Mutex<BTreeSet<String>>,
    /// What a crash or restart cut off and the person hasn't read yet, one sentence each.
    pub(crate) interrupted: Mutex<Vec<String>>,
    sessions: RwLock<BTreeMap<SessionId, Arc<Session>>>,
    stopped: AtomicBool,
}

/// How long a session of an agent that isn't connected is kept.
const ABANDONED_MS: i64 = 30 * 60 * 1000;

/// The connections of one agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connections {
    pub(crate) open: u32,
    pub(crate) client: Option<String>,
    pub(crate) last_seen: Option<bodyguard_protocol::Timestamp>,
}

impl Supervisor {
    /// Opens the data folder, says what a crash cut off, and fetches the signing key.
    ///
    /// Without a reachable keyring it starts all the same: reads work, and everything that needs a
    /// signature is refused with `signer_unavailable`.
    ///
    /// # Errors
    /// Where another process owns the folder, or the log can't be opened.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        make_private(&config.data_dir)?;
        let log = Log::open(&config.data_dir, Arc::clone(&config.clock)).map_err(|error| match error {
            LogError::Owned { pid } => StartError::Owned { pid },
            other => StartError::Log(other.to_string()),
        })?;
        let failed = |error: LogError| StartError::Log(error.to_string());
        let recovery = log.recover().await.map_err(failed)?;
        let started = Started {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            boot_id: log.boot_id().to_owned(),
        };
        log.append(Record::Started(started)).await.map_err(failed)?;
        let keys = Keys::load(&log, config.surroundings, config.clock.now().wall).await;
        if let Some(signer) = keys.signer() {
            log.set_signer(signer);
        }
        crate::phrase::ensure(&log).await.map_err(failed)?;
        let stopped = log.reader().counts().await.map_err(failed)?.stopped;
        let policies = Policies::new(&config.data_dir);
        let bodies = Bodies::new(&config);
        let core = Arc::new(Core {
            policies,
            bodies,
            keys,
            log,
            events: Events::new(),
            budgets: Budgets::default(),
            pendings: Pendings::default(),
            desktop: Desktop::default(),
            replays: Replays::default(),
            bar: watch::channel(None).0,
            counts: watch::channel(Counts { stopped, ..Counts::default() }).0,
            connections: Mutex::default(),
            health: Mutex::default(),
            devices_present: Mutex::default(),
            interrupted: Mutex::new(crate::human::interrupted_sentences(&recovery)),
            sessions: RwLock::default(),
            stopped: AtomicBool::new(stopped),
            config,
        });
        crate::ask::watch_clock(&core);
        core.probe_health();
        Ok(Self { core })
    }

    /// The person's handle.
    pub fn human(&self) -> HumanHandle {
        HumanHandle::new(Arc::clone(&self.core))
    }

    /// The handle of the agent that a token belongs to.
    ///
    /// # Errors
    /// `unknown_agent`.
    pub async fn authenticate(&self, token: &str) -> Result<AgentHandle, Fault> {
        let digest = Digest::of(token.as_bytes());
        // Digests are compared, so that timing tells nothing about the token itself.
        let agents = self.core.log.reader().agents().await?;
        let agent = agents.into_iter().find(|agent| agent.token_sha256 == digest);
        match agent {
            Some(agent) => Ok(AgentHandle::new(Arc::clone(&self.core), agent.name)),
            None => Err(Fault::new(ErrorCode::UnknownAgent, "no agent has this token")
                .hint("connect the agent on the Agents page, and copy its configuration from there")),
        }
    }

    /// The data folder.
    pub fn data_dir(&self) -> &Path {
        &self.core.config.data_dir
    }

    /// Ends every session and closes the log with a signed checkpoint.
    pub async fn shutdown(&self) {
        for session in self.core.all_sessions() {
            let outcome = if session.replay_of.is_some() { TraceOutcome::Aborted } else { TraceOutcome::Success };
            self.core.end_session(&session, outcome, "Bodyguard was quit").await;
        }
        if let Err(error) = self.core.log.close().await {
            tracing::error!(%error, "the log could not be closed");
        }
    }
}

impl Core {
    pub(crate) fn now(&self) -> Moment {
        self.config.clock.now()
    }

    /// A running session of this agent. Another agent's is as unknown as one that never was, and so is
    /// a replay's.
    pub(crate) fn session(&self, agent: &AgentName, id: &SessionId) -> Result<Arc<Session>, Fault> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        let found = sessions.get(id).filter(|session| session.agent == *agent && session.is_running());
        let found = found.filter(|session| session.replay_of.is_none());
        found.cloned().ok_or_else(|| {
            Fault::new(ErrorCode::UnknownSession, "no such session")
                .at("session_id")
                .hint("call body_os_ensure_session without session_id to begin one")
        })
    }

    pub(crate) fn all_sessions(&self) -> Vec<Arc<Session>> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn add_session(&self, session: Arc<Session>) {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner).insert(session.id.clone(), session);
    }

    /// Whether nothing of a session waits or runs.
    pub(crate) fn is_idle(&self, session: &Session) -> bool {
        !self.replays.busy(&session.id) && self.pendings.of_session(&session.id).iter().all(|ask| ask.is_finished())
    }

    /// Ends sessions that were left alone by agents that are no longer connected.
    pub(crate) async fn end_abandoned(&self) {
        let now = self.now().wall.millis();
        let running = |session: &Arc<Session>| session.is_running() && session.replay_of.is_none();
        for session in self.all_sessions().into_iter().filter(running) {
            let connected = {
                let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
                connections.get(&session.agent).is_some_and(|connections| connections.open > 0)
            };
            let last = session.look().last_active_at.millis();
            if !connected && now.saturating_sub(last) >= ABANDONED_MS && self.is_idle(&session) {
                self.end_session(&session, TraceOutcome::Success, "nobody came back to it").await;
            }
        }
    }

    /// Ends a session: what waits is withdrawn, what runs is ended, and its trace closes.
    pub(crate) async fn end_session(&self, session: &Arc<Session>, outcome: TraceOutcome, reason: &str) {
        {
            let mut look = session.look();
            if look.state != SessionState::Running {
                return;
            }
            look.state = SessionState::Ended;
        }
        session.ended.cancel();
        crate::ask::withdraw_all_of(self, session, reason).await;
        // Whatever was running has to record its outcome before the trace closes.
        let _turn = session.turn.lock().await;
        let ended = SessionEnded {
            session_id: session.id.clone(),
            trace_id: session.trace_id.clone(),
            outcome,
            reason: reason.to_owned(),
        };
        if let Err(error) = self.log.append(Record::SessionEnded(ended)).await {
            tracing::error!(%error, "the end of a session could not be recorded");
        }
        // What still tells of the session, such as an ask that can be polled, must not keep its body.
        let body = session.take_body();
        // A body waits for its process to end, which would hold up whatever else runs on this thread.
        let _ = tokio::task::spawn_blocking(move || drop(body)).await;
        self.sessions.write().unwrap_or_else(PoisonError::into_inner).remove(&session.id);
        self.events.send(UiEventKind::SessionChanged { session_id: session.id.clone() });
    }

    /// The state of the session's workspace now.
    pub(crate) async fn stable(&self, session: &Session) -> Result<StableState, Fault> {
        let state = session.body().stable(&session.workspace.root).await;
        state.inspect_err(|fault| session.note_fault(fault))
    }

    /// Starts a new body where the last one ended.
    pub(crate) async fn revive(&self, session: &Session) -> Result<(), Fault> {
        if session.body_is_lost() {
            session.replace_body(self.bodies.start(&session.workspace).await?);
        }
        Ok(())
    }

    pub(crate) fn new_ask_id(&self) -> AskId {
        AskId::from_ulid(ulid::Ulid::generate())
    }

    /// Milliseconds until an ask lapses.
    pub(crate) async fn ask_ttl_ms(&self) -> Result<u64, Fault> {
        let seconds = self.log.reader().value(ASK_SECONDS).await?;
        let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_ASK_SECONDS);
        Ok(u64::from(seconds) * 1000)
    }

    /// # Errors
    /// `budget_exceeded`.
    pub(crate) fn admit_ask(&self, session: &Session) -> Result<(), Fault> {
        let (of_agent, total) = self.pendings.open_counts(Some(&session.agent));
        self.budgets.admit_ask(of_agent, total)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// # Errors
    /// `stopped` while a person's stop holds.
    pub(crate) fn refuse_if_stopped(&self) -> Result<(), Fault> {
        if !self.is_stopped() {
            return Ok(());
        }
        Err(Fault::new(ErrorCode::Stopped, "the person stopped everything")
            .hint("wait; nothing is done until the person lets agents go on"))
    }

    /// Stops everything at once, then records it.
    pub(crate) fn stop_all(self: &Arc<Self>, way: &str) {
        self.set_stopped(true);
        for session in self.all_sessions() {
            self.pendings.cancel_all_of(&session.id);
        }
        let core = Arc::clone(self);
        let record = Record::Stopped(Stopped { by: self.keys.person().to_owned(), way: way.to_owned() });
        tokio::spawn(async move {
            for session in core.all_sessions() {
                crate::ask::withdraw_all_of(&core, &session, "the person stopped everything").await;
            }
            if let Err(error) = core.log.append(record).await {
                tracing::error!(%error, "a stop could not be recorded");
            }
        });
    }

    pub(crate) fn set_stopped(&self, stopped: bool) {
        self.stopped.store(stopped, Ordering::SeqCst);
        self.counts.send_modify(|counts| counts.stopped = stopped);
        self.events.send(UiEventKind::StoppedChanged { stopped });
    }

    /// The presence rule over the devices that are enrolled now.
    pub(crate) async fn presence_rule(&self) -> Result<Arc<dyn PresenceRule>, Fault> {
        let devices = self.log.reader().devices().await?;
        let enrolled = devices.into_iter().filter(|device| device.enrolled).map(|device| device.name).collect();
        Ok((self.config.presence)(enrolled))
    }

    /// Tells the window that an edge was recorded or ended.
    pub(crate) async fn edge_changed(&self, session: &Session, edge_id: u64) {
        match self.log.reader().edge(&session.trace_id, edge_id).await {
            Ok(Some(edge)) => {
                let trace_id = session.trace_id.clone();
                self.events.send(UiEventKind::EdgeAdded { trace_id, edge: edge.summary });
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "an edge could not be shown"),
        }
        self.events.send(UiEventKind::SessionChanged { session_id: session.id.clone() });
    }

    /// Looks at the machine's health on a thread of its own.
    pub(crate) fn probe_health(self: &Arc<Self>) {
        let core = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let mut checks = (core.config.health)();
            checks.extend(core.keys.health());
            *core.health.lock().unwrap_or_else(PoisonError::into_inner) = checks;
            core.events.send(UiEventKind::HealthChanged);
        });
    }
}

fn make_private(dir: &Path) -> Result<(), StartError> {
    let folder = |source| StartError::Folder { path: dir.to_owned(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(folder)
}
