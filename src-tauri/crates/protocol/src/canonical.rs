//! Canonical JSON (RFC 8785), the only form that is ever hashed or signed.

use serde::Serialize;
use serde_json::Value;

use crate::{Digest, ErrorCode, Fault};

/// Integers beyond this lose digits in an IEEE double, so RFC 8785 can't carry them.
const MAX_SAFE_INTEGER: u64 = 1 << 53;

/// The RFC 8785 bytes of a value.
///
/// # Errors
/// `invalid_argument` where the value isn't representable: an integer beyond 2^53 (write it as a
/// string), or a type that isn't JSON.
pub fn canonical_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Fault> {
    let tree = serde_json::to_value(value)
        .map_err(|e| Fault::new(ErrorCode::InvalidArgument, format!("not representable as JSON: {e}")))?;
    refuse_unsafe_integers(&tree)?;
    serde_json_canonicalizer::to_vec(&tree)
        .map_err(|e| Fault::new(ErrorCode::InvalidArgument, format!("not representable as canonical JSON: {e}")))
}

/// SHA-256 over the RFC 8785 bytes.
///
/// # Errors
/// As [`canonical_bytes`].
pub fn canonical_digest<T: Serialize + ?Sized>(value: &T) -> Result<Digest, Fault> {
    Ok(Digest::of(&canonical_bytes(value)?))
}

fn refuse_unsafe_integers(value: &Value) -> Result<(), Fault> {
    match value {
        Value::Number(number) => {
            let magnitude = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            match magnitude {
                Some(n) if n > MAX_SAFE_INTEGER => Err(Fault::new(
                    ErrorCode::InvalidArgument,
                    format!("{number} is beyond 2^53; write it as a string"),
                )),
                Some(_) | None => Ok(()),
            }
        }
        Value::Array(items) => items.iter().try_for_each(refuse_unsafe_integers),
        Value::Object(fields) => fields.values().try_for_each(refuse_unsafe_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn r27_keys_are_sorted_by_utf16_and_numbers_are_shortest() {
        let bytes = canonical_bytes(&json!({"\u{fb33}": 1, "\u{1f600}": 2, "b": 4.50, "a": 1e30, "n": 0.002})).unwrap();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "{\"a\":1e+30,\"b\":4.5,\"n\":0.002,\"\u{1f600}\":2,\"\u{fb33}\":1}"
        );
    }

    #[test]
    fn r27_integers_beyond_2_53_are_refused_not_rounded() {
        assert!(canonical_bytes(&json!({"n": 9_007_199_254_740_992_u64})).is_ok());
        let fault = canonical_bytes(&json!({"a": [{"n": 9_007_199_254_740_993_u64}]})).unwrap_err();
        assert_eq!(fault.code, ErrorCode::InvalidArgument);
        assert!(canonical_bytes(&json!(i64::MIN)).is_err());
    }
}
