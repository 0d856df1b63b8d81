//! A log in a temporary folder, with a session, a person and a key.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bodyguard_policy::{Draft, EnrolledDevices, EventKind, NativeEvent, Presence, issue_by_person};
use bodyguard_protocol::ui::{AskState, DecisionKind, DecisionView};
use bodyguard_protocol::{
    AskId, Block, BlockKind, Clock, Digest, Moment, OutcomeStatus, SessionId, StateProfile, Timestamp, TraceId,
    TypedAction,
};
use bodyguard_trace::{
    AskRecord, ChangeNote, IntentCommitted, IntentRecord, KeyList, KeyRow, Log, LogReader, MoveNote, OutcomeRecord,
    Record, SessionBegan, SettingChange, Signer, VerifyReport, verify_blocking,
};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const AGENT: &str = "tester@main";
const DEVICE: &str = "Test pointer";

/// A clock that goes on by a millisecond whenever it is read.
pub(crate) struct TickingClock(AtomicI64);

impl TickingClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(1_700_000_000_000)))
    }
}

impl Clock for TickingClock {
    fn now(&self) -> Moment {
        let millis = self.0.fetch_add(1, Ordering::Relaxed);
        Moment { wall: Timestamp::from_millis(millis), boot_ms: u64::try_from(millis).unwrap() - 1_600_000_000_000 }
    }
}

pub(crate) fn signer() -> Signer {
    Signer::from_seed([42; 32])
}

pub(crate) fn keys() -> KeyList {
    let mut keys = KeyList::new();
    keys.add_signer(&signer());
    keys
}

pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) log: Log,
}

#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) session_id: SessionId,
    pub(crate) trace_id: TraceId,
}

pub(crate) fn trace_id() -> TraceId {
    TraceId::from_ulid(ulid::Ulid::generate())
}

pub(crate) fn ask_id() -> AskId {
    AskId::from_ulid(ulid::Ulid::generate())
}

pub(crate) fn nonce() -> [u8; 16] {
    ulid::Ulid::generate().to_bytes()
}

pub(crate) fn open(dir: &Path) -> Log {
    let log = Log::open(dir, TickingClock::new()).unwrap();
    log.set_signer(signer());
    log
}

pub(crate) async fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    log.change(SettingChange::Key(key_row()), ChangeNote::by("bodyguard")).await.unwrap();
    World { dir, log }
}

pub(crate) fn key_row() -> KeyRow {
    KeyRow {
        key_id: signer().key_id(),
        public_key: signer().public_key_hex(),
        kept_in: "test".into(),
        created_at: Timestamp::from_millis(1),
        current: true,
    }
}

pub(crate) async fn session(log: &Log) -> Session {
    let session = Session { session_id: SessionId::from_random(nonce()), trace_id: trace_id() };
    let began = SessionBegan {
        session_id: session.session_id.clone(),
        trace_id: session.trace_id.clone(),
        agent_id: AGENT.into(),
        workspace: "main".parse().unwrap(),
        workspace_root: "/w".into(),
        os_family: "linux".into(),
        state_profile: StateProfile::RegistryV0,
        goal: Some("test the log".into()),
        metadata: json!({"containment": "full"}),
    };
    log.append(Record::SessionBegan(began)).await.unwrap();
    session
}

pub(crate) fn shell(command: &str) -> TypedAction {
    action(json!({"type": "shell_exec", "target": "/w", "params": {"command": command}}))
}

pub(crate) fn read(path: &str) -> TypedAction {
    action(json!({"type": "file_read", "target": path, "params": {"offset": 0}}))
}

pub(crate) fn action(value: Value) -> TypedAction {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn ask(session: &Session, action: &TypedAction, log: &Log) -> AskRecord {
    let (ask_id, action_digest) = (ask_id(), action.digest().unwrap());
    let at = Timestamp::from_millis(1_700_000_000_000);
    let view = DecisionView {
        ask_id: ask_id.clone(),
        kind: DecisionKind::Act,
        headline: "tester wants to run a command".into(),
        requester: AGENT.into(),
        session_id: Some(session.session_id.clone()),
        replays: None,
        contents: Vec::new(),
        facts: Vec::new(),
        warnings: Vec::new(),
        agent_words: Some("please".into()),
        why: "commands are asked about".into(),
        policy_id: "policy:main/ask-commands".into(),
        action_digest: action_digest.clone(),
        asked_at: at,
        expires_at: at.plus_millis(600_000),
    };
    AskRecord {
        ask_id,
        ask_kind: DecisionKind::Act,
        session_id: Some(session.session_id.clone()),
        trace_id: Some(session.trace_id.clone()),
        agent_id: AGENT.into(),
        subject: serde_json::to_value(action).unwrap(),
        action_digest,
        context: json!({"binding": {"program": "/bin/sh"}}),
        shown_digest: view.digest().unwrap(),
        view,
        policy_id: "policy:main/ask-commands".into(),
        opened_at: at,
        opened_boot_ms: 1,
        boot_id: log.boot_id().into(),
        ttl_ms: 600_000,
    }
}

/// A person's yes to an ask.
pub(crate) fn block(ask: &AskRecord) -> Block {
    let rule = EnrolledDevices::new(BTreeSet::from([DEVICE.to_owned()]));
    let event = NativeEvent { device: Some(DEVICE.into()), kind: EventKind::Pointer, sent: false };
    let presence = Presence::witness(&rule, &event, &ask.ask_id, &ask.shown_digest).unwrap();
    let draft = Draft {
        kind: BlockKind::Act,
        action_digest: ask.action_digest.clone(),
        state_before: Digest::of(b"before"),
        binding_digest: Digest::of(b"binding"),
        shown_digest: ask.shown_digest.clone(),
        sandbox_digest: Digest::of(b"sandbox"),
        policy_digest: Digest::of(b"policy"),
        agent_id: ask.agent_id.clone(),
        session_id: ask.session_id.clone().unwrap(),
        trace_id: ask.trace_id.clone().unwrap(),
        ask_id: Some(ask.ask_id.clone()),
        policy_id: ask.policy_id.clone(),
    };
    issue_by_person(&signer(), draft, presence, "person", ask.opened_at, 600_000, nonce()).unwrap()
}

pub(crate) fn intent(session: &Session, action: TypedAction, approved: Option<(&AskRecord, Block)>) -> IntentRecord {
    IntentRecord {
        session_id: session.session_id.clone(),
        trace_id: session.trace_id.clone(),
        action_digest: action.digest().unwrap(),
        action,
        state_before: Digest::of(b"before"),
        binding: json!({"program": "/bin/sh"}),
        prediction: json!({"outcome_status": "success"}),
        ask_id: approved.as_ref().map(|(ask, _)| ask.ask_id.clone()),
        policy_id: "policy:main/ask-commands".into(),
        authorization: approved.map(|(_, block)| block),
    }
}

pub(crate) fn success(observed: Value) -> OutcomeRecord {
    OutcomeRecord {
        status: OutcomeStatus::Success,
        state_after: Some(Digest::of(b"after")),
        latency_ms: 5,
        observed: Some(observed),
        error: None,
        picture: None,
        surprise: None,
    }
}

/// An ask up to `claimed`, with the block of the yes.
pub(crate) async fn claimed(log: &Log, session: &Session, action: &TypedAction) -> (AskRecord, Block) {
    let ask = ask(session, action, log);
    log.open_ask(ask.clone()).await.unwrap();
    let block = block(&ask);
    let yes = MoveNote { device: Some(DEVICE.into()), block: Some(block.clone()), reason: None };
    log.move_ask(&ask.ask_id, AskState::Open, AskState::Approved, yes).await.unwrap();
    log.move_ask(&ask.ask_id, AskState::Approved, AskState::Claimed, MoveNote::default()).await.unwrap();
    (ask, block)
}

pub(crate) async fn begun(log: &Log, session: &Session, command: &str) -> (AskRecord, IntentCommitted) {
    let action = shell(command);
    let (ask, block) = claimed(log, session, &action).await;
    let committed = log.commit_intent(intent(session, action, Some((&ask, block)))).await.unwrap();
    (ask, committed)
}

/// A whole act: asked, approved, run, recorded.
pub(crate) async fn act(log: &Log, session: &Session, command: &str) -> AskRecord {
    let (ask, committed) = begun(log, session, command).await;
    log.record_outcome(committed.reference(), success(json!({"stdout": "ok\n"}))).await.unwrap();
    ask
}

pub(crate) async fn state(log: &Log, ask_id: &AskId) -> AskState {
    log.reader().ask(ask_id).await.unwrap().unwrap().state
}

pub(crate) async fn leaves(log: &Log) -> u64 {
    log.reader().counts().await.unwrap().leaves
}

pub(crate) fn verified(reader: &LogReader) -> VerifyReport {
    verify_blocking(reader, &keys()).unwrap()
}

#[track_caller]
pub(crate) fn assert_holds(reader: &LogReader) {
    let report = verified(reader);
    assert!(report.ok, "{:#?}", report.problems);
}
