//! JSON from agents: no duplicate keys, no numbers that change when read, bounded depth.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::{ErrorCode, Fault};

const DUPLICATE: &str = "duplicate field";

/// Parses one JSON document, refusing what `serde_json` silently repairs.
///
/// # Errors
/// `parse_error` for malformed JSON, trailing text or too deep nesting (128); `duplicate_field`
/// where an object has a key twice, at any depth.
pub fn parse_strict(text: &[u8]) -> Result<Value, Fault> {
    let mut parser = serde_json::Deserializer::from_slice(text);
    let value = StrictValue.deserialize(&mut parser).and_then(|value| parser.end().map(|()| value));
    value.map_err(|error| {
        let message = error.to_string();
        let code = if message.contains(DUPLICATE) { ErrorCode::DuplicateField } else { ErrorCode::ParseError };
        Fault::new(code, message)
    })
}

struct StrictValue;

impl<'de> DeserializeSeed<'de> for StrictValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(StrictValue)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("{DUPLICATE} `{}`", crate::escape_line(&key))));
            }
            object.insert(key, fields.next_value_seed(StrictValue)?);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_keys_are_refused_at_any_depth() {
        let fault = parse_strict(br#"{"a":[{"b":1,"b":2}]}"#).unwrap_err();
        assert_eq!(fault.code, ErrorCode::DuplicateField);
        assert_eq!(parse_strict(br#"{"a":1,"\u0061":2}"#).unwrap_err().code, ErrorCode::DuplicateField);
    }

    #[test]
    fn malformed_text_is_a_parse_error() {
        for text in [&b"{not json"[..], b"", b"{} {}", b"\xff", b"{\"a\":1e999}"] {
            assert_eq!(parse_strict(text).unwrap_err().code, ErrorCode::ParseError, "{text:?}");
        }
        let deep = [b"[".repeat(1000), b"]".repeat(1000)].concat();
        assert_eq!(parse_strict(&deep).unwrap_err().code, ErrorCode::ParseError);
    }

    proptest::proptest! {
        #[test]
        fn strict_agrees_with_serde_json_on_what_it_accepts(text in "[\\[\\]{}:,\"a-c0-9 .eE+-]{0,40}") {
            if let Ok(value) = parse_strict(text.as_bytes()) {
                proptest::prop_assert_eq!(value, serde_json::from_str::<Value>(&text).unwrap());
            }
        }
    }
}
