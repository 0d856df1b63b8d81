//! Keys and signatures.

use bodyguard_policy::{KeyList, SignatureRefused, Signer};
use proptest::prelude::*;

use crate::common::{keys, signer};

#[test]
fn a_key_list_reads_what_a_signer_publishes() {
    let mut keys = KeyList::new();
    let id = keys.add(&signer().public_key_hex()).unwrap();
    assert_eq!(id, signer().key_id());
    assert!(id.starts_with("ed25519:") && id.len() == 24, "{id}");
    assert_eq!(keys.ids().collect::<Vec<_>>(), [id.as_str()]);
    assert_eq!(keys.verify(&id, b"x", &signer().sign(b"x")), Ok(()));
}

#[test]
fn bad_and_weak_keys_are_refused() {
    let identity = format!("01{}", "00".repeat(31));
    for bad in ["", "zz", &"00".repeat(31), &"ff".repeat(32), &identity, &"00".repeat(32)] {
        assert!(KeyList::new().add(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_signature_has_one_written_form() {
    let signature = signer().sign(b"x");
    let verify = |text: &str| keys().verify(&signer().key_id(), b"x", text);
    assert_eq!(verify(&signature), Ok(()));
    for other in [signature.to_uppercase(), format!("{signature}00"), format!(" {signature}"), String::new()] {
        assert_eq!(verify(&other), Err(SignatureRefused::Forged), "{other}");
    }
}

#[test]
fn a_signer_never_prints_its_seed() {
    let printed = format!("{:?}", Signer::from_seed([0xab; 32]));
    assert!(printed.contains("ed25519:") && !printed.contains("abab") && !printed.contains("171, 171"), "{printed}");
}

proptest! {
    #[test]
    fn no_changed_byte_and_no_other_key_verifies(
        bytes in proptest::collection::vec(any::<u8>(), 1..64), at: proptest::sample::Index, flip in 1_u8.., seed: [u8; 32],
    ) {
        let signature = signer().sign(&bytes);
        let id = signer().key_id();
        prop_assert_eq!(keys().verify(&id, &bytes, &signature), Ok(()));
        let mut changed = bytes.clone();
        changed[at.index(bytes.len())] ^= flip;
        prop_assert_eq!(keys().verify(&id, &changed, &signature), Err(SignatureRefused::Forged));
        let stranger = Signer::from_seed(seed);
        prop_assume!(seed != [7; 32]);
        prop_assert_eq!(keys().verify(&stranger.key_id(), &bytes, &stranger.sign(&bytes)), Err(SignatureRefused::UnknownKey));
        prop_assert_eq!(keys().verify(&id, &bytes, &stranger.sign(&bytes)), Err(SignatureRefused::Forged));
    }
}
