//! The session bus, without starting one and without waiting long.

use std::path::Path;

use gtk::gio::{self, DBusCallFlags, DBusConnection};
use gtk::glib::{self, Variant, VariantTy};

/// Milliseconds a service may take to answer.
pub(crate) const PATIENCE_MS: i32 = 3000;

/// Where something is on the bus.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) interface: &'static str,
}

/// The notification daemon.
pub(crate) const NOTIFICATIONS: Place = Place {
    name: "org.freedesktop.Notifications",
    path: "/org/freedesktop/Notifications",
    interface: "org.freedesktop.Notifications",
};

/// Whether there is a session bus. Without this look, GLib would start one.
pub(crate) fn is_there() -> bool {
    let in_runtime = || std::env::var_os("XDG_RUNTIME_DIR").is_some_and(|dir| Path::new(&dir).join("bus").exists());
    std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty()) || in_runtime()
}

/// Connects. Blocks: for threads other than the main one.
pub(crate) fn connect() -> Result<DBusConnection, String> {
    if !is_there() {
        return Err("no session bus".to_owned());
    }
    gio::bus_get_sync(gio::BusType::Session, gio::Cancellable::NONE).map_err(|e| e.message().to_owned())
}

/// Calls and waits. Blocks: for threads other than the main one.
pub(crate) fn call(
    bus: &DBusConnection,
    place: Place,
    method: &str,
    parameters: Option<&Variant>,
) -> Result<Variant, glib::Error> {
    bus.call_sync(
        Some(place.name),
        place.path,
        place.interface,
        method,
        parameters,
        None::<&VariantTy>,
        DBusCallFlags::NONE,
        PATIENCE_MS,
        gio::Cancellable::NONE,
    )
}

/// Whether somebody owns this name on the bus.
pub(crate) fn has_owner(bus: &DBusConnection, name: &str) -> bool {
    const BUS: Place =
        Place { name: "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus" };
    let owner = call(bus, BUS, "NameHasOwner", Some(&glib::ToVariant::to_variant(&(name,))));
    owner.ok().and_then(|reply| reply.get::<(bool,)>()).is_some_and(|(has,)| has)
}
