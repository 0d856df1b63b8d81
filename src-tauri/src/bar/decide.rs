//! Turning an event into a decision.

use std::rc::Rc;
use std::time::{Duration, Instant};

use bodyguard_policy::{EnrolledDevices, NativeEvent, Presence, PresenceRefused, PresenceRule};
use bodyguard_protocol::Fault;
use bodyguard_supervisor::BarContent;
use gtk::glib;
use gtk::prelude::EntryExt;

use super::widgets::Widgets;
use super::{Bar, source};

/// At most this often a refused event of the same kind is recorded; a program can make thousands.
const BETWEEN_RECORDS: Duration = Duration::from_millis(250);

/// What was refused last.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    last: Option<(NativeEvent, Instant)>,
}

impl Refusals {
    fn is_new(&mut self, event: &NativeEvent, now: Instant) -> bool {
        let repeated = self.last.as_ref().is_some_and(|(last, at)| last == event && now < *at + BETWEEN_RECORDS);
        if !repeated {
            self.last = Some((event.clone(), now));
        }
        !repeated
    }
}

impl Bar {
    fn judge(&self, event: &NativeEvent) -> Result<(), PresenceRefused> {
        match &*self.rule.borrow() {
            Some(rule) => rule.admits(event).map(drop),
            // Not read yet: nobody is known.
            None => EnrolledDevices::default().admits(event).map(drop),
        }
    }

    /// Whether an event is a person's.
    pub(super) fn is_person(&self, event: &NativeEvent) -> bool {
        self.judge(event).is_ok()
    }

    /// Whether an event is a person's; if not, says so on the bar and in the log.
    pub(super) fn admits(self: &Rc<Self>, event: &NativeEvent) -> bool {
        match self.judge(event) {
            Ok(()) => true,
            Err(refused) => {
                self.refuse(event, refused);
                false
            }
        }
    }

    fn refuse(self: &Rc<Self>, event: &NativeEvent, refused: PresenceRefused) {
        Widgets::say(&self.widgets.refused, Some(&source::refusal(event)));
        let Some(content) = self.open() else { return };
        if !self.refusals.borrow_mut().is_new(event, Instant::now()) {
            return;
        }
        let (human, event) = (self.human.clone(), event.clone());
        let recorded = tauri::async_runtime::spawn(async move {
            human.presence_refused(&content.ask_id, &event, &refused).await;
        });
        let bar = Rc::clone(self);
        glib::MainContext::default().spawn_local(async move {
            let _ = recorded.await;
            // The record told the page that Approve isn't armed; tell it how it is.
            bar.told.replace(None);
        });
    }

    /// A yes, if the bar is armed (in the same period as the press, for clicks) and the event is a
    /// person's. The conditions are looked at once more, at this very moment.
    pub(super) fn approve(self: &Rc<Self>, event: &NativeEvent, pressed: Option<u64>) {
        self.look();
        let Some(content) = self.open() else { return };
        let armed = self.arming.borrow().armed_period();
        if armed.is_none() || (pressed.is_some() && pressed != armed) {
            self.disturb();
            return;
        }
        let (human, event) = (self.human.clone(), event.clone());
        let (ask_id, shown) = (content.ask_id.clone(), content.shown_digest.clone());
        self.send(&content, async move {
            let rule = human.rule().await?;
            let presence = Presence::witness(&*rule, &event, &ask_id, &shown)?;
            human.approve(&ask_id, presence).await
        });
    }

    /// A no, by whatever; the source is recorded.
    pub(super) fn deny(self: &Rc<Self>, event: Option<NativeEvent>) {
        let Some(content) = self.open() else { return };
        if !self.arming.borrow().past_guard(Instant::now()) {
            return;
        }
        let reason = self.widgets.reason.text().trim().to_owned();
        let reason = (!reason.is_empty()).then_some(reason);
        let human = self.human.clone();
        let ask_id = content.ask_id.clone();
        self.send(&content, async move { human.deny(&ask_id, reason, event).await });
    }

    /// Sends a decision and waits for it without holding up the window.
    fn send(self: &Rc<Self>, content: &BarContent, decision: impl Future<Output = Result<(), Fault>> + Send + 'static) {
        self.deciding.set(true);
        self.note.replace(None);
        self.look();
        let bar = Rc::clone(self);
        let ask_id = content.ask_id.clone();
        let sent = tauri::async_runtime::spawn(decision);
        glib::MainContext::default().spawn_local(async move {
            let result = sent.await.unwrap_or_else(|error| Err(Fault::internal(error.to_string())));
            // The bar may show another ask by now, which this answer says nothing about.
            if bar.content.borrow().as_ref().is_none_or(|content| content.ask_id != ask_id) {
                return;
            }
            bar.deciding.set(false);
            if let Err(fault) = result {
                tracing::warn!(%ask_id, code = ?fault.code, "a decision was not taken");
                bar.note.replace(Some(format!("Not done: {}", fault.message)));
            }
            bar.disturb();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bodyguard_policy::EventKind;

    #[test]
    fn a_flood_of_refused_events_is_recorded_now_and_then() {
        let event = source::nothing(EventKind::Pointer);
        let other = source::nothing(EventKind::Key);
        let t = Instant::now();
        let mut refusals = Refusals::default();
        assert!(refusals.is_new(&event, t));
        assert!(!refusals.is_new(&event, t + Duration::from_millis(249)));
        assert!(refusals.is_new(&event, t + Duration::from_millis(250)));
        assert!(refusals.is_new(&other, t + Duration::from_millis(251)), "another source is told at once");
    }
}
