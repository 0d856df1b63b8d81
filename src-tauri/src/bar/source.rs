//! Where a native event comes from.

use bodyguard_policy::{EventKind, NativeEvent};
use bodyguard_protocol::escape_line;
use gtk::gdk;
use gtk::prelude::*;

/// What is known of an event. No device is no person: accessibility presses and scripts have none.
pub(super) fn native(event: &gdk::Event, kind: EventKind) -> NativeEvent {
    NativeEvent {
        device: event.source_device().and_then(|device| device.name()).map(String::from),
        kind,
        sent: event.is_send_event(),
    }
}

/// What is known when there is no event at all.
pub(super) fn nothing(kind: EventKind) -> NativeEvent {
    NativeEvent { device: None, kind, sent: false }
}

/// The event being handled, if its kind is one that a person's hand makes.
pub(super) fn current() -> Option<NativeEvent> {
    let event = gtk::current_event()?;
    let kind = match event.event_type() {
        gdk::EventType::ButtonPress
        | gdk::EventType::ButtonRelease
        | gdk::EventType::TouchBegin
        | gdk::EventType::TouchEnd => EventKind::Pointer,
        gdk::EventType::KeyPress | gdk::EventType::KeyRelease => EventKind::Key,
        _ => return None,
    };
    Some(native(&event, kind))
}

/// A sentence for the person about an event that didn't count.
pub(super) fn refusal(event: &NativeEvent) -> String {
    let what = match event.kind {
        EventKind::Pointer => "click",
        EventKind::Key => "key",
    };
    match &event.device {
        Some(device) if event.sent => format!("A {what} that a program sent as “{}” was refused.", escape_line(device)),
        Some(device) => format!("A {what} by “{}” was refused.", escape_line(device)),
        None => "A press that came from no input device was refused.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dsp_04_a_device_cannot_imitate_the_window_by_its_name() {
        let event = NativeEvent { device: Some("x\nApproved".into()), kind: EventKind::Pointer, sent: false };
        assert!(!refusal(&event).contains('\n'));
        assert!(refusal(&nothing(EventKind::Pointer)).contains("no input device"));
    }
}
