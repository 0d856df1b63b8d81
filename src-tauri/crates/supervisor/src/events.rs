//! The one stream of events to the window.

use std::sync::Mutex;

use bodyguard_protocol::ui::{UiEvent, UiEventKind};
use tokio::sync::broadcast;

/// Events the window may lag behind before it has to refetch.
const BACKLOG: usize = 1024;

/// Numbers events and sends them to whoever listens.
pub(crate) struct Events {
    last: Mutex<u64>,
    sender: broadcast::Sender<UiEvent>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { last: Mutex::new(0), sender: broadcast::channel(BACKLOG).0 }
    }

    /// Numbers and sends under one lock, so that numbers arrive in order.
    pub(crate) fn send(&self, event: UiEventKind) {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *last += 1;
        // Nobody listening is fine: a window refetches when it opens.
        let _ = self.sender.send(UiEvent { seq: *last, event });
    }

    pub(crate) fn last(&self) -> u64 {
        *self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<UiEvent> {
        self.sender.subscribe()
    }
}
