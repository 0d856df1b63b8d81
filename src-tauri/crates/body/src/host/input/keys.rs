//! Typing and pressing keys by XTEST, exactly: with a real Shift, and with keys lent to characters
//! that the layout doesn't have.

use std::collections::BTreeSet;
use std::time::Duration;

use bodyguard_protocol::Fault;
use bodyguard_protocol::action::{Chord, Modifier};
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{ConnectionExt as _, KEY_PRESS_EVENT, KEY_RELEASE_EVENT, Keycode, Keysym, Window};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use super::super::screen::no_display;
use super::keymap::{self, CAPS_LOCK, Keymap, SHIFT, Stroke};
use super::{Course, Interrupted};

/// Characters between two looks at whether to go on.
const BURST: usize = 8;
/// Programs need this long to take up a changed mapping, or to be done with the one before.
const SETTLE: Duration = Duration::from_millis(120);
/// Lock in the state of the modifiers.
const LOCKED: u16 = 1 << 1;

/// The keyboard while one act lasts. What is down when it is dropped is let go, and what was lent is
/// taken back.
pub(super) struct Keyboard {
    connection: RustConnection,
    root: Window,
    keymap: Keymap,
    down: Vec<Keycode>,
    lent: bool,
    caps: bool,
}

impl Keyboard {
    pub(super) fn open() -> Result<Self, Fault> {
        let (connection, screen) = x11rb::connect(None).map_err(no_display)?;
        let root = connection.setup().roots.get(screen).ok_or_else(|| no_display("no such screen"))?.root;
        connection.xtest_get_version(2, 2).map_err(no_display)?.reply().map_err(no_display)?;
        let state = u16::from(connection.query_pointer(root).map_err(no_display)?.reply().map_err(no_display)?.mask);
        // The core state carries the layout group in these bits.
        let keymap = Keymap::read(&connection, (state >> 13) & 3)?;
        let mut keyboard = Self { connection, root, keymap, down: Vec::new(), lent: false, caps: false };
        if state & LOCKED != 0 {
            keyboard.tap(CAPS_LOCK)?;
            keyboard.caps = true;
        }
        Ok(keyboard)
    }

    /// Types a text. `typed` counts the characters that went out.
    pub(super) fn text(&mut self, text: &str, course: &Course<'_>, typed: &mut usize) -> Result<(), Interrupted> {
        let letters: Vec<char> = text.chars().collect();
        for (index, &letter) in letters.iter().enumerate() {
            if index % BURST == 0 {
                self.sync()?;
                course.go_on()?;
            }
            let keysym = keymap::of_char(letter);
            let stroke = match self.keymap.stroke(keysym) {
                Some(stroke) => stroke,
                None => self.lend(letters.get(index..).unwrap_or_default(), keysym)?,
            };
            self.strike(stroke)?;
            *typed = index + 1;
        }
        self.sync()?;
        Ok(())
    }

    /// Presses chords, each for a while. `pressed` counts them.
    pub(super) fn chords(
        &mut self,
        chords: &[Chord],
        hold: Duration,
        course: &Course<'_>,
        pressed: &mut usize,
    ) -> Result<(), Interrupted> {
        for chord in chords {
            course.go_on()?;
            self.hold(&chord.modifiers)?;
            let keysym = keymap::of_key(chord.key);
            let Stroke { keycode, shift } = match self.keymap.stroke(keysym) {
                Some(stroke) => stroke,
                None => self.lend_only(keysym)?,
            };
            // A key on the shifted level needs Shift, unless the chord has it already.
            if shift && !chord.modifiers.contains(&Modifier::Shift) {
                self.hold(&[Modifier::Shift])?;
            }
            self.press(keycode)?;
            self.sync()?;
            *pressed += 1;
            let waited = course.wait(hold);
            self.release_all();
            waited?;
        }
        Ok(())
    }

    /// Holds modifiers until [`Self::release_all`].
    pub(super) fn hold(&mut self, modifiers: &[Modifier]) -> Result<(), Fault> {
        for &modifier in modifiers {
            let keysym = keymap::of_modifier(modifier);
            let stroke = self.keymap.stroke(keysym);
            let stroke = stroke.ok_or_else(|| no_display(format!("the keyboard has no {}", modifier.name())))?;
            self.press(stroke.keycode)?;
        }
        self.sync()
    }

    pub(super) fn release_all(&mut self) {
        for keycode in std::mem::take(&mut self.down).into_iter().rev() {
            let _ = self.key(KEY_RELEASE_EVENT, keycode);
        }
        let _ = self.sync();
    }

    fn strike(&mut self, Stroke { keycode, shift }: Stroke) -> Result<(), Fault> {
        let shift_key = if shift { self.keymap.stroke(SHIFT).map(|stroke| stroke.keycode) } else { None };
        if let Some(shift) = shift_key {
            self.press(shift)?;
        }
        self.press(keycode)?;
        for keycode in std::mem::take(&mut self.down).into_iter().rev() {
            self.key(KEY_RELEASE_EVENT, keycode)?;
        }
        Ok(())
    }

    fn tap(&mut self, keysym: Keysym) -> Result<(), Fault> {
        if let Some(stroke) = self.keymap.stroke(keysym) {
            self.strike(stroke)?;
        }
        self.sync()
    }

    fn press(&mut self, keycode: Keycode) -> Result<(), Fault> {
        self.down.push(keycode);
        self.key(KEY_PRESS_EVENT, keycode)
    }

    fn key(&self, event: u8, keycode: Keycode) -> Result<(), Fault> {
        let sent = self.connection.xtest_fake_input(event, keycode, x11rb::CURRENT_TIME, self.root, 0, 0, 0);
        sent.map(drop).map_err(no_display)
    }

    /// Lends keys to the characters that come next and that no key types, as many as there are keys.
    fn lend(&mut self, ahead: &[char], first: Keysym) -> Result<Stroke, Fault> {
        let mut wanted = BTreeSet::from([first]);
        for &letter in ahead {
            let keysym = keymap::of_char(letter);
            let known = self.keymap.stroke(keysym).is_some_and(|stroke| !self.keymap.spare.contains(&stroke.keycode));
            if wanted.len() < self.keymap.spare.len() && !known {
                wanted.insert(keysym);
            }
        }
        self.lend_all(&wanted.into_iter().collect::<Vec<_>>())?;
        self.keymap.stroke(first).ok_or_else(|| no_display("the keyboard has no key to spare"))
    }

    fn lend_only(&mut self, keysym: Keysym) -> Result<Stroke, Fault> {
        self.lend_all(&[keysym])?;
        self.keymap.stroke(keysym).ok_or_else(|| no_display("the keyboard has no key to spare"))
    }

    fn lend_all(&mut self, keysyms: &[Keysym]) -> Result<(), Fault> {
        if self.lent {
            // What was typed before must have been read under the mapping of then.
            self.sync()?;
            std::thread::sleep(SETTLE);
        }
        let lent: Vec<(Keycode, Keysym)> = self.keymap.spare.iter().copied().zip(keysyms.iter().copied()).collect();
        self.lent = true;
        for &(keycode, keysym) in &lent {
            self.map(keycode, keysym)?;
        }
        self.keymap.lend(&lent);
        self.sync()?;
        std::thread::sleep(SETTLE);
        Ok(())
    }

    fn map(&self, keycode: Keycode, keysym: Keysym) -> Result<(), Fault> {
        let columns = self.keymap.columns.max(1);
        let keysyms = vec![keysym; usize::from(columns)];
        self.connection.change_keyboard_mapping(1, keycode, columns, &keysyms).map(drop).map_err(no_display)
    }

    fn sync(&self) -> Result<(), Fault> {
        self.connection.sync().map_err(no_display)
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.release_all();
        if self.caps {
            let _ = self.tap(CAPS_LOCK);
        }
        if self.lent {
            std::thread::sleep(SETTLE);
            for keycode in self.keymap.spare.clone() {
                let _ = self.map(keycode, 0);
            }
            let _ = self.sync();
        }
    }
}
