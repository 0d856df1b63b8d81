//! The page's one command. Nothing that can be said here approves anything.

use bodyguard_protocol::ui::{UiReply, UiRequest, UiResponse};
use bodyguard_protocol::{AgentName, ErrorCode, Fault};
use bodyguard_supervisor::HumanHandle;
use serde::Deserialize;
use serde_json::Value;
use tauri::{AppHandle, Manager, State, WebviewWindow};

use crate::guards::UnknownRequest;
use crate::window::MAIN;

/// Answers a request of the page.
#[tauri::command]
pub(crate) async fn rpc(
    window: WebviewWindow,
    human: State<'_, HumanHandle>,
    unknown: State<'_, UnknownRequest>,
    request: Value,
) -> Result<UiReply, Fault> {
    if window.label() != MAIN {
        return Err(Fault::new(ErrorCode::PermissionDenied, "only the main window is answered"));
    }
    let human = human.inner().clone();
    let Ok(known) = UiRequest::deserialize(&request) else { return Ok(unknown(human, request).await) };
    Ok(match known {
        UiRequest::CopyToken { agent } => copy_token(&window, &human, &agent).await,
        shown @ UiRequest::AskShown { .. } => {
            let reply = human.request(shown).await;
            // The page judges what is in view by this reply: the bar has taken its room by then.
            match laid_out(&window).await {
                Ok(()) => reply,
                Err(fault) => UiReply::Err(fault),
            }
        }
        other => human.request(other).await,
    })
}

/// The token goes from the supervisor to the clipboard, past the page.
async fn copy_token(window: &WebviewWindow, human: &HumanHandle, agent: &AgentName) -> UiReply {
    let token = match human.agent_token(agent) {
        Ok(token) => token,
        Err(fault) => return UiReply::Err(fault),
    };
    match on_main_thread(window, move || gtk::Clipboard::get(&gtk::gdk::SELECTION_CLIPBOARD).set_text(&token)).await {
        Ok(()) => UiReply::Ok(UiResponse::CopyToken),
        Err(fault) => UiReply::Err(fault),
    }
}

/// Waits until the window has nothing left to lay out or draw.
async fn laid_out(window: &WebviewWindow) -> Result<(), Fault> {
    let (done, finished) = tokio::sync::oneshot::channel();
    on_main_thread(window, || {
        gtk::glib::idle_add_local_once(move || {
            let _ = done.send(());
        });
    })
    .await?;
    finished.await.map_err(|_| Fault::internal("the window is closing"))
}

async fn on_main_thread(window: &WebviewWindow, work: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
    let (done, finished) = tokio::sync::oneshot::channel();
    let app: &AppHandle = window.app_handle();
    app.run_on_main_thread(move || {
        work();
        let _ = done.send(());
    })
    .map_err(|error| Fault::internal(error.to_string()))?;
    finished.await.map_err(|_| Fault::internal("the window is closing"))
}
