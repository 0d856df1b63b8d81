//! SHA-256 digests in the written form `sha256:<64 hex>`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use ts_rs::TS;

use crate::{ErrorCode, Fault};

/// A SHA-256 digest with its algorithm prefix (OS-011 §5.3).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS)]
#[serde(try_from = "String", into = "String")]
#[ts(type = "string")]
#[schemars(with = "String")]
pub struct Digest(String);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("sha256:{}", hex::encode(Sha256::digest(bytes))))
    }

    /// A digest from its 32 raw bytes.
    pub fn from_raw(raw: [u8; 32]) -> Self {
        Self(format!("sha256:{}", hex::encode(raw)))
    }

    /// The written form, `sha256:…`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The 64 hexadecimal digits without the prefix.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix("sha256:").unwrap_or(&self.0)
    }

    /// The first eight digits, for places where a person compares by eye.
    pub fn short(&self) -> &str {
        self.hex().get(..8).unwrap_or("")
    }

    /// The 32 raw bytes.
    pub fn raw(&self) -> [u8; 32] {
        let mut raw = [0; 32];
        // A `Digest` holds 64 hexadecimal digits by construction.
        let _ = hex::decode_to_slice(self.hex(), &mut raw);
        raw
    }
}

impl FromStr for Digest {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let bad =
            || Fault::new(ErrorCode::InvalidArgument, "a digest is `sha256:` and 64 lower-case hexadecimal digits");
        let digits = text.strip_prefix("sha256:").ok_or_else(bad)?;
        let lower_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        if digits.len() == 64 && digits.chars().all(lower_hex) { Ok(Self(text.to_owned())) } else { Err(bad()) }
    }
}

impl TryFrom<String> for Digest {
    type Error = Fault;

    fn try_from(text: String) -> Result<Self, Fault> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
