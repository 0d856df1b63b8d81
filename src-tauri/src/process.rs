//! What this process gives up before it does anything else.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, set_dumpable_behavior, umask};

/// Variables that make GTK, GDK or WebKit forget which device an event came from, load code into
/// this process, or let another program press our buttons. `GTK_IM_MODULE` stays: people need it
/// to write their language, and it names a module of the system, not a file.
const REMOVED: &[&str] = &[
    "GDK_CORE_DEVICE_EVENTS",
    "GDK_DEBUG",
    "GDK_RENDERING",
    "GDK_PIXBUF_MODULE_FILE",
    "GTK_DEBUG",
    "GTK_MODULES",
    "GTK3_MODULES",
    "GTK_PATH",
    "GTK_EXE_PREFIX",
    "GTK_DATA_PREFIX",
    "GTK_IM_MODULE_FILE",
    "GTK_THEME",
    "GIO_MODULE_DIR",
    "GIO_EXTRA_MODULES",
    "G_DEBUG",
    "UBUNTU_MENUPROXY",
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_PROFILE",
];

/// Whole families: WebKit's inspector servers and executable paths, JavaScriptCore's options,
/// Tauri's switches.
const REMOVED_PREFIXES: &[&str] = &["WEBKIT_", "JSC_", "TAURI_"];

/// Set in every case: XInput2 names devices only on X11, and WebKit's DMA-BUF renderer costs
/// 70 MiB more than it gains for pages like ours.
const SET: &[(&str, &str)] = &[("GDK_BACKEND", "x11"), ("WEBKIT_DISABLE_DMABUF_RENDERER", "1")];

/// What the WebDriver of the tests needs; it reads pages and can't approve. Debug builds only.
const AUTOMATION: &[&str] = &["TAURI_WEBVIEW_AUTOMATION", "WEBKIT_INSPECTOR_SERVER", "WEBKIT_WEB_DRIVER"];

/// Whether the tests' WebDriver may read the page.
pub(crate) fn automation() -> bool {
    cfg!(debug_assertions) && std::env::var_os("TAURI_WEBVIEW_AUTOMATION").is_some_and(|v| v == "true")
}

/// Files of ours are nobody else's, and no process of the same user reads our memory.
pub(crate) fn harden() {
    umask(Mode::RWXG | Mode::RWXO);
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "other processes of this user can read this one's memory");
    }
}

/// Starts this program anew, in this process, if its environment has to change first. Variables in
/// `kept` stay.
///
/// # Errors
/// If the program can't be started.
pub(crate) fn with_clean_environment(kept: &[&str]) -> std::io::Result<()> {
    let variables = std::env::vars_os();
    let kept: Vec<&str> = if automation() { [AUTOMATION, kept].concat() } else { kept.to_vec() };
    let Some(environment) = cleaned(variables, &kept) else { return Ok(()) };
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| OsString::from("bodyguard"));
    Err(Command::new(std::env::current_exe()?).arg0(name).args(arguments).env_clear().envs(environment).exec())
}

/// The environment as it should be; nothing if it is.
fn cleaned(
    variables: impl Iterator<Item = (OsString, OsString)>,
    may_stay: &[&str],
) -> Option<Vec<(OsString, OsString)>> {
    let mut changed = false;
    let mut kept = Vec::new();
    for (name, value) in variables {
        if is_removed(&name, may_stay) {
            changed = true;
        } else {
            kept.push((name, value));
        }
    }
    for (name, value) in SET {
        let there = kept.iter().any(|(n, v)| n == name && v == value);
        if !there {
            changed = true;
            kept.retain(|(n, _)| n != name);
            kept.push((OsString::from(name), OsString::from(value)));
        }
    }
    changed.then_some(kept)
}

fn is_removed(name: &OsStr, may_stay: &[&str]) -> bool {
    let Some(name) = name.to_str() else { return false };
    if SET.iter().any(|(set, _)| *set == name) || may_stay.contains(&name) {
        return false;
    }
    REMOVED.contains(&name) || REMOVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(variables: &[(&str, &str)], may_stay: &[&str]) -> Option<Vec<String>> {
        let variables = variables.iter().map(|(n, v)| (OsString::from(n), OsString::from(v)));
        let cleaned = cleaned(variables, may_stay)?;
        let mut names: Vec<_> = cleaned.into_iter().map(|(n, _)| n.into_string().unwrap()).collect();
        names.sort();
        Some(names)
    }

    #[test]
    fn what_blurs_the_source_of_events_or_loads_code_is_removed() {
        let dirty = [
            ("GDK_CORE_DEVICE_EVENTS", "1"),
            ("GTK_MODULES", "gail"),
            ("LD_PRELOAD", "/tmp/x.so"),
            ("WEBKIT_INSPECTOR_SERVER", "127.0.0.1:9"),
            ("GTK_DEBUG", "interactive"),
            ("DISPLAY", ":1"),
            ("GTK_IM_MODULE", "ibus"),
        ];
        let expected = ["DISPLAY", "GDK_BACKEND", "GTK_IM_MODULE", "WEBKIT_DISABLE_DMABUF_RENDERER"];
        assert_eq!(clean(&dirty, &[]).unwrap(), expected);
    }

    #[test]
    fn a_clean_environment_stays_as_it_is_so_that_starting_anew_ends() {
        let clean_already = [("GDK_BACKEND", "x11"), ("WEBKIT_DISABLE_DMABUF_RENDERER", "1"), ("DISPLAY", ":1")];
        assert_eq!(clean(&clean_already, &[]), None);
        assert!(clean(&[("GDK_BACKEND", "wayland")], &[]).is_some());
    }

    #[test]
    fn only_automation_of_the_page_keeps_the_inspector() {
        let variables =
            [("TAURI_WEBVIEW_AUTOMATION", "true"), ("WEBKIT_INSPECTOR_SERVER", "127.0.0.1:9"), ("LD_PRELOAD", "x")];
        assert!(!clean(&variables, &[]).unwrap().iter().any(|n| n.contains("INSPECTOR")));
        let kept = clean(&variables, AUTOMATION).unwrap();
        assert!(kept.iter().any(|n| n == "WEBKIT_INSPECTOR_SERVER"));
        assert!(!kept.iter().any(|n| n == "LD_PRELOAD"));
    }
}
