//! Refs: short names that a perception hands out and that its generation dates (OS-011 §5.1).

use std::fmt;
use std::str::FromStr;

use crate::{ErrorCode, Fault};

/// What a ref names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefKind {
    /// A file or folder, `@f3/g7`.
    File,
    /// A monitor, `@m1/g7`.
    Monitor,
    /// A process of the session, `@p1/g7`.
    Process,
    /// A window, `@w2/g7`.
    Window,
}

impl RefKind {
    const fn letter(self) -> char {
        match self {
            Self::File => 'f',
            Self::Monitor => 'm',
            Self::Process => 'p',
            Self::Window => 'w',
        }
    }
}

/// A ref such as `@f3/g7`: kind, number within the perception, generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ref {
    /// What it names.
    pub kind: RefKind,
    /// Its number within its perception, from 1.
    pub number: u64,
    /// The generation of the perception that issued it.
    pub generation: u64,
}

impl Ref {
    /// Whether a target is written as a ref rather than as a path.
    pub fn looks_like(target: &str) -> bool {
        target.starts_with('@')
    }
}

impl FromStr for Ref {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let bad = || {
            Fault::new(ErrorCode::InvalidArgument, "a ref is `@f1/g1`, `@m1/g1`, `@p1/g1` or `@w1/g1`")
                .at("action.target")
        };
        let (name, generation) = text.strip_prefix('@').and_then(|rest| rest.split_once("/g")).ok_or_else(bad)?;
        let kind = match name.chars().next() {
            Some('f') => RefKind::File,
            Some('m') => RefKind::Monitor,
            Some('p') => RefKind::Process,
            Some('w') => RefKind::Window,
            _ => return Err(bad()),
        };
        let number = name.get(1..).and_then(plain_number).ok_or_else(bad)?;
        let generation = plain_number(generation).ok_or_else(bad)?;
        Ok(Self { kind, number, generation })
    }
}

fn plain_number(text: &str) -> Option<u64> {
    let canonical = text.chars().all(|c| c.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}{}/g{}", self.kind.letter(), self.number, self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn r13_a_ref_reads_back_what_it_wrote(number: u64, generation: u64) {
            let reference = Ref { kind: RefKind::File, number, generation };
            proptest::prop_assert_eq!(reference.to_string().parse::<Ref>().unwrap(), reference);
        }
    }

    #[test]
    fn r13_other_forms_are_refused() {
        for text in ["@f1", "f1/g1", "@x1/g1", "@f01/g1", "@f1/g", "@f1/g1 ", "@f-1/g1", "@f1/g+1"] {
            assert!(text.parse::<Ref>().is_err(), "{text}");
        }
    }
}
