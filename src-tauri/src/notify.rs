//! One notification for each ask. It opens the window at that ask and decides nothing: any program
//! could press its buttons, so it has none.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use bodyguard_protocol::AskId;
use bodyguard_protocol::ui::AskDetail;
use bodyguard_supervisor::HumanHandle;
use gtk::glib;
use gtk::prelude::*;
use notify_rust::{Hint, Notification, NotificationHandle, NotificationResponse};
use tauri::AppHandle;
use tauri::async_runtime;

use crate::desktop_bus;
use crate::window;

/// Characters of the request that a notification shows; the window shows it whole.
const SHOWN: usize = 160;
/// The name of the click on the whole of a notification.
const CLICK: &str = "default";

/// Shows notifications. Lives on the main thread and never waits on it.
pub(crate) struct Notifier {
    app: AppHandle,
    human: HumanHandle,
    window: gtk::ApplicationWindow,
    has_bus: bool,
    /// By ask; `None` while the daemon hasn't answered yet.
    shown: RefCell<HashMap<AskId, Option<Arc<NotificationHandle>>>>,
}

impl Notifier {
    /// Shows notifications from now on, if there is a session bus.
    pub(crate) fn start(app: &AppHandle, human: &HumanHandle, window: &gtk::ApplicationWindow) -> Rc<Self> {
        let notifier = Rc::new(Self {
            app: app.clone(),
            human: human.clone(),
            window: window.clone(),
            has_bus: desktop_bus::is_there(),
            shown: RefCell::default(),
        });
        if !notifier.has_bus {
            tracing::warn!("there is no session bus: requests are shown in the window only");
        }
        let n = Rc::clone(&notifier);
        window.connect_is_active_notify(move |window| {
            // Whoever sees the window needs no notification over it.
            if window.is_active() {
                window.set_urgency_hint(false);
                n.shown.borrow_mut().drain().filter_map(|(_, handle)| handle).for_each(close);
            }
        });
        notifier
    }

    /// Tells of an open ask, once, unless the person looks at the window anyway.
    pub(crate) fn tell(self: &Rc<Self>, ask: &AskDetail) {
        let ask_id = ask.view.ask_id.clone();
        if self.window.is_active() || self.shown.borrow().contains_key(&ask_id) {
            return;
        }
        // A mark in the task bar; it takes nobody's focus.
        self.window.set_urgency_hint(true);
        if !self.has_bus {
            return;
        }
        self.shown.borrow_mut().insert(ask_id.clone(), None);
        let message = message(&ask.view.requester, &ask.view.headline);
        let sent = async_runtime::spawn(async move { message.show_async().await });
        let notifier = Rc::clone(self);
        glib::MainContext::default().spawn_local(async move {
            match sent.await {
                Ok(Ok(handle)) => notifier.is_shown(&ask_id, Arc::new(handle)),
                Ok(Err(error)) => notifier.failed(&ask_id, &error),
                Err(error) => notifier.failed(&ask_id, &error),
            }
        });
    }

    fn failed(&self, ask_id: &AskId, error: &dyn std::error::Error) {
        tracing::warn!(%ask_id, %error, "no notification; the request waits in the window");
        self.shown.borrow_mut().remove(ask_id);
    }

    fn is_shown(self: &Rc<Self>, ask_id: &AskId, handle: Arc<NotificationHandle>) {
        match self.shown.borrow_mut().get_mut(ask_id) {
            Some(entry) => *entry = Some(Arc::clone(&handle)),
            // It ended while the daemon was thinking.
            None => return close(handle),
        }
        let clicked = async_runtime::spawn(async move {
            let mut clicked = false;
            handle.wait_for_action_async(|answer| clicked = matches!(answer, NotificationResponse::Default)).await;
            clicked
        });
        let (notifier, ask_id) = (Rc::clone(self), ask_id.clone());
        glib::MainContext::default().spawn_local(async move {
            if let Ok(true) = clicked.await {
                window::show(&notifier.app);
                notifier.human.show_ask(&ask_id);
            }
        });
    }

    /// Takes an ask's notification away.
    pub(crate) fn forget(&self, ask_id: &AskId) {
        if let Some(Some(handle)) = self.shown.borrow_mut().remove(ask_id) {
            close(handle);
        }
    }
}

fn close(handle: Arc<NotificationHandle>) {
    async_runtime::spawn(async move {
        // A daemon that has gone shows nothing any more.
        let _ = handle.close_async().await;
    });
}

/// What is shown. The only action is the click on the whole of it.
fn message(requester: &str, headline: &str) -> Notification {
    let mut body: String = headline.chars().take(SHOWN).collect();
    if body.len() < headline.len() {
        body.push('…');
    }
    // Daemons render markup in the body.
    let body = glib::markup_escape_text(&body);
    let mut message = Notification::new();
    message.appname("Bodyguard").icon("bodyguard").summary(&format!("{requester} asks")).body(&body);
    message.action(CLICK, "Open").hint(Hint::DesktopEntry("bodyguard".to_owned()));
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dsp_04_a_request_cannot_put_markup_into_its_notification() {
        let message = message("demo@work", "run <b>rm</b> & <a href='x'>y</a>");
        assert_eq!(message.body, "run &lt;b&gt;rm&lt;/b&gt; &amp; &lt;a href=&apos;x&apos;&gt;y&lt;/a&gt;");
    }

    #[test]
    fn a_notification_has_no_button_and_stays_short() {
        let message = message("demo@work", &"é".repeat(500));
        assert_eq!(message.actions, ["default", "Open"]);
        assert_eq!(message.body.chars().count(), SHOWN + 1);
    }
}
