//! Waiting: the requester for an outcome, the act for a yes.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bodyguard_protocol::Fault;
use bodyguard_protocol::ui::AskState;
use tokio::time::{Instant, interval_at, sleep_until};

use super::{Ask, Finished, Yes, ended_fault, withdraw};
use crate::agent::Waiting;
use crate::core::Core;

/// How often the requester is told that it still waits.
const PROGRESS: Duration = Duration::from_secs(5);
/// How long a cancelled act may take to end before the requester is answered without its outcome.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// Counts as present while it lives.
pub(crate) struct Present {
    core: Arc<Core>,
    ask: Arc<Ask>,
}

impl Present {
    pub(crate) fn new(core: &Arc<Core>, ask: &Arc<Ask>) -> Self {
        ask.seen(core.now());
        ask.waiters.send_modify(|waiters| *waiters += 1);
        core.ask_changed(&ask.id);
        Self { core: Arc::clone(core), ask: Arc::clone(ask) }
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.ask.seen(self.core.now());
        self.ask.waiters.send_modify(|waiters| *waiters = waiters.saturating_sub(1));
        self.core.ask_changed(&self.ask.id);
    }
}

/// Waits for the outcome, at most as long as the requester has patience. None where that ended
/// first; the requester comes back with the ask's id.
pub(crate) async fn wait(core: &Arc<Core>, ask: &Arc<Ask>, waiting: &Waiting) -> Option<Finished> {
    let _present = Present::new(core, ask);
    let mut result = ask.result.subscribe();
    let began = Instant::now();
    let mut ticks = interval_at(began + PROGRESS, PROGRESS);
    loop {
        tokio::select! {
            biased;
            finished = result.wait_for(Option::is_some) => return finished.ok().and_then(|finished| finished.clone()),
            () = waiting.cancel.cancelled() => break,
            _ = ticks.tick() => (waiting.progress)(progress_sentence(ask, began.elapsed())),
            () = sleep_until(began + waiting.wait) => return None,
        }
    }
    // The requester took its call back. Others that joined the same ask still wait for it.
    if *ask.waiters.borrow() <= 1 {
        withdraw(core, ask, "the requester cancelled").await;
        ask.cancel.cancel();
    }
    let finished = tokio::time::timeout(CANCEL_GRACE, result.wait_for(Option::is_some)).await;
    finished.ok().and_then(Result::ok).and_then(|finished| finished.clone())
}

fn progress_sentence(ask: &Ask, waited: Duration) -> String {
    let what = match ask.state() {
        AskState::Open if ask.asked => "waiting for the person's decision",
        AskState::Approved => "approved; about to run",
        _ => "running",
    };
    format!("{what}, {} s", waited.as_secs())
}

/// Waits until a person said yes and the requester is there to take it.
///
/// # Errors
/// How it ended otherwise.
pub(crate) async fn wait_for_yes(core: &Core, ask: &Ask) -> Result<Yes, Fault> {
    let mut state = ask.state.subscribe();
    let mut waiters = ask.waiters.subscribe();
    loop {
        let now = *state.borrow_and_update();
        let present = *waiters.borrow_and_update() > 0;
        match now {
            AskState::Approved if present => {
                let yes = ask.yes.lock().unwrap_or_else(PoisonError::into_inner).clone();
                return yes.ok_or_else(|| Fault::internal("an approved ask has no block"));
            }
            AskState::Open | AskState::Approved => {}
            ended => return Err(ended_fault(ended, ask.reason())),
        }
        tokio::select! {
            _ = state.changed() => {}
            _ = waiters.changed() => {}
            () = ask.cancel.cancelled() => {
                withdraw(core, ask, "the requester cancelled").await;
                // A stop or the session's end may have said more of why.
                return Err(ended_fault(ask.state(), ask.reason()));
            }
        }
    }
}
