//! An agent's handle that does as told: it panics, stalls, answers and counts. The real handle can't
//! be made to panic, which is why this one exists.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bodyguard_protocol::{
    ActionOutcome, ActionType, Affordance, AffordanceSet, AgentName, AskId, BODY_SUBTYPE, Difference, Digest,
    ErrorCode, Fault, Foreseen, Observation, OutcomeError, OutcomeStatus, PerceptionQuery, Prediction, Provenance,
    RefInfo, ReplayId, ReplayResult, ReplayStatus, SessionId, StateProfile, Timestamp,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agent::{Agent, Gate};
use crate::serve::{Doors, ServeConfig, open};
use bodyguard_body::Image;
use bodyguard_supervisor::{
    ActCall, ActReply, EnsureSession, PerceiveCall, PerceiveReply, Refusal, ReplayCall, SessionInfo, StateReply,
    Waiting,
};

pub(super) const ASK: &str = "a_01ARZ3NDEKTSV4RRFFQ69G5FAV";
pub(super) const REPLAY: &str = "r_01ARZ3NDEKTSV4RRFFQ69G5FAV";
pub(super) const TRACE: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// What happened, by name.
#[derive(Default)]
pub(super) struct Book {
    pub(super) connections: AtomicI64,
    pub(super) waiting: AtomicI64,
    pub(super) cancelled: AtomicI64,
    pub(super) acts: Mutex<Vec<String>>,
    pub(super) clients: Mutex<Vec<Option<String>>>,
}

impl Book {
    pub(super) fn acts(&self) -> Vec<String> {
        self.acts.lock().unwrap().clone()
    }
}

/// Knows two agents, `alice` and `bob`, by the tokens `token-alice` and `token-bob`.
#[derive(Clone, Default)]
pub(super) struct Script {
    pub(super) book: Arc<Book>,
}

#[derive(Clone)]
pub(super) struct Scripted {
    name: AgentName,
    book: Arc<Book>,
}

pub(super) struct Seat(Arc<Book>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Waiter(Arc<Book>);

impl Waiter {
    fn new(book: &Arc<Book>) -> Self {
        book.waiting.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(book))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Gate for Script {
    type Agent = Scripted;

    async fn authenticate(&self, token: &str) -> Result<Scripted, Fault> {
        match token.strip_prefix("token-") {
            Some(name @ ("alice" | "bob")) => {
                Ok(Scripted { name: name.parse().unwrap(), book: Arc::clone(&self.book) })
            }
            _ => Err(Fault::new(ErrorCode::UnknownAgent, "no agent has this token")),
        }
    }
}

pub(super) fn session_of(name: &str) -> SessionId {
    let byte = if name == "alice" { 0xa1 } else { 0xb0 };
    SessionId::from_random([byte; 16])
}

fn provenance(operation: &str) -> Provenance {
    Provenance::new(operation, Timestamp::from_millis(1), "alice@w")
}

impl Scripted {
    fn known(&self, session: &SessionId) -> Result<(), Fault> {
        if *session == session_of(self.name.as_str()) {
            Ok(())
        } else {
            Err(Fault::new(ErrorCode::UnknownSession, "no such session"))
        }
    }

    fn outcome(&self, error: Option<OutcomeError>) -> ActReply {
        let status = if error.is_some() { OutcomeStatus::Blocked } else { OutcomeStatus::Success };
        let outcome = ActionOutcome {
            outcome_status: status,
            state_before: Some(Digest::of(b"s")),
            state_after: None,
            latency_ms: 3,
            observed_outcome: Some(json!({"stdout": "out"})),
            error,
            trace_id: TRACE.parse().unwrap(),
            edge_id: Some(1),
            authorization: None,
            provenance: provenance("act"),
        };
        ActReply { outcome, image: None }
    }

    /// Waits as the supervisor does: it tells, it hears a cancellation, it ends by its own.
    async fn wait(&self, waiting: Waiting) -> ActReply {
        let _waiter = Waiter::new(&self.book);
        let ends = tokio::time::Instant::now() + waiting.wait;
        loop {
            (waiting.progress)("waiting for the person's decision".to_owned());
            tokio::select! {
                () = waiting.cancel.cancelled() => {
                    self.book.cancelled.fetch_add(1, Ordering::SeqCst);
                    return self.outcome(Some(Fault::new(ErrorCode::Withdrawn, "cancelled").into()));
                }
                () = tokio::time::sleep(Duration::from_millis(40)) => {}
                () = tokio::time::sleep_until(ends) => {
                    let mut error = OutcomeError::from(Fault::new(ErrorCode::AuthorizationRequired, "a person decides"));
                    error.escalation_id = Some(ASK.to_owned());
                    return self.outcome(Some(error));
                }
            }
        }
    }
}

impl Agent for Scripted {
    type Presence = Seat;

    fn name(&self) -> AgentName {
        self.name.clone()
    }

    fn connected(&self, client: Option<String>) -> Seat {
        self.book.connections.fetch_add(1, Ordering::SeqCst);
        self.book.clients.lock().unwrap().push(client);
        Seat(Arc::clone(&self.book))
    }

    async fn ensure_session(&self, wish: EnsureSession) -> Result<SessionInfo, Fault> {
        let own = session_of(self.name.as_str());
        if let Some(wished) = &wish.session_id {
            self.known(wished)?;
        }
        Ok(SessionInfo {
            session_id: own,
            trace_id: TRACE.parse().unwrap(),
            workspace: "w".parse().unwrap(),
            root: "/w".into(),
            resumed: wish.session_id.is_some(),
            generation: 0,
            workspaces: vec!["w".parse().unwrap()],
        })
    }

    async fn perceive(&self, session: &SessionId, call: PerceiveCall) -> Result<PerceiveReply, Refusal> {
        self.known(session)?;
        let bytes = match call.words.as_deref() {
            Some("picture") => 1000,
            Some("huge picture") => 5_000_000,
            _ => 0,
        };
        let image = Image { media_type: "image/png".into(), bytes: vec![7; bytes], width: 10, height: 10, scale: 0.5 };
        let refs = BTreeMap::from([(
            "@m1/g1".to_owned(),
            RefInfo::Monitor { index: 0, name: "m".into(), width: 1, height: 1 },
        )]);
        let observation = Observation {
            body_subtype: BODY_SUBTYPE.into(),
            state_hash: Digest::of(b"s"),
            state_profile: StateProfile::default(),
            observed_at: Timestamp::from_millis(1),
            generation: 1,
            payload: json!({"cwd": "workspace:/"}),
            refs,
            provenance: provenance("perceive"),
        };
        Ok(PerceiveReply { observation, image: (bytes > 0).then(|| Arc::new(image)) })
    }

    async fn poll_view(&self, session: &SessionId, ask: &AskId, _: Waiting) -> Result<PerceiveReply, Refusal> {
        self.known(session)?;
        Err(Refusal { fault: Fault::new(ErrorCode::AuthorizationRequired, "wait"), escalation_id: Some(ask.clone()) })
    }

    async fn affordances(&self, session: &SessionId, scope: Option<String>) -> Result<AffordanceSet, Fault> {
        self.known(session)?;
        Ok(AffordanceSet {
            affordance_set_hash: Digest::of(b"a"),
            observed_at: Timestamp::from_millis(1),
            body_subtype: BODY_SUBTYPE.into(),
            scope,
            affordances: vec![Affordance::new(ActionType::FileRead, "/w/**", "files", false)],
            policy_filtered_out: 2,
            provenance: provenance("affordances"),
        })
    }

    async fn encode_state(&self, session: &SessionId, query: PerceptionQuery) -> Result<StateReply, Fault> {
        self.known(session)?;
        Ok(StateReply {
            state_hash: Digest::of(b"s"),
            state_profile: query.profile,
            provenance: provenance("encode_state"),
        })
    }

    async fn dry_run(&self, session: &SessionId, _: &Value) -> Result<Prediction, Fault> {
        self.known(session)?;
        Ok(Prediction {
            decision: Foreseen::Asked,
            policy_id: Some("policy:w/a".into()),
            outcome_status: OutcomeStatus::Success,
            state_before: Some(Digest::of(b"s")),
            state_after: None,
            latency_ms: Some(3),
            predicted_outcome: None,
            error: None,
            provenance: provenance("dry_run"),
        })
    }

    async fn act(&self, session: &SessionId, call: ActCall) -> Result<ActReply, Refusal> {
        self.known(session)?;
        let action = bodyguard_protocol::action::ActRequest::parse(&call.action)?.action;
        let bodyguard_protocol::Params::ShellExec(shell) = action.params else { return Ok(self.outcome(None)) };
        let command = shell.command.unwrap_or_default();
        self.book.acts.lock().unwrap().push(command.clone());
        match command.as_str() {
            "panic" => panic!("told to"),
            "stall" => {
                let _waiter = Waiter::new(&self.book);
                std::future::pending::<()>().await;
                Ok(self.outcome(None))
            }
            "ask" => Ok(self.wait(call.waiting).await),
            _ => Ok(self.outcome(None)),
        }
    }

    async fn poll(&self, session: &SessionId, ask: &AskId, waiting: Waiting) -> Result<ActReply, Refusal> {
        self.known(session)?;
        if ask.as_str() != ASK {
            return Err(Fault::new(ErrorCode::UnknownEscalation, "no such ask").into());
        }
        Ok(self.wait(waiting).await)
    }

    async fn replay(&self, session: &SessionId, call: ReplayCall) -> Result<ReplayResult, Refusal> {
        self.known(session)?;
        if call.trace_id.as_str() != TRACE {
            return Err(Fault::new(ErrorCode::NotFound, "no such trace").at("trace_id").into());
        }
        let status = if call.dry_run { ReplayStatus::Success } else { ReplayStatus::Running };
        Ok(ReplayResult { dry_run: call.dry_run, ..replayed(status) })
    }

    async fn poll_replay(&self, session: &SessionId, of: &ReplayId, _: Waiting) -> Result<ReplayResult, Refusal> {
        self.known(session)?;
        let mut result = replayed(ReplayStatus::Partial);
        result.replay_id = Some(of.clone());
        result.failed_at_edge = Some(2);
        result.reason = Some(ErrorCode::StateHashMismatch);
        result.error = Some(Fault::new(ErrorCode::StateHashMismatch, "another state").into());
        result.expected_hash = Some(Digest::of(b"s"));
        let (field, expected, actual) = ("git_head".to_owned(), Some(json!("sha1:0")), Some(json!("sha1:1")));
        result.divergence_details = Some(vec![Difference { field, expected, actual }]);
        Ok(result)
    }
}

fn replayed(status: ReplayStatus) -> ReplayResult {
    ReplayResult {
        status,
        dry_run: false,
        replay_id: Some(REPLAY.parse().unwrap()),
        trace_id: Some(TRACE.parse().unwrap()),
        replayed_trace_id: TRACE.parse().unwrap(),
        edges_replayed: vec![1],
        edges_skipped: Vec::new(),
        failed_at_edge: None,
        reason: None,
        expected_hash: None,
        actual_hash: None,
        divergence_details: None,
        escalation_id: Some(ASK.parse().unwrap()),
        waiting_for: Some("act 2 waits for the person's decision".into()),
        predictions: None,
        error: None,
        provenance: provenance("replay"),
    }
}

/// Open doors in a folder of their own.
pub(super) struct House {
    pub(super) doors: Doors,
    pub(super) book: Arc<Book>,
    pub(super) dir: TempDir,
}

impl House {
    pub(super) async fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let script = Script::default();
        let book = Arc::clone(&script.book);
        let doors = Self::open(&dir, script).await;
        Self { doors, book, dir }
    }

    pub(super) async fn open(dir: &TempDir, script: Script) -> Doors {
        let data_dir = dir.path().to_owned();
        let socket = data_dir.join("run/agent.sock");
        open(script, ServeConfig { data_dir, socket, http_port: Some(0) }).await.unwrap()
    }

    pub(super) fn port(&self) -> u16 {
        let url = self.doors.http_url.as_deref().unwrap();
        url.trim_start_matches("http://127.0.0.1:").trim_end_matches("/mcp").parse().unwrap()
    }
}

/// Waits until something holds; a test that waits in vain fails.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..400 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{what} didn't happen");
}
