//! Which key types which character, as the X server has it now.

use std::collections::BTreeMap;

use bodyguard_protocol::Fault;
use bodyguard_protocol::action::{Key, Modifier};
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{ConnectionExt as _, Keycode, Keysym};
use x11rb::rust_connection::RustConnection;

use super::super::screen::no_display;

pub(super) const SHIFT: Keysym = 0xffe1;
pub(super) const CAPS_LOCK: Keysym = 0xffe5;
/// Keysyms of characters beyond Latin-1 are their code points with this bit.
const UNICODE: Keysym = 0x0100_0000;

/// A key, and whether Shift is held with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stroke {
    pub(super) keycode: Keycode,
    pub(super) shift: bool,
}

/// The keyboard's mapping.
#[derive(Debug)]
pub(super) struct Keymap {
    strokes: BTreeMap<Keysym, Stroke>,
    /// Keycodes that mean nothing, which can be lent to characters that no key types.
    pub(super) spare: Vec<Keycode>,
    pub(super) columns: u8,
}

impl Keymap {
    /// The mapping of the layout group that is active.
    pub(super) fn read(connection: &RustConnection, group: u16) -> Result<Self, Fault> {
        let setup = connection.setup();
        let (first, last) = (setup.min_keycode, setup.max_keycode);
        let asked = connection.get_keyboard_mapping(first, last - first + 1).map_err(no_display)?;
        let reply = asked.reply().map_err(no_display)?;
        let columns = usize::from(reply.keysyms_per_keycode).max(1);
        let keys = (first..=last).zip(reply.keysyms.chunks(columns));
        Ok(Self::of(keys, group, reply.keysyms_per_keycode))
    }

    fn of<'a>(keys: impl Iterator<Item = (Keycode, &'a [Keysym])>, group: u16, columns: u8) -> Self {
        let (mut strokes, mut spare) = (BTreeMap::new(), Vec::new());
        for (keycode, keysyms) in keys {
            if keysyms.iter().all(|&keysym| keysym == 0) {
                spare.push(keycode);
                continue;
            }
            let [plain, shifted] = levels(keysyms, group);
            for (keysym, shift) in [(plain, false), (shifted, true)] {
                // Of two keys the first wins, and a plain one wins over a shifted one.
                let stroke = Stroke { keycode, shift };
                let better = strokes.get(&keysym).is_none_or(|old: &Stroke| old.shift && !shift);
                if keysym != 0 && better {
                    strokes.insert(keysym, stroke);
                }
            }
        }
        Self { strokes, spare, columns }
    }

    pub(super) fn stroke(&self, keysym: Keysym) -> Option<Stroke> {
        self.strokes.get(&keysym).copied()
    }

    /// Lends spare keycodes to keysyms. What was lent before is forgotten.
    pub(super) fn lend(&mut self, lent: &[(Keycode, Keysym)]) {
        self.strokes.retain(|_, stroke| !self.spare.contains(&stroke.keycode));
        for &(keycode, keysym) in lent {
            self.strokes.insert(keysym, Stroke { keycode, shift: false });
        }
    }
}

/// What a key types without and with Shift in a layout group. A key with one group has it everywhere.
fn levels(keysyms: &[Keysym], group: u16) -> [Keysym; 2] {
    let at = |index: usize| keysyms.get(index).copied().unwrap_or(0);
    let pair = |first: usize| [at(first), at(first + 1)];
    let found = match group {
        1 if pair(2) != [0, 0] => pair(2),
        0 | 1 => pair(0),
        // The core mapping doesn't show further groups: nothing is known, so everything is lent.
        _ => [0, 0],
    };
    match found {
        // A letter's capital may be left out.
        [plain, 0] if capital(plain).is_some() => [plain, capital(plain).unwrap_or(0)],
        [plain, 0] => [plain, plain],
        both => both,
    }
}

fn capital(keysym: Keysym) -> Option<Keysym> {
    let small = char::from_u32(keysym).filter(|letter| letter.is_ascii_lowercase())?;
    Some(u32::from(small.to_ascii_uppercase()))
}

/// The keysym that types a character.
pub(super) fn of_char(letter: char) -> Keysym {
    match letter {
        '\n' => of_key(Key::Enter),
        '\t' => of_key(Key::Tab),
        '\u{20}'..='\u{7e}' | '\u{a0}'..='\u{ff}' => u32::from(letter),
        other => UNICODE | u32::from(other),
    }
}

/// The keysym of a key.
pub(super) fn of_key(key: Key) -> Keysym {
    match key {
        Key::Char(letter) => of_char(letter),
        Key::Function(number) => 0xffbd + u32::from(number),
        Key::Enter => 0xff0d,
        Key::Tab => 0xff09,
        Key::Escape => 0xff1b,
        Key::Space => 0x20,
        Key::Backspace => 0xff08,
        Key::Delete => 0xffff,
        Key::Insert => 0xff63,
        Key::Home => 0xff50,
        Key::End => 0xff57,
        Key::PageUp => 0xff55,
        Key::PageDown => 0xff56,
        Key::Up => 0xff52,
        Key::Down => 0xff54,
        Key::Left => 0xff51,
        Key::Right => 0xff53,
        Key::Menu => 0xff67,
    }
}

/// The keysym of a modifier's left key.
pub(super) const fn of_modifier(modifier: Modifier) -> Keysym {
    match modifier {
        Modifier::Ctrl => 0xffe3,
        Modifier::Shift => SHIFT,
        Modifier::Alt => 0xffe9,
        Modifier::Super => 0xffeb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inp_a_character_is_found_in_the_active_group_and_spare_keys_are_known() {
        let (a, cyrillic) = (u32::from('a'), 0x0100_0444);
        let keys: [(Keycode, &[Keysym]); 3] = [(38, &[a, 0, cyrillic, 0]), (39, &[0, 0, 0, 0]), (10, &[0x31, 0x21])];
        let map = |group| Keymap::of(keys.into_iter(), group, 4);
        assert_eq!(map(0).stroke(a), Some(Stroke { keycode: 38, shift: false }));
        assert_eq!(map(0).stroke(u32::from('A')), Some(Stroke { keycode: 38, shift: true }));
        assert_eq!(map(0).stroke(0x21), Some(Stroke { keycode: 10, shift: true }));
        assert_eq!(map(1).stroke(a), None);
        assert_eq!(map(1).stroke(cyrillic), Some(Stroke { keycode: 38, shift: false }));
        assert_eq!(map(1).stroke(0x31), Some(Stroke { keycode: 10, shift: false }), "a key with one group");
        assert_eq!(map(0).spare, [39]);
        let mut lent = map(0);
        lent.lend(&[(39, of_char('🎈'))]);
        assert_eq!(lent.stroke(of_char('🎈')), Some(Stroke { keycode: 39, shift: false }));
        lent.lend(&[]);
        assert_eq!(lent.stroke(of_char('🎈')), None);
        assert!(lent.stroke(a).is_some());
    }

    #[test]
    fn inp_keysyms_are_those_of_the_protocol() {
        assert_eq!((of_char('ä'), of_char('€'), of_char('\n')), (0xe4, 0x0100_20ac, 0xff0d));
        assert_eq!((of_key(Key::Function(1)), of_key(Key::Function(24))), (0xffbe, 0xffd5));
    }
}
