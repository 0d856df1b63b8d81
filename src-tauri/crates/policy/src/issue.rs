//! Issuing blocks.

use bodyguard_protocol::{
    AskId, Block, BlockKind, BlockPayload, BlockSignature, Digest, ErrorCode, Fault, Proof, SCHEMA_BLOCK_V1, SessionId,
    StateHash, Timestamp, TraceId, canonical_bytes,
};

use crate::{Decision, Operation, Presence, Signer, Verdict};

/// The longest a block may live: a day, in milliseconds.
pub const MAX_BLOCK_MS: i64 = 24 * 60 * 60 * 1000;

/// The last millisecond of the year 9999, where RFC 3339 ends.
const LAST_WRITABLE_MS: i64 = 253_402_300_799_999;

/// What a block will say, before anyone said yes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field is that of `BlockPayload`")]
pub struct Draft {
    pub kind: BlockKind,
    pub action_digest: Digest,
    pub state_before: StateHash,
    pub binding_digest: Digest,
    pub shown_digest: Digest,
    pub sandbox_digest: Digest,
    pub policy_digest: Digest,
    pub agent_id: String,
    pub session_id: SessionId,
    pub trace_id: TraceId,
    pub ask_id: Option<AskId>,
    pub policy_id: String,
}

/// Signs a person's yes. `person` is their name at this computer; `nonce` is random.
///
/// # Errors
/// `authorization_failure` where the presence answers another ask, or was given to something else
/// than the draft says was shown; `invalid_argument` for a name that is empty or looks like a
/// policy's, and for a lifetime that isn't between 1 ms and [`MAX_BLOCK_MS`].
pub fn issue_by_person(
    signer: &Signer,
    draft: Draft,
    presence: Presence,
    person: &str,
    now: Timestamp,
    ttl_ms: i64,
    nonce: [u8; 16],
) -> Result<Block, Fault> {
    if draft.ask_id.as_ref() != Some(presence.ask_id()) {
        return Err(refused("the yes was given to another ask"));
    }
    if draft.shown_digest != *presence.shown_digest() {
        return Err(refused("the yes was given to something else than was to be signed"));
    }
    if person.trim().is_empty() || person.starts_with("policy:") {
        return Err(Fault::invalid(
            "approved_by",
            "a person's name, which isn't empty and doesn't begin like a policy",
        ));
    }
    let proof = Proof::Click { device: presence.device().to_owned() };
    sign(signer, draft, person.to_owned(), proof, now, ttl_ms, nonce)
}

/// Signs a policy's yes, for what it allows without asking. `nonce` is random.
///
/// # Errors
/// `authorization_failure` where the decision isn't `Allow`, or is about another agent, policy, rule
/// or kind than the draft, or the draft names an ask or something shown; `invalid_argument` for a
/// lifetime that isn't between 1 ms and [`MAX_BLOCK_MS`].
pub fn issue_by_policy(
    signer: &Signer,
    draft: Draft,
    decision: &Decision,
    now: Timestamp,
    ttl_ms: i64,
    nonce: [u8; 16],
) -> Result<Block, Fault> {
    let Verdict::Allow { rule } = decision.verdict() else {
        return Err(refused("the policy doesn't allow this without asking"));
    };
    let kind_fits = match decision.operation() {
        Operation::Act(_) => matches!(draft.kind, BlockKind::Act | BlockKind::Replay),
        Operation::Perceive(_) => draft.kind == BlockKind::View,
    };
    let fits = kind_fits
        && draft.agent_id == decision.agent_id()
        && draft.policy_digest == *decision.policy_digest()
        && draft.policy_id == decision.policy_id()
        && draft.ask_id.is_none()
        && draft.shown_digest == draft.action_digest;
    if !fits {
        return Err(refused("the policy's decision was about something else"));
    }
    let approved_by = draft.policy_id.clone();
    sign(signer, draft, approved_by, Proof::Policy { rule: rule.clone() }, now, ttl_ms, nonce)
}

fn sign(
    signer: &Signer,
    draft: Draft,
    approved_by: String,
    proof: Proof,
    now: Timestamp,
    ttl_ms: i64,
    nonce: [u8; 16],
) -> Result<Block, Fault> {
    let expires_at = now.plus_millis(ttl_ms);
    if lifetime_ms(now, expires_at).is_none() {
        return Err(Fault::invalid(
            "expires_at",
            "a block lives between 1 ms and a day, within the years 1970 to 9999",
        ));
    }
    let payload = BlockPayload {
        version: SCHEMA_BLOCK_V1,
        kind: draft.kind,
        action_digest: draft.action_digest,
        state_before: draft.state_before,
        binding_digest: draft.binding_digest,
        shown_digest: draft.shown_digest,
        sandbox_digest: draft.sandbox_digest,
        policy_digest: draft.policy_digest,
        agent_id: draft.agent_id,
        session_id: draft.session_id,
        trace_id: draft.trace_id,
        ask_id: draft.ask_id,
        policy_id: draft.policy_id,
        approved_by,
        approved_at: now,
        expires_at,
        proof,
        nonce: hex::encode(nonce),
        uses: 1,
    };
    let bytes = canonical_bytes(&payload)?;
    let signature = BlockSignature { key_id: signer.key_id(), value: signer.sign(&bytes) };
    Ok(Block { payload, authorization_token: Digest::of(&bytes), signatures: vec![signature] })
}

/// How long a block lives, if that is a length that blocks have. Outside the years 1970 to 9999 two
/// instants may be written alike, so none of those is signed or accepted.
pub(crate) fn lifetime_ms(from: Timestamp, until: Timestamp) -> Option<u64> {
    let writable = |t: Timestamp| (0..=LAST_WRITABLE_MS).contains(&t.millis());
    let length = until.millis().checked_sub(from.millis())?;
    let proper = writable(from) && writable(until) && (1..=MAX_BLOCK_MS).contains(&length);
    if proper { u64::try_from(length).ok() } else { None }
}

fn refused(message: &str) -> Fault {
    Fault::new(ErrorCode::AuthorizationFailure, message)
}
