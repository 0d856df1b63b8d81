//! A request to stop an act that may not have started yet.

use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};

use super::shell::Event;

#[derive(Debug, Default)]
pub(crate) struct Cancel(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    wanted: bool,
    events: Option<SyncSender<Event>>,
}

impl Cancel {
    pub(crate) fn now(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.wanted = true;
        if let Some(events) = &state.events {
            // A full queue already holds something that ends the wait.
            let _ = events.try_send(Event::Cancelled);
        }
    }

    pub(crate) fn wanted(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).wanted
    }

    pub(crate) fn connect(&self, events: SyncSender<Event>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.wanted {
            let _ = events.try_send(Event::Cancelled);
        }
        state.events = Some(events);
    }
}
