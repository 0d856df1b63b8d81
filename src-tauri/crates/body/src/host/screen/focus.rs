//! Remembering which window was focused before one of ours was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bodyguard_protocol::Fault;
use x11rb::connection::Connection as _;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{ChangeWindowAttributesAux, ConnectionExt as _, EventMask, Window};

use super::display::Display;
use super::no_display;

/// Between attempts to reach a display that has gone.
const PAUSE: Duration = Duration::from_secs(2);

/// A thread that follows the focus on a connection of its own.
#[derive(Debug)]
pub(super) struct Watch {
    last: Arc<AtomicU32>,
}

impl Watch {
    pub(super) fn start(hidden_pids: Vec<u32>) -> Self {
        let last = Arc::new(AtomicU32::new(0));
        let ours = Arc::clone(&last);
        // Without the thread the top of the stack stands in for what was focused before.
        let _ = std::thread::Builder::new().name("focus".to_owned()).spawn(move || {
            loop {
                let _ = follow(&hidden_pids, &ours);
                std::thread::sleep(PAUSE);
            }
        });
        Self { last }
    }

    /// The window that was focused last and isn't ours.
    pub(super) fn last(&self) -> Option<Window> {
        Some(self.last.load(Ordering::Relaxed)).filter(|&window| window != 0)
    }
}

fn follow(hidden_pids: &[u32], last: &AtomicU32) -> Result<(), Fault> {
    let display = Display::connect()?;
    let changes = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
    let asked = display.connection.change_window_attributes(display.root, &changes).map_err(no_display)?;
    asked.check().map_err(no_display)?;
    loop {
        if let Some(window) = display.active()?.filter(|&window| !display.is_hidden(window, hidden_pids)) {
            last.store(window, Ordering::Relaxed);
        }
        loop {
            let event = display.connection.wait_for_event().map_err(no_display)?;
            if let Event::PropertyNotify(change) = event
                && change.atom == display.atoms._NET_ACTIVE_WINDOW
            {
                break;
            }
        }
    }
}
