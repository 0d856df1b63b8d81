//! The bar's events. Approve hears raw events, so that their source is seen before GTK's own
//! handling can blur it; a `clicked` that comes from nowhere is what scripts and accessibility
//! programs make.

use std::rc::Rc;
use std::time::Instant;

use bodyguard_policy::EventKind;
use gtk::gdk::keys::constants as key;
use gtk::gdk::{self, EventType, ModifierType};
use gtk::glib::Propagation;
use gtk::prelude::*;

use super::{Bar, source};

pub(super) fn connect(bar: &Rc<Bar>) {
    bar.widgets.approve.add_events(gdk::EventMask::POINTER_MOTION_MASK);
    let b = Rc::clone(bar);
    bar.widgets.approve.connect_event(move |_, event| b.on_approve_event(event));
    let b = Rc::clone(bar);
    bar.widgets.approve.connect_clicked(move |_| b.on_approve_clicked());
    let b = Rc::clone(bar);
    bar.widgets.deny.connect_clicked(move |_| b.deny(source::current()));
    let b = Rc::clone(bar);
    bar.window.connect_key_press_event(move |_, event| b.on_key_press(event));
    let b = Rc::clone(bar);
    bar.window.connect_key_release_event(move |_, event| {
        b.arming.borrow_mut().key_up(event.hardware_keycode());
        Propagation::Proceed
    });
}

impl Bar {
    /// Presses on Approve. Only those of a person's device go on to become a click.
    fn on_approve_event(self: &Rc<Self>, event: &gdk::Event) -> Propagation {
        match event.event_type() {
            EventType::ButtonPress | EventType::TouchBegin => {
                let is_main = event.event_type() == EventType::TouchBegin || event.button() == Some(1);
                if !is_main || !self.admits(&source::native(event, EventKind::Pointer)) {
                    return Propagation::Stop;
                }
                self.look();
                self.pressed.set(self.arming.borrow().armed_period());
                if self.pressed.get().is_none() {
                    // Too early: somebody clicks without reading. The delay starts again.
                    self.disturb();
                }
                Propagation::Proceed
            }
            EventType::DoubleButtonPress | EventType::TripleButtonPress => Propagation::Stop,
            // A program that moves the pointer here may mean to catch a click meant for elsewhere.
            EventType::MotionNotify | EventType::EnterNotify => {
                let moved = source::native(event, EventKind::Pointer);
                if moved.device.is_some() && !self.is_person(&moved) {
                    self.disturb();
                }
                Propagation::Proceed
            }
            // Keys are handled by the window, before the button could.
            EventType::KeyPress | EventType::KeyRelease => Propagation::Stop,
            _ => Propagation::Proceed,
        }
    }

    fn on_approve_clicked(self: &Rc<Self>) {
        let pressed = self.pressed.take();
        match source::current() {
            Some(event) if event.kind == EventKind::Pointer => {
                if self.admits(&event) && pressed.is_some() {
                    self.approve(&event, pressed);
                }
            }
            // What no hand made is judged by the rule like all else, which says so on the bar.
            other => {
                let event = other.unwrap_or_else(|| source::nothing(EventKind::Pointer));
                if self.admits(&event) {
                    self.approve(&event, None);
                }
            }
        }
    }

    /// Keys, before any widget sees them.
    fn on_key_press(self: &Rc<Self>, event: &gdk::EventKey) -> Propagation {
        let Some(open) = self.content.borrow().as_ref().map(|content| content.ended.is_none()) else {
            return Propagation::Proceed;
        };
        let keyval = event.keyval();
        let writes = keyval.to_unicode().is_some_and(|c| !c.is_control() || c == '\r')
            && !event.state().contains(ModifierType::MOD1_MASK);
        let meant = self.arming.borrow_mut().key_down(Instant::now(), event.hardware_keycode(), writes);
        if !open {
            return Propagation::Proceed;
        }
        let focus = self.window.focused_widget();
        let on_approve = focus.as_ref() == Some(self.widgets.approve.upcast_ref());
        let on_deny = focus.as_ref() == Some(self.widgets.deny.upcast_ref());
        let in_bar = focus.as_ref().is_some_and(|widget| widget.is_ancestor(&self.widgets.bar));
        let alt = event.state() & gtk::accelerator_get_default_mod_mask() == ModifierType::MOD1_MASK;
        let letter = keyval.to_lower();
        let presses = matches!(keyval, key::space | key::KP_Space);
        let enters = matches!(keyval, key::Return | key::KP_Enter | key::ISO_Enter);

        if (alt && letter == key::a) || (on_approve && presses) {
            self.approve_by_key(event, meant);
        } else if on_approve && enters {
            self.note.replace(Some("Enter alone approves nothing: press Space.".to_owned()));
            self.look();
        } else if (alt && letter == key::d) || (on_deny && (presses || enters)) {
            if meant {
                self.deny(Some(source::native(event, EventKind::Key)));
            }
        } else if keyval == key::Escape && in_bar {
            self.widgets.deny.grab_focus();
        } else if keyval == key::F6 {
            self.cross(in_bar);
        } else {
            return Propagation::Proceed;
        }
        Propagation::Stop
    }

    fn approve_by_key(self: &Rc<Self>, event: &gdk::EventKey, meant: bool) {
        let native = source::native(event, EventKind::Key);
        if self.admits(&native) && meant {
            self.approve(&native, None);
        }
    }

    /// F6 goes from the page to the bar and back.
    fn cross(&self, in_bar: bool) {
        if in_bar {
            let page = self.widgets.bar.parent().and_then(|parent| parent.downcast::<gtk::Container>().ok());
            let page = page.and_then(|p| {
                p.children().into_iter().find(|c| c != self.widgets.bar.upcast_ref::<gtk::Widget>() && c.can_focus())
            });
            if let Some(page) = page {
                page.grab_focus();
            }
        } else {
            self.widgets.deny.grab_focus();
        }
    }
}
