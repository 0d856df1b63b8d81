//! The native decision bar under the page: the one place where a person's yes comes from.
//!
//! The page raises and lowers it (by what it shows), but can't press it. What stands in it comes
//! from the supervisor, not from the page. Approve counts only for an event of an enrolled input
//! device, after everything stood still for a while ([`arming`]), in a window that can be seen
//! whole ([`sight`]). Deny is the safe side and takes any event.

mod arming;
mod decide;
mod input;
mod sight;
mod source;
mod widgets;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bodyguard_policy::PresenceRule;
use bodyguard_protocol::ui::UiEventKind;
use bodyguard_supervisor::{BarContent, HumanHandle};
use gtk::gdk;
use gtk::glib;
use gtk::prelude::*;

use arming::{Arming, Conditions, Standing};
use sight::Sight;
use widgets::Widgets;

/// How often the conditions are looked at while an ask stands in the bar.
const LOOK: Duration = Duration::from_millis(100);

/// The bar. Lives on the main thread.
pub(crate) struct Bar {
    widgets: Widgets,
    window: gtk::ApplicationWindow,
    human: HumanHandle,
    sight: Option<Sight>,
    arming: RefCell<Arming>,
    content: RefCell<Option<BarContent>>,
    /// The armed period in which Approve was pressed and not yet released.
    pressed: Cell<Option<u64>>,
    /// A decision is on its way.
    deciding: Cell<bool>,
    /// What to say instead of why Approve waits, such as a decision that failed.
    note: RefCell<Option<String>>,
    refusals: RefCell<decide::Refusals>,
    /// The rule as last read, by which events are let through or swallowed at once. A yes is judged
    /// again by the rule as it is then.
    rule: RefCell<Option<Arc<dyn PresenceRule>>>,
    told: RefCell<Option<(bool, Option<String>)>>,
    visible: Cell<bool>,
}

impl Bar {
    /// Puts the bar under the page and lets it follow the supervisor.
    pub(crate) fn install(window: &gtk::ApplicationWindow, page: &gtk::Box, human: HumanHandle) -> Rc<Self> {
        let bar = Rc::new(Self {
            widgets: Widgets::new(),
            window: window.clone(),
            human,
            sight: Sight::new(),
            arming: RefCell::new(Arming::new(Instant::now())),
            content: RefCell::new(None),
            pressed: Cell::new(None),
            deciding: Cell::new(false),
            note: RefCell::new(None),
            refusals: RefCell::default(),
            rule: RefCell::new(None),
            told: RefCell::new(None),
            visible: Cell::new(true),
        });
        bar.widgets.style();
        page.pack_end(&bar.widgets.bar, false, false, 0);
        bar.watch_window();
        input::connect(&bar);
        bar.follow();
        bar
    }

    /// Follows what the supervisor wants shown.
    fn follow(self: &Rc<Self>) {
        let bar = Rc::clone(self);
        let mut contents = self.human.bar();
        glib::MainContext::default().spawn_local(async move {
            loop {
                let content = contents.borrow_and_update().clone();
                bar.read_rule();
                bar.put(content);
                if contents.changed().await.is_err() {
                    return;
                }
            }
        });
        let bar = Rc::clone(self);
        let mut events = self.human.events();
        glib::MainContext::default().spawn_local(async move {
            use tokio::sync::broadcast::error::RecvError::Lagged;
            loop {
                match events.recv().await {
                    Ok(event) if event.event != UiEventKind::HealthChanged => {}
                    Ok(_) | Err(Lagged(_)) => bar.read_rule(),
                    Err(_) => return,
                }
            }
        });
        let bar = Rc::clone(self);
        glib::timeout_add_local(LOOK, move || {
            bar.look();
            glib::ControlFlow::Continue
        });
    }

    /// Reads the presence rule again, since devices may have been enrolled or removed.
    fn read_rule(self: &Rc<Self>) {
        let bar = Rc::clone(self);
        let human = self.human.clone();
        let rule = tauri::async_runtime::spawn(async move { human.rule().await });
        glib::MainContext::default().spawn_local(async move {
            match rule.await {
                Ok(Ok(rule)) => drop(bar.rule.replace(Some(rule))),
                Ok(Err(fault)) => tracing::error!(code = ?fault.code, "the enrolled devices can't be read: {fault}"),
                Err(error) => tracing::error!(%error, "the enrolled devices can't be read"),
            }
        });
    }

    /// What makes it disarm at once; the regular look finds the rest.
    fn watch_window(self: &Rc<Self>) {
        self.window.add_events(gdk::EventMask::VISIBILITY_NOTIFY_MASK);
        let bar = Rc::clone(self);
        self.window.connect_event(move |_, event| {
            if let Some(visibility) = event.downcast_ref::<gdk::EventVisibility>() {
                bar.visible.set(visibility.state() == gdk::VisibilityState::Unobscured);
                bar.look();
            }
            glib::Propagation::Proceed
        });
        let bar = Rc::clone(self);
        let last = Cell::new((0, 0, 0, 0));
        self.window.connect_configure_event(move |_, event| {
            let ((x, y), (width, height)) = (event.position(), event.size());
            if last.replace((x, y, width, height)) != (x, y, width, height) {
                bar.disturb();
            }
            false
        });
        let bar = Rc::clone(self);
        self.window.connect_is_active_notify(move |_| bar.look());
    }

    /// Another content from the supervisor.
    fn put(&self, next: Option<BarContent>) {
        let before = self.content.replace(next.clone());
        let Some(next) = next else {
            self.disturb();
            self.widgets.bar.hide();
            self.told.replace(None);
            return;
        };
        let same = before.as_ref().is_some_and(|b| b.ask_id == next.ask_id && b.shown_digest == next.shown_digest);
        if !same || next.ended.is_some() {
            self.note.replace(None);
            self.arming.borrow_mut().raise(Instant::now());
            self.pressed.set(None);
        }
        self.draw(&next);
        if !same {
            self.deciding.set(false);
            self.widgets.reason.set_text("");
            Widgets::say(&self.widgets.refused, None);
            self.widgets.bar.show();
            self.widgets.deny.grab_focus();
        }
        self.look();
    }

    fn draw(&self, content: &BarContent) {
        let w = &self.widgets;
        w.headline.set_text(&content.headline);
        w.digest.set_text(&format!("Request {}", content.short_digest));
        Widgets::say(
            &w.phrase,
            Some(&format!("“{}”", content.phrase)).filter(|_| !content.phrase.is_empty()).map(|s| &**s),
        );
        // A result takes the buttons away: nothing else comes to lie under the pointer.
        w.buttons.set_visible(content.ended.is_none());
    }

    /// The ask that can be decided now.
    fn open(&self) -> Option<BarContent> {
        self.content.borrow().clone().filter(|content| content.ended.is_none() && !self.deciding.get())
    }

    /// Looks at all conditions and shows how Approve stands.
    fn look(&self) {
        let Some(content) = self.content.borrow().clone() else { return };
        if let Some(ended) = &content.ended {
            self.show_standing(false, None, Some(ended));
            return;
        }
        let standing = self.arming.borrow_mut().look(Instant::now(), self.conditions(&content));
        if self.deciding.get() {
            self.show_standing(false, None, Some("One moment …"));
            return;
        }
        match standing {
            Standing::Armed => self.show_standing(true, None, None),
            Standing::Waiting(reason) => self.show_standing(false, Some(reason), None),
        }
    }

    fn show_standing(&self, armed: bool, waiting: Option<&str>, says: Option<&str>) {
        let note = self.note.borrow();
        let waits = waiting.map(|reason| format!("Approve waits: {reason}"));
        let ready = armed.then(|| "Approve with a click or Alt+A. Deny with a click or Alt+D.".to_owned());
        let text = says.map(str::to_owned).or_else(|| note.clone()).or(waits).or(ready);
        Widgets::say(&self.widgets.status, text.as_deref());
        self.widgets.set_armed(armed);
        let told = (armed, waiting.map(str::to_owned));
        if self.told.borrow().as_ref() != Some(&told) {
            self.told.replace(Some(told.clone()));
            self.human.set_bar_state(told.0, told.1);
        }
    }

    fn conditions(&self, content: &BarContent) -> Conditions {
        let native = self.window.window();
        let state = native.as_ref().map_or(gdk::WindowState::WITHDRAWN, |window| window.state());
        let hidden = gdk::WindowState::WITHDRAWN | gdk::WindowState::ICONIFIED;
        let xid = native.and_then(|window| window.downcast::<gdkx11::X11Window>().ok()).map(|window| window.xid());
        let xid = xid.and_then(|xid| u32::try_from(xid).ok());
        let clear = self.visible.get() && matches!((&self.sight, xid), (Some(sight), Some(xid)) if sight.is_clear(xid));
        Conditions {
            end_shown: content.end_shown,
            active: self.window.is_active(),
            mapped: self.window.is_mapped() && !state.intersects(hidden),
            clear,
            hands_off: self.sight.as_ref().is_some_and(Sight::hands_off),
        }
    }

    /// The delay starts again.
    fn disturb(&self) {
        self.arming.borrow_mut().disturb();
        self.pressed.set(None);
        self.look();
    }
}
