//! What a command writes: the head and the tail are kept, everything is counted.

use std::collections::VecDeque;
use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

/// One stream's output.
#[derive(Debug, Default)]
pub(crate) struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    seen: u64,
}

impl Output {
    pub(crate) fn with_limit(bytes: u64) -> Self {
        let limit = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self { head_limit: limit - limit / 2, tail_limit: limit / 2, ..Self::default() }
    }

    /// Keeps the last bytes and nothing else.
    pub(crate) fn tail_only(bytes: usize) -> Self {
        Self { tail_limit: bytes, ..Self::default() }
    }

    /// The tail as text; what isn't UTF-8 in it stands as U+FFFD.
    pub(crate) fn tail_text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let cut = self.seen > tail.len() as u64;
        String::from_utf8_lossy(if cut { whole_start(&tail) } else { &tail }).into_owned()
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        let room = self.head_limit.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        // Only the end of a long piece can be left in the tail.
        let rest = rest.get(rest.len().saturating_sub(self.tail_limit)..).unwrap_or_default();
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(rest);
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// Writes the stream's fields under `name` into an observation.
    pub(crate) fn describe(&self, name: &str, observed: &mut Map<String, Value>) {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let kept = (self.head.len() + tail.len()) as u64;
        let truncated = self.seen > kept;
        // Where something is left out, a character cut in two doesn't make it binary.
        let head = if truncated { whole_end(&self.head) } else { &self.head };
        let tail = if truncated { whole_start(&tail) } else { &tail };
        let left_out = self.seen - (head.len() + tail.len()) as u64;
        let text = if truncated {
            std::str::from_utf8(head)
                .and_then(|head| Ok(format!("{head}\n[{left_out} bytes left out]\n{}", std::str::from_utf8(tail)?)))
        } else {
            std::str::from_utf8(&[head, tail].concat()).map(str::to_owned)
        };
        let (content, encoding) = match text {
            Ok(text) => (text, "utf8"),
            Err(_) => (BASE64.encode([head, tail].concat()), "base64"),
        };
        observed.insert(name.to_owned(), Value::String(content));
        let info = json!({
            "encoding": encoding,
            "binary": encoding == "base64",
            "bytes_seen": self.seen,
            "bytes_kept": self.seen - left_out,
            "truncated": truncated,
            "left_out_at": truncated.then_some(head.len()),
        });
        observed.insert(format!("{name}_info"), info);
    }
}

/// Reads a stream to its end. `progress` gets each piece, and says whether to go on.
pub(crate) fn pump(mut from: impl Read, mut progress: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(got) => {
                if !progress(buffer.get(..got).unwrap_or_default()) {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn whole_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or_default(),
        Ok(_) | Err(_) => bytes,
    }
}

fn whole_start(bytes: &[u8]) -> &[u8] {
    let continued = bytes.iter().take(3).take_while(|&&byte| byte & 0b1100_0000 == 0b1000_0000).count();
    bytes.get(continued..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn described(pieces: &[Vec<u8>], limit: u64) -> Map<String, Value> {
        let mut output = Output::with_limit(limit);
        for piece in pieces {
            output.take(piece);
        }
        let mut observed = Map::new();
        output.describe("stdout", &mut observed);
        observed
    }

    proptest! {
        #[test]
        fn out_01_head_and_tail_are_kept_and_everything_is_counted(
            pieces in proptest::collection::vec(proptest::collection::vec(b'a'..=b'z', 0..50), 0..20), limit in 1_u64..200,
        ) {
            let all = pieces.concat();
            let seen = described(&pieces, limit);
            prop_assert_eq!(&seen["stdout_info"]["bytes_seen"], &json!(all.len()));
            let text = seen["stdout"].as_str().unwrap();
            if all.len() as u64 <= limit {
                prop_assert_eq!(text.as_bytes(), &all[..]);
            } else {
                let tail = usize::try_from(limit / 2).unwrap();
                let head = usize::try_from(limit).unwrap() - tail;
                prop_assert!(text.as_bytes().starts_with(&all[..head]));
                prop_assert!(text.as_bytes().ends_with(&all[all.len() - tail..]));
                prop_assert_eq!(&seen["stdout_info"]["truncated"], &json!(true));
            }
        }

        #[test]
        fn text_stays_text_wherever_it_is_cut(text in "[aä€🙂]{1,60}", limit in 8_u64..100) {
            let seen = described(&[text.into_bytes()], limit);
            prop_assert_eq!(&seen["stdout_info"]["encoding"], &json!("utf8"));
        }
    }

    #[test]
    fn binary_output_is_marked_and_comes_as_base64() {
        let seen = described(&[vec![0xff, 0x00, 0xfe]], 100);
        assert_eq!(seen["stdout_info"]["encoding"], "base64");
        assert_eq!(seen["stdout"], "/wD+");
    }
}
