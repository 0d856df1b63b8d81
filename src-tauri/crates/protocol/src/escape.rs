//! The one escaping routine for everything a person reads: window, bar, notification, log, CLI.
//!
//! Characters that can't be seen or that change how others are drawn appear as `\u{hex}`. The form
//! decodes to exactly the bytes that were escaped: a backslash that would begin such an escape in
//! the text itself is written `\u{5c}`.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Escapes text for a place that shows several lines: newline and tab stay.
pub fn escape_text(text: &str) -> String {
    escape(text, true)
}

/// Escapes text for a place of one line: newline and tab are escaped too.
pub fn escape_line(text: &str) -> String {
    escape(text, false)
}

/// Undoes [`escape_text`] and [`escape_line`]. Anything that isn't a complete escape stays.
pub fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\u{") {
        out.push_str(before);
        let decoded = after.split_once('}').and_then(|(hex, tail)| {
            let code = u32::from_str_radix(hex, 16).ok()?;
            char::from_u32(code).map(|c| (c, tail))
        });
        if let Some((c, tail)) = decoded {
            out.push(c);
            rest = tail;
        } else {
            out.push_str("\\u{");
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// How many characters of a text had to be made visible, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hidden {
    /// Control characters other than newline and tab.
    pub controls: usize,
    /// Format characters: zero-width, bidirectional, soft hyphen, tags.
    pub formats: usize,
    /// Spaces that aren't the ordinary one, and line or paragraph separators.
    pub spaces: usize,
    /// Private-use, unassigned and other characters without a dependable picture.
    pub others: usize,
}

impl Hidden {
    /// All of them.
    pub const fn total(self) -> usize {
        self.controls.saturating_add(self.formats).saturating_add(self.spaces).saturating_add(self.others)
    }
}

/// Counts what [`escape_text`] would make visible.
pub fn hidden_characters(text: &str) -> Hidden {
    let mut hidden = Hidden::default();
    for c in text.chars() {
        let counter = match kind(c) {
            Kind::Visible => continue,
            Kind::Break => continue,
            Kind::Control => &mut hidden.controls,
            Kind::Format => &mut hidden.formats,
            Kind::Space => &mut hidden.spaces,
            Kind::Other => &mut hidden.others,
        };
        *counter = counter.saturating_add(1);
    }
    hidden
}

enum Kind {
    Visible,
    Break,
    Control,
    Format,
    Space,
    Other,
}

fn kind(c: char) -> Kind {
    if matches!(c, '\n' | '\t') {
        return Kind::Break;
    }
    if c == ' ' || c.is_ascii_graphic() {
        return Kind::Visible;
    }
    // Drawn as nothing although Unicode calls them letters or marks: Hangul fillers, the braille
    // blank, the combining grapheme joiner and the variation selectors.
    if matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' | '\u{34f}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
    {
        return Kind::Format;
    }
    match c.general_category() {
        GeneralCategory::Control => Kind::Control,
        GeneralCategory::Format => Kind::Format,
        GeneralCategory::SpaceSeparator | GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator => {
            Kind::Space
        }
        GeneralCategory::PrivateUse | GeneralCategory::Unassigned | GeneralCategory::Surrogate => Kind::Other,
        _ => Kind::Visible,
    }
}

fn escape(text: &str, keep_breaks: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let ambiguous = c == '\\' && text.get(at..).is_some_and(|rest| rest.starts_with("\\u{"));
        match kind(c) {
            Kind::Visible if !ambiguous => out.push(c),
            Kind::Break if keep_breaks => out.push(c),
            _ => {
                out.push_str("\\u{");
                out.push_str(&format!("{:x}", u32::from(c)));
                out.push('}');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dsp_01_hidden_characters_become_visible_and_counted() {
        let text = "echo o\u{200b}k\u{2060}; : > r\u{2063}an\u{0}";
        assert_eq!(escape_text(text), "echo o\\u{200b}k\\u{2060}; : > r\\u{2063}an\\u{0}");
        assert_eq!(hidden_characters(text).formats, 3);
        assert_eq!(hidden_characters(text).controls, 1);
    }

    #[test]
    fn dsp_04_bidi_overrides_cannot_turn_a_name_around() {
        assert_eq!(escape_line("\u{202e}txt.nur"), "\\u{202e}txt.nur");
        assert_eq!(escape_line("a\nPolicy: approved"), "a\\u{a}Policy: approved");
    }

    #[test]
    fn an_escape_in_the_text_itself_stays_distinguishable() {
        assert_ne!(escape_text("\\u{200b}"), escape_text("\u{200b}"));
        assert_eq!(escape_text("C:\\dir \\n"), "C:\\dir \\n");
    }

    proptest::proptest! {
        #[test]
        fn dsp_what_is_shown_decodes_to_the_exact_text(text in proptest::prelude::any::<String>()) {
            proptest::prop_assert_eq!(unescape(&escape_text(&text)), text.clone());
            proptest::prop_assert_eq!(unescape(&escape_line(&text)), text.clone());
            let line = escape_line(&text);
            proptest::prop_assert!(line.chars().all(|c| matches!(kind(c), Kind::Visible)));
        }

        #[test]
        fn dsp_near_escapes_decode_too(text in "[\\\\u{}0-9a-f]{0,30}") {
            proptest::prop_assert_eq!(unescape(&escape_text(&text)), text);
        }
    }
}
