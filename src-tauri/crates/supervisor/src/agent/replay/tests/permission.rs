//! R36: what was permitted when it was recorded permits nothing now. And whoever may stop it, can.

use std::time::Duration;

use bodyguard_protocol::{ErrorCode, ReplayStatus, TraceOutcome};

use super::house::{House, until};
use crate::ReplayCall;

const NOT_AT_ALL: Duration = Duration::from_millis(300);
const SOON: Duration = Duration::from_secs(60);

async fn two_touched() -> House {
    let house = House::start().await;
    house.record(&[house.shell("touch one"), house.shell("touch two")]).await;
    house.remove(&["one", "two"]);
    house
}

#[tokio::test(flavor = "multi_thread")]
async fn r36_a_denied_edge_ends_it() {
    let house = two_touched().await;
    let (result, _) = house.replay_beside(house.decide(false)).await;
    assert_eq!((result.status, result.reason), (ReplayStatus::Failure, Some(ErrorCode::DeniedByPerson)), "{result:?}");
    assert!(!house.exists("one") && !house.exists("two"));
    let (result, _) = house.replay_beside(async { (house.decide(true).await, house.decide(false).await) }).await;
    assert_eq!((result.status, result.failed_at_edge), (ReplayStatus::Partial, Some(2)));
    assert!(result.error.is_some_and(|error| error.message.contains("not now")), "the person's reason is told");
    assert!(house.exists("one") && !house.exists("two"));
}

#[tokio::test(flavor = "multi_thread")]
async fn r36_an_old_yes_permits_nothing_and_silence_neither() {
    let house = two_touched().await;
    let running = house.agent.replay(&house.session, house.call(NOT_AT_ALL)).await.unwrap();
    assert_eq!(running.status, ReplayStatus::Running, "{running:?}");
    let (id, ask) = (running.replay_id.unwrap(), house.asked().await);
    let running = house.poll(&id, NOT_AT_ALL).await.unwrap();
    assert_eq!(running.escalation_id.as_ref(), Some(&ask.view.ask_id));
    assert!(running.waiting_for.unwrap().contains("person"));
    assert!(!house.exists("one"), "the recorded block permits nothing");
    // The same call again joins; another is one too many.
    let again = house.agent.replay(&house.session, house.call(NOT_AT_ALL)).await.unwrap();
    assert_eq!(again.replay_id.as_ref(), Some(&id));
    let part = ReplayCall { from_edge: Some(2), ..house.call(NOT_AT_ALL) };
    assert_eq!(house.agent.replay(&house.session, part).await.unwrap_err().code(), ErrorCode::BudgetExceeded);
    // A yes that nobody is there to take waits; who comes back takes it.
    house.approve(&ask).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!house.exists("one"));
    let (result, _) = tokio::join!(house.poll(&id, SOON), house.decide(true));
    assert_eq!(result.unwrap().status, ReplayStatus::Success);
    assert!(house.exists("one") && house.exists("two"));
    assert_eq!(house.poll(&id, NOT_AT_ALL).await.unwrap().status, ReplayStatus::Success, "the result is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn r36_a_policy_that_forbids_by_now_ends_it() {
    let house = two_touched().await;
    let file = house.supervisor.data_dir().join("policies/ws.cedar");
    let mut policy = std::fs::read_to_string(&file).unwrap();
    policy.push_str("\n@id(\"no-commands\")\nforbid (principal, action == Action::\"shell_exec\", resource);\n");
    std::fs::write(&file, policy).unwrap();
    let result = house.replay_alone().await;
    assert_eq!((result.status, result.reason), (ReplayStatus::Failure, Some(ErrorCode::DeniedByPolicy)), "{result:?}");
    assert!(!house.exists("one") && !house.exists("two"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_the_middle_ends_it_for_good() {
    let house = two_touched().await;
    let (result, ()) = house
        .replay_beside(async {
            house.decide(true).await;
            house.asked().await;
            house.human.stop_all("test");
        })
        .await;
    assert_eq!((result.status, result.reason), (ReplayStatus::Aborted, Some(ErrorCode::Stopped)), "{result:?}");
    assert_eq!((result.failed_at_edge, result.edges_replayed), (Some(2), vec![1]));
    assert!(house.exists("one") && !house.exists("two"));
    let trace = house.core().log.reader().trace(&result.trace_id.unwrap()).await.unwrap().unwrap();
    assert_eq!(trace.summary.outcome, Some(TraceOutcome::Aborted));
    house.log_holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_the_call_back_ends_it_and_a_dropped_one_does_not() {
    let house = two_touched().await;
    let call = house.call(SOON);
    let cancel = call.waiting.cancel.clone();
    let (result, ()) = tokio::join!(house.agent.replay(&house.session, call), async {
        house.decide(true).await;
        house.asked().await;
        // One who waits too and goes takes nothing back; the last does.
        let other = house.call(SOON);
        let gone = other.waiting.cancel.clone();
        let (went, ()) = tokio::join!(house.agent.replay(&house.session, other), async {
            tokio::time::sleep(NOT_AT_ALL).await;
            gone.cancel();
        });
        assert_eq!(went.unwrap().status, ReplayStatus::Running);
        cancel.cancel();
    });
    let result = result.unwrap();
    assert_eq!((result.status, result.reason), (ReplayStatus::Aborted, Some(ErrorCode::Cancelled)), "{result:?}");
    assert!(house.exists("one") && !house.exists("two"));
    until("nothing waits", || house.core().pendings.open_counts(None).1 == 0).await;

    house.remove(&["one"]);
    tokio::select! {
        _ = house.agent.replay(&house.session, house.call(SOON)) => panic!("nobody decided"),
        _ = house.asked() => {}
    }
    // The connection is gone, the ask still waits; the agent comes back with the same call.
    let (result, _) = house.replay_beside(async { (house.decide(true).await, house.decide(true).await) }).await;
    assert_eq!(result.status, ReplayStatus::Success, "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_session_that_asked_ends_it() {
    let house = two_touched().await;
    let running = house.agent.replay(&house.session, house.call(NOT_AT_ALL)).await.unwrap();
    let trace = running.trace_id.unwrap();
    house.asked().await;
    house.agent.end_session(&house.session).await.unwrap();
    until("the replay's session is gone", || house.core().all_sessions().is_empty()).await;
    let ended = house.core().log.reader().trace(&trace).await.unwrap().unwrap();
    assert_eq!(ended.summary.outcome, Some(TraceOutcome::Aborted));
    assert!(!house.exists("one") && house.human.open_asks().await.unwrap().is_empty());
}
