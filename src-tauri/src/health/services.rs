//! What runs on the session bus. Nothing here asks the person for anything.

use bodyguard_protocol::ui::HealthCheck;
use gtk::gio::DBusConnection;
use gtk::glib::variant::ObjectPath;
use gtk::glib::{ToVariant, Variant};

use super::{failed, install, ok, warning};
use crate::desktop_bus::{self, NOTIFICATIONS, Place};
use crate::tray as tray_icon;

const NO_BUS: &str = "start it in a desktop session, or under dbus-run-session";

const SECRETS: Place = Place {
    name: "org.freedesktop.secrets",
    path: "/org/freedesktop/secrets",
    interface: "org.freedesktop.Secret.Service",
};
const ACCESSIBILITY: Place = Place { name: "org.a11y.Bus", path: "/org/a11y/bus", interface: "org.a11y.Bus" };

pub(super) fn keyring() -> HealthCheck {
    const NAME: &str = "keyring";
    let bus = match desktop_bus::connect() {
        Ok(bus) => bus,
        Err(error) => return failed(NAME, format!("{error}: nothing can be signed, so nothing approved"), NO_BUS),
    };
    let collection = desktop_bus::call(&bus, SECRETS, "ReadAlias", Some(&("default",).to_variant()));
    let collection = match collection.map(|reply| reply.get::<(ObjectPath,)>()) {
        Ok(Some((path,))) => path.as_str().to_owned(),
        Ok(None) => return failed(NAME, "it answers something else than a keyring", install("gnome-keyring")),
        Err(error) => return failed(NAME, format!("no keyring: {}", error.message()), install("gnome-keyring")),
    };
    if collection == "/" {
        return warning(
            NAME,
            "there is no default keyring yet",
            "the app makes one at its start; log in with a password to have it unlocked",
        );
    }
    match is_locked(&bus, &collection) {
        Some(false) => ok(NAME, "unlocked"),
        Some(true) => failed(
            NAME,
            "locked: nothing can be signed, so nothing approved",
            "unlock the keyring, then start the app again",
        ),
        None => warning(NAME, "it doesn't say whether it is locked", "unlock the keyring"),
    }
}

fn is_locked(bus: &DBusConnection, collection: &str) -> Option<bool> {
    let reply = bus.call_sync(
        Some(SECRETS.name),
        collection,
        "org.freedesktop.DBus.Properties",
        "Get",
        Some(&("org.freedesktop.Secret.Collection", "Locked").to_variant()),
        None,
        gtk::gio::DBusCallFlags::NONE,
        desktop_bus::PATIENCE_MS,
        gtk::gio::Cancellable::NONE,
    );
    reply.ok()?.get::<(Variant,)>()?.0.get::<bool>()
}

pub(super) fn notifications() -> HealthCheck {
    const NAME: &str = "notifications";
    let advice = || install("dunst");
    let bus = match desktop_bus::connect() {
        Ok(bus) => bus,
        Err(error) => return warning(NAME, format!("{error}: requests are shown in the window only"), NO_BUS),
    };
    match desktop_bus::call(&bus, NOTIFICATIONS, "GetServerInformation", None) {
        Ok(reply) => {
            let who = reply.get::<(String, String, String, String)>().map(|(name, _, version, _)| (name, version));
            ok(NAME, who.map_or_else(String::new, |(name, version)| format!("{name} {version}")))
        }
        Err(error) => {
            let detail = format!("no notification daemon ({}): requests are shown in the window only", error.message());
            warning(NAME, detail, advice())
        }
    }
}

pub(super) fn accessibility() -> HealthCheck {
    const NAME: &str = "accessibility";
    let bus = match desktop_bus::connect() {
        Ok(bus) => bus,
        Err(error) => return warning(NAME, error, NO_BUS),
    };
    match desktop_bus::call(&bus, ACCESSIBILITY, "GetAddress", None) {
        Ok(_) => ok(NAME, "the accessibility bus answers"),
        Err(error) => warning(NAME, format!("no accessibility bus: {}", error.message()), install("at-spi2-core")),
    }
}

pub(super) fn tray() -> HealthCheck {
    const NAME: &str = "tray";
    let Some(library) = tray_icon::library() else {
        let detail = "no tray icon: its library is missing; closing the window minimises it";
        return warning(NAME, detail, install("libayatana-appindicator3-1"));
    };
    if !tray_icon::has_host() {
        let advice = "add a tray to your desktop (GNOME: the AppIndicator extension)";
        return warning(NAME, "this desktop shows no tray icons; closing the window minimises it", advice);
    }
    ok(NAME, library.display().to_string())
}
