//! What the shell gets from a [`super::HumanHandle`].

use bodyguard_protocol::ui::DecisionKind;
use bodyguard_protocol::{AskId, Digest};

/// What the native bar shows. Drawn by the shell, never by the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarContent {
    /// For which ask.
    pub ask_id: AskId,
    /// What is decided.
    pub kind: DecisionKind,
    /// A plain sentence, escaped.
    pub headline: String,
    /// The first digits of the shown digest, for comparing by eye.
    pub short_digest: String,
    /// What a yes signs.
    pub shown_digest: Digest,
    /// The phrase the person chose.
    pub phrase: String,
    /// Whether the end of the content has been in view.
    pub end_shown: bool,
    /// What ended the ask, when it has; the buttons are off then.
    pub ended: Option<String>,
}

/// Counts for the tray.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Asks that wait.
    pub open_asks: u32,
    /// Whether everything is stopped.
    pub stopped: bool,
}

/// An input device that the shell sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSeen {
    /// Its name.
    pub name: String,
    /// `pointer` or `keyboard`.
    pub kind: String,
}
