//! Line endings.

use serde::{Deserialize, Serialize};

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineEnding {
    /// It has no line ending.
    None,
    /// All with LF.
    Lf,
    /// All with CR LF.
    Crlf,
    /// Some with LF, some with CR LF.
    Mixed,
}

impl LineEnding {
    /// The ending of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut previous = 0;
        let (mut lf, mut crlf) = (false, false);
        for &byte in bytes {
            if byte == b'\n' {
                if previous == b'\r' {
                    crlf = true;
                } else {
                    lf = true;
                }
            }
            previous = byte;
        }
        match (lf, crlf) {
            (false, false) => Self::None,
            (true, false) => Self::Lf,
            (false, true) => Self::Crlf,
            (true, true) => Self::Mixed,
        }
    }
}
