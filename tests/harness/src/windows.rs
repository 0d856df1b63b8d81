//! The windows on a desktop, as the X server and the window manager know them.

use crate::desktop::Desktop;
use crate::image::Region;
use anyhow::Result;
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt, MapState, Window};
use x11rb::rust_connection::RustConnection;

/// A window that can be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowInfo {
    /// X11 id.
    pub id: Window,
    /// Process that says it owns it.
    pub pid: Option<i32>,
    /// Title.
    pub title: String,
    /// Class, the second part of `WM_CLASS`.
    pub class: String,
    /// Its contents, in pixels of the screen.
    pub geometry: Region,
    /// With the window manager's frame.
    pub frame: Region,
    /// Not managed: a menu, tooltip or notification.
    pub unmanaged: bool,
}

/// All windows on the screen: managed ones, then unmanaged ones (lowest first).
///
/// # Errors
/// If the X server is gone. A window that goes away meanwhile is left out.
pub fn list_windows(desktop: &Desktop) -> Result<Vec<WindowInfo>> {
    let (x, root) = desktop.x11()?;
    let atom = |name: &str| -> Result<Atom> { Ok(x.intern_atom(false, name.as_bytes())?.reply()?.atom) };
    let lister = Lister {
        client_list: atom("_NET_CLIENT_LIST")?,
        pid: atom("_NET_WM_PID")?,
        name: atom("_NET_WM_NAME")?,
        extents: atom("_NET_FRAME_EXTENTS")?,
        root,
        x: &x,
    };
    let mut found: Vec<WindowInfo> =
        lister.numbers(root, lister.client_list).into_iter().filter_map(|id| lister.window(id, false)).collect();
    for id in x.query_tree(root)?.reply()?.children {
        let seen = x
            .get_window_attributes(id)?
            .reply()
            .is_ok_and(|a| a.override_redirect && a.map_state == MapState::VIEWABLE);
        if seen {
            // Window managers keep helpers outside the screen.
            let window = lister.window(id, true);
            found.extend(window.filter(|w| w.frame.x + w.frame.width > 0));
        }
    }
    Ok(found)
}

/// The first window for which `wanted` holds.
///
/// # Errors
/// As [`list_windows`].
pub fn find_window(desktop: &Desktop, wanted: impl FnMut(&WindowInfo) -> bool) -> Result<Option<WindowInfo>> {
    Ok(list_windows(desktop)?.into_iter().find(wanted))
}

struct Lister<'a> {
    x: &'a RustConnection,
    root: Window,
    client_list: Atom,
    pid: Atom,
    name: Atom,
    extents: Atom,
}

impl Lister<'_> {
    fn bytes(&self, window: Window, property: Atom) -> Option<Vec<u8>> {
        let reply = self.x.get_property(false, window, property, AtomEnum::ANY, 0, 4096).ok()?.reply().ok()?;
        (reply.type_ != 0).then_some(reply.value)
    }

    fn numbers(&self, window: Window, property: Atom) -> Vec<u32> {
        self.bytes(window, property)
            .unwrap_or_default()
            .chunks_exact(4)
            .map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
            .collect()
    }

    fn text(&self, window: Window, property: Atom) -> Option<String> {
        let bytes = self.bytes(window, property)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn window(&self, id: Window, unmanaged: bool) -> Option<WindowInfo> {
        let size = self.x.get_geometry(id).ok()?.reply().ok()?;
        let corner = self.x.translate_coordinates(id, self.root, 0, 0).ok()?.reply().ok()?;
        let geometry = Region::new(corner.dst_x.into(), corner.dst_y.into(), size.width.into(), size.height.into());
        // Frame extents are a few pixels.
        let frame = match self.numbers(id, self.extents).as_slice() {
            &[left, right, top, bottom] => Region::new(
                geometry.x - left as i32,
                geometry.y - top as i32,
                geometry.width + (left + right) as i32,
                geometry.height + (top + bottom) as i32,
            ),
            _ => geometry,
        };
        let class = self.text(id, AtomEnum::WM_CLASS.into()).unwrap_or_default();
        Some(WindowInfo {
            id,
            pid: self.numbers(id, self.pid).first().map(|pid| pid.cast_signed()),
            title: self.text(id, self.name).or_else(|| self.text(id, AtomEnum::WM_NAME.into())).unwrap_or_default(),
            class: class.split('\0').nth(1).unwrap_or_default().to_owned(),
            geometry,
            frame,
            unmanaged,
        })
    }
}
