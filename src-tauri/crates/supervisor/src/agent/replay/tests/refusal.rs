//! What can't be replayed, and by whom.

use std::time::Duration;

use bodyguard_protocol::action::ActRequest;
use bodyguard_protocol::{
    ActionType, Digest, ErrorCode, OutcomeStatus, PerceptionQuery, ReplayStatus, SessionId, StateProfile, TraceId,
};
use bodyguard_trace::{IntentRecord, Record, Refused, RefusedEdge, SessionBegan};
use serde_json::{Value, json};

use super::house::{House, wish};
use crate::{EnsureSession, ReplayCall};

#[tokio::test(flavor = "multi_thread")]
async fn only_an_agents_own_traces_of_this_workspace_are_known_to_it() {
    let house = House::start().await;
    house.record(&[house.shell("touch one")]).await;
    let bob = house.agent("bob").await;
    let bobs = bob.ensure_session(wish("ws")).await.unwrap();
    let elsewhere = house.agent.ensure_session(wish("other")).await.unwrap();
    let never = TraceId::from_ulid(ulid::Ulid::generate());
    let call = |trace: &TraceId| ReplayCall { trace_id: trace.clone(), ..house.call(Duration::ZERO) };
    let refused = [
        house.agent.replay(&house.session, call(&never)).await,
        house.agent.replay(&house.session, call(&bobs.trace_id)).await,
        house.agent.replay(&house.session, call(&elsewhere.trace_id)).await,
        house.agent.replay(&elsewhere.session_id, call(&house.trace)).await,
        bob.replay(&bobs.session_id, call(&house.trace)).await,
    ]
    .map(|answer| answer.unwrap_err().fault);
    assert_eq!((refused[0].code, refused[0].field.as_deref()), (ErrorCode::NotFound, Some("trace_id")));
    assert!(refused.iter().all(|fault| *fault == refused[0]), "one answer for all: {refused:?}");

    for (from, to, field) in [(Some(2), None, "from_edge"), (None, Some(2), "to_edge"), (Some(0), None, "from_edge")] {
        let part = ReplayCall { from_edge: from, to_edge: to, ..house.call(Duration::ZERO) };
        let fault = house.agent.replay(&house.session, part).await.unwrap_err().fault;
        assert_eq!((fault.code, fault.field.as_deref()), (ErrorCode::InvalidArgument, Some(field)));
    }
    let running = house.agent.replay(&house.session, house.call(Duration::ZERO)).await.unwrap().replay_id.unwrap();
    let other = house.agent.ensure_session(wish("ws")).await.unwrap();
    let waiting = house.call(Duration::ZERO).waiting;
    let fault = house.agent.poll_replay(&other.session_id, &running, waiting).await.unwrap_err().fault;
    assert_eq!((fault.code, fault.field.as_deref()), (ErrorCode::NotFound, Some("replay_id")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_of_a_replay_is_no_session_of_the_agent() {
    let house = House::start().await;
    house.record(&[house.shell("touch one")]).await;
    let running = house.agent.replay(&house.session, house.call(Duration::ZERO)).await.unwrap();
    let its_own = house.recorded(&running.trace_id.unwrap()).await.began.session_id;
    assert!(house.core().all_sessions().iter().any(|session| session.id == its_own), "it runs");
    let resume = EnsureSession { session_id: Some(its_own.clone()), ..EnsureSession::default() };
    assert_eq!(house.agent.ensure_session(resume).await.unwrap_err().code, ErrorCode::UnknownSession);
    let look = house.agent.encode_state(&its_own, PerceptionQuery::default()).await;
    assert_eq!(look.unwrap_err().code, ErrorCode::UnknownSession);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_act_without_an_outcome_is_not_replayed_and_those_before_it_are() {
    let house = House::start().await;
    house.record(&[house.shell("touch one")]).await;
    house.remove(&["one"]);
    let edge = &house.edges(&house.trace).await[0];
    let read = json!({"type": "file_read", "target": house.path("x"), "params": {}, "preconditions": []});
    let action = ActRequest::parse(&read).unwrap().action;
    let intent = IntentRecord {
        session_id: house.session.clone(),
        trace_id: house.trace.clone(),
        action_digest: action.digest().unwrap(),
        action,
        state_before: edge.state_before.clone(),
        binding: Value::Null,
        prediction: Value::Null,
        ask_id: None,
        policy_id: "policy:ws/read-files".into(),
        authorization: None,
    };
    let committed = house.core().log.commit_intent(intent).await.unwrap();
    let result = house.replay_alone().await;
    assert_eq!((result.reason, result.failed_at_edge), (Some(ErrorCode::NotReplayable), Some(2)), "{result:?}");
    assert!(!house.exists("one"));
    let part = ReplayCall { to_edge: Some(1), ..house.call(Duration::from_secs(60)) };
    let (result, _) = tokio::join!(house.agent.replay(&house.session, part), house.decide(true));
    assert_eq!(result.unwrap().status, ReplayStatus::Success);
    drop(committed);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_on_record_whole_is_not_replayed() {
    let house = House::start().await;
    let params = json!({"argv": ["touch", "one"], "env": {"A_TOKEN": "correct horse"}});
    let secret = json!({"type": "shell_exec", "target": house.path(""), "params": params});
    house.record(&[house.shell("touch zero"), secret]).await;
    house.remove(&["zero", "one"]);
    let result = house.replay_alone().await;
    assert_eq!((result.status, result.failed_at_edge), (ReplayStatus::Failure, Some(2)), "{result:?}");
    assert_eq!(result.reason, Some(ErrorCode::NotReplayable));
    assert!(!house.exists("zero") && !house.exists("one"), "it is known before the first edge");
    let empty = house.agent.ensure_session(wish("ws")).await.unwrap();
    let call = ReplayCall { trace_id: empty.trace_id, ..house.call(Duration::ZERO) };
    assert_eq!(house.agent.replay(&house.session, call).await.unwrap_err().code(), ErrorCode::NotReplayable);
}

#[tokio::test(flavor = "multi_thread")]
async fn r49_a_trace_of_another_system_or_another_root_is_not_replayed() {
    let house = House::start().await;
    let root = house.path("").display().to_string().trim_end_matches('/').to_owned();
    let cases = [
        ("windows", root.as_str(), ErrorCode::OsFamilyMismatch, "os_family"),
        (std::env::consts::OS, "/elsewhere", ErrorCode::NotReplayable, "workspace_root"),
    ];
    for (os_family, root, code, field) in cases {
        let trace = foreign_trace(&house, os_family, root).await;
        for dry_run in [true, false] {
            let call = ReplayCall { trace_id: trace.clone(), dry_run, ..house.call(Duration::ZERO) };
            let result = house.agent.replay(&house.session, call).await.unwrap();
            assert_eq!((result.status, result.reason), (ReplayStatus::Failure, Some(code)), "{result:?}");
            assert_eq!(result.divergence_details.unwrap()[0].field, field);
            assert_eq!((result.replay_id, result.edges_replayed), (None, vec![]));
        }
    }
}

/// A trace as another system would have recorded it.
async fn foreign_trace(house: &House, os_family: &str, root: &str) -> TraceId {
    let trace_id = TraceId::from_ulid(ulid::Ulid::generate());
    let session_id = SessionId::from_random(crate::ask::nonce().unwrap());
    let began = SessionBegan {
        session_id: session_id.clone(),
        trace_id: trace_id.clone(),
        agent_id: "alice@ws".into(),
        workspace: "ws".parse().unwrap(),
        workspace_root: root.into(),
        os_family: os_family.into(),
        state_profile: StateProfile::default(),
        goal: None,
        metadata: Value::Null,
    };
    house.core().log.append(Record::SessionBegan(began)).await.unwrap();
    let refused = Refused {
        escalation_id: house.core().new_ask_id().to_string(),
        session_id: Some(session_id),
        trace_id: Some(trace_id.clone()),
        agent_id: "alice@ws".into(),
        attempted: json!({"type": "file_read", "target": "/x", "params": {}}),
        code: ErrorCode::DeniedByPolicy,
        reason: "no".into(),
        policy_id: None,
        edge: None,
    };
    let edge = RefusedEdge {
        edge_id: 0,
        action_type: ActionType::FileRead,
        state: Digest::of(b"s"),
        status: OutcomeStatus::Blocked,
        ask_id: None,
    };
    house.core().log.refuse_act(refused, edge).await.unwrap();
    trace_id
}
