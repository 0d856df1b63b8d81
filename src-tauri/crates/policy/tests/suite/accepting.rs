//! Accepting blocks: every field, every clock, every key.

use bodyguard_policy::{BlockRefusal, Expectation, Signer, accept};
use bodyguard_protocol::{
    Block, BlockKind, BlockPayload, BlockSignature, Digest, ErrorCode, Fault, Moment, Proof, Timestamp, canonical_bytes,
};
use proptest::prelude::*;

use crate::common::{BOOT_MS, TTL_MS, after, ask, block, digest, draft, expectation, keys, signer};

/// Seals a payload as the supervisor's own key would.
fn seal(payload: BlockPayload, signer: &Signer) -> Block {
    let bytes = canonical_bytes(&payload).unwrap();
    let signature = BlockSignature { key_id: signer.key_id(), value: signer.sign(&bytes) };
    Block { payload, authorization_token: Digest::of(&bytes), signatures: vec![signature] }
}

fn refusal(block: &Block, expect: &Expectation, now: Moment) -> Option<BlockRefusal> {
    accept(block, &keys(), expect, now).err()
}

fn refused(block: &Block) -> Option<BlockRefusal> {
    refusal(block, &expectation(&draft()), after(1))
}

type Change = fn(&mut BlockPayload);

/// Every field of a payload changed, and what is said if the change were even signed.
const CHANGES: [(Change, Option<BlockRefusal>); 21] = [
    (|p| p.version = 2, Some(BlockRefusal::OtherVersion)),
    (|p| p.kind = BlockKind::Replay, Some(BlockRefusal::OtherKind)),
    (|p| p.kind = BlockKind::View, Some(BlockRefusal::OtherKind)),
    (|p| p.action_digest = digest("x"), Some(BlockRefusal::OtherAction)),
    (|p| p.state_before = digest("x"), Some(BlockRefusal::OtherState)),
    (|p| p.binding_digest = digest("x"), Some(BlockRefusal::OtherBinding)),
    (|p| p.shown_digest = digest("x"), Some(BlockRefusal::OtherShown)),
    (|p| p.sandbox_digest = digest("x"), Some(BlockRefusal::OtherSandbox)),
    (|p| p.policy_digest = digest("x"), Some(BlockRefusal::OtherPolicy)),
    (|p| p.agent_id.push('x'), Some(BlockRefusal::OtherAgent)),
    (|p| p.session_id = "s_ff112233445566778899aabbccddeeff".parse().unwrap(), Some(BlockRefusal::OtherSession)),
    (|p| p.trace_id = "01ARZ3NDEKTSV4RRFFQ69G5FAX".parse().unwrap(), Some(BlockRefusal::OtherTrace)),
    (|p| p.ask_id = Some(ask('1')), Some(BlockRefusal::OtherAsk)),
    (|p| p.ask_id = None, Some(BlockRefusal::ProofMismatch)),
    // These name who signed and why; only the signature guards them.
    (|p| p.policy_id.push('x'), None),
    (|p| p.approved_by.push('x'), None),
    (|p| p.approved_at = after(2).wall, Some(BlockRefusal::NotYetValid)),
    (|p| p.expires_at = after(1).wall, Some(BlockRefusal::ExpiredByWall)),
    (|p| p.proof = Proof::Policy { rule: "change-files".into() }, Some(BlockRefusal::ProofMismatch)),
    (|p| p.nonce.push('0'), Some(BlockRefusal::BadNonce)),
    (|p| p.uses = 2, Some(BlockRefusal::SeveralUses)),
];

#[test]
fn r34_the_block_as_issued_is_accepted_for_exactly_what_it_says() {
    let expect = expectation(&draft());
    let right = accept(&block(), &keys(), &expect, after(1)).unwrap();
    assert_eq!((right.kind(), right.action_digest()), (BlockKind::Act, &expect.action_digest));
    assert_eq!((right.session_id(), right.trace_id()), (&expect.session_id, &expect.trace_id));
    assert_eq!((right.binding_digest(), right.ask_id()), (&expect.binding_digest, expect.ask_id.as_ref()));
    assert_eq!(right.block(), Some(&block()));
    assert_eq!(right.policy_id(), "policy:web/change-files");
}

#[test]
fn r34_every_field_of_the_payload_is_covered_by_the_changes() {
    let as_json = |p: &BlockPayload| serde_json::to_value(p).unwrap();
    let original = block().payload;
    let mut names: std::collections::BTreeSet<String> =
        as_json(&original).as_object().unwrap().keys().cloned().collect();
    for (change, _) in CHANGES {
        let mut payload = original.clone();
        change(&mut payload);
        let changed = as_json(&payload);
        names.retain(|name| changed.get(name) == as_json(&original).get(name));
    }
    assert!(names.is_empty(), "not changed by any: {names:?}");
}

#[test]
fn r34_a_changed_field_is_forged_unless_signed_and_then_refused_with_its_own_code() {
    for (change, otherwise) in CHANGES {
        let mut payload = block().payload;
        change(&mut payload);
        let kept_token = Block { payload: payload.clone(), ..block() };
        assert_eq!(refused(&kept_token), Some(BlockRefusal::Forged), "{otherwise:?}");
        let new_token = Digest::of(&canonical_bytes(&payload).unwrap());
        let fitting_token = Block { authorization_token: new_token, ..kept_token };
        assert_eq!(refused(&fitting_token), Some(BlockRefusal::Forged), "{otherwise:?}");
        assert_eq!(refused(&seal(payload, &signer())), otherwise);
    }
}

#[test]
fn r36_a_block_is_refused_wherever_the_expectation_differs() {
    type Differ = fn(&mut Expectation);
    let table: [(Differ, BlockRefusal); 14] = [
        (|e| e.kind = BlockKind::Replay, BlockRefusal::OtherKind),
        (|e| e.action_digest = digest("x"), BlockRefusal::OtherAction),
        (|e| e.state_before = digest("x"), BlockRefusal::OtherState),
        (|e| e.binding_digest = digest("x"), BlockRefusal::OtherBinding),
        (|e| e.shown_digest = Some(digest("x")), BlockRefusal::OtherShown),
        (|e| e.shown_digest = None, BlockRefusal::OtherShown),
        (|e| e.sandbox_digest = digest("x"), BlockRefusal::OtherSandbox),
        (|e| e.policy_digest = digest("x"), BlockRefusal::OtherPolicy),
        (|e| e.agent_id = "codex@web".into(), BlockRefusal::OtherAgent),
        (|e| e.session_id = "s_ff112233445566778899aabbccddeeff".parse().unwrap(), BlockRefusal::OtherSession),
        (|e| e.trace_id = "01ARZ3NDEKTSV4RRFFQ69G5FAX".parse().unwrap(), BlockRefusal::OtherTrace),
        (|e| e.ask_id = Some(ask('1')), BlockRefusal::OtherAsk),
        (|e| e.ask_id = None, BlockRefusal::OtherAsk),
        (|e| e.approved_boot_ms = None, BlockRefusal::NoBootClock),
    ];
    for (differ, expected) in table {
        let mut expect = expectation(&draft());
        differ(&mut expect);
        assert_eq!(refusal(&block(), &expect, after(1)), Some(expected));
    }
}

#[test]
fn r34_keys_and_signatures() {
    let stranger = Signer::from_seed([8; 32]);
    assert_eq!(refused(&seal(block().payload, &stranger)), Some(BlockRefusal::UnknownKey));
    let mut posing = seal(block().payload, &stranger);
    posing.signatures[0].key_id = signer().key_id();
    assert_eq!(refused(&posing), Some(BlockRefusal::Forged));
    assert_eq!(refused(&Block { signatures: Vec::new(), ..block() }), Some(BlockRefusal::Unsigned));
    let mut second = block();
    second.signatures.extend(seal(block().payload, &stranger).signatures);
    assert_eq!(refused(&second), Some(BlockRefusal::UnknownKey));
    let other_token = Block { authorization_token: digest("x"), ..block() };
    assert_eq!(refused(&other_token), Some(BlockRefusal::TokenMismatch));
}

#[test]
fn apr_08_one_millisecond_decides() {
    let expect = expectation(&draft());
    for (millis, expected) in [
        (0, None),
        (29_900, None),
        (29_999, None),
        (TTL_MS, Some(true)),
        (TTL_MS + 1, Some(true)),
        (30_100, Some(true)),
    ] {
        let refusal = refusal(&block(), &expect, after(millis));
        assert_eq!(refusal.map(|r| r.is_expiry()), expected, "{millis}");
    }
}

#[test]
fn apr_26_a_clock_that_is_set_never_lengthens_a_life() {
    let expect = expectation(&draft());
    let hour = 3_600_000;
    let at =
        |wall: i64, boot: u64| refusal(&block(), &expect, Moment { wall: after(wall).wall, boot_ms: BOOT_MS + boot });
    assert_eq!(at(-hour, 1_000), Some(BlockRefusal::NotYetValid), "back an hour");
    assert_eq!(at(24 * hour, 1_000), Some(BlockRefusal::ExpiredByWall), "forward a day");
    let epoch = Moment { wall: Timestamp::from_millis(0), boot_ms: BOOT_MS };
    assert_eq!(refusal(&block(), &expect, epoch), Some(BlockRefusal::NotYetValid), "to 1970");
    assert_eq!(at(10_000, 30_000), Some(BlockRefusal::ExpiredByBoot), "back twenty seconds");
    let rebooted = Moment { wall: after(1).wall, boot_ms: 10 };
    assert_eq!(refusal(&block(), &expect, rebooted), Some(BlockRefusal::ExpiredByBoot), "after a restart");
}

#[test]
fn r33_a_signed_lifetime_that_blocks_dont_have_is_refused() {
    let changes: [Change; 3] = [
        |p| p.expires_at = p.approved_at,
        |p| p.expires_at = p.approved_at.plus_millis(bodyguard_policy::MAX_BLOCK_MS + 1),
        |p| p.expires_at = Timestamp::from_millis(i64::MAX),
    ];
    for change in changes {
        let mut payload = block().payload;
        change(&mut payload);
        assert_eq!(refused(&seal(payload, &signer())), Some(BlockRefusal::BadLifetime));
    }
}

#[test]
fn r33_a_signed_proof_that_doesnt_go_with_who_approved_is_refused() {
    let mut policys = block().payload;
    policys.ask_id = None;
    policys.shown_digest = policys.action_digest.clone();
    policys.approved_by = policys.policy_id.clone();
    policys.proof = Proof::Policy { rule: "change-files".into() };
    let mut expect = expectation(&draft());
    (expect.ask_id, expect.shown_digest) = (None, None);
    assert_eq!(refusal(&seal(policys.clone(), &signer()), &expect, after(1)), None);
    let of_policy: [Change; 4] = [
        |p| p.approved_by = "policy:web/other".into(),
        |p| p.approved_by = "Ada".into(),
        |p| p.proof = Proof::Policy { rule: "other".into() },
        |p| p.ask_id = Some(ask('0')),
    ];
    let of_person: [Change; 2] =
        [|p| p.approved_by = p.policy_id.clone(), |p| p.proof = Proof::Click { device: String::new() }];
    let cases = of_policy.map(|change| (policys.clone(), change)).into_iter();
    for (mut payload, change) in cases.chain(of_person.map(|change| (block().payload, change))) {
        change(&mut payload);
        assert_eq!(refused(&seal(payload, &signer())), Some(BlockRefusal::ProofMismatch));
    }
}

#[test]
fn r34_a_signed_nonce_that_isnt_128_bits_is_refused() {
    for nonce in [String::new(), "0".repeat(31), "g".repeat(32), "A".repeat(32), "\u{e4}".repeat(16)] {
        let payload = BlockPayload { nonce, ..block().payload };
        assert_eq!(refused(&seal(payload, &signer())), Some(BlockRefusal::BadNonce));
    }
}

#[test]
fn refusals_reach_an_agent_as_authorization_failure_with_the_field() {
    let fault = Fault::from(BlockRefusal::OtherSession);
    assert_eq!(fault.code, ErrorCode::AuthorizationFailure);
    assert_eq!(fault.field.as_deref(), Some("authorization.session_id"));
    assert_eq!(BlockRefusal::OtherSession.code(), "other_session");
}

proptest! {
    /// Whatever the clocks do, nothing is accepted beyond its life on either.
    #[test]
    fn apr_26_accepted_means_in_time_on_both_clocks(wall in -60_000_i64..60_000, boot in -60_000_i64..60_000) {
        let now = Moment { wall: after(wall).wall, boot_ms: after(boot).boot_ms };
        let in_time = (0..TTL_MS).contains(&wall) && (0..TTL_MS).contains(&boot);
        prop_assert_eq!(refusal(&block(), &expectation(&draft()), now).is_none(), in_time);
    }

    /// Any text of a stored block changed in one place is refused or doesn't even read.
    #[test]
    fn r34_a_block_changed_in_one_byte_is_never_accepted(at: proptest::sample::Index, byte in b' '..b'~') {
        let original = serde_json::to_string(&block()).unwrap();
        let mut text = original.clone().into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(changed) = serde_json::from_slice::<Block>(&text) && changed != block() {
            prop_assert!(refused(&changed).is_some(), "{}", String::from_utf8_lossy(&text));
        }
    }
}
