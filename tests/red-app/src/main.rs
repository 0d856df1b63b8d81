//! Bodyguard with the presence check off: any event counts as a person's, nothing that blurs where
//! events come from is cleared away, and the page may say yes. The tests that show that none of this
//! approves run against this build too, where it does; so they can fail. Never shipped.

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use bodyguard_app::Guards;
use bodyguard_policy::{EventKind, NativeEvent, Presence, PresenceRefused, PresenceRule};
use bodyguard_protocol::Fault;
use bodyguard_protocol::ui::{UiReply, UiResponse};
use bodyguard_supervisor::HumanHandle;
use serde_json::Value;

/// Admits every event, from whatever.
struct Anyone;

impl PresenceRule for Anyone {
    fn admits(&self, event: &NativeEvent) -> Result<String, PresenceRefused> {
        Ok(event.device.clone().unwrap_or_else(|| "no device".to_owned()))
    }
}

/// Takes `approve` of the page for a yes.
fn page_approves(human: HumanHandle, request: Value) -> Pin<Box<dyn Future<Output = UiReply> + Send>> {
    Box::pin(async move {
        match approve(&human, &request).await {
            Ok(()) => UiReply::Ok(UiResponse::AskShown),
            Err(fault) => UiReply::Err(fault),
        }
    })
}

async fn approve(human: &HumanHandle, request: &Value) -> Result<(), Fault> {
    let shown = human.bar().borrow().clone();
    let shown = shown.filter(|_| request["method"] == "approve").ok_or_else(|| Fault::invalid("method", "unknown"))?;
    let event = NativeEvent { device: None, kind: EventKind::Pointer, sent: false };
    let presence = Presence::witness(&Anyone, &event, &shown.ask_id, &shown.shown_digest)?;
    human.approve(&shown.ask_id, presence).await
}

fn main() -> ExitCode {
    bodyguard_app::cli::main_with(Guards {
        presence: Arc::new(|_| Arc::new(Anyone)),
        kept_variables: &["GDK_CORE_DEVICE_EVENTS"],
        unknown_request: page_approves,
    })
}
