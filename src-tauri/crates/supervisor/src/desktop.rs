//! The one keyboard and mouse of the person's desktop: one session at a time, and none while a decision
//! stands on the screen, so that nobody moves the pointer under the person's hand.

use std::time::Duration;

use bodyguard_protocol::{ErrorCode, Fault};
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::ask::Ask;
use crate::core::Core;
use crate::human::BarContent;

/// How long a permitted input waits for the person to be done with other decisions.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whose turn it is.
#[derive(Default)]
pub(crate) struct Desktop(Mutex<()>);

/// The right to type and click, until it is dropped or a decision is raised.
pub(crate) struct Turn<'a> {
    _turn: MutexGuard<'a, ()>,
    _watch: DropGuard,
    /// Cancelled with the ask, and once a decision is raised.
    pub(crate) cancel: CancellationToken,
}

/// Waits for the desktop's turn and for decisions to be made.
///
/// # Errors
/// `person_active` where a decision stays on the screen; `cancelled`.
pub(crate) async fn take_turn<'a>(core: &'a Core, ask: &Ask) -> Result<Turn<'a>, Fault> {
    let wait = async {
        let turn = core.desktop.0.lock().await;
        let mut bar = core.bar.subscribe();
        let _ = bar.wait_for(|bar| !is_raised(bar.as_ref())).await;
        (turn, bar)
    };
    let (turn, bar) = tokio::select! {
        biased;
        () = ask.cancel.cancelled() => return Err(Fault::new(ErrorCode::Cancelled, "the request was taken back before it ran")),
        waited = tokio::time::timeout(PATIENCE, wait) => waited.map_err(|_| busy())?,
    };
    let cancel = ask.cancel.child_token();
    let over = CancellationToken::new();
    tokio::spawn(cancel_when_raised(bar, cancel.clone(), over.clone()));
    Ok(Turn { _turn: turn, _watch: over.drop_guard(), cancel })
}

async fn cancel_when_raised(
    mut bar: watch::Receiver<Option<BarContent>>,
    cancel: CancellationToken,
    over: CancellationToken,
) {
    tokio::select! {
        () = over.cancelled() => {}
        raised = bar.wait_for(|bar| is_raised(bar.as_ref())) => if raised.is_ok() { cancel.cancel() },
    }
}

fn is_raised(bar: Option<&BarContent>) -> bool {
    bar.is_some_and(|content| content.ended.is_none())
}

fn busy() -> Fault {
    Fault::new(ErrorCode::PersonActive, "a decision stands on the person's screen, and nothing is typed meanwhile")
        .hint("wait until the person has decided, then perceive and ask anew")
}
