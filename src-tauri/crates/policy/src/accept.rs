//! Accepting a block: for exactly what is about to happen, now, under a key on the list.

use bodyguard_protocol::{
    AskId, Block, BlockKind, BlockPayload, Digest, ErrorCode, Fault, Moment, Proof, SCHEMA_BLOCK_V1, SessionId,
    StateHash, TraceId, canonical_bytes,
};

use crate::issue::lifetime_ms;
use crate::{Authorized, KeyList, SignatureRefused};

/// What is about to happen, from the supervisor's own records and never from the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// What for.
    pub kind: BlockKind,
    /// The digest of the resolved action, or of the query.
    pub action_digest: Digest,
    /// The state at admission.
    pub state_before: StateHash,
    /// The digest of what it is bound to.
    pub binding_digest: Digest,
    /// The digest of what the person saw. Absent where nobody was asked: then the block must say
    /// the action's own digest.
    pub shown_digest: Option<Digest>,
    /// The digest of the containment it would run in.
    pub sandbox_digest: Digest,
    /// The digest of the policy text in force now.
    pub policy_digest: Digest,
    /// `name@workspace`.
    pub agent_id: String,
    /// The session.
    pub session_id: SessionId,
    /// The trace.
    pub trace_id: TraceId,
    /// The ask; absent where nobody was asked.
    pub ask_id: Option<AskId>,
    /// The boot clock when the yes was given, in milliseconds. Required for a person's yes; a
    /// policy's may go without, because no human wait lies between it and its use.
    pub approved_boot_ms: Option<u64>,
}

/// Why a block isn't accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say it")]
pub enum BlockRefusal {
    #[error("the block isn't signed")]
    Unsigned,
    #[error("the block is signed by a key that isn't on the list")]
    UnknownKey,
    #[error("the block's signature is forged")]
    Forged,
    #[error("the block can't be written as canonical JSON")]
    Unwritable,
    #[error("the block's token isn't that of its content")]
    TokenMismatch,
    #[error("the block has another version")]
    OtherVersion,
    #[error("the block is for more or fewer uses than one")]
    SeveralUses,
    #[error("the block's nonce isn't 128 bits")]
    BadNonce,
    #[error("the block's lifetime isn't one that blocks have")]
    BadLifetime,
    #[error("the block's proof doesn't go with who approved it")]
    ProofMismatch,
    #[error("the block was issued after now; the clock was set back")]
    NotYetValid,
    #[error("the block has expired by the wall clock")]
    ExpiredByWall,
    #[error("the block has expired by the boot clock")]
    ExpiredByBoot,
    #[error("nothing says how long ago the block was approved")]
    NoBootClock,
    #[error("the block is for another kind of use")]
    OtherKind,
    #[error("the block is for another action")]
    OtherAction,
    #[error("the block is for another state")]
    OtherState,
    #[error("the block is bound to something else")]
    OtherBinding,
    #[error("the block approves something else than was shown")]
    OtherShown,
    #[error("the block is for another containment")]
    OtherSandbox,
    #[error("the block was approved under another policy")]
    OtherPolicy,
    #[error("the block is for another agent")]
    OtherAgent,
    #[error("the block is for another session")]
    OtherSession,
    #[error("the block is for another trace")]
    OtherTrace,
    #[error("the block answers another ask")]
    OtherAsk,
}

impl BlockRefusal {
    /// A stable code for records.
    pub const fn code(&self) -> &'static str {
        self.code_and_field().0
    }

    const fn code_and_field(&self) -> (&'static str, &'static str) {
        match self {
            Self::Unsigned => ("unsigned", "signatures"),
            Self::UnknownKey => ("unknown_key", "signatures"),
            Self::Forged => ("forged", "signatures"),
            Self::Unwritable => ("unwritable", "payload"),
            Self::TokenMismatch => ("token_mismatch", "authorization_token"),
            Self::OtherVersion => ("other_version", "version"),
            Self::SeveralUses => ("several_uses", "uses"),
            Self::BadNonce => ("bad_nonce", "nonce"),
            Self::BadLifetime => ("bad_lifetime", "expires_at"),
            Self::ProofMismatch => ("proof_mismatch", "proof"),
            Self::NotYetValid => ("not_yet_valid", "approved_at"),
            Self::ExpiredByWall => ("expired_by_wall", "expires_at"),
            Self::ExpiredByBoot => ("expired_by_boot", "expires_at"),
            Self::NoBootClock => ("no_boot_clock", "approved_at"),
            Self::OtherKind => ("other_kind", "kind"),
            Self::OtherAction => ("other_action", "action_digest"),
            Self::OtherState => ("other_state", "state_before"),
            Self::OtherBinding => ("other_binding", "binding_digest"),
            Self::OtherShown => ("other_shown", "shown_digest"),
            Self::OtherSandbox => ("other_sandbox", "sandbox_digest"),
            Self::OtherPolicy => ("other_policy", "policy_digest"),
            Self::OtherAgent => ("other_agent", "agent_id"),
            Self::OtherSession => ("other_session", "session_id"),
            Self::OtherTrace => ("other_trace", "trace_id"),
            Self::OtherAsk => ("other_ask", "ask_id"),
        }
    }

    /// Whether it is only too late.
    pub const fn is_expiry(&self) -> bool {
        matches!(self, Self::ExpiredByWall | Self::ExpiredByBoot)
    }
}

impl From<BlockRefusal> for Fault {
    fn from(refusal: BlockRefusal) -> Self {
        let (_, field) = refusal.code_and_field();
        Self::new(ErrorCode::AuthorizationFailure, refusal.to_string()).at(format!("authorization.{field}"))
    }
}

/// Accepts a block for what is expected, at this moment. That it wasn't used before is for the log
/// to say, in the transaction that uses it.
///
/// # Errors
/// The first reason against it: signature, then form, then time, then what it is for.
pub fn accept(block: &Block, keys: &KeyList, expect: &Expectation, now: Moment) -> Result<Authorized, BlockRefusal> {
    check_signatures(block, keys)?;
    let ttl_ms = check_form(&block.payload)?;
    check_time(&block.payload, ttl_ms, expect.approved_boot_ms, now)?;
    check_purpose(&block.payload, expect)?;
    Ok(Authorized::by_block(block))
}

/// Every signature must hold, so that none can be added afterwards.
fn check_signatures(block: &Block, keys: &KeyList) -> Result<(), BlockRefusal> {
    let bytes = canonical_bytes(&block.payload).map_err(|_| BlockRefusal::Unwritable)?;
    require(!block.signatures.is_empty(), BlockRefusal::Unsigned)?;
    for signature in &block.signatures {
        keys.verify(&signature.key_id, &bytes, &signature.value).map_err(|refused| match refused {
            SignatureRefused::UnknownKey => BlockRefusal::UnknownKey,
            SignatureRefused::Forged => BlockRefusal::Forged,
        })?;
    }
    require(block.authorization_token == Digest::of(&bytes), BlockRefusal::TokenMismatch)
}

/// The lifetime in milliseconds, if the payload is one that this version issues.
fn check_form(payload: &BlockPayload) -> Result<u64, BlockRefusal> {
    require(payload.version == SCHEMA_BLOCK_V1, BlockRefusal::OtherVersion)?;
    require(payload.uses == 1, BlockRefusal::SeveralUses)?;
    let hex_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    require(payload.nonce.len() == 32 && payload.nonce.bytes().all(hex_digit), BlockRefusal::BadNonce)?;
    let by_policy = payload.approved_by.starts_with("policy:");
    let coherent = match &payload.proof {
        Proof::Click { device } => !by_policy && !device.is_empty() && payload.ask_id.is_some(),
        Proof::Policy { rule } => {
            let names_rule = payload.policy_id.rsplit_once('/').is_some_and(|(_, last)| last == rule);
            by_policy && payload.approved_by == payload.policy_id && names_rule && payload.ask_id.is_none()
        }
    };
    require(coherent, BlockRefusal::ProofMismatch)?;
    lifetime_ms(payload.approved_at, payload.expires_at).ok_or(BlockRefusal::BadLifetime)
}

/// Both clocks must agree that it is still time. At the very millisecond of expiry it is too late.
fn check_time(
    payload: &BlockPayload,
    ttl_ms: u64,
    approved_boot_ms: Option<u64>,
    now: Moment,
) -> Result<(), BlockRefusal> {
    require(payload.approved_at <= now.wall, BlockRefusal::NotYetValid)?;
    require(now.wall < payload.expires_at, BlockRefusal::ExpiredByWall)?;
    match (approved_boot_ms, &payload.proof) {
        // A boot clock that reads less than at the yes is that of another boot.
        (Some(then), _) => {
            let age_ms = now.boot_ms.checked_sub(then).ok_or(BlockRefusal::ExpiredByBoot)?;
            require(age_ms < ttl_ms, BlockRefusal::ExpiredByBoot)
        }
        (None, Proof::Policy { .. }) => Ok(()),
        (None, Proof::Click { .. }) => Err(BlockRefusal::NoBootClock),
    }
}

fn check_purpose(payload: &BlockPayload, expect: &Expectation) -> Result<(), BlockRefusal> {
    let shown = expect.shown_digest.as_ref().unwrap_or(&expect.action_digest);
    require(payload.kind == expect.kind, BlockRefusal::OtherKind)?;
    require(payload.agent_id == expect.agent_id, BlockRefusal::OtherAgent)?;
    require(payload.session_id == expect.session_id, BlockRefusal::OtherSession)?;
    require(payload.trace_id == expect.trace_id, BlockRefusal::OtherTrace)?;
    require(payload.ask_id == expect.ask_id, BlockRefusal::OtherAsk)?;
    require(payload.action_digest == expect.action_digest, BlockRefusal::OtherAction)?;
    require(payload.shown_digest == *shown, BlockRefusal::OtherShown)?;
    require(payload.state_before == expect.state_before, BlockRefusal::OtherState)?;
    require(payload.binding_digest == expect.binding_digest, BlockRefusal::OtherBinding)?;
    require(payload.sandbox_digest == expect.sandbox_digest, BlockRefusal::OtherSandbox)?;
    require(payload.policy_digest == expect.policy_digest, BlockRefusal::OtherPolicy)
}

fn require(holds: bool, otherwise: BlockRefusal) -> Result<(), BlockRefusal> {
    if holds { Ok(()) } else { Err(otherwise) }
}
