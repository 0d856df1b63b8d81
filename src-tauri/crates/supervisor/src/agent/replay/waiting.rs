//! An agent waits for a replay: as long as it has patience, and while it is there its asks can be
//! taken.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bodyguard_protocol::ui::AskState;
use bodyguard_protocol::{AskId, ReplayResult, ReplayStatus};
use tokio::time::{Instant, interval_at, sleep_until};

use super::{Progress, Replay};
use crate::agent::Waiting;
use crate::ask::Present;
use crate::core::Core;

/// How often the requester is told that it still waits.
const PROGRESS: Duration = Duration::from_secs(5);
/// How long a replay that was taken back may need to end.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// Counts as a call that waits while it lives.
struct Caller<'a>(&'a Replay);

impl<'a> Caller<'a> {
    fn new(replay: &'a Replay) -> Self {
        replay.callers.fetch_add(1, Ordering::SeqCst);
        Self(replay)
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.0.callers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits for the end, at most as long as the requester has patience; then says how far it is.
pub(super) async fn wait(core: &Arc<Core>, replay: &Arc<Replay>, patience: &Waiting) -> ReplayResult {
    let _caller = Caller::new(replay);
    let mut progress = replay.progress.subscribe();
    let began = Instant::now();
    let mut ticks = interval_at(began + PROGRESS, PROGRESS);
    // Presence holds for one ask; the next needs its own.
    let mut present: Option<(AskId, Present)> = None;
    loop {
        let now = progress.borrow_and_update().clone();
        if now.ended.is_some() {
            return told(core, replay);
        }
        let there = present.as_ref().map(|(id, _)| id);
        if now.ask.as_ref().map(|ask| &ask.id) != there {
            present = now.ask.as_ref().map(|ask| (ask.id.clone(), Present::new(core, ask)));
        }
        tokio::select! {
            biased;
            _ = progress.changed() => {}
            () = patience.cancel.cancelled() => break,
            _ = ticks.tick() => (patience.progress)(format!("{}, {} s", sentence(&now), began.elapsed().as_secs())),
            () = sleep_until(began + patience.wait) => return told(core, replay),
        }
    }
    // The requester took its call back. Others that wait for the same go on.
    if replay.callers.load(Ordering::SeqCst) > 1 {
        return told(core, replay);
    }
    replay.cancel.cancel();
    let _ = tokio::time::timeout(CANCEL_GRACE, progress.wait_for(|now| now.ended.is_some())).await;
    told(core, replay)
}

/// The result, or how far it is.
fn told(core: &Core, replay: &Replay) -> ReplayResult {
    let now = replay.progress.borrow().clone();
    if let Some(ended) = now.ended {
        return *ended.result;
    }
    let waits = now.ask.as_ref().filter(|ask| ask.asked && ask.state() == AskState::Open);
    ReplayResult {
        escalation_id: waits.map(|ask| ask.id.clone()),
        waiting_for: Some(sentence(&now)),
        ..replay.heading.result(core.now().wall, ReplayStatus::Running, &now)
    }
}

fn sentence(now: &Progress) -> String {
    let what = match &now.ask {
        Some(ask) if ask.asked && ask.state() == AskState::Open => "waits for the person's decision",
        Some(ask) if ask.state() == AskState::Approved => "is approved and about to run",
        Some(_) => "runs",
        None => "is compared with its record",
    };
    match now.edge {
        Some(edge) => format!("act {edge} {what}"),
        None => "it begins".to_owned(),
    }
}
