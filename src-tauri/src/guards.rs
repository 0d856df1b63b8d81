//! What keeps everything but a person's hand from deciding.

use std::pin::Pin;
use std::sync::Arc;

use bodyguard_policy::EnrolledDevices;
use bodyguard_protocol::Fault;
use bodyguard_protocol::ui::UiReply;
use bodyguard_supervisor::{HumanHandle, PresenceFactory};
use serde_json::Value;

/// The guards of the app. It ships with [`Guards::shipped`]; the tests have a build without them, in
/// which what they stop does decide, so that the tests can fail.
#[derive(Clone)]
pub struct Guards {
    /// Which native events count as the person's.
    pub presence: PresenceFactory,
    /// Variables that may stay in the environment although they blur where events come from.
    pub kept_variables: &'static [&'static str],
    /// What answers the page when it says something that isn't in the protocol.
    pub unknown_request: UnknownRequest,
}

/// See [`Guards::unknown_request`].
pub type UnknownRequest = fn(HumanHandle, Value) -> Pin<Box<dyn Future<Output = UiReply> + Send>>;

impl Guards {
    /// The guards that ship: enrolled devices only, no blurring variable, no word beyond the protocol.
    pub fn shipped() -> Self {
        Self {
            presence: Arc::new(|enrolled| Arc::new(EnrolledDevices::new(enrolled))),
            kept_variables: &[],
            unknown_request: |_, _| {
                Box::pin(async { UiReply::Err(Fault::invalid("request", "this isn't a request of the protocol")) })
            },
        }
    }
}
