//! Keys and chords as agents write them, such as `ctrl+shift+s`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Fault, escape_line};

/// A key that is held while another is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Modifier {
    Ctrl,
    Shift,
    Alt,
    Super,
}

impl Modifier {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Ctrl, "ctrl"), (Self::Shift, "shift"), (Self::Alt, "alt"), (Self::Super, "super")];

    fn parse(text: &str) -> Option<Self> {
        let name = match text {
            "control" => "ctrl",
            "option" => "alt",
            "meta" | "cmd" | "win" => "super",
            other => other,
        };
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(modifier, _)| modifier)
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(modifier, _)| *modifier == self).map_or("", |(_, name)| name)
    }
}

/// A key by its name, or the character that it types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Key {
    Char(char),
    /// F1 to F24.
    Function(u8),
    Enter,
    Tab,
    Escape,
    Space,
    Backspace,
    Delete,
    Insert,
    Home,
    End,
    PageUp,
    PageDown,
    Up,
    Down,
    Left,
    Right,
    Menu,
}

impl Key {
    const NAMED: [(Self, &'static str); 16] = [
        (Self::Enter, "enter"),
        (Self::Tab, "tab"),
        (Self::Escape, "escape"),
        (Self::Space, "space"),
        (Self::Backspace, "backspace"),
        (Self::Delete, "delete"),
        (Self::Insert, "insert"),
        (Self::Home, "home"),
        (Self::End, "end"),
        (Self::PageUp, "page_up"),
        (Self::PageDown, "page_down"),
        (Self::Up, "up"),
        (Self::Down, "down"),
        (Self::Left, "left"),
        (Self::Right, "right"),
        (Self::Menu, "menu"),
    ];

    fn parse(text: &str) -> Option<Self> {
        let mut letters = text.chars();
        if let (Some(only), None) = (letters.next(), letters.next()) {
            // A capital would be Shift in disguise, and two ways to write one chord.
            return (!only.is_control() && !only.is_whitespace() && only.to_lowercase().eq([only]))
                .then_some(Self::Char(only));
        }
        let name = match text {
            "return" => "enter",
            "esc" => "escape",
            "del" => "delete",
            "pageup" | "pgup" => "page_up",
            "pagedown" | "pgdn" => "page_down",
            "arrowup" => "up",
            "arrowdown" => "down",
            "arrowleft" => "left",
            "arrowright" => "right",
            other => other,
        };
        if let Some(number) = name.strip_prefix('f').and_then(|digits| digits.parse::<u8>().ok()) {
            let plain = format!("f{number}") == name;
            return ((1..=24).contains(&number) && plain).then_some(Self::Function(number));
        }
        Self::NAMED.into_iter().find(|(_, known)| *known == name).map(|(key, _)| key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Char(letter) => write!(f, "{letter}"),
            Self::Function(number) => write!(f, "f{number}"),
            named => f.write_str(Self::NAMED.into_iter().find(|(key, _)| key == named).map_or("", |(_, name)| name)),
        }
    }
}

/// Keys pressed together: modifiers, and one key. Written `ctrl+shift+s`, in this order and in lower
/// case; read in any order and case of names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Chord {
    /// Held while the key is pressed; sorted, each once.
    pub modifiers: Vec<Modifier>,
    /// The key.
    pub key: Key,
}

impl Chord {
    /// Whether desktops commonly start a launcher, a run dialog, a terminal or another console by it.
    pub fn may_open_a_shell(&self) -> bool {
        let has = |modifier| self.modifiers.contains(&modifier);
        has(Modifier::Super)
            || (has(Modifier::Ctrl) && has(Modifier::Alt))
            || (has(Modifier::Alt) && matches!(self.key, Key::Function(2)))
    }
}

impl FromStr for Chord {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let bad = || {
            let message =
                format!("`{}` is no key; write one such as `a`, `enter`, `f5`, `ctrl+shift+s`", escape_line(text));
            Fault::invalid("action.params.keys", message)
        };
        // The plus sign is a key as well as what stands between keys.
        let (before, name) = match text.strip_suffix('+') {
            Some("") => ("", "+"),
            Some(rest) => (rest.strip_suffix('+').ok_or_else(bad)?, "+"),
            None => text.rsplit_once('+').unwrap_or(("", text)),
        };
        let lower = |part: &str| part.to_lowercase();
        let mut modifiers = Vec::new();
        for part in before.split('+').filter(|_| !before.is_empty()) {
            modifiers.push(Modifier::parse(&lower(part)).ok_or_else(bad)?);
        }
        let count = modifiers.len();
        modifiers.sort_unstable();
        modifiers.dedup();
        if modifiers.len() != count {
            return Err(bad());
        }
        let named = if name.chars().count() > 1 { lower(name) } else { name.to_owned() };
        Ok(Self { modifiers, key: Key::parse(&named).ok_or_else(bad)? })
    }
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for modifier in &self.modifiers {
            write!(f, "{}+", modifier.name())?;
        }
        write!(f, "{}", self.key)
    }
}

impl Serialize for Chord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Chord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(|fault: Fault| serde::de::Error::custom(fault.message))
    }
}

impl JsonSchema for Chord {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Chord".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "minLength": 1,
            "description": "Modifiers (ctrl, shift, alt, super) and one key, joined by `+`: `ctrl+shift+s`, `enter`, `f5`."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chord(text: &str) -> Chord {
        text.parse().unwrap()
    }

    #[test]
    fn r9_chords_have_one_canonical_form() {
        for (text, canonical) in [
            ("shift+ctrl+s", "ctrl+shift+s"),
            ("Control+S", ""),
            ("CTRL+s", "ctrl+s"),
            ("Return", "enter"),
            ("ctrl++", "ctrl++"),
            ("+", "+"),
            ("é", "é"),
            ("cmd+F12", "super+f12"),
            ("PageUp", "page_up"),
        ] {
            match text.parse::<Chord>() {
                Ok(chord) => assert_eq!(chord.to_string(), canonical, "{text}"),
                Err(_) => assert_eq!(canonical, "", "{text}"),
            }
        }
        for bad in ["", "ctrl", "ctrl+", "ctrl+ctrl+a", "hyper+a", "f0", "f25", "f01", " ", "ab", "a+b", "\u{7}"] {
            assert!(bad.parse::<Chord>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn chords_that_open_a_launcher_are_known() {
        for text in ["super+r", "alt+f2", "ctrl+alt+t", "ctrl+alt+f3", "ctrl+alt+delete"] {
            assert!(chord(text).may_open_a_shell(), "{text}");
        }
        for text in ["ctrl+c", "alt+f4", "f2", "shift+f2", "a"] {
            assert!(!chord(text).may_open_a_shell(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn r9_a_chord_reads_back_what_it_wrote(text in "(ctrl\\+)?(shift\\+)?(alt\\+)?([a-z0-9é+=]|enter|f[1-9]|page_up)") {
            let once = chord(&text);
            proptest::prop_assert_eq!(&chord(&once.to_string()), &once);
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = text.parse::<Chord>();
        }
    }
}
