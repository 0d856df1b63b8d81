//! Presence: that a person at this computer did something, as far as an input event can show it.

use std::collections::BTreeSet;

use bodyguard_protocol::{AskId, Digest, ErrorCode, Fault, escape_line};

/// An input event as the window system gave it to a native widget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeEvent {
    /// The name of the device it came from; absent for what no device caused, such as an action by
    /// an accessibility client or a script.
    pub device: Option<String>,
    /// What kind.
    pub kind: EventKind,
    /// Whether another client sent it (X11's `XSendEvent`).
    pub sent: bool,
}

/// What kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A button of a pointer.
    Pointer,
    /// A key.
    Key,
}

/// Why an event doesn't show a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PresenceRefused {
    /// No device caused it.
    #[error("no input device caused this")]
    NoDevice,
    /// Another program sent it.
    #[error("another program sent this event")]
    Sent,
    /// The X server's test extension made it, on behalf of a program.
    #[error("a program made this event (`{}`)", escape_line(.device))]
    Synthetic {
        /// The device's name.
        device: String,
    },
    /// It names the virtual core device, which stands for any device.
    #[error("this event doesn't say which device caused it (`{}`)", escape_line(.device))]
    VirtualMaster {
        /// The device's name.
        device: String,
    },
    /// The device isn't one that the person enrolled.
    #[error("`{}` isn't an enrolled device", escape_line(.device))]
    NotEnrolled {
        /// The device's name.
        device: String,
    },
}

impl PresenceRefused {
    /// A stable code for records.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoDevice => "no_device",
            Self::Sent => "sent_event",
            Self::Synthetic { .. } => "synthetic_event",
            Self::VirtualMaster { .. } => "virtual_master",
            Self::NotEnrolled { .. } => "device_not_enrolled",
        }
    }
}

impl From<PresenceRefused> for Fault {
    fn from(refused: PresenceRefused) -> Self {
        Self::new(ErrorCode::AuthorizationFailure, refused.to_string()).at("presence")
    }
}

/// Which events show a person.
pub trait PresenceRule: Send + Sync {
    /// The device by which this event shows one.
    ///
    /// # Errors
    /// Why it doesn't.
    fn admits(&self, event: &NativeEvent) -> Result<String, PresenceRefused>;
}

/// The rule that ships: the event comes from a device that the person enrolled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnrolledDevices(BTreeSet<String>);

impl EnrolledDevices {
    /// A rule that admits these devices, as far as [`Self::can_enrol`] lets them in.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().filter(|name| Self::can_enrol(name).is_ok()).collect())
    }

    /// Whether a device of this name may be enrolled at all.
    ///
    /// # Errors
    /// Where it is the X server's test device, a virtual core device, or has no name.
    pub fn can_enrol(name: &str) -> Result<(), PresenceRefused> {
        let lower = name.to_lowercase();
        let device = || name.to_owned();
        if lower.trim().is_empty() {
            Err(PresenceRefused::NoDevice)
        } else if lower.contains("xtest") {
            Err(PresenceRefused::Synthetic { device: device() })
        } else if lower.contains("virtual core") {
            Err(PresenceRefused::VirtualMaster { device: device() })
        } else {
            Ok(())
        }
    }
}

impl PresenceRule for EnrolledDevices {
    fn admits(&self, event: &NativeEvent) -> Result<String, PresenceRefused> {
        if event.sent {
            return Err(PresenceRefused::Sent);
        }
        let device = event.device.as_deref().ok_or(PresenceRefused::NoDevice)?;
        Self::can_enrol(device)?;
        let device = device.to_owned();
        if self.0.contains(&device) { Ok(device) } else { Err(PresenceRefused::NotEnrolled { device }) }
    }
}

/// One person's yes to one ask as it was shown. Used up by
/// [`issue_by_person`](crate::issue_by_person).
#[derive(Debug)]
#[must_use]
pub struct Presence {
    ask_id: AskId,
    shown_digest: Digest,
    device: String,
}

impl Presence {
    /// Takes an event as a yes, if the rule admits it.
    ///
    /// # Errors
    /// Why the event doesn't show a person.
    pub fn witness(
        rule: &dyn PresenceRule,
        event: &NativeEvent,
        ask_id: &AskId,
        shown_digest: &Digest,
    ) -> Result<Self, PresenceRefused> {
        let device = rule.admits(event)?;
        Ok(Self { ask_id: ask_id.clone(), shown_digest: shown_digest.clone(), device })
    }

    /// The ask it answers.
    pub const fn ask_id(&self) -> &AskId {
        &self.ask_id
    }

    /// The digest of what was shown.
    pub const fn shown_digest(&self) -> &Digest {
        &self.shown_digest
    }

    /// The device's name.
    pub fn device(&self) -> &str {
        &self.device
    }
}
