//! Signed checkpoints: the tree's size and root at one moment, as a note in the manner of C2SP
//! `tlog-checkpoint`, signed with the supervisor's key.
//!
//! ```text
//! bodyguard/<log id>
//! <leaves>
//! <root in hexadecimal>
//!
//! — <key id> <signature in hexadecimal>
//! ```
//! The signature is Ed25519 over the first three lines with their newlines.

use bodyguard_policy::{KeyList, SignatureRefused, Signer};

use crate::merkle::Hash;

/// What a checkpoint says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// `bodyguard/<log id>`.
    pub origin: String,
    /// Leaves in the tree.
    pub size: u64,
    /// The tree's root.
    pub root: Hash,
    /// The key that signed.
    pub key_id: String,
    signature: String,
}

/// Why a checkpoint isn't believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Not a note of this form.
    #[error("not a checkpoint note")]
    Malformed,
    /// The signature doesn't hold.
    #[error(transparent)]
    Signature(#[from] SignatureRefused),
}

impl Checkpoint {
    /// The origin line of a log.
    pub fn origin_of(log_id: &str) -> String {
        format!("bodyguard/{log_id}")
    }

    /// Signs a tree's size and root.
    pub fn sign(origin: &str, size: u64, root: &Hash, signer: &Signer) -> Self {
        let signature = signer.sign(body(origin, size, root).as_bytes());
        Self { origin: origin.to_owned(), size, root: *root, key_id: signer.key_id(), signature }
    }

    /// The note's text.
    pub fn note(&self) -> String {
        let body = body(&self.origin, self.size, &self.root);
        format!("{body}\n\u{2014} {} {}\n", self.key_id, self.signature)
    }

    /// Reads a note without believing it. Only the exact text that [`Checkpoint::note`] writes is one.
    ///
    /// # Errors
    /// [`CheckpointError::Malformed`].
    pub fn parse(note: &str) -> Result<Self, CheckpointError> {
        let checkpoint = parse(note).ok_or(CheckpointError::Malformed)?;
        if checkpoint.note() == note { Ok(checkpoint) } else { Err(CheckpointError::Malformed) }
    }

    /// Checks the signature against a list of keys.
    ///
    /// # Errors
    /// Where the key isn't on the list or the signature isn't its own.
    pub fn verify(&self, keys: &KeyList) -> Result<(), CheckpointError> {
        let body = body(&self.origin, self.size, &self.root);
        Ok(keys.verify(&self.key_id, body.as_bytes(), &self.signature)?)
    }
}

fn body(origin: &str, size: u64, root: &Hash) -> String {
    format!("{origin}\n{size}\n{}\n", hex::encode(root))
}

fn parse(note: &str) -> Option<Checkpoint> {
    let mut lines = note.lines();
    let origin = lines.next()?.to_owned();
    let size = lines.next()?.parse().ok()?;
    let mut root = [0; 32];
    hex::decode_to_slice(lines.next()?, &mut root).ok()?;
    let (key_id, signature) = lines.nth(1)?.strip_prefix("\u{2014} ")?.split_once(' ')?;
    Some(Checkpoint { origin, size, root, key_id: key_id.to_owned(), signature: signature.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signer() -> Signer {
        Signer::from_seed([7; 32])
    }

    fn keys() -> KeyList {
        let mut keys = KeyList::new();
        keys.add_signer(&signer());
        keys
    }

    #[test]
    fn a_note_reads_back_and_holds() {
        let note = Checkpoint::sign("bodyguard/ab", 12, &[3; 32], &signer()).note();
        assert!(note.starts_with("bodyguard/ab\n12\n0303"));
        let read = Checkpoint::parse(&note).unwrap();
        read.verify(&keys()).unwrap();
        assert_eq!((read.size, read.root), (12, [3; 32]));
        let unknown = CheckpointError::Signature(SignatureRefused::UnknownKey);
        assert_eq!(read.verify(&KeyList::new()), Err(unknown));
    }

    proptest! {
        #[test]
        fn a_note_with_any_other_character_does_not_hold(at in 0_usize..200, with in "[0-9a-f\n \u{2014}]") {
            let note = Checkpoint::sign("bodyguard/ab", 12, &[3; 32], &signer()).note();
            let mut characters: Vec<String> = note.chars().map(String::from).collect();
            let at = at % characters.len();
            prop_assume!(characters[at] != with);
            characters[at] = with;
            let holds = Checkpoint::parse(&characters.concat()).is_ok_and(|read| read.verify(&keys()).is_ok());
            prop_assert!(!holds);
        }
    }
}
