//! Finds the `id` of a JSON text that is too long to be kept, so that its sender gets an answer.

use rmcp::model::RequestId;
use serde_json::Value;

/// The longest key or value that is looked at.
const LONGEST: usize = 200;

/// Looks for the outermost `"id"` byte by byte. It keeps no more than some hundred bytes.
#[derive(Debug, Default)]
pub(crate) struct IdScan {
    depth: u32,
    in_text: bool,
    escaped: bool,
    /// The last text or scalar at depth 1.
    token: Vec<u8>,
    /// Whether the token before the last colon was the key `id`.
    after_id: bool,
    found: Option<RequestId>,
    /// Seen twice, so neither counts.
    ambiguous: bool,
}

impl IdScan {
    /// Goes on with the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    /// The id, if there was exactly one.
    pub(crate) fn found(&self) -> Option<RequestId> {
        if self.ambiguous { None } else { self.found.clone() }
    }

    fn step(&mut self, byte: u8) {
        if self.in_text {
            self.note(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.note(byte);
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.end_of_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.after_id = serde_json::from_slice::<String>(&self.token).is_ok_and(|key| key == "id");
                self.token.clear();
            }
            b',' => self.end_of_value(),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.note(byte),
        }
    }

    fn note(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < LONGEST {
            self.token.push(byte);
        }
    }

    fn end_of_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        if std::mem::take(&mut self.after_id) {
            self.ambiguous |= self.found.is_some();
            let value: Option<Value> = serde_json::from_slice(&self.token).ok();
            self.found = value.as_ref().and_then(super::request_id);
        }
        self.token.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Option<RequestId> {
        let mut scan = IdScan::default();
        scan.feed(text.as_bytes());
        scan.found()
    }

    #[test]
    fn only_the_outermost_id_counts() {
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":12,"x":{"id":9}}"#), Some(RequestId::Number(12)));
        assert_eq!(id(r#"{"a":["id",{"id":1}],"t":"\"id\":3","id" : "q" }"#), Some(RequestId::String("q".into())));
        assert_eq!(id(r#"{"a":"\\","i\u0064":5}"#), Some(RequestId::Number(5)));
        for none in [r#"{"x":{"id":9}}"#, r#"{"id":1,"id":2}"#, r#"{"id":null}"#, r#"{"id":"#, "[1,2]", "id"] {
            assert_eq!(id(none), None, "{none}");
        }
    }

    proptest::proptest! {
        #[test]
        fn it_agrees_with_a_parser(number: i64, text in ".{0,40}", deep in ".{0,20}") {
            let value = serde_json::json!({"a": text, "id": number, "params": {"id": deep, "t": [text, {"id": 1}]}});
            proptest::prop_assert_eq!(id(&value.to_string()), Some(RequestId::Number(number)));
        }
    }
}
