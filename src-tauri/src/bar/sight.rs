//! Whether the person can see the window, and whether a key is down, asked from the X server over a
//! connection of its own.
//!
//! Visibility events alone don't tell: under a compositor every window counts as visible. So the
//! stacking order is compared too.

use x11rb::connection::Connection;
use x11rb::errors::ReplyError;
use x11rb::protocol::composite::ConnectionExt as _;
use x11rb::protocol::xproto::{ConnectionExt as _, KeyButMask, MapState, Window};
use x11rb::rust_connection::RustConnection;

/// A rectangle in pixels of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    x: i32,
    y: i32,
    width: i32,
    height: i32,
}

impl Area {
    fn meets(self, other: Self) -> bool {
        self.x < other.x + other.width
            && other.x < self.x + self.width
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }

    fn inside(self, other: Self) -> bool {
        self.x >= other.x
            && self.y >= other.y
            && self.x + self.width <= other.x + other.width
            && self.y + self.height <= other.y + other.height
    }
}

/// The connection.
pub(super) struct Sight {
    x: RustConnection,
    root: Window,
    screen: usize,
}

impl Sight {
    /// Connects to the display of this process.
    pub(super) fn new() -> Option<Self> {
        let (x, screen) = x11rb::connect(None).ok()?;
        let root = x.setup().roots.get(screen)?.root;
        Some(Self { x, root, screen })
    }

    /// Whether the whole window can be seen. What can't be found out is a no.
    pub(super) fn is_clear(&self, window: Window) -> bool {
        self.look(window).unwrap_or(false)
    }

    /// Whether no key and no button is down. What can't be found out is a no.
    pub(super) fn hands_off(&self) -> bool {
        self.held().is_ok_and(|held| !held)
    }

    fn held(&self) -> Result<bool, ReplyError> {
        let keys = self.x.query_keymap()?;
        let pointer = self.x.query_pointer(self.root)?;
        let buttons = KeyButMask::BUTTON1 | KeyButMask::BUTTON2 | KeyButMask::BUTTON3;
        let key = keys.reply()?.keys.iter().any(|byte| *byte != 0);
        Ok(key || pointer.reply()?.mask.intersects(buttons))
    }

    fn look(&self, window: Window) -> Result<bool, ReplyError> {
        let mine = self.area_on_screen(window)?;
        let screen = self.area(self.root)?;
        if !mine.inside(screen) {
            return Ok(false);
        }
        let frame = self.frame(window)?;
        let stack = self.x.query_tree(self.root)?.reply()?.children;
        let overlay = self.compositor_overlay()?;
        let above = stack.iter().skip_while(|w| **w != frame).skip(1);
        for other in above.filter(|w| Some(**w) != overlay) {
            if self.covers(*other, mine) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A window that has gone meanwhile covers nothing.
    fn covers(&self, other: Window, mine: Area) -> bool {
        let viewable = self.x.get_window_attributes(other).map(|cookie| cookie.reply());
        let viewable = matches!(viewable, Ok(Ok(attributes)) if attributes.map_state == MapState::VIEWABLE);
        viewable && self.area(other).is_ok_and(|area| area.meets(mine))
    }

    fn area(&self, window: Window) -> Result<Area, ReplyError> {
        let geometry = self.x.get_geometry(window)?.reply()?;
        let border = 2 * i32::from(geometry.border_width);
        Ok(Area {
            x: geometry.x.into(),
            y: geometry.y.into(),
            width: i32::from(geometry.width) + border,
            height: i32::from(geometry.height) + border,
        })
    }

    fn area_on_screen(&self, window: Window) -> Result<Area, ReplyError> {
        let at = self.x.translate_coordinates(window, self.root, 0, 0)?.reply()?;
        Ok(Area { x: at.dst_x.into(), y: at.dst_y.into(), ..self.area(window)? })
    }

    /// The window manager's frame around a window: its ancestor right below the root.
    fn frame(&self, window: Window) -> Result<Window, ReplyError> {
        let mut at = window;
        loop {
            let parent = self.x.query_tree(at)?.reply()?.parent;
            if parent == self.root || parent == x11rb::NONE {
                return Ok(at);
            }
            at = parent;
        }
    }

    /// The window on which a compositor paints all others; it is above them all and hides none.
    fn compositor_overlay(&self) -> Result<Option<Window>, ReplyError> {
        let name = format!("_NET_WM_CM_S{}", self.screen);
        let atom = self.x.intern_atom(false, name.as_bytes())?.reply()?.atom;
        if self.x.get_selection_owner(atom)?.reply()?.owner == x11rb::NONE {
            return Ok(None);
        }
        self.x.composite_query_version(0, 4)?.reply()?;
        let overlay = self.x.composite_get_overlay_window(self.root)?.reply()?.overlay_win;
        self.x.composite_release_overlay_window(self.root)?.check()?;
        Ok(Some(overlay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: Area = Area { x: 100, y: 100, width: 50, height: 50 };

    #[test]
    fn one_pixel_over_the_window_covers_it_and_a_neighbour_does_not() {
        assert!(Area { x: 149, y: 149, width: 9, height: 9 }.meets(MINE));
        assert!(Area { x: 0, y: 0, width: 900, height: 900 }.meets(MINE));
        assert!(!Area { x: 150, y: 100, width: 9, height: 50 }.meets(MINE));
        assert!(!Area { x: 100, y: 91, width: 50, height: 9 }.meets(MINE));
    }

    #[test]
    fn a_window_partly_off_the_screen_is_not_whole() {
        let screen = Area { x: 0, y: 0, width: 640, height: 400 };
        assert!(MINE.inside(screen));
        assert!(!Area { x: 600, ..MINE }.inside(screen));
        assert!(!Area { y: -1, ..MINE }.inside(screen));
    }
}
