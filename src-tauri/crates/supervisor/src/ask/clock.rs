//! Time's part: asks lapse, and requesters that stay away are gone.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bodyguard_protocol::Moment;
use bodyguard_protocol::ui::AskState;
use bodyguard_trace::MoveNote;

use super::{Ask, move_ask, withdraw};
use crate::core::Core;

/// How often both clocks are looked at.
const TICK: Duration = Duration::from_millis(250);
/// How often sessions that were left alone are looked for.
const ABANDONED_TICK: Duration = Duration::from_secs(1);
/// How long a requester may stay away without its ask being taken back.
const AWAY_MS: u64 = 120_000;
/// How long a finished ask can still be polled for its outcome.
const KEPT_MS: u64 = 900_000;

/// Looks at the clocks until the supervisor is gone.
pub(crate) fn watch_clock(core: &Arc<Core>) {
    let weak: Weak<Core> = Arc::downgrade(core);
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            let Some(core) = weak.upgrade() else { return };
            let now = core.now();
            for ask in core.pendings.all() {
                tend(&core, &ask, now).await;
            }
        }
    });
    // Ending a session waits for what it does; asks must lapse meanwhile.
    let weak: Weak<Core> = Arc::downgrade(core);
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(ABANDONED_TICK);
        loop {
            ticks.tick().await;
            let Some(core) = weak.upgrade() else { return };
            core.end_abandoned().await;
        }
    });
}

async fn tend(core: &Core, ask: &Ask, now: Moment) {
    let away_ms = now.boot_ms.saturating_sub(ask.last_seen_boot_ms.load(Ordering::SeqCst));
    match ask.state() {
        AskState::Open | AskState::Approved if ask.asked && ask.has_lapsed(now) => {
            lapse(core, ask).await;
        }
        AskState::Open | AskState::Approved if ask.asked && !ask.requester_present() && away_ms > AWAY_MS => {
            withdraw(core, ask, "the requester is gone").await;
        }
        state => {
            let over = ask.is_finished() || (state.is_final() && matches!(ask.origin, super::Origin::Change(_)));
            if over && !ask.requester_present_as_waiter() && away_ms > KEPT_MS {
                core.pendings.remove(&ask.id);
            }
        }
    }
}

/// Ends an ask whose time is over. Never a yes, whoever is late.
pub(crate) async fn lapse(core: &Core, ask: &Ask) {
    for from in [AskState::Open, AskState::Approved] {
        if move_ask(core, ask, from, AskState::Expired, MoveNote::default()).await.is_ok() {
            return;
        }
    }
}

impl Ask {
    fn requester_present_as_waiter(&self) -> bool {
        *self.waiters.borrow() > 0
    }
}
