//! Intents and outcomes, many at once, and redaction.

use bodyguard_protocol::ui::AskState;
use bodyguard_protocol::{ActionType, ErrorCode, Fault, OutcomeError, OutcomeStatus};
use bodyguard_trace::{LogError, MoveNote, Record, Refused, RefusedEdge, SessionEnded};
use serde_json::json;
use tokio::task::JoinSet;

use crate::world::*;

#[tokio::test]
async fn a_block_is_used_once() {
    let world = world().await;
    let session = session(&world.log).await;
    let action = shell("make");
    let (ask, block) = claimed(&world.log, &session, &action).await;
    let committed =
        world.log.commit_intent(intent(&session, action.clone(), Some((&ask, block.clone())))).await.unwrap();
    assert_eq!((committed.edge_id(), committed.action_digest()), (1, &action.digest().unwrap()));
    assert_eq!(state(&world.log, &ask.ask_id).await, AskState::Executing);
    assert!(world.log.reader().block(&block.authorization_token).await.unwrap().unwrap().1);
    let before = leaves(&world.log).await;
    let again = world.log.commit_intent(intent(&session, action, Some((&ask, block)))).await;
    assert_eq!(again.unwrap_err(), LogError::BlockUsed);
    assert_eq!(leaves(&world.log).await, before);
    assert_holds(world.log.reader());
}

#[tokio::test]
async fn r16_r43_a_refused_act_is_an_edge_in_which_nothing_changed() {
    let world = world().await;
    let (log, session) = (&world.log, session(&world.log).await);
    let (ask, block) = claimed(log, &session, &shell("one")).await;
    let committed = log.commit_intent(intent(&session, shell("one"), Some((&ask, block)))).await.unwrap();
    log.record_outcome(committed.reference(), success(json!({}))).await.unwrap();
    let refused = Refused {
        escalation_id: "e_1".into(),
        session_id: Some(session.session_id.clone()),
        trace_id: Some(session.trace_id.clone()),
        agent_id: AGENT.into(),
        attempted: serde_json::to_value(shell("rm -rf /")).unwrap(),
        code: ErrorCode::DeniedByPolicy,
        reason: "no".into(),
        policy_id: Some("p".into()),
        edge: None,
    };
    let edge = RefusedEdge {
        edge_id: 0,
        action_type: ActionType::ShellExec,
        state: intent(&session, shell("one"), None).state_before,
        status: OutcomeStatus::Blocked,
        ask_id: None,
    };
    assert_eq!(log.refuse_act(refused.clone(), edge.clone()).await.unwrap(), 2);
    let numbered = Refused { edge: Some(edge), ..refused };
    let past = log.append(Record::Refused(Box::new(numbered))).await;
    assert_eq!(past.unwrap_err(), LogError::NotAppendable("refused"), "edges are numbered by the log alone");

    let seen = log.reader().edge(&session.trace_id, 2).await.unwrap().unwrap();
    assert_eq!(seen.summary.outcome_status, Some(OutcomeStatus::Blocked));
    assert_eq!((seen.summary.error, seen.refused.as_deref()), (Some(ErrorCode::DeniedByPolicy), Some("no")));
    assert_eq!(seen.state_after.as_ref(), Some(&seen.state_before));
    assert!(seen.authorization.is_none() && seen.outcome_seq.is_none());
    log.checkpoint().await.unwrap();
    let trace = log.reader().trace(&session.trace_id).await.unwrap().unwrap().summary;
    assert_eq!((trace.edges, trace.destructive), (2, 1), "what was refused destroyed nothing");
    let exported = bodyguard_trace::export(log.reader(), &session.trace_id).await.unwrap().bytes;
    let exported: serde_json::Value = serde_json::from_slice(&exported).unwrap();
    let edge = &exported["trace"]["edges"][1];
    assert_eq!((&edge["edge_id"], &edge["outcome_status"]), (&json!(2), &json!("blocked")));
    assert_eq!(edge["state_before"], edge["state_after"]);
    assert_holds(log.reader());
}

#[tokio::test]
async fn an_intent_without_its_own_yes_is_refused_and_leaves_nothing() {
    let world = world().await;
    let (log, session, other) = (&world.log, session(&world.log).await, session(&world.log).await);
    let (one, two) = (shell("one"), shell("two"));
    let (ask, block) = claimed(log, &session, &one).await;
    let (other_ask, other_block) = claimed(log, &session, &two).await;
    let unclaimed = crate::world::ask(&session, &one, log);
    log.open_ask(unclaimed.clone()).await.unwrap();
    let unclaimed_block = crate::world::block(&unclaimed);
    let before = leaves(log).await;
    let mut lying = intent(&session, two.clone(), Some((&ask, block.clone())));
    lying.action_digest = one.digest().unwrap();
    let mut bent = block.clone();
    bent.payload.approved_by = "policy:main/other".into();
    let cases = [
        (intent(&session, one.clone(), None), LogError::BlockMissing),
        (intent(&session, two, Some((&ask, block.clone()))), LogError::BlockMismatch("action")),
        (intent(&other, one.clone(), Some((&ask, block.clone()))), LogError::BlockMismatch("session")),
        (intent(&session, one.clone(), Some((&other_ask, block))), LogError::BlockMismatch("request")),
        (intent(&session, one.clone(), Some((&other_ask, other_block))), LogError::BlockMismatch("action")),
        (intent(&session, one.clone(), Some((&ask, bent))), LogError::BlockMismatch("token")),
        (intent(&session, one, Some((&unclaimed, unclaimed_block))), LogError::AskConflict { actual: AskState::Open }),
        (lying, LogError::ActionMismatch),
    ];
    for (intent, expected) in cases {
        assert_eq!(log.commit_intent(intent).await.unwrap_err(), expected);
    }
    assert_eq!(leaves(log).await, before);
    assert_eq!(state(log, &ask.ask_id).await, AskState::Claimed);
    assert_eq!(state(log, &unclaimed.ask_id).await, AskState::Open);
    assert_holds(log.reader());
}

#[tokio::test]
async fn an_outcome_ends_its_edge_and_its_ask_once() {
    let world = world().await;
    let session = session(&world.log).await;
    let (ask, committed) = begun(&world.log, &session, "make").await;
    let outcome = success(json!({"stdout": "ok"}));
    world.log.record_outcome(committed.reference(), outcome.clone()).await.unwrap();
    assert_eq!(state(&world.log, &ask.ask_id).await, AskState::Done);
    let again = world.log.record_outcome(committed.reference(), outcome).await;
    assert_eq!(again, Err(LogError::EdgeEnded));
    let (lost, committed) = begun(&world.log, &session, "make").await;
    let mut outcome = success(json!(null));
    outcome.error = Some(OutcomeError::from(Fault::new(ErrorCode::BodyLost, "the body host ended")));
    world.log.record_outcome(committed.reference(), outcome).await.unwrap();
    assert_eq!(state(&world.log, &lost.ask_id).await, AskState::Interrupted);
    let edge = world.log.reader().edge(&session.trace_id, 1).await.unwrap().unwrap();
    assert_eq!(edge.decision.unwrap(), ask.view);
    assert_eq!(edge.summary.approved_by.as_deref(), Some("person"));
    assert_eq!(edge.summary.summary, "make");
    assert_eq!(world.log.reader().trace(&session.trace_id).await.unwrap().unwrap().summary.destructive, 2);
    assert_holds(world.log.reader());
}

#[tokio::test]
async fn a_session_that_ended_takes_nothing_more_but_the_outcome_of_what_ran() {
    let world = world().await;
    let (log, session) = (&world.log, session(&world.log).await);
    let (_, running) = begun(log, &session, "sleep 9").await;
    let ended = SessionEnded {
        session_id: session.session_id.clone(),
        trace_id: session.trace_id.clone(),
        outcome: bodyguard_protocol::TraceOutcome::Success,
        reason: "done".into(),
    };
    log.append(Record::SessionEnded(ended.clone())).await.unwrap();
    assert_eq!(log.append(Record::SessionEnded(ended)).await, Err(LogError::SessionEnded));
    let late = log.commit_intent(intent(&session, read("/w/a"), None)).await;
    assert_eq!(late.unwrap_err(), LogError::SessionEnded);
    log.record_outcome(running.reference(), success(json!({}))).await.unwrap();
    let foreign = Session { session_id: session.session_id.clone(), trace_id: trace_id() };
    let lost = log.commit_intent(intent(&foreign, read("/w/a"), None)).await;
    assert_eq!(lost.unwrap_err(), LogError::UnknownSession);
    assert_holds(log.reader());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_share_commits_and_fail_alone() {
    let world = world().await;
    let session = session(&world.log).await;
    let (before, commits) = (leaves(&world.log).await, world.log.commits());
    let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(64));
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let (log, session, barrier) = (world.log.clone(), session.clone(), barrier.clone());
        tasks.spawn(async move {
            barrier.wait().await;
            if number % 4 == 0 {
                // A destructive act without a block.
                let refused = log.commit_intent(intent(&session, shell("rm"), None)).await;
                assert_eq!(refused.unwrap_err(), LogError::BlockMissing);
                None
            } else {
                let path = format!("/w/{number}");
                let committed = log.commit_intent(intent(&session, read(&path), None)).await.unwrap();
                let seq = log.record_outcome(committed.reference(), success(json!({}))).await.unwrap();
                Some((committed.edge_id(), seq))
            }
        });
    }
    let mut done: Vec<(u64, u64)> = tasks.join_all().await.into_iter().flatten().collect();
    done.sort_unstable();
    let edges: Vec<u64> = done.iter().map(|(edge, _)| *edge).collect();
    assert_eq!(edges, (1..=48).collect::<Vec<_>>());
    assert_eq!(leaves(&world.log).await, before + 96);
    let used = world.log.commits() - commits;
    assert!(used < 60, "112 commands took {used} commits");
    assert_holds(world.log.reader());
}

#[tokio::test]
async fn sto_08_no_secret_reaches_the_folder_or_an_export() {
    let world = world().await;
    let session = session(&world.log).await;
    let access = format!("AKIA{}", "CANARY0123456789");
    let action = action(json!({"type": "shell_exec", "target": "/w", "params":
        {"command": "deploy", "env": {"DB_PASSWORD": "CANARY-env"}, "stdin": "X_SECRET=CANARY-stdin\n"}}));
    let mut asked = ask(&session, &action, &world.log);
    asked.subject = world.log.redactor().action(&action).unwrap().0;
    world.log.open_ask(asked.clone()).await.unwrap();
    let block = block(&asked);
    let note = MoveNote { block: Some(block.clone()), ..MoveNote::default() };
    world.log.move_ask(&asked.ask_id, AskState::Open, AskState::Approved, note).await.unwrap();
    world.log.move_ask(&asked.ask_id, AskState::Approved, AskState::Claimed, MoveNote::default()).await.unwrap();
    let committed = world.log.commit_intent(intent(&session, action, Some((&asked, block)))).await.unwrap();
    let observed =
        json!({"stdout": format!("key {access}\nurl postgres://u:CANARY-url@h/db"), "env": {"A_TOKEN": "CANARY-env"}});
    world.log.record_outcome(committed.reference(), success(observed)).await.unwrap();
    let refused = Refused {
        escalation_id: "e_1".into(),
        session_id: Some(session.session_id.clone()),
        trace_id: Some(session.trace_id.clone()),
        agent_id: AGENT.into(),
        attempted: json!({"params": {"command": "X_KEY=CANARY-attempt curl"}}),
        code: ErrorCode::DeniedByPolicy,
        reason: "no".into(),
        policy_id: None,
        edge: None,
    };
    world.log.append(Record::Refused(Box::new(refused))).await.unwrap();
    world.log.checkpoint().await.unwrap();
    let exported = bodyguard_trace::export(world.log.reader(), &session.trace_id).await.unwrap().bytes;
    assert!(!String::from_utf8(exported).unwrap().contains("CANARY"));
    let mut files = 0;
    for name in ["log.db", "log.db-wal"] {
        let bytes = std::fs::read(world.dir.path().join(name)).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"CANARY"), "{name}");
        files += usize::from(bytes.windows(8).any(|window| window == b"redacted"));
    }
    // The control: what replaced them is there.
    assert!(files > 0);
    assert_holds(world.log.reader());
}
