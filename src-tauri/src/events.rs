//! Events of the supervisor: to the page, and to notifications.

use std::rc::Rc;

use bodyguard_protocol::AskId;
use bodyguard_protocol::ui::{AskDetail, AskState, UiEventKind, UiReply, UiRequest, UiResponse};
use bodyguard_supervisor::HumanHandle;
use gtk::glib;
use tauri::{AppHandle, Emitter};
use tokio::sync::broadcast::error::RecvError;

use crate::notify::Notifier;
use crate::window::MAIN;

/// The name under which the page hears them.
const EVENT: &str = "bodyguard://event";

/// Passes events on, on the main thread, until the supervisor ends.
pub(crate) fn pump(app: &AppHandle, human: &HumanHandle, notifier: Rc<Notifier>) {
    let (app, human) = (app.clone(), human.clone());
    let mut events = human.events();
    glib::MainContext::default().spawn_local(async move {
        loop {
            match events.recv().await {
                Ok(event) => {
                    if let Err(error) = app.emit_to(MAIN, EVENT, &event) {
                        tracing::warn!(%error, "the page doesn't get an event");
                    }
                    if let UiEventKind::AskChanged { ask_id } = event.event {
                        follow_ask(&human, &notifier, ask_id);
                    }
                }
                // The page sees the gap in the numbers and fetches everything again.
                Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "events were missed"),
                Err(RecvError::Closed) => return,
            }
        }
    });
}

fn follow_ask(human: &HumanHandle, notifier: &Rc<Notifier>, ask_id: AskId) {
    let (human, notifier) = (human.clone(), Rc::clone(notifier));
    glib::MainContext::default().spawn_local(async move {
        let found = ask(human, ask_id.clone()).await;
        match found {
            Some(detail) if detail.state == AskState::Open => notifier.tell(&detail),
            _ => notifier.forget(&ask_id),
        }
    });
}

async fn ask(human: HumanHandle, ask_id: AskId) -> Option<Box<AskDetail>> {
    let reply = tauri::async_runtime::spawn(async move { human.request(UiRequest::Ask { ask_id }).await }).await;
    match reply {
        Ok(UiReply::Ok(UiResponse::Ask(detail))) => Some(detail),
        _ => None,
    }
}

/// Whether a session runs or an ask waits.
pub(crate) async fn is_busy(human: &HumanHandle) -> bool {
    match human.request(UiRequest::Overview).await {
        UiReply::Ok(UiResponse::Overview(now)) => now.running_sessions > 0 || now.open_asks > 0,
        // What can't be found out must not end anything.
        _ => true,
    }
}
