//! The edit engine: exact text in, bytes out. It works on bytes, so that what it doesn't touch stays
//! as it was, whatever its encoding.

use bodyguard_protocol::action::Edit;
use bodyguard_protocol::{ErrorCode, Fault};

use crate::LineEnding;

/// Applies edits in order, each to the result of the one before.
///
/// Bytes outside the matches are never changed. A file whose lines all end alike never comes out with
/// mixed endings.
///
/// # Errors
/// `empty_match`; `match_count_mismatch` with the count found; `line_ending_mismatch` where the text
/// would match with the other line ending, or the result would mix them; `too_large` beyond
/// `max_bytes`. Each but the last names the edit.
pub fn apply_edits(before: &[u8], edits: &[Edit], max_bytes: u64) -> Result<Vec<u8>, Fault> {
    let mut bytes = before.to_vec();
    for (index, edit) in edits.iter().enumerate() {
        bytes = apply_one(&bytes, edit, max_bytes).map_err(|fault| match fault.field {
            Some(_) => fault,
            None => fault.at(format!("action.params.edits[{index}].old")),
        })?;
    }
    let uniform = matches!(LineEnding::of(before), LineEnding::Lf | LineEnding::Crlf);
    if uniform && LineEnding::of(&bytes) == LineEnding::Mixed {
        let message = "the file's lines all end alike; the edits would leave it with mixed line endings";
        return Err(Fault::new(ErrorCode::LineEndingMismatch, message)
            .at("action.params.edits")
            .hint(format!("the file uses {}; write `new` with the same", name_of(LineEnding::of(before)))));
    }
    Ok(bytes)
}

fn apply_one(bytes: &[u8], edit: &Edit, max_bytes: u64) -> Result<Vec<u8>, Fault> {
    let old = edit.old.as_bytes();
    if old.is_empty() {
        return Err(Fault::new(ErrorCode::EmptyMatch, "`old` is empty; it would match everywhere"));
    }
    let found = matches_of(bytes, old);
    if found.is_empty() && matches_otherwise(bytes, &edit.old) {
        let message = format!("the text is there, but with other line endings: the file uses {}", {
            name_of(LineEnding::of(bytes))
        });
        return Err(Fault::new(ErrorCode::LineEndingMismatch, message)
            .hint("write `old` and `new` with the file's own line endings"));
    }
    if found.len() as u64 != edit.expected_count {
        let message = format!("`old` occurs {} times, not {}", found.len(), edit.expected_count);
        return Err(Fault::new(ErrorCode::MatchCountMismatch, message)
            .hint("give more of the surrounding text, or the exact `expected_count` to replace them all"));
    }
    let new = edit.new.as_bytes();
    let removed = found.len() as u64 * old.len() as u64;
    let size = bytes.len() as u64 - removed + found.len() as u64 * new.len() as u64;
    if size > max_bytes {
        return Err(Fault::new(
            ErrorCode::TooLarge,
            format!("the result would have {size} bytes; at most {max_bytes}"),
        ));
    }
    let mut result = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    let mut from = 0;
    for at in found {
        result.extend_from_slice(bytes.get(from..at).unwrap_or_default());
        result.extend_from_slice(new);
        from = at + old.len();
    }
    result.extend_from_slice(bytes.get(from..).unwrap_or_default());
    Ok(result)
}

/// Offsets of the matches from left to right, none overlapping the one before.
fn matches_of(bytes: &[u8], old: &[u8]) -> Vec<usize> {
    let Some(&first) = old.first() else { return Vec::new() };
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(step) = bytes.get(from..).and_then(|rest| rest.iter().position(|&byte| byte == first)) {
        let at = from + step;
        if bytes.get(at..).is_some_and(|rest| rest.starts_with(old)) {
            found.push(at);
            from = at + old.len();
        } else {
            from = at + 1;
        }
    }
    found
}

fn matches_otherwise(bytes: &[u8], old: &str) -> bool {
    if !old.contains('\n') {
        return false;
    }
    let lf = old.replace("\r\n", "\n");
    let crlf = lf.replace('\n', "\r\n");
    [lf, crlf].iter().any(|other| other != old && !matches_of(bytes, other.as_bytes()).is_empty())
}

fn name_of(ending: LineEnding) -> &'static str {
    match ending {
        LineEnding::None => "no line ending",
        LineEnding::Lf => "LF",
        LineEnding::Crlf => "CR LF",
        LineEnding::Mixed => "mixed line endings",
    }
}

/// Bytes as text in which every byte can be told from every other: UTF-8 as it is, each foreign byte
/// `b` as the private character U+10FE00 + b. Also the offset of the first foreign byte.
pub(crate) fn lossless_text(bytes: &[u8]) -> (String, Option<u64>) {
    let mut text = String::with_capacity(bytes.len());
    let mut first = None;
    let mut offset = 0_u64;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        offset += chunk.valid().len() as u64;
        if !chunk.invalid().is_empty() {
            first.get_or_insert(offset);
            // 0x10FE00 + 0xFF lies below the last code point, and none of the range is a surrogate.
            text.extend(chunk.invalid().iter().filter_map(|&byte| char::from_u32(0x10_FE00 + u32::from(byte))));
            offset += chunk.invalid().len() as u64;
        }
    }
    (text, first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: u64 = 1 << 20;

    fn edit(old: &str, new: &str, expected_count: u64) -> Edit {
        Edit { old: old.to_owned(), new: new.to_owned(), expected_count }
    }

    fn code(before: &[u8], edits: &[Edit]) -> ErrorCode {
        apply_edits(before, edits, MAX).unwrap_err().code
    }

    #[test]
    fn fil_01_line_endings_are_never_mixed() {
        let crlf = b"a\r\nb\r\nc\r\n";
        assert_eq!(code(crlf, &[edit("a\nb", "a\nB", 1)]), ErrorCode::LineEndingMismatch);
        assert_eq!(code(crlf, &[edit("b", "b\nB", 1)]), ErrorCode::LineEndingMismatch);
        assert_eq!(code(b"a\nb\n", &[edit("b", "b\r\nB", 1)]), ErrorCode::LineEndingMismatch);
        assert_eq!(apply_edits(crlf, &[edit("a\r\nb", "a\r\nB", 1)], MAX).unwrap(), b"a\r\nB\r\nc\r\n");
        // Converting the whole file is no mixture, and a file that was mixed may stay so.
        assert_eq!(apply_edits(crlf, &[edit("\r\n", "\n", 3)], MAX).unwrap(), b"a\nb\nc\n");
        assert_eq!(apply_edits(b"a\r\nb\n", &[edit("a", "A", 1)], MAX).unwrap(), b"A\r\nb\n");
    }

    #[test]
    fn fil_02_bytes_that_are_not_utf8_stay_as_they_were() {
        let mut before = b"k=1\n".to_vec();
        before.extend_from_slice(&b"line\n".repeat(5000));
        before.extend_from_slice(b"caf\xe9 \x99\n");
        let after = apply_edits(&before, &[edit("k=1", "k=2", 1)], MAX).unwrap();
        assert_eq!(after.get(..4), Some(&b"k=2\n"[..]));
        assert_eq!(after.get(4..), before.get(4..));
        let (text, first) = lossless_text(&before);
        assert_eq!(first, Some(before.len() as u64 - 4));
        assert!(text.ends_with("caf\u{10fee9} \u{10fe99}\n"));
    }

    #[test]
    fn fil_05_nothing_is_added_at_the_end() {
        assert_eq!(apply_edits(b"x\ny", &[edit("x", "X", 1)], MAX).unwrap(), b"X\ny");
    }

    #[test]
    fn fil_06_an_empty_or_ambiguous_match_is_refused_with_its_count() {
        assert_eq!(code(b"abc", &[edit("", "# t\n", 1)]), ErrorCode::EmptyMatch);
        let fault = apply_edits(&b"l\n".repeat(300), &[edit("\n", "", 1)], MAX).unwrap_err();
        assert_eq!(fault.code, ErrorCode::MatchCountMismatch);
        assert!(fault.message.contains("300 times"), "{fault}");
        assert_eq!(fault.field.as_deref(), Some("action.params.edits[0].old"));
    }

    #[test]
    fn a_result_beyond_the_limit_is_refused_before_it_is_built() {
        let fault = apply_edits(&b"a".repeat(1000), &[edit("a", &"b".repeat(60_000), 1000)], MAX).unwrap_err();
        assert_eq!(fault.code, ErrorCode::TooLarge);
    }

    proptest! {
        #[test]
        fn what_lies_around_a_match_is_untouched(
            head in proptest::collection::vec(any::<u8>(), 0..200),
            tail in proptest::collection::vec(any::<u8>(), 0..200),
            new in "[a-z]{0,20}",
        ) {
            // A mark that random bytes practically never hold.
            let mark = "\u{1f512}needle\u{1f512}";
            let before = [&head[..], mark.as_bytes(), &tail[..]].concat();
            let after = apply_edits(&before, &[edit(mark, &new, 1)], MAX).unwrap();
            prop_assert_eq!(after, [&head[..], new.as_bytes(), &tail[..]].concat());
        }

        #[test]
        fn text_without_line_endings_is_replaced_as_the_standard_library_does(
            before in "[ab]{0,40}", old in "[ab]{1,3}", new in "[abc]{0,3}",
        ) {
            let count = before.matches(&old).count() as u64;
            match apply_edits(before.as_bytes(), &[edit(&old, &new, count)], MAX) {
                Ok(after) => prop_assert_eq!(after, before.replace(&old, &new).into_bytes()),
                Err(fault) => prop_assert!(false, "{}", fault),
            }
            prop_assert_eq!(
                apply_edits(before.as_bytes(), &[edit(&old, &new, count + 1)], MAX).unwrap_err().code,
                ErrorCode::MatchCountMismatch
            );
        }

        #[test]
        fn uniform_line_endings_stay_uniform(
            lines in proptest::collection::vec("[a-c]{0,3}", 1..8), crlf: bool,
            old in "[a-c\r\n]{1,3}", new in "[a-c\r\n]{0,3}", count in 1_u64..4,
        ) {
            let before = lines.join(if crlf { "\r\n" } else { "\n" });
            if let Ok(after) = apply_edits(before.as_bytes(), &[edit(&old, &new, count)], MAX) {
                let uniform = matches!(LineEnding::of(before.as_bytes()), LineEnding::Lf | LineEnding::Crlf);
                prop_assert!(!uniform || LineEnding::of(&after) != LineEnding::Mixed);
            }
        }

        #[test]
        fn fil_02_different_bytes_never_look_alike(a in proptest::collection::vec(any::<u8>(), 0..60), b in proptest::collection::vec(any::<u8>(), 0..60)) {
            if a != b {
                prop_assert_ne!(lossless_text(&a).0, lossless_text(&b).0);
            }
        }
    }
}
