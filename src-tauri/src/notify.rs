//! One notification for each ask. It opens the window at that ask and decides nothing: any program
//! could press its buttons, so it has none.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bodyguard_protocol::AskId;
use bodyguard_protocol::ui::AskDetail;
use bodyguard_supervisor::HumanHandle;
use gtk::gio::{self, DBusCallFlags, DBusConnection, DBusSignalFlags};
use gtk::glib::{self, ToVariant, Variant};
use gtk::prelude::*;
use tauri::AppHandle;

use crate::desktop_bus::{self, NOTIFICATIONS, PATIENCE_MS};
use crate::window;

/// Characters of the request that a notification shows; the window shows it whole.
const SHOWN: usize = 160;

/// Shows notifications. Lives on the main thread and never waits on it.
pub(crate) struct Notifier {
    app: AppHandle,
    human: HumanHandle,
    window: gtk::ApplicationWindow,
    bus: RefCell<Option<DBusConnection>>,
    /// By ask; `None` while the daemon hasn't answered yet.
    shown: RefCell<HashMap<AskId, Option<u32>>>,
}

impl Notifier {
    /// Connects to the session bus if there is one.
    pub(crate) fn start(app: &AppHandle, human: &HumanHandle, window: &gtk::ApplicationWindow) -> Rc<Self> {
        let notifier = Rc::new(Self {
            app: app.clone(),
            human: human.clone(),
            window: window.clone(),
            bus: RefCell::new(None),
            shown: RefCell::default(),
        });
        if desktop_bus::is_there() {
            let n = Rc::clone(&notifier);
            glib::MainContext::default().spawn_local(async move { n.connect().await });
        } else {
            tracing::warn!("there is no session bus: requests are shown in the window only");
        }
        let n = Rc::clone(&notifier);
        window.connect_is_active_notify(move |window| {
            // Whoever sees the window needs no notification over it.
            if window.is_active() {
                window.set_urgency_hint(false);
                n.forget_all();
            }
        });
        notifier
    }

    async fn connect(self: Rc<Self>) {
        let bus = match gio::bus_get_future(gio::BusType::Session).await {
            Ok(bus) => bus,
            Err(error) => return tracing::warn!(%error, "no session bus: requests are shown in the window only"),
        };
        let n = Rc::downgrade(&self);
        bus.signal_subscribe(
            Some(NOTIFICATIONS.name),
            Some(NOTIFICATIONS.interface),
            Some("ActionInvoked"),
            Some(NOTIFICATIONS.path),
            None,
            DBusSignalFlags::NONE,
            move |_, _, _, _, _, parameters| {
                if let (Some(notifier), Some((id, _))) = (n.upgrade(), parameters.get::<(u32, String)>()) {
                    notifier.opened(id);
                }
            },
        );
        self.bus.replace(Some(bus));
    }

    /// Tells of an open ask, once, unless the person looks at the window anyway.
    pub(crate) fn tell(self: &Rc<Self>, ask: &AskDetail) {
        let ask_id = ask.view.ask_id.clone();
        if self.window.is_active() || self.shown.borrow().contains_key(&ask_id) {
            return;
        }
        // A mark in the task bar; it takes nobody's focus.
        self.window.set_urgency_hint(true);
        let Some(bus) = self.bus.borrow().clone() else { return };
        self.shown.borrow_mut().insert(ask_id.clone(), None);
        let message = message(&ask.view.requester, &ask.view.headline);
        let notifier = Rc::clone(self);
        glib::MainContext::default().spawn_local(async move {
            match call(&bus, "Notify", &message).await {
                Ok(reply) => notifier.is_shown(&ask_id, reply.get::<(u32,)>().map(|(id,)| id)),
                Err(error) => {
                    tracing::warn!(%ask_id, %error, "no notification; the request waits in the window");
                    notifier.shown.borrow_mut().remove(&ask_id);
                }
            }
        });
    }

    fn is_shown(self: &Rc<Self>, ask_id: &AskId, id: Option<u32>) {
        let mut shown = self.shown.borrow_mut();
        match (shown.get_mut(ask_id), id) {
            (Some(entry), _) => *entry = id,
            // It ended while the daemon was thinking.
            (None, Some(id)) => self.close(id),
            (None, None) => {}
        }
    }

    /// Takes an ask's notification away.
    pub(crate) fn forget(&self, ask_id: &AskId) {
        if let Some(Some(id)) = self.shown.borrow_mut().remove(ask_id) {
            self.close(id);
        }
    }

    fn forget_all(&self) {
        for id in self.shown.borrow_mut().drain().filter_map(|(_, id)| id) {
            self.close(id);
        }
    }

    fn close(&self, id: u32) {
        let Some(bus) = self.bus.borrow().clone() else { return };
        glib::MainContext::default().spawn_local(async move {
            // A daemon that has gone shows nothing any more.
            let _ = call(&bus, "CloseNotification", &(id,).to_variant()).await;
        });
    }

    fn opened(&self, id: u32) {
        let ask_id = self.shown.borrow().iter().find(|(_, shown)| **shown == Some(id)).map(|(ask, _)| ask.clone());
        if let Some(ask_id) = ask_id {
            window::show(&self.app);
            self.human.show_ask(&ask_id);
        }
    }
}

async fn call(bus: &DBusConnection, method: &str, parameters: &Variant) -> Result<Variant, glib::Error> {
    let place = NOTIFICATIONS;
    let flags = DBusCallFlags::NONE;
    bus.call_future(Some(place.name), place.path, place.interface, method, Some(parameters), None, flags, PATIENCE_MS)
        .await
}

/// The arguments of `Notify`. The only action is the click on the whole of it.
fn message(requester: &str, headline: &str) -> Variant {
    let summary = format!("{requester} asks");
    let mut body: String = headline.chars().take(SHOWN).collect();
    if body.len() < headline.len() {
        body.push('…');
    }
    let hints: HashMap<&str, Variant> = HashMap::from([("desktop-entry", "bodyguard".to_variant())]);
    let actions = vec!["default", "Open"];
    ("Bodyguard", 0_u32, "bodyguard", summary, escape_markup(&body), actions, hints, -1_i32).to_variant()
}

/// Daemons render markup in the body.
fn escape_markup(text: &str) -> String {
    glib::markup_escape_text(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dsp_04_a_request_cannot_put_markup_into_its_notification() {
        let message = message("demo@work", "run <b>rm</b> & <a href='x'>y</a>");
        let body: String = message.child_value(4).get().unwrap();
        assert_eq!(body, "run &lt;b&gt;rm&lt;/b&gt; &amp; &lt;a href=&apos;x&apos;&gt;y&lt;/a&gt;");
    }

    #[test]
    fn a_notification_has_no_button_and_stays_short() {
        let message = message("demo@work", &"é".repeat(500));
        let actions: Vec<String> = message.child_value(5).get().unwrap();
        assert_eq!(actions, ["default", "Open"]);
        let body: String = message.child_value(4).get().unwrap();
        assert_eq!(body.chars().count(), SHOWN + 1);
    }
}
