//! What came out otherwise than predicted, and what the same act came to before.

use bodyguard_protocol::{ActionType, Digest, OutcomeStatus, SurpriseSignal, TraceId};
use bodyguard_trace::{LogError, OutcomeRecord, verify_export};
use serde_json::json;

use crate::world::*;

fn signal(session: &Session) -> SurpriseSignal {
    let signal = json!({
        "token": "SurpriseSignal", "version": "0.1", "trace_id": session.trace_id, "edge_id": 1, "body_subtype": "os",
        "action_type": "shell_exec", "predicted_state_hash": null, "actual_state_hash": Digest::of(b"after"),
        "surprise_magnitude": 1.0, "surprise_kind": "unexpected_error",
        "evidence": {"actual_outcome": {"status": "failure"}}, "timestamp": "2026-04-21T14:22:05.000Z",
    });
    serde_json::from_value(signal).unwrap()
}

async fn run(world: &World, session: &Session, surprise: Option<SurpriseSignal>) {
    let (ask, block) = claimed(&world.log, session, &shell("make")).await;
    let committed = world.log.commit_intent(intent(session, shell("make"), Some((&ask, block)))).await.unwrap();
    let status = if surprise.is_some() { OutcomeStatus::Failure } else { OutcomeStatus::Success };
    let outcome = OutcomeRecord { status, surprise, ..success(json!({"exit_code": 0})) };
    world.log.record_outcome(committed.reference(), outcome).await.unwrap();
}

#[tokio::test]
async fn r53_a_surprise_is_kept_with_its_edge_and_leaves_with_the_trace() {
    let world = world().await;
    let session = session(&world.log).await;
    run(&world, &session, Some(signal(&session))).await;
    run(&world, &session, None).await;
    assert_eq!(world.log.reader().surprises(&session.trace_id).await.unwrap(), [signal(&session)]);
    let unknown: TraceId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
    assert_eq!(world.log.reader().surprises(&unknown).await.unwrap_err(), LogError::UnknownTrace);
    let bytes = bodyguard_trace::export(world.log.reader(), &session.trace_id).await.unwrap().bytes;
    let report = verify_export(&bytes, &keys()).unwrap();
    assert!(report.ok, "{:#?}", report.problems);
    let edges = report.trace.unwrap().edges;
    assert_eq!((&edges[0].surprise, &edges[1].surprise), (&Some(signal(&session)), &None));
    assert!(!serde_json::to_string(&edges[1]).unwrap().contains("surprise"), "older files stay as they are");
    assert_holds(world.log.reader());
}

#[tokio::test]
async fn r51_earlier_runs_are_those_of_the_very_same_act_in_the_workspace() {
    let world = world().await;
    let session = session(&world.log).await;
    let reader = world.log.reader();
    let make = shell("make").digest().unwrap();
    let workspace = |name: &str| name.parse().unwrap();
    let found = async |name: &str, digest: &Digest, limit| {
        reader.earlier_runs(&workspace(name), ActionType::ShellExec, digest, limit).await.unwrap()
    };
    assert!(found("main", &make, 9).await.is_empty());
    run(&world, &session, Some(signal(&session))).await;
    act(&world.log, &session, "other").await;
    run(&world, &session, None).await;
    let runs = found("main", &make, 9).await;
    let statuses: Vec<_> = runs.iter().map(|run| run.outcome.status).collect();
    assert_eq!(statuses, [OutcomeStatus::Success, OutcomeStatus::Failure], "the newest first");
    assert_eq!(found("main", &make, 1).await.len(), 1);
    assert!(found("elsewhere", &make, 9).await.is_empty());
}
