//! Ed25519 keys: the supervisor's own, and the list of those it believes.

use std::collections::BTreeMap;
use std::fmt;

use bodyguard_protocol::{Digest, Fault};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

/// A signing key. Its seed is wiped from memory when the last copy is dropped.
#[derive(Clone)]
pub struct Signer(SigningKey);

impl Signer {
    /// The key of a seed of 32 random bytes.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&seed))
    }

    /// `ed25519:` and the first 16 hexadecimal digits of the public key's SHA-256.
    pub fn key_id(&self) -> String {
        key_id(&self.0.verifying_key())
    }

    /// The public key in hexadecimal.
    pub fn public_key_hex(&self) -> String {
        hex::encode(self.0.verifying_key().as_bytes())
    }

    /// A signature in hexadecimal.
    pub fn sign(&self, bytes: &[u8]) -> String {
        hex::encode(self.0.sign(bytes).to_bytes())
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signer").field(&self.key_id()).finish()
    }
}

fn key_id(key: &VerifyingKey) -> String {
    let digest = Digest::of(key.as_bytes());
    format!("ed25519:{}", digest.hex().get(..16).unwrap_or(""))
}

/// Why a signature isn't believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureRefused {
    /// By a key that isn't on the list.
    #[error("the key isn't on the list")]
    UnknownKey,
    /// Not that key's signature over these bytes.
    #[error("the signature doesn't fit")]
    Forged,
}

/// The keys that are believed, by id. A key that a block or an export brings along never gets here
/// by itself.
#[derive(Debug, Clone, Default)]
pub struct KeyList(BTreeMap<String, VerifyingKey>);

impl KeyList {
    /// No key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a public key in hexadecimal and gives its id.
    ///
    /// # Errors
    /// `invalid_argument` for what isn't an Ed25519 key, or is a weak one.
    pub fn add(&mut self, public_key_hex: &str) -> Result<String, Fault> {
        let bad = || Fault::invalid("public_key", "not an Ed25519 public key of 64 hexadecimal digits");
        let mut raw = [0; 32];
        hex::decode_to_slice(public_key_hex, &mut raw).map_err(|_| bad())?;
        // A key has one written form, and so one id.
        let sound = |key: &VerifyingKey| !key.is_weak() && key.to_edwards().compress().to_bytes() == raw;
        let key = VerifyingKey::from_bytes(&raw).ok().filter(sound).ok_or_else(bad)?;
        let id = key_id(&key);
        self.0.insert(id.clone(), key);
        Ok(id)
    }

    /// Adds a signer's public key and gives its id.
    pub fn add_signer(&mut self, signer: &Signer) -> String {
        let id = signer.key_id();
        self.0.insert(id.clone(), signer.0.verifying_key());
        id
    }

    /// The ids on the list, in order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Checks a signature in lower-case hexadecimal over some bytes.
    ///
    /// # Errors
    /// Where the key isn't on the list, or the signature isn't that key's.
    pub fn verify(&self, key_id: &str, bytes: &[u8], signature_hex: &str) -> Result<(), SignatureRefused> {
        let key = self.0.get(key_id).ok_or(SignatureRefused::UnknownKey)?;
        let mut raw = [0; 64];
        hex::decode_to_slice(signature_hex, &mut raw).map_err(|_| SignatureRefused::Forged)?;
        // One signature has one written form.
        if signature_hex.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(SignatureRefused::Forged);
        }
        key.verify_strict(bytes, &Signature::from_bytes(&raw)).map_err(|_| SignatureRefused::Forged)
    }
}
