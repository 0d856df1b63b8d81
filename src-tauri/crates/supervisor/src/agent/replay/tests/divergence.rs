//! R45: whatever differs from the record ends the replay, and the next edge never runs.

use std::time::Duration;

use bodyguard_protocol::{ErrorCode, OutcomeStatus, ReplayResult, ReplayStatus, TraceOutcome};
use serde_json::json;

use super::house::{House, until};

fn differing(result: &ReplayResult) -> Vec<(&str, serde_json::Value, serde_json::Value)> {
    let details = result.divergence_details.as_deref().unwrap_or_default();
    let side = |value: &Option<serde_json::Value>| value.clone().unwrap_or_default();
    details.iter().map(|one| (one.field.as_str(), side(&one.expected), side(&one.actual))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn r45_r46_another_state_at_the_start_ends_it_before_anything() {
    let house = House::start().await;
    house.record(&[house.shell("touch one")]).await;
    house.remove(&["one"]);
    house.change_head("elsewhere");
    let result = house.replay_alone().await;
    assert_eq!((result.status, result.failed_at_edge), (ReplayStatus::Failure, Some(1)), "{result:?}");
    assert_eq!(result.reason, Some(ErrorCode::StateHashMismatch));
    assert_eq!(result.expected_hash.as_ref(), Some(&house.edges(&house.trace).await[0].state_before));
    assert!(result.actual_hash.is_some() && result.actual_hash != result.expected_hash);
    assert_eq!(differing(&result), [("git_head", json!("unborn:main"), json!("unborn:elsewhere"))]);
    assert_eq!((&result.replay_id, &result.trace_id), (&None, &None));
    assert!(!house.exists("one") && house.human.open_asks().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn r45_r47_another_state_after_an_edge_ends_it_there() {
    let house = House::start().await;
    house.record(&[house.shell("touch one; sleep 2"), house.shell("touch two")]).await;
    house.remove(&["one", "two"]);
    let (result, ()) = house
        .replay_beside(async {
            house.decide(true).await;
            until("the first act", || house.exists("one")).await;
            house.change_head("elsewhere");
        })
        .await;
    assert_eq!((result.status, result.failed_at_edge), (ReplayStatus::Partial, Some(1)), "{result:?}");
    assert_eq!(result.reason, Some(ErrorCode::StateHashMismatch));
    assert_eq!(differing(&result), [("git_head", json!("unborn:main"), json!("unborn:elsewhere"))]);
    assert!(result.edges_replayed.is_empty() && house.exists("one"));
    assert!(!house.exists("two"), "edge N+1 never ran");
    let trace = house.core().log.reader().trace(&result.trace_id.unwrap()).await.unwrap().unwrap();
    assert_eq!((trace.summary.outcome, trace.summary.edges), (Some(TraceOutcome::Partial), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn r45_another_state_while_a_person_decides_ends_it_undone() {
    let house = House::start().await;
    house.record(&[house.shell("touch one"), house.shell("touch two"), house.shell("touch three")]).await;
    house.remove(&["one", "two", "three"]);
    let (result, ()) = house
        .replay_beside(async {
            house.decide(true).await;
            let asked = house.asked().await;
            house.change_head("elsewhere");
            house.approve(&asked).await;
        })
        .await;
    assert_eq!((result.status, result.failed_at_edge), (ReplayStatus::Partial, Some(2)), "{result:?}");
    assert_eq!((result.reason, result.edges_replayed.as_slice()), (Some(ErrorCode::StateHashMismatch), &[1][..]));
    assert_eq!(differing(&result), [("git_head", json!("unborn:main"), json!("unborn:elsewhere"))]);
    assert!(house.exists("one") && !house.exists("two") && !house.exists("three"));
    house.log_holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r45_rpl_01_an_edge_waits_within_a_bound_for_its_recorded_state() {
    let house = House::start().await;
    house.record(&[house.shell("touch one")]).await;
    house.change_head("later");
    house.record(&[house.shell("touch two")]).await;
    for (comes, status) in [(true, ReplayStatus::Success), (false, ReplayStatus::Partial)] {
        house
            .remove(&["one", "two"].map(|name| name).into_iter().filter(|name| house.exists(name)).collect::<Vec<_>>());
        house.change_head("main");
        let (result, ()) = house
            .replay_beside(async {
                house.decide(true).await;
                until("the first act", || house.exists("one")).await;
                if comes {
                    tokio::time::sleep(Duration::from_secs(4)).await;
                    house.change_head("later");
                    house.decide(true).await;
                }
            })
            .await;
        assert_eq!(result.status, status, "{result:?}");
        assert_eq!(house.exists("two"), comes);
        if !comes {
            assert_eq!((result.failed_at_edge, result.reason), (Some(2), Some(ErrorCode::StateHashMismatch)));
            assert_eq!(differing(&result), [("git_head", json!("unborn:later"), json!("unborn:main"))]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r45_another_ending_than_the_recorded_one_ends_it() {
    let house = House::start().await;
    house.put("flag", "");
    house.record(&[house.shell("test -e flag"), house.shell("touch two")]).await;
    house.remove(&["flag", "two"]);
    let (result, _) = house.replay_beside(house.decide(true)).await;
    assert_eq!((result.status, result.failed_at_edge), (ReplayStatus::Partial, Some(1)), "{result:?}");
    assert_eq!(result.reason, Some(ErrorCode::OutcomeMismatch));
    let (success, failure) = (json!(OutcomeStatus::Success), json!(OutcomeStatus::Failure));
    assert_eq!(differing(&result)[0], ("outcome_status", success, failure));
    assert!(!house.exists("two"), "edge N+1 never ran");
}

#[tokio::test(flavor = "multi_thread")]
async fn r45_a_recorded_failure_has_to_fail_again() {
    let house = House::start().await;
    let failed = house.act(house.shell("test -e flag"), true).await;
    assert_eq!(failed.outcome_status, OutcomeStatus::Failure);
    house.record(&[house.shell("touch two")]).await;
    house.remove(&["two"]);
    let (result, _) = house.replay_beside(async { (house.decide(true).await, house.decide(true).await) }).await;
    assert_eq!(result.status, ReplayStatus::Success, "{result:?}");
    house.put("flag", "");
    house.remove(&["two"]);
    let (result, _) = house.replay_beside(house.decide(true)).await;
    assert_eq!((result.reason, house.exists("two")), (Some(ErrorCode::OutcomeMismatch), false));
}

#[tokio::test(flavor = "multi_thread")]
async fn r45_other_content_than_the_recorded_is_never_changed() {
    let house = House::start().await;
    house.put("notes", "one\n");
    house.put("gone", "old\n");
    let edit = json!({"type": "file_edit", "target": house.path("notes"), "params": {"edits": [{"old": "one", "new": "two"}]}});
    let delete = json!({"type": "file_delete", "target": house.path("gone")});
    house.record(&[edit, delete, house.shell("touch after")]).await;
    house.remove(&["after"]);
    house.put("gone", "old\n");

    house.put("notes", "one, and more\n");
    let result = house.replay_alone().await;
    assert_eq!((result.status, result.failed_at_edge), (ReplayStatus::Failure, Some(1)), "{result:?}");
    assert_eq!(result.reason, Some(ErrorCode::BeforeHashMismatch));
    assert_eq!((house.get("notes").as_str(), house.exists("after")), ("one, and more\n", false));

    house.put("notes", "one\n");
    house.put("gone", "new, and dear\n");
    let (result, _) = house.replay_beside(house.decide(true)).await;
    assert_eq!((result.status, result.failed_at_edge), (ReplayStatus::Partial, Some(2)), "{result:?}");
    assert_eq!(result.reason, Some(ErrorCode::OutcomeMismatch), "a deletion names no content; the prediction does");
    assert_eq!((house.get("gone").as_str(), house.exists("after")), ("new, and dear\n", false));
}
