//! Text that a person reads: nothing invisible is left, and it stands for exactly the text it came from.
#![no_main]

use bodyguard_protocol::{escape_line, escape_text, hidden_characters, unescape};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let line = escape_line(text);
    assert!(!line.chars().any(char::is_control), "{line:?}");
    for shown in [&line, &escape_text(text)] {
        assert_eq!(hidden_characters(shown).total(), 0, "{shown:?}");
        assert_eq!(unescape(shown), text);
    }
});
