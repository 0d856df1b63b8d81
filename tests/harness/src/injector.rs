//! Ways of clicking and typing that are *not* a person. None of them may ever decide anything.

use crate::binaries::sibling_binary;
use crate::desktop::Desktop;
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ButtonPressEvent, ConnectionExt as _, EventMask, KEY_PRESS_EVENT,
    KEY_RELEASE_EVENT, KeyButMask, KeyPressEvent, MOTION_NOTIFY_EVENT, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

const BETWEEN: Duration = Duration::from_millis(30);

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("start {:?}", command.get_program()))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("{:?}: {}: {why}", command.get_program(), output.status);
    }
    Ok(())
}

/// `xdotool mousemove X Y click 1`.
///
/// # Errors
/// If xdotool fails.
pub fn xdotool_click(desktop: &Desktop, x: i32, y: i32) -> Result<()> {
    let (x, y) = (x.to_string(), y.to_string());
    run(desktop.command("xdotool").args(["mousemove", &x, &y, "sleep", "0.03", "click", "1"]))
}

/// `xdotool key NAME` to whatever has the focus: `Return`, `space`, `ctrl+s`.
///
/// # Errors
/// If xdotool fails.
pub fn xdotool_key(desktop: &Desktop, name: &str) -> Result<()> {
    run(desktop.command("xdotool").args(["key", name]))
}

/// `xdotool key --window ID NAME`, which sends events instead of injecting them, unless the
/// window has the focus.
///
/// # Errors
/// If xdotool fails.
pub fn xdotool_key_to_window(desktop: &Desktop, window: Window, name: &str) -> Result<()> {
    let window = window.to_string();
    run(desktop.command("xdotool").args(["key", "--window", &window, name]))
}

/// A click by the enigo library, in a process of its own.
///
/// # Errors
/// If it fails, or `inject-enigo` isn't built.
pub fn enigo_click(desktop: &Desktop, x: i32, y: i32) -> Result<()> {
    let (x, y) = (x.to_string(), y.to_string());
    let program = sibling_binary("inject-enigo")?;
    run(desktop.command(program).args(["click", &x, &y]))
}

/// One character typed by the enigo library, in a process of its own.
///
/// # Errors
/// If it fails, or `inject-enigo` isn't built.
pub fn enigo_key(desktop: &Desktop, character: char) -> Result<()> {
    let program = sibling_binary("inject-enigo")?;
    run(desktop.command(program).args(["key", &character.to_string()]))
}

/// A left click by the XTEST extension.
///
/// # Errors
/// If the X server is gone.
pub fn xtest_click(desktop: &Desktop, x: i32, y: i32) -> Result<()> {
    let (conn, root) = desktop.x11()?;
    let (x, y) = (x.try_into()?, y.try_into()?);
    for (kind, detail) in [(MOTION_NOTIFY_EVENT, 0), (BUTTON_PRESS_EVENT, 1), (BUTTON_RELEASE_EVENT, 1)] {
        conn.xtest_fake_input(kind, detail, x11rb::CURRENT_TIME, root, x, y, 0)?.check()?;
        sleep(BETWEEN);
    }
    Ok(())
}

/// A key by the XTEST extension.
///
/// # Errors
/// If the X server is gone or its keyboard lacks the key.
pub fn xtest_key(desktop: &Desktop, keysym: u32) -> Result<()> {
    let (conn, root) = desktop.x11()?;
    let code = keycode(&conn, keysym)?;
    for kind in [KEY_PRESS_EVENT, KEY_RELEASE_EVENT] {
        conn.xtest_fake_input(kind, code, x11rb::CURRENT_TIME, root, 0, 0, 0)?.check()?;
        sleep(BETWEEN);
    }
    Ok(())
}

/// A left click sent as events to the window under a point (XSendEvent).
///
/// # Errors
/// If the X server is gone.
pub fn send_event_click(desktop: &Desktop, x: i32, y: i32) -> Result<()> {
    let (conn, root) = desktop.x11()?;
    let (root_x, root_y) = (x.try_into()?, y.try_into()?);
    let (window, event_x, event_y) = window_at(&conn, root, root_x, root_y)?;
    let mut event = ButtonPressEvent {
        response_type: BUTTON_PRESS_EVENT,
        detail: 1,
        sequence: 0,
        time: x11rb::CURRENT_TIME,
        root,
        event: window,
        child: x11rb::NONE,
        root_x,
        root_y,
        event_x,
        event_y,
        state: KeyButMask::default(),
        same_screen: true,
    };
    conn.send_event(true, window, EventMask::BUTTON_PRESS, event)?.check()?;
    sleep(BETWEEN);
    event.response_type = BUTTON_RELEASE_EVENT;
    event.state = KeyButMask::BUTTON1;
    conn.send_event(true, window, EventMask::BUTTON_RELEASE, event)?.check()?;
    Ok(())
}

/// A key sent as events to the top-level window that covers a point (XSendEvent).
///
/// # Errors
/// As [`send_event_key`].
pub fn send_event_key_at(desktop: &Desktop, (x, y): (i32, i32), keysym: u32) -> Result<()> {
    let (conn, root) = desktop.x11()?;
    let inside = conn.translate_coordinates(root, root, x.try_into()?, y.try_into()?)?.reply()?;
    let (frame, mut window) = (inside.child, inside.child);
    // The window manager's frame hears nothing: the client's window is the one with a WM_STATE.
    let state = conn.intern_atom(false, b"WM_STATE")?.reply()?.atom;
    let mut waiting = vec![frame];
    while let Some(next) = waiting.pop() {
        let found = conn.get_property(false, next, state, x11rb::protocol::xproto::AtomEnum::ANY, 0, 0)?.reply()?;
        if found.type_ != x11rb::NONE {
            window = next;
            break;
        }
        waiting.extend(conn.query_tree(next)?.reply()?.children);
    }
    send_event_key(desktop, window, keysym)
}

/// A key sent as events to a window (XSendEvent).
///
/// # Errors
/// If the X server is gone or its keyboard lacks the key.
pub fn send_event_key(desktop: &Desktop, window: Window, keysym: u32) -> Result<()> {
    let (conn, root) = desktop.x11()?;
    let mut event = KeyPressEvent {
        response_type: KEY_PRESS_EVENT,
        detail: keycode(&conn, keysym)?,
        sequence: 0,
        time: x11rb::CURRENT_TIME,
        root,
        event: window,
        child: x11rb::NONE,
        root_x: 0,
        root_y: 0,
        event_x: 0,
        event_y: 0,
        state: KeyButMask::default(),
        same_screen: true,
    };
    conn.send_event(true, window, EventMask::KEY_PRESS, event)?.check()?;
    sleep(BETWEEN);
    event.response_type = KEY_RELEASE_EVENT;
    conn.send_event(true, window, EventMask::KEY_RELEASE, event)?.check()?;
    Ok(())
}

/// The innermost window at a point of the screen, and the point in it.
fn window_at(conn: &RustConnection, root: Window, x: i16, y: i16) -> Result<(Window, i16, i16)> {
    let mut window = root;
    loop {
        let inside = conn.translate_coordinates(root, window, x, y)?.reply()?;
        if inside.child == x11rb::NONE {
            return Ok((window, inside.dst_x, inside.dst_y));
        }
        window = inside.child;
    }
}

/// The key that gives this keysym without modifiers.
fn keycode(conn: &RustConnection, keysym: u32) -> Result<u8> {
    let first = conn.setup().min_keycode;
    let count = conn.setup().max_keycode - first + 1;
    let map = conn.get_keyboard_mapping(first, count)?.reply()?;
    let at = map
        .keysyms
        .chunks(map.keysyms_per_keycode.into())
        .position(|symbols| symbols.first() == Some(&keysym))
        .with_context(|| format!("no key gives keysym {keysym:#x}"))?;
    Ok(first + u8::try_from(at)?)
}
