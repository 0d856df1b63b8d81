//! The ask machine: its arrows, and that of any number of callers one wins.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bodyguard_protocol::ui::AskState::{
    self, Approved, Claimed, Denied, Done, Executing, Expired, Interrupted, Open, Superseded, Withdrawn,
};
use bodyguard_trace::{LogError, MoveNote};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::task::JoinSet;

use crate::world::*;

const ALL: [AskState; 10] =
    [Open, Approved, Denied, Expired, Withdrawn, Superseded, Claimed, Executing, Done, Interrupted];

const ARROWS: [(AskState, AskState); 13] = [
    (Open, Approved),
    (Open, Denied),
    (Open, Expired),
    (Open, Withdrawn),
    (Open, Superseded),
    (Approved, Claimed),
    (Approved, Expired),
    (Approved, Withdrawn),
    (Claimed, Executing),
    (Claimed, Interrupted),
    (Claimed, Expired),
    (Executing, Done),
    (Executing, Interrupted),
];

fn way_to(state: AskState) -> &'static [AskState] {
    match state {
        Open => &[],
        Approved => &[Approved],
        Denied => &[Denied],
        Expired => &[Expired],
        Withdrawn => &[Withdrawn],
        Superseded => &[Superseded],
        Claimed => &[Approved, Claimed],
        Executing => &[Approved, Claimed, Executing],
        Done => &[Approved, Claimed, Executing, Done],
        Interrupted => &[Approved, Claimed, Interrupted],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_machine_has_exactly_these_arrows() {
    let world = world().await;
    let session = session(&world.log).await;
    for from in ALL {
        let ask = ask(&session, &shell("true"), &world.log);
        world.log.open_ask(ask.clone()).await.unwrap();
        let mut at = Open;
        for step in way_to(from) {
            world.log.move_ask(&ask.ask_id, at, *step, MoveNote::default()).await.unwrap();
            at = *step;
        }
        for to in ALL.into_iter().filter(|to| !ARROWS.contains(&(from, *to))) {
            let refused = world.log.move_ask(&ask.ask_id, from, to, MoveNote::default()).await;
            assert_eq!(refused, Err(LogError::IllegalMove { from, to }));
            assert_eq!(state(&world.log, &ask.ask_id).await, from);
        }
        for (other, to) in ARROWS.into_iter().filter(|(other, _)| *other != from) {
            let refused = world.log.move_ask(&ask.ask_id, other, to, MoveNote::default()).await;
            assert_eq!(refused, Err(LogError::AskConflict { actual: from }));
        }
    }
    let missing = world.log.move_ask(&ask_id(), Open, Approved, MoveNote::default()).await;
    assert!(matches!(missing, Err(LogError::UnknownAsk(_))));
    assert_holds(world.log.reader());
}

#[test]
fn concurrent_moves_have_one_winner_and_only_legal_arrows() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (world, session) = runtime.block_on(async {
        let world = world().await;
        let session = session(&world.log).await;
        (world, session)
    });
    let mut runner = TestRunner::new(Config { cases: 12, failure_persistence: None, ..Config::default() });
    let moves = prop::collection::vec((0..ALL.len(), 0..ALL.len()), 10..60);
    let result = runner.run(&moves, |moves| {
        let won = runtime.block_on(race(&world.log, &session, moves));
        prop_assert!(won.0.iter().all(|arrow| ARROWS.contains(arrow)), "{:?}", won.0);
        // Each state is left at most once, so each has one winner; and they form one way from `open`.
        let next: BTreeMap<String, AskState> = won.0.iter().map(|(from, to)| (format!("{from:?}"), *to)).collect();
        prop_assert_eq!(next.len(), won.0.len());
        let (mut at, mut steps) = (Open, 0);
        while let Some(to) = next.get(&format!("{at:?}")) {
            at = *to;
            steps += 1;
        }
        prop_assert_eq!(steps, won.0.len());
        prop_assert_eq!(at, won.1);
        Ok(())
    });
    result.unwrap();
    assert_holds(world.log.reader());
}

async fn race(
    log: &bodyguard_trace::Log,
    session: &Session,
    moves: Vec<(usize, usize)>,
) -> (Vec<(AskState, AskState)>, AskState) {
    let ask = ask(session, &shell("true"), log);
    log.open_ask(ask.clone()).await.unwrap();
    let won = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    // Every arrow is tried besides the random pairs, each twice.
    let pairs = moves.into_iter().map(|(from, to)| (ALL[from], ALL[to]));
    for (from, to) in pairs.chain(ARROWS).chain(ARROWS) {
        let (log, ask_id, won) = (log.clone(), ask.ask_id.clone(), Arc::clone(&won));
        tasks.spawn(async move {
            match log.move_ask(&ask_id, from, to, MoveNote::default()).await {
                Ok(_) => won.lock().unwrap().push((from, to)),
                Err(LogError::AskConflict { actual }) => assert_ne!(actual, from),
                Err(LogError::IllegalMove { .. }) => assert!(!ARROWS.contains(&(from, to))),
                Err(other) => panic!("{other}"),
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let won = won.lock().unwrap().clone();
    (won, state(log, &ask.ask_id).await)
}

#[tokio::test]
async fn an_ask_comes_back_verbatim_and_must_agree_with_itself() {
    let world = world().await;
    let session = session(&world.log).await;
    let ask = ask(&session, &shell("true"), &world.log);
    world.log.open_ask(ask.clone()).await.unwrap();
    let stored = world.log.reader().ask(&ask.ask_id).await.unwrap().unwrap();
    assert_eq!(stored.record, ask);
    assert_eq!(stored.record.view.digest().unwrap(), ask.shown_digest);
    assert_eq!(world.log.open_ask(ask.clone()).await, Err(LogError::AskExists(ask.ask_id.clone())));
    let mut other = crate::world::ask(&session, &shell("true"), &world.log);
    other.view.headline.push('!');
    assert_eq!(world.log.open_ask(other).await, Err(LogError::ShownMismatch));
    assert_eq!(world.log.reader().open_asks(AGENT).await.unwrap(), (1, 1));
}

#[tokio::test]
async fn a_yes_must_sign_what_was_shown() {
    let world = world().await;
    let session = session(&world.log).await;
    let (one, two) = (ask(&session, &shell("one"), &world.log), ask(&session, &shell("two"), &world.log));
    world.log.open_ask(one.clone()).await.unwrap();
    let mut other = two.clone();
    other.ask_id = one.ask_id.clone();
    let note = MoveNote { block: Some(block(&other)), ..MoveNote::default() };
    let refused = world.log.move_ask(&one.ask_id, Open, Approved, note).await;
    assert_eq!(refused, Err(LogError::BlockMismatch("action")));
    assert_eq!(state(&world.log, &one.ask_id).await, Open);
    let note = MoveNote { block: Some(block(&one)), ..MoveNote::default() };
    world.log.move_ask(&one.ask_id, Open, Approved, note.clone()).await.unwrap();
    let stored = world.log.reader().ask(&one.ask_id).await.unwrap().unwrap();
    assert_eq!(stored.block, note.block);
    let token = note.block.unwrap().authorization_token;
    assert!(!world.log.reader().block(&token).await.unwrap().unwrap().1);
}
