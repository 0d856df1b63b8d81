//! One connection to the X server.

use std::collections::BTreeMap;

use bodyguard_protocol::{Fault, MonitorInfo, WindowInfo};
use x11rb::connection::Connection as _;
use x11rb::errors::ReplyError;
use x11rb::protocol::randr::ConnectionExt as _;
use x11rb::protocol::res::{ClientIdMask, ClientIdSpec, ConnectionExt as _};
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, Window};
use x11rb::rust_connection::RustConnection;
use x11rb::x11_utils::X11Error;

use super::super::state::Focused;
use super::no_display;
use super::picture::{Picture, Rect};
use super::shared::{Pixels as _, Portable, Segment, SharedMemory};
use super::shells::{self, Kin};
use super::windows::{Hiding, Windows};

x11rb::atom_manager! {
    /// Names of properties and types.
    pub(super) Atoms: AtomsCookie {
        _NET_ACTIVE_WINDOW,
        _NET_CLIENT_LIST_STACKING,
        _NET_SUPPORTING_WM_CHECK,
        _NET_WM_NAME,
        _NET_WM_PID,
        _NET_WM_WINDOW_TYPE,
        _NET_WM_WINDOW_TYPE_DESKTOP,
        _NET_WM_WINDOW_TYPE_DOCK,
        _NET_WM_WINDOW_TYPE_NOTIFICATION,
        UTF8_STRING,
    }
}

pub(super) struct Display {
    pub(super) connection: RustConnection,
    pub(super) root: Window,
    pub(super) atoms: Atoms,
    depth: u8,
    fast: bool,
    segment: Option<Segment>,
}

impl std::fmt::Debug for Display {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Display").field("root", &self.root).field("depth", &self.depth).finish_non_exhaustive()
    }
}

impl Display {
    pub(super) fn connect() -> Result<Self, Fault> {
        let (connection, screen) = x11rb::connect(None).map_err(no_display)?;
        let screen = connection.setup().roots.get(screen).ok_or_else(|| no_display("no such screen"))?;
        let (root, depth) = (screen.root, screen.root_depth);
        let atoms = Atoms::new(&connection).map_err(no_display)?.reply().map_err(no_display)?;
        let fast = SharedMemory::fits(&connection, depth);
        Ok(Self { connection, root, atoms, depth, fast, segment: None })
    }

    pub(super) fn monitors(&self) -> Result<Vec<MonitorInfo>, Fault> {
        let reply = self.connection.randr_get_monitors(self.root, true).map_err(no_display)?;
        let found = reply.reply().map_err(no_display)?.monitors;
        let scale = self.scale();
        let mut monitors = Vec::new();
        for (index, monitor) in (0_u32..).zip(found) {
            let name = self.connection.get_atom_name(monitor.name).map_err(no_display)?.reply().map_err(no_display)?;
            monitors.push(MonitorInfo {
                index,
                name: String::from_utf8_lossy(&name.name).into_owned(),
                x: i32::from(monitor.x),
                y: i32::from(monitor.y),
                width: u32::from(monitor.width),
                height: u32::from(monitor.height),
                scale: scale.clone(),
            });
        }
        Ok(monitors)
    }

    /// Physical pixels per logical pixel as the desktop announces it (`Xft.dpi`).
    fn scale(&self) -> String {
        let text = self.property(self.root, AtomEnum::RESOURCE_MANAGER.into()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let dpi = text.lines().find_map(|line| line.strip_prefix("Xft.dpi:")?.trim().parse::<f64>().ok());
        match dpi {
            // Without a word from the desktop nothing is known, and a guess would be worse.
            None => "unknown".to_owned(),
            Some(dpi) => format!("{}", (dpi / 96.0 * 100.0).round() / 100.0),
        }
    }

    pub(super) fn pointer(&self) -> Result<(i32, i32), Fault> {
        let reply = self.connection.query_pointer(self.root).map_err(no_display)?.reply().map_err(no_display)?;
        Ok((i32::from(reply.root_x), i32::from(reply.root_y)))
    }

    /// Pixels of an area of the desktop, and the areas in it that nobody may see.
    ///
    /// The fast path holds the server still, so that no window moves between the picture and its mask.
    pub(super) fn grab(
        &mut self,
        area: Rect,
        monitor: &MonitorInfo,
        hidden_pids: &[u32],
    ) -> Result<(Picture, Vec<Rect>), Fault> {
        if self.fast {
            let windows = self.held_picture(area, monitor);
            self.connection.ungrab_server().map_err(no_display)?;
            self.connection.flush().map_err(no_display)?;
            let (picture, windows) = windows?;
            let hidden = Hiding::new(self, hidden_pids).hidden(&windows)?;
            return Ok((picture, hidden));
        }
        // xcap has a connection of its own, so the server can't be held: masked is where a hidden
        // window was before, and where it is after.
        let before = Windows::all(self)?;
        let picture = Portable.picture(area, monitor)?;
        let after = Windows::all(self)?;
        let mut hidden = Hiding::new(self, hidden_pids).hidden(&before)?;
        hidden.extend(Hiding::new(self, hidden_pids).hidden(&after)?);
        Ok((picture, hidden))
    }

    fn held_picture(&mut self, area: Rect, monitor: &MonitorInfo) -> Result<(Picture, Windows), Fault> {
        self.connection.grab_server().map_err(no_display)?;
        let windows = Windows::all(self)?;
        let mut source = SharedMemory { connection: &self.connection, root: self.root, segment: &mut self.segment };
        Ok((source.picture(area, monitor)?, windows))
    }

    /// The windows that aren't ours, topmost first.
    pub(super) fn windows(&self, hidden_pids: &[u32], focused: Option<Window>) -> Result<Vec<WindowInfo>, Fault> {
        let mut found = Vec::new();
        let processes = shells::processes();
        for window in self.stacked().into_iter().rev() {
            if self.is_hidden(window, hidden_pids) {
                continue;
            }
            // A window that has gone meanwhile is left out.
            if let Some(info) = self.info_among(window, focused == Some(window), &processes) {
                found.push(info);
            }
        }
        Ok(found)
    }

    pub(super) fn info(&self, window: Window, focused: bool) -> Option<WindowInfo> {
        self.info_among(window, focused, &shells::processes())
    }

    fn info_among(&self, window: Window, focused: bool, processes: &BTreeMap<u32, Kin>) -> Option<WindowInfo> {
        let geometry = self.connection.get_geometry(window).ok()?.reply().ok()?;
        let corner = self.connection.translate_coordinates(window, self.root, 0, 0).ok()?.reply().ok()?;
        let Focused { title, app } = self.describe(window);
        let pids = self.pids(window);
        Some(WindowInfo {
            reference: String::new(),
            target: format!("window:{window}"),
            runs_commands: self.is_furniture(window) || shells::runs_commands(&self.classes(window), &pids, processes),
            title,
            app,
            x: i32::from(corner.dst_x),
            y: i32::from(corner.dst_y),
            width: u32::from(geometry.width),
            height: u32::from(geometry.height),
            focused,
        })
    }

    pub(super) fn focused(&self, hidden_pids: &[u32], last: Option<Window>) -> Result<Focused, Fault> {
        let window = self.focused_window(hidden_pids, last)?;
        Ok(window.map(|window| self.describe(window)).unwrap_or_default())
    }

    /// The focused window, or where that is ours, the one before.
    pub(super) fn focused_window(&self, hidden_pids: &[u32], last: Option<Window>) -> Result<Option<Window>, Fault> {
        let active = self.active()?.filter(|&window| !self.is_hidden(window, hidden_pids));
        let last = || last.filter(|&window| self.is_there(window) && !self.is_hidden(window, hidden_pids));
        let top = || {
            let mut windows = self.stacked().into_iter().rev();
            windows.find(|&window| {
                self.is_there(window) && !self.is_furniture(window) && !self.is_hidden(window, hidden_pids)
            })
        };
        Ok(active.or_else(last).or_else(top))
    }

    /// What the window manager calls active; without one, what has the keyboard.
    pub(super) fn active(&self) -> Result<Option<Window>, Fault> {
        let named = self.property(self.root, self.atoms._NET_ACTIVE_WINDOW).and_then(|bytes| first_word(&bytes));
        if named.is_some() || self.is_managed() {
            return Ok(named.filter(|&window| window != 0));
        }
        let reply = self.connection.get_input_focus().map_err(no_display)?.reply().map_err(no_display)?;
        let mut window = reply.focus;
        // 0 and 1 stand for nobody, and for whoever is under the pointer.
        while window > 1 && window != self.root {
            if self.has_title(window) {
                return Ok(Some(window));
            }
            let Some(tree) = self.connection.query_tree(window).ok().and_then(|cookie| cookie.reply().ok()) else {
                break;
            };
            window = tree.parent;
        }
        Ok(None)
    }

    pub(super) fn stacked(&self) -> Vec<Window> {
        let words = |bytes: Vec<u8>| bytes.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word)).collect();
        let listed = self.property(self.root, self.atoms._NET_CLIENT_LIST_STACKING);
        if listed.is_some() || self.is_managed() {
            return listed.map(words).unwrap_or_default();
        }
        let tree = self.connection.query_tree(self.root).ok().and_then(|cookie| cookie.reply().ok());
        let children = tree.map(|tree| tree.children).unwrap_or_default();
        children.into_iter().filter(|&window| self.is_there(window) && self.has_title(window)).collect()
    }

    /// Whether a window manager runs that says which windows there are; its own aren't among them.
    pub(super) fn is_managed(&self) -> bool {
        self.property(self.root, self.atoms._NET_SUPPORTING_WM_CHECK).is_some()
    }

    fn is_there(&self, window: Window) -> bool {
        use x11rb::protocol::xproto::MapState;
        let reply = self.connection.get_window_attributes(window).ok().and_then(|cookie| cookie.reply().ok());
        reply.is_some_and(|attributes| attributes.map_state == MapState::VIEWABLE)
    }

    pub(super) fn is_hidden(&self, window: Window, hidden_pids: &[u32]) -> bool {
        let pid = self.property(window, self.atoms._NET_WM_PID).and_then(|bytes| first_word(&bytes));
        pid.is_some_and(|pid| hidden_pids.contains(&pid))
    }

    /// Whether it is a panel or the desktop itself, which nobody works in.
    fn is_furniture(&self, window: Window) -> bool {
        let kinds = self.property(window, self.atoms._NET_WM_WINDOW_TYPE).unwrap_or_default();
        let mut kinds = kinds.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word));
        kinds.any(|kind| [self.atoms._NET_WM_WINDOW_TYPE_DOCK, self.atoms._NET_WM_WINDOW_TYPE_DESKTOP].contains(&kind))
    }

    fn has_title(&self, window: Window) -> bool {
        !self.describe(window).title.is_empty()
    }

    fn describe(&self, window: Window) -> Focused {
        let title = match self.property(window, self.atoms._NET_WM_NAME) {
            Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            // The old property is Latin-1: each byte is its code point.
            None => {
                let bytes = self.property(window, AtomEnum::WM_NAME.into()).unwrap_or_default();
                String::from_utf8(bytes).unwrap_or_else(|e| e.into_bytes().into_iter().map(char::from).collect())
            }
        };
        Focused { title, app: self.classes(window).into_iter().nth(1).unwrap_or_default() }
    }

    /// The process that a window says it belongs to, and the one that the server sees at its connection.
    fn pids(&self, window: Window) -> Vec<u32> {
        let said = self.property(window, self.atoms._NET_WM_PID).and_then(|bytes| first_word(&bytes));
        let spec = ClientIdSpec { client: window, mask: ClientIdMask::LOCAL_CLIENT_PID };
        let seen = self.connection.res_query_client_ids(&[spec]).ok().and_then(|cookie| cookie.reply().ok());
        let seen = seen.into_iter().flat_map(|reply| reply.ids).flat_map(|id| id.value);
        said.into_iter().chain(seen).filter(|&pid| pid != 0).collect()
    }

    /// What X calls instance and class.
    fn classes(&self, window: Window) -> Vec<String> {
        let class = self.property(window, AtomEnum::WM_CLASS.into()).unwrap_or_default();
        class.split(|&byte| byte == 0).take(2).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// A property's bytes, up to 16 KiB; none where it isn't set.
    pub(super) fn property(&self, window: Window, name: u32) -> Option<Vec<u8>> {
        let cookie = self.connection.get_property(false, window, name, AtomEnum::ANY, 0, 4096).ok()?;
        let reply = cookie.reply().ok()?;
        (reply.type_ != 0).then_some(reply.value)
    }
}

pub(super) fn first_word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk::<4>().map(|word| u32::from_ne_bytes(*word))
}

/// Whether an error says that the window has gone, and not that the server has.
pub(super) fn window_gone(error: &ReplyError) -> bool {
    matches!(error, ReplyError::X11Error(X11Error { .. }))
}
