//! Which windows nobody may see: the supervisor's own, and notifications.

use std::collections::BTreeSet;

use bodyguard_protocol::Fault;
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, MapState, Window, WindowClass};

use super::display::{Display, first_word, window_gone};
use super::no_display;
use super::picture::Rect;

/// How deep a client's window may lie in its frame.
const FRAME_DEPTH: usize = 3;

/// The visible children of the root: frames, menus, notifications.
#[derive(Debug)]
pub(super) struct Windows(Vec<(Window, Rect)>);

impl Windows {
    pub(super) fn all(display: &Display) -> Result<Self, Fault> {
        let connection = &display.connection;
        let tree = connection.query_tree(display.root).map_err(no_display)?.reply().map_err(no_display)?;
        let mut asked = Vec::new();
        for window in tree.children {
            let attributes = connection.get_window_attributes(window).map_err(no_display)?;
            asked.push((window, attributes, connection.get_geometry(window).map_err(no_display)?));
        }
        let mut windows = Vec::new();
        for (window, attributes, geometry) in asked {
            let (attributes, geometry) = match (attributes.reply(), geometry.reply()) {
                (Ok(attributes), Ok(geometry)) => (attributes, geometry),
                (Err(error), _) | (_, Err(error)) if window_gone(&error) => continue,
                (Err(error), _) | (_, Err(error)) => return Err(no_display(error)),
            };
            if attributes.map_state == MapState::VIEWABLE && attributes.class != WindowClass::INPUT_ONLY {
                let border = u32::from(geometry.border_width) * 2;
                let rect = Rect {
                    x: i32::from(geometry.x),
                    y: i32::from(geometry.y),
                    width: u32::from(geometry.width) + border,
                    height: u32::from(geometry.height) + border,
                };
                windows.push((window, rect));
            }
        }
        Ok(Self(windows))
    }
}

/// Decides about windows.
pub(super) struct Hiding<'a> {
    display: &'a Display,
    hidden_pids: &'a [u32],
}

/// What is known of a frame and what lies in it.
struct Known {
    clients: BTreeSet<u32>,
    hidden: bool,
    owned: BTreeSet<u32>,
}

impl<'a> Hiding<'a> {
    pub(super) fn new(display: &'a Display, hidden_pids: &'a [u32]) -> Self {
        Self { display, hidden_pids }
    }

    /// The areas of the windows that nobody may see.
    ///
    /// Menus and tips often carry no process id. But a window's id begins with its client's number,
    /// so every window of a client that is known to be ours counts as ours.
    pub(super) fn hidden(&self, windows: &Windows) -> Result<Vec<Rect>, Fault> {
        let mut known = Vec::new();
        for (window, rect) in &windows.0 {
            known.push((*rect, self.look(*window)?));
        }
        let ours: BTreeSet<u32> = known.iter().flat_map(|(_, known)| known.owned.iter().copied()).collect();
        let hidden = known.iter().filter(|(_, known)| known.hidden || !known.clients.is_disjoint(&ours));
        Ok(hidden.map(|(rect, _)| *rect).collect())
    }

    /// Whether one of the windows is one that nobody may see.
    pub(super) fn hides(&self, windows: &Windows, frame: Window) -> Result<bool, Fault> {
        let mut ours = BTreeSet::new();
        let mut wanted = None;
        for (window, _) in &windows.0 {
            let known = self.look(*window)?;
            ours.extend(known.owned.iter().copied());
            if *window == frame {
                wanted = Some(known);
            }
        }
        // One that has just come isn't known: better not than by mistake.
        Ok(wanted.is_none_or(|known| known.hidden || !known.clients.is_disjoint(&ours)))
    }

    fn look(&self, frame: Window) -> Result<Known, Fault> {
        let mut known = Known { clients: BTreeSet::new(), hidden: false, owned: BTreeSet::new() };
        let mut level = vec![frame];
        for depth in 0..FRAME_DEPTH {
            let mut next = Vec::new();
            for window in level {
                next.extend(self.look_at(window, depth, &mut known)?);
            }
            level = next;
        }
        Ok(known)
    }

    /// Notes what one window says, and gives its children.
    fn look_at(&self, window: Window, depth: usize, known: &mut Known) -> Result<Vec<Window>, Fault> {
        let Display { connection, atoms, .. } = self.display;
        let ask = |name: u32| connection.get_property(false, window, name, AtomEnum::ANY, 0, 64);
        let pid = ask(atoms._NET_WM_PID).map_err(no_display)?;
        let kind = ask(atoms._NET_WM_WINDOW_TYPE).map_err(no_display)?;
        let tree = connection.query_tree(window).map_err(no_display)?;
        let (pid, kind, tree) = match (pid.reply(), kind.reply(), tree.reply()) {
            (Ok(pid), Ok(kind), Ok(tree)) => (pid, kind, tree),
            (Err(error), _, _) | (_, Err(error), _) | (_, _, Err(error)) if window_gone(&error) => {
                // It was in the picture and can't be asked any more: better too much grey than a leak.
                known.hidden |= depth == 0;
                return Ok(Vec::new());
            }
            (Err(error), _, _) | (_, Err(error), _) | (_, _, Err(error)) => return Err(no_display(error)),
        };
        let client = window & !connection.setup().resource_id_mask;
        known.clients.insert(client);
        if first_word(&pid.value).is_some_and(|pid| self.hidden_pids.contains(&pid)) {
            known.hidden = true;
            known.owned.insert(client);
        }
        let mut kinds = kind.value.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word));
        known.hidden |= kinds.any(|kind| kind == atoms._NET_WM_WINDOW_TYPE_NOTIFICATION);
        Ok(tree.children)
    }
}
