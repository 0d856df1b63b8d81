//! Replays that come out as recorded.

use std::time::Duration;

use bodyguard_protocol::{BlockKind, OutcomeStatus, ReplayStatus, TraceOutcome};
use bodyguard_trace::RecordedEnd;
use serde_json::json;

use super::house::House;

#[tokio::test(flavor = "multi_thread")]
async fn r36_r46_r47_every_edge_is_repeated_asked_anew_and_recorded_as_a_new_trace() {
    let house = House::start().await;
    let read = json!({"type": "file_read", "target": house.path("b")});
    house.record(&[house.write("a", "quince"), house.shell("cp a b"), read]).await;
    house.remove(&["a", "b"]);
    let (result, shown) = house.replay_beside(async { (house.decide(true).await, house.decide(true).await) }).await;

    assert_eq!(result.status, ReplayStatus::Success, "{result:?}");
    assert_eq!((result.edges_replayed, result.edges_skipped), (vec![1, 2, 3], vec![]));
    assert_eq!((result.reason, result.failed_at_edge), (None, None));
    assert_eq!(house.get("b"), "quince", "it was carried out");
    assert_eq!(result.provenance.operation, "replay");

    // R36: each was asked about, as what it is.
    for (edge_id, asked) in [(1, &shown.0), (2, &shown.1)] {
        let replays = asked.view.replays.as_ref().unwrap();
        assert_eq!((&replays.trace_id, replays.edge_id), (&house.trace, edge_id));
        assert!(asked.view.headline.starts_with(&format!("Replay, act {edge_id}:")), "{}", asked.view.headline);
        assert!(asked.view.facts.iter().all(|fact| !fact.label.contains("Goal")), "nobody's words");
    }

    // R47: what was carried out is a trace of its own, which ended well and says what it replayed.
    let new = result.trace_id.unwrap();
    assert_ne!(new, house.trace);
    let (then, now) = (house.edges(&house.trace).await, house.edges(&new).await);
    assert_eq!(then.len(), now.len());
    for (then, now) in then.iter().zip(&now) {
        assert_eq!((&then.action, &then.state_before), (&now.action, &now.state_before));
        assert!(matches!(&now.end, RecordedEnd::Ended(act) if act.outcome.status == OutcomeStatus::Success));
    }
    let began = house.recorded(&new).await.began;
    let of = began.replay_of().unwrap();
    assert_eq!((of.trace_id, of.from_edge, of.to_edge), (house.trace.clone(), 1, 3));
    let view = house.core().log.reader().trace(&new).await.unwrap().unwrap().summary;
    assert_eq!((view.outcome, view.edges), (Some(TraceOutcome::Success), 3));
    assert!(view.replay_of.is_some() && view.goal.is_some_and(|goal| goal.starts_with("Replay of ")));

    // R36: each block is one for a replay, and none is one of before.
    let blocks = async |trace, edge| {
        let edge = house.core().log.reader().edge(trace, edge).await.unwrap().unwrap();
        edge.authorization.unwrap()
    };
    for edge in [1, 2] {
        let (before, anew) = (blocks(&house.trace, edge).await, blocks(&new, edge).await);
        assert_eq!((before.payload.kind, anew.payload.kind), (BlockKind::Act, BlockKind::Replay));
        assert_ne!(before.authorization_token, anew.authorization_token);
    }
    house.log_holds().await;

    assert!(!house.is_known(&shown.0.view.ask_id), "nothing keeps its body");
}

#[tokio::test(flavor = "multi_thread")]
async fn r45_a_replayed_trace_can_be_replayed_and_a_part_of_one_too() {
    let house = House::start().await;
    house.record(&[house.shell("echo x >> one"), house.shell("echo x >> two"), house.shell("echo x >> three")]).await;
    let call = crate::ReplayCall { from_edge: Some(2), to_edge: Some(2), ..house.call(Duration::from_secs(60)) };
    let (result, _) = tokio::join!(house.agent.replay(&house.session, call), house.decide(true));
    let result = result.unwrap();
    assert_eq!((result.status, result.edges_replayed), (ReplayStatus::Success, vec![2]));
    assert_eq!([house.get("one"), house.get("two"), house.get("three")], ["x\n", "x\nx\n", "x\n"]);

    let call = crate::ReplayCall { trace_id: result.trace_id.unwrap(), ..house.call(Duration::from_secs(60)) };
    let (again, _) = tokio::join!(house.agent.replay(&house.session, call), house.decide(true));
    assert_eq!(again.unwrap().status, ReplayStatus::Success);
    assert_eq!(house.get("two"), "x\nx\nx\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn r45_what_was_refused_is_skipped_and_stays_undone() {
    let house = House::start().await;
    let denied = house.act(house.shell("touch denied"), false).await;
    assert_eq!(denied.outcome_status, OutcomeStatus::Blocked);
    let outside = house.act(json!({"type": "file_read", "target": "/etc/shadow"}), false).await;
    assert_eq!(outside.outcome_status, OutcomeStatus::Blocked);
    house.record(&[house.shell("touch done")]).await;
    house.remove(&["done"]);
    let (result, _) = house.replay_beside(house.decide(true)).await;
    assert_eq!(result.status, ReplayStatus::Success, "{result:?}");
    assert_eq!((result.edges_skipped, result.edges_replayed), (vec![1, 2], vec![3]));
    assert!(house.exists("done") && !house.exists("denied"));
}

#[tokio::test(flavor = "multi_thread")]
async fn r48_r52_a_dry_run_foresees_each_edge_and_does_asks_and_records_nothing() {
    let house = House::start().await;
    house.record(&[house.write("a", "quince"), house.shell("touch b")]).await;
    house.remove(&["a", "b"]);
    let (leaves, generation) =
        (house.leaves().await, house.core().session(house.agent.name(), &house.session).unwrap());
    let generation_then = generation.look().generation;
    let foresee = || async {
        let call = crate::ReplayCall { dry_run: true, ..house.call(Duration::from_secs(60)) };
        house.agent.replay(&house.session, call).await.unwrap()
    };
    let result = foresee().await;
    assert_eq!((result.status, result.dry_run), (ReplayStatus::Success, true), "{result:?}");
    assert_eq!((&result.replay_id, &result.trace_id), (&None, &None));
    let told = result.predictions.unwrap();
    assert_eq!(told.iter().map(|one| (one.edge_id, one.exact)).collect::<Vec<_>>(), [(1, true), (2, false)]);
    let recorded = house.edges(&house.trace).await;
    let RecordedEnd::Ended(act) = &recorded[0].end else { panic!("{:?}", recorded[0]) };
    assert_eq!(told[0].prediction.predicted_outcome.as_ref(), Some(&act.prediction));
    assert_eq!(told[0].prediction.provenance.agent_id, "alice@ws");

    // What would be refused ends it: the file is there now, and another start is another start.
    house.put("a", "");
    let refused = foresee().await;
    assert_eq!((refused.status, refused.failed_at_edge), (ReplayStatus::Failure, Some(1)));
    assert_eq!(refused.reason, Some(bodyguard_protocol::ErrorCode::AlreadyExists), "{refused:?}");
    house.change_head("elsewhere");
    assert_eq!(foresee().await.reason, Some(bodyguard_protocol::ErrorCode::StateHashMismatch));

    assert_eq!(house.leaves().await, leaves, "nothing was recorded");
    assert_eq!(generation.look().generation, generation_then, "no ref went stale");
    assert!(house.human.open_asks().await.unwrap().is_empty() && house.get("a").is_empty() && !house.exists("b"));
}
