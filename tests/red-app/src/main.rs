//! Bodyguard with the presence check off: any event counts as a person's. The tests that show that
//! injected input doesn't approve run against this too, where it does; so they can fail. Never
//! shipped.

use std::process::ExitCode;
use std::sync::Arc;

use bodyguard_policy::{NativeEvent, PresenceRefused, PresenceRule};

/// Admits every event.
struct Anyone;

impl PresenceRule for Anyone {
    fn admits(&self, _: &NativeEvent) -> Result<(), PresenceRefused> {
        Ok(())
    }
}

fn main() -> ExitCode {
    bodyguard_app::cli::main_with(Arc::new(|_| Arc::new(Anyone)))
}
