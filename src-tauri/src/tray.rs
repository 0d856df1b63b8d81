//! The tray icon: how many requests wait, and *Stop all* within reach.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use bodyguard_supervisor::{Counts, HumanHandle, runtime_dir};
use gtk::glib;
use tauri::menu::{MenuBuilder, MenuItem, MenuItemBuilder};
use tauri::tray::{TrayIcon, TrayIconBuilder};
use tauri::{AppHandle, Wry, include_image};
use x11rb::protocol::xproto::ConnectionExt;

use crate::{desktop_bus, window};

const ID: &str = "main";
const WATCHER: &str = "org.kde.StatusNotifierWatcher";

/// The libraries that the tray needs at run time, any of them.
const LIBRARIES: &[&str] =
    &["libayatana-appindicator3.so.1", "libappindicator3.so.1", "libayatana-appindicator3.so", "libappindicator3.so"];

/// Where Linux systems keep libraries, for the architectures there are packages for.
const FOLDERS: &[&str] =
    &["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/lib64"];

/// Where the tray's library is, if it is there.
pub(crate) fn library() -> Option<PathBuf> {
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = std::env::split_paths(&own).chain(FOLDERS.iter().map(PathBuf::from));
    folders.flat_map(|folder| LIBRARIES.iter().map(move |name| folder.join(name))).find(|path| path.exists())
}

/// Whether the desktop shows tray icons at all: on the bus, or by the older X11 protocol. Blocks.
pub(crate) fn has_host() -> bool {
    desktop_bus::connect().is_ok_and(|bus| desktop_bus::has_owner(&bus, WATCHER)) || has_x11_host().unwrap_or(false)
}

fn has_x11_host() -> Option<bool> {
    let (x, screen) = x11rb::connect(None).ok()?;
    let name = format!("_NET_SYSTEM_TRAY_S{screen}");
    let atom = x.intern_atom(false, name.as_bytes()).ok()?.reply().ok()?.atom;
    Some(x.get_selection_owner(atom).ok()?.reply().ok()?.owner != x11rb::NONE)
}

/// Whether our icon is somewhere the person can see it.
pub(crate) async fn is_shown(app: &AppHandle) -> bool {
    app.tray_by_id(ID).is_some() && tauri::async_runtime::spawn_blocking(has_host).await.unwrap_or(false)
}

/// Makes the icon, if that is possible here; the app does without.
pub(crate) fn create(app: &AppHandle, human: &HumanHandle, data_dir: &Path) {
    if library().is_none() {
        tracing::warn!("no tray icon: libayatana-appindicator3-1 isn't installed");
        return;
    }
    // The library is loaded on first use, and loading it panics where it doesn't fit.
    match catch_unwind(AssertUnwindSafe(|| build(app, human, data_dir))) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "no tray icon"),
        Err(_) => tracing::warn!("no tray icon: its library can't be loaded"),
    }
}

fn build(app: &AppHandle, human: &HumanHandle, data_dir: &Path) -> tauri::Result<()> {
    let waiting = MenuItemBuilder::new("Nothing waits").enabled(false).build(app)?;
    let open = MenuItemBuilder::with_id("open", "Open").build(app)?;
    let stop = MenuItemBuilder::with_id("stop", "Stop all").build(app)?;
    let quit = MenuItemBuilder::with_id("quit", "Quit").build(app)?;
    let menu =
        MenuBuilder::new(app).items(&[&waiting, &open]).separator().item(&stop).separator().item(&quit).build()?;
    let stopper = human.clone();
    let tray = TrayIconBuilder::with_id(ID)
        .icon(include_image!("../icons/tray.png"))
        .tooltip("Bodyguard")
        // The usual folder is shared by all users, and fails for the second.
        .temp_dir_path(runtime_dir(data_dir))
        .menu(&menu)
        .on_menu_event(move |app, event| match event.id().as_ref() {
            "open" => window::show(app),
            "stop" => stopper.stop_all("tray"),
            "quit" => app.exit(0),
            _ => {}
        })
        .build(app)?;
    follow(human, Items { tray, waiting, stop });
    Ok(())
}

struct Items {
    tray: TrayIcon<Wry>,
    waiting: MenuItem<Wry>,
    stop: MenuItem<Wry>,
}

fn follow(human: &HumanHandle, items: Items) {
    let mut counts = human.counts();
    glib::MainContext::default().spawn_local(async move {
        loop {
            let now = *counts.borrow_and_update();
            if let Err(error) = show(&items, now) {
                tracing::warn!(%error, "the tray can't show the count");
            }
            if counts.changed().await.is_err() {
                return;
            }
        }
    });
}

fn show(items: &Items, now: Counts) -> tauri::Result<()> {
    let icon = if now.open_asks > 0 || now.stopped {
        include_image!("../icons/tray-attention.png")
    } else {
        include_image!("../icons/tray.png")
    };
    items.tray.set_icon(Some(icon))?;
    items.tray.set_title((now.open_asks > 0).then(|| now.open_asks.to_string()))?;
    items.waiting.set_text(sentence(now))?;
    items.stop.set_enabled(!now.stopped)
}

fn sentence(now: Counts) -> String {
    match (now.stopped, now.open_asks) {
        (true, _) => "Everything is stopped".to_owned(),
        (false, 0) => "Nothing waits".to_owned(),
        (false, 1) => "1 request waits".to_owned(),
        (false, n) => format!("{n} requests wait"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tray_says_what_waits() {
        let say = |open_asks, stopped| sentence(Counts { open_asks, stopped });
        assert_eq!(say(0, false), "Nothing waits");
        assert_eq!(say(1, false), "1 request waits");
        assert_eq!(say(3, false), "3 requests wait");
        assert_eq!(say(3, true), "Everything is stopped");
    }
}
