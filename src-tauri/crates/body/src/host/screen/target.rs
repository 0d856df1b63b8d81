//! Windows as targets of keys and clicks.

use std::time::{Duration, Instant};

use bodyguard_protocol::{ErrorCode, Fault, WindowInfo};
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{
    ClientMessageEvent, ConfigureWindowAux, ConnectionExt as _, EventMask, InputFocus, StackMode, Window,
};

use super::display::Display;
use super::no_display;
use super::windows::{Hiding, Windows};

/// How long a window may take to come to the front.
const COMING: Duration = Duration::from_millis(1_500);
/// Messages from something like a pager, which window managers obey.
const BY_THE_USER: u32 = 2;

impl Display {
    /// The window that a click at a point would reach; none where it is the bare desktop.
    pub(super) fn window_at(&self, (x, y): (i32, i32), hidden_pids: &[u32]) -> Result<Option<WindowInfo>, Fault> {
        let whole = self.connection.get_geometry(self.root).map_err(no_display)?.reply().map_err(no_display)?;
        let inside = |at: i32, length: u16| (0..i32::from(length)).contains(&at);
        if !inside(x, whole.width) || !inside(y, whole.height) {
            let message = format!("the desktop is {} × {} pixels", whole.width, whole.height);
            return Err(Fault::new(ErrorCode::NotFound, message).at("action.target"));
        }
        let side = |at: i32| i16::try_from(at).map_err(no_display);
        // The server itself says which window it would be, shapes and all.
        let asked = self.connection.translate_coordinates(self.root, self.root, side(x)?, side(y)?);
        let frame = asked.map_err(no_display)?.reply().map_err(no_display)?.child;
        if frame == x11rb::NONE {
            return Ok(None);
        }
        if Hiding::new(self, hidden_pids).hides(&Windows::all(self)?, frame)? {
            return Err(not_a_target());
        }
        let client = self.stacked().into_iter().find(|&window| self.is_within(window, frame));
        let Some(mut found) = self.info(client.unwrap_or(frame), false) else { return Err(not_a_target()) };
        if client.is_none() {
            self.complete(&mut found, frame);
        }
        Ok(Some(found))
    }

    /// A menu or tip often says nothing about itself: what its program's windows say holds for it.
    fn complete(&self, found: &mut WindowInfo, popup: Window) {
        let kin = self.stacked().into_iter().filter(|&window| self.client(window) == self.client(popup));
        let kin: Vec<WindowInfo> = kin.filter_map(|window| self.info(window, false)).collect();
        if found.app.is_empty() && !kin.is_empty() {
            found.app = kin.first().map(|window| window.app.clone()).unwrap_or_default();
            found.runs_commands = false;
        }
        found.runs_commands |= kin.iter().any(|window| window.runs_commands);
    }

    /// The window of a target.
    pub(super) fn window_of(&self, target: &str, hidden_pids: &[u32]) -> Result<WindowInfo, Fault> {
        let window = number(target)?;
        let known = self.stacked().contains(&window) && !self.is_hidden(window, hidden_pids);
        let found = if known { self.info(window, false) } else { None };
        found.ok_or_else(|| Fault::new(ErrorCode::NotFound, "the window has gone").at("action.target"))
    }

    /// Brings a window to the front with the keyboard, and waits until it is there.
    pub(super) fn bring_forward(&self, target: &str) -> Result<(), Fault> {
        let window = number(target)?;
        if self.has_keyboard(window)? {
            return Ok(());
        }
        if self.is_managed() {
            let data = [BY_THE_USER, x11rb::CURRENT_TIME, 0, 0, 0];
            let message = ClientMessageEvent::new(32, window, self.atoms._NET_ACTIVE_WINDOW, data);
            let mask = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
            self.connection.send_event(false, self.root, mask, message).map_err(no_display)?;
        } else {
            let raise = ConfigureWindowAux::new().stack_mode(StackMode::ABOVE);
            self.connection.configure_window(window, &raise).map_err(no_display)?;
            let focus = self.connection.set_input_focus(InputFocus::PARENT, window, x11rb::CURRENT_TIME);
            focus.map_err(no_display)?;
        }
        self.connection.flush().map_err(no_display)?;
        let end = Instant::now() + COMING;
        while Instant::now() < end {
            if self.has_keyboard(window)? {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(15));
        }
        Err(Fault::new(ErrorCode::StateChanged, "the window doesn't take the keyboard")
            .at("action.target")
            .hint("look at the screen: another window may be in front, or it may be closing"))
    }

    pub(super) fn target_has_keyboard(&self, target: &str) -> Result<bool, Fault> {
        self.has_keyboard(number(target)?)
    }

    /// Whether keys go into a window: it is the active one, and what has the focus is in it or of the
    /// same program.
    fn has_keyboard(&self, window: Window) -> Result<bool, Fault> {
        if self.is_managed() && self.active()? != Some(window) {
            return Ok(false);
        }
        let focus = self.connection.get_input_focus().map_err(no_display)?.reply().map_err(no_display)?.focus;
        Ok(focus > 1 && (self.is_within(focus, window) || self.client(focus) == self.client(window)))
    }

    /// Whether a window is another one, or lies in it.
    fn is_within(&self, mut window: Window, outer: Window) -> bool {
        while window != outer {
            let tree = self.connection.query_tree(window).ok().and_then(|cookie| cookie.reply().ok());
            match tree {
                Some(tree) if tree.parent != x11rb::NONE && tree.parent != self.root => window = tree.parent,
                _ => return false,
            }
        }
        true
    }

    /// A window's id begins with the number of the program that made it.
    fn client(&self, window: Window) -> u32 {
        window & !self.connection.setup().resource_id_mask
    }
}

fn number(target: &str) -> Result<Window, Fault> {
    let number = target.strip_prefix("window:").and_then(|text| text.parse().ok());
    number.ok_or_else(|| Fault::invalid("action.target", "a window is `window:` and its number"))
}

/// What the supervisor shows, and notifications, are never clicked.
fn not_a_target() -> Fault {
    Fault::new(ErrorCode::NotFound, "what is at this point isn't a window that you can work with").at("action.target")
}
