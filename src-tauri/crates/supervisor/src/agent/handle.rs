//! One authenticated agent.

use std::sync::{Arc, PoisonError};

use bodyguard_protocol::ui::UiEventKind;
use bodyguard_protocol::{
    AffordanceSet, AgentName, AskId, ErrorCode, Fault, PerceptionQuery, Prediction, Provenance, ReplayId, ReplayOf,
    ReplayResult, SessionId, TraceId, TraceOutcome, WorkspaceName,
};
use bodyguard_trace::{Record, SessionBegan, WorkspaceRow};
use serde_json::{Value, json};

use super::{
    ActCall, ActReply, EnsureSession, PerceiveCall, PerceiveReply, Refusal, ReplayCall, SessionInfo, StateReply,
    Waiting, affordances, dry_run, perceive, pipeline, replay,
};
use crate::core::{Connections, Core};
use crate::session::Session;

/// The longest goal or note of an agent, in bytes.
pub(crate) const MAX_WORDS: usize = 4_000;
/// How long a session has to be left alone to make room for another.
const LEFT_ALONE_MS: i64 = 60_000;
/// Sessions that one agent may have at a time.
const MAX_SESSIONS: usize = 16;

/// What one agent can do: all of OS-011's operations, and nothing that approves.
#[derive(Clone)]
pub struct AgentHandle {
    pub(super) core: Arc<Core>,
    name: AgentName,
}

/// Counts one connection while it lives.
pub struct ConnectionGuard {
    core: Arc<Core>,
    name: AgentName,
}

impl AgentHandle {
    pub(crate) fn new(core: Arc<Core>, name: AgentName) -> Self {
        Self { core, name }
    }

    /// The agent's name, as the person gave it.
    pub fn name(&self) -> &AgentName {
        &self.name
    }

    /// Notes a connection. `client` is what the program at the other end calls itself; untrusted.
    pub fn connected(&self, client: Option<String>) -> ConnectionGuard {
        let now = self.core.now().wall;
        let mut connections = self.core.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let entry: &mut Connections = connections.entry(self.name.clone()).or_default();
        entry.open += 1;
        entry.last_seen = Some(now);
        if client.is_some() {
            entry.client = client.map(|text| text.chars().take(80).collect());
        }
        drop(connections);
        self.core.events.send(UiEventKind::AgentsChanged);
        ConnectionGuard { core: Arc::clone(&self.core), name: self.name.clone() }
    }

    /// Begins a session, or goes on with one.
    ///
    /// # Errors
    /// `unknown_session`, `workspace_not_assigned`, `stopped`, `budget_exceeded`; whatever keeps the
    /// body from starting.
    pub async fn ensure_session(&self, request: EnsureSession) -> Result<SessionInfo, Fault> {
        self.core.refuse_if_stopped()?;
        let assigned = self.assigned().await?;
        if let Some(id) = &request.session_id {
            let session = self.core.session(&self.name, id)?;
            if request.workspace.is_some_and(|name| name != session.workspace.name) {
                return Err(Fault::invalid("workspace", "the session is in another workspace"));
            }
            return Ok(info(&session, true, assigned));
        }
        let workspace = self.choose(request.workspace, &assigned).await?;
        let goal = request.goal.map(|goal| checked_words("goal", goal)).transpose()?;
        self.make_room().await?;
        let session = begin_session(&self.core, &self.name, workspace, goal, None).await?;
        Ok(info(&session, false, assigned))
    }

    async fn assigned(&self) -> Result<Vec<WorkspaceName>, Fault> {
        let agents = self.core.log.reader().agents().await?;
        let agent = agents.into_iter().find(|agent| agent.name == self.name);
        agent.map(|agent| agent.workspaces).ok_or_else(|| Fault::new(ErrorCode::UnknownAgent, "this agent was removed"))
    }

    async fn choose(&self, wanted: Option<WorkspaceName>, assigned: &[WorkspaceName]) -> Result<WorkspaceRow, Fault> {
        let name = match (wanted, assigned) {
            (Some(name), _) if assigned.contains(&name) => name,
            (None, [only]) => only.clone(),
            (None, [_, _, ..]) => {
                let names: Vec<_> = assigned.iter().map(WorkspaceName::as_str).collect();
                return Err(Fault::invalid("workspace", format!("choose one of {}", names.join(", "))));
            }
            (Some(_), _) | (None, []) => {
                return Err(Fault::new(ErrorCode::WorkspaceNotAssigned, "this workspace isn't assigned to this agent")
                    .at("workspace")
                    .hint("the person assigns workspaces on the Agents page"));
            }
        };
        let rows = self.core.log.reader().workspaces().await?;
        rows.into_iter().find(|row| row.name == name).ok_or_else(|| Fault::internal("an assigned workspace is gone"))
    }

    /// Ends the session that was left alone the longest, where there are as many as there may be.
    async fn make_room(&self) -> Result<(), Fault> {
        let mut own = self.core.all_sessions();
        own.retain(|session| session.agent == self.name && session.is_running() && session.replay_of.is_none());
        if own.len() < MAX_SESSIONS {
            return Ok(());
        }
        let now = self.core.now().wall.millis();
        let left_alone = |session: &Arc<Session>| {
            let last = session.look().last_active_at.millis();
            (now.saturating_sub(last) >= LEFT_ALONE_MS && self.core.is_idle(session)).then_some(last)
        };
        let oldest =
            own.iter().filter_map(|session| Some((left_alone(session)?, session))).min_by_key(|(last, _)| *last);
        let Some((_, session)) = oldest else {
            return Err(Fault::new(
                ErrorCode::BudgetExceeded,
                format!("this agent has {} sessions at work", own.len()),
            )
            .hint("go on with one of them by its session_id, or wait until one has been left alone for a minute"));
        };
        self.core.end_session(session, TraceOutcome::Success, "left alone; another session took its place").await;
        Ok(())
    }

    /// Ends a session and its trace.
    ///
    /// # Errors
    /// `unknown_session`.
    pub async fn end_session(&self, id: &SessionId) -> Result<(), Fault> {
        let session = self.core.session(&self.name, id)?;
        self.core.end_session(&session, TraceOutcome::Success, "the agent ended it").await;
        Ok(())
    }

    /// Looks (OS-011 §3.2).
    ///
    /// # Errors
    /// `authorization_required` with the ask to poll where a person must permit it;
    /// `denied_by_policy`; whatever keeps the body from looking.
    pub async fn perceive(&self, id: &SessionId, call: PerceiveCall) -> Result<PerceiveReply, Refusal> {
        let session = self.core.session(&self.name, id)?;
        perceive::perceive(&self.core, &session, call).await
    }

    /// Comes back for a perception that a person had to permit.
    ///
    /// # Errors
    /// As [`Self::perceive`]; `unknown_escalation`.
    pub async fn poll_view(&self, id: &SessionId, ask: &AskId, waiting: Waiting) -> Result<PerceiveReply, Refusal> {
        let session = self.core.session(&self.name, id)?;
        perceive::poll(&self.core, &session, ask, &waiting).await
    }

    /// What may be done now (OS-011 §6.4).
    ///
    /// # Errors
    /// `denied_by_policy` where the scope isn't readable; whatever keeps the body from looking.
    pub async fn affordances(&self, id: &SessionId, scope: Option<String>) -> Result<AffordanceSet, Fault> {
        let session = self.core.session(&self.name, id)?;
        affordances::enumerate(&self.core, &session, scope).await
    }

    /// The state's hash (OS-011 §3.4). Has no side effects: refs stay fresh.
    ///
    /// # Errors
    /// `denied_by_policy` where the profile covers what may not be seen unasked; whatever keeps the body
    /// from looking.
    pub async fn encode_state(&self, id: &SessionId, query: PerceptionQuery) -> Result<StateReply, Fault> {
        let session = self.core.session(&self.name, id)?;
        self.core.revive(&session).await?;
        let state = self.core.stable(&session).await?;
        let provenance = Provenance::new("encode_state", self.core.now().wall, session.agent_id());
        let state_hash = perceive::state_hash(&self.core, &session, query.profile, &state).await?;
        Ok(StateReply { state_hash, state_profile: query.profile, provenance })
    }

    /// What an act would come to (OS-011 §8.4). Does, asks and records nothing.
    ///
    /// # Errors
    /// As [`Self::act`]; a refusal by the policy or the environment is a prediction.
    pub async fn dry_run(&self, id: &SessionId, action: &Value) -> Result<Prediction, Fault> {
        let session = self.core.session(&self.name, id)?;
        dry_run::predict(&self.core, &session, action).await
    }

    /// Acts: admits, asks where the policy says so, runs once, records.
    ///
    /// # Errors
    /// Only where there is no outcome: malformed actions, stale refs, unmet preconditions. A refusal
    /// by policy or person is an outcome.
    pub async fn act(&self, id: &SessionId, call: ActCall) -> Result<ActReply, Refusal> {
        let session = self.core.session(&self.name, id)?;
        pipeline::act(&self.core, &session, call).await
    }

    /// Carries out a recorded trace of this agent again, edge by edge, each destructive one authorised
    /// anew, until the first difference (OS-011 §5.4). It goes on in a session of its own.
    ///
    /// # Errors
    /// Where there is nothing to replay: `not_found` for a trace that isn't there, is another agent's, or
    /// of another workspace; `invalid_argument`; `budget_exceeded` while the session replays another.
    pub async fn replay(&self, id: &SessionId, call: ReplayCall) -> Result<ReplayResult, Refusal> {
        let session = self.core.session(&self.name, id)?;
        let assigned = self.assigned().await?;
        replay::replay(&self.core, &session, call, &assigned).await
    }

    /// Comes back for a replay.
    ///
    /// # Errors
    /// `not_found` for a replay that isn't this session's, or ended long ago.
    pub async fn poll_replay(&self, id: &SessionId, of: &ReplayId, waiting: Waiting) -> Result<ReplayResult, Refusal> {
        let session = self.core.session(&self.name, id)?;
        replay::poll(&self.core, &session, of, &waiting).await
    }

    /// How an ask of an ended session ended, for an agent that comes back after a restart.
    async fn recorded_end(&self, id: &SessionId, ask: &AskId) -> Option<Refusal> {
        let stored = self.core.log.reader().ask(ask).await.ok().flatten()?;
        let (name, _) = stored.record.agent_id.split_once('@')?;
        let its_own = stored.record.session_id.as_ref() == Some(id) && name == self.name.as_str();
        its_own.then(|| Refusal {
            fault: crate::ask::ended_fault(stored.state, stored.reason.clone()),
            escalation_id: Some(ask.clone()),
        })
    }

    /// Comes back for an act by the id of its ask.
    ///
    /// # Errors
    /// `unknown_escalation`.
    pub async fn poll(&self, id: &SessionId, ask: &AskId, waiting: Waiting) -> Result<ActReply, Refusal> {
        match self.core.session(&self.name, id) {
            Ok(session) => pipeline::poll(&self.core, &session, ask, &waiting).await,
            Err(unknown) => Err(self.recorded_end(id, ask).await.unwrap_or_else(|| unknown.into())),
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let now = self.core.now().wall;
        let mut connections = self.core.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = connections.get_mut(&self.name) {
            entry.open = entry.open.saturating_sub(1);
            entry.last_seen = Some(now);
        }
        drop(connections);
        self.core.events.send(UiEventKind::AgentsChanged);
    }
}

/// Begins a session with a body of its own, and its trace.
pub(super) async fn begin_session(
    core: &Core,
    agent: &AgentName,
    workspace: WorkspaceRow,
    goal: Option<String>,
    replay_of: Option<ReplayOf>,
) -> Result<Arc<Session>, Fault> {
    let body = core.bodies.start(&workspace).await?;
    let id = SessionId::from_random(crate::ask::nonce()?);
    let trace_id = TraceId::from_ulid(ulid::Ulid::generate());
    let sandbox = body.sandbox();
    let now = core.now().wall;
    let has_screen = core.bodies.has_screen(&workspace);
    let mut metadata = json!({
        "os_family": std::env::consts::OS,
        "body": workspace.body,
        "sandbox": sandbox,
    });
    if let Some(of) = &replay_of {
        metadata["replay_of"] = json!(of);
    }
    let mut session = Session::new(id, trace_id, agent.clone(), workspace, goal, now, body, has_screen);
    session.replay_of = replay_of;
    let session = Arc::new(session);
    let began = SessionBegan {
        session_id: session.id.clone(),
        trace_id: session.trace_id.clone(),
        agent_id: session.agent_id(),
        workspace: session.workspace.name.clone(),
        workspace_root: session.workspace.root.clone(),
        os_family: std::env::consts::OS.to_owned(),
        state_profile: bodyguard_protocol::StateProfile::default(),
        goal: session.goal.clone(),
        metadata,
    };
    core.log.append(Record::SessionBegan(began)).await?;
    core.add_session(Arc::clone(&session));
    core.events.send(UiEventKind::SessionChanged { session_id: session.id.clone() });
    Ok(session)
}

fn info(session: &Session, resumed: bool, workspaces: Vec<WorkspaceName>) -> SessionInfo {
    SessionInfo {
        session_id: session.id.clone(),
        trace_id: session.trace_id.clone(),
        workspace: session.workspace.name.clone(),
        root: session.workspace.root.clone(),
        resumed,
        generation: session.look().generation,
        workspaces,
    }
}

/// An agent's own words: bounded, and without the byte that would cut them.
///
/// # Errors
/// `too_long_to_review`, `nul_byte`.
pub(crate) fn checked_words(field: &str, words: String) -> Result<String, Fault> {
    if words.len() > MAX_WORDS {
        let message = format!("{} bytes are too many for a person to read beside a decision", words.len());
        return Err(Fault::new(ErrorCode::TooLongToReview, message).at(field));
    }
    if words.contains('\0') {
        return Err(Fault::new(ErrorCode::NulByte, "a NUL byte can't be part of it").at(field));
    }
    Ok(words)
}
