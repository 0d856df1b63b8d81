//! The person's answers.

use std::sync::{Arc, PoisonError};

use bodyguard_policy::{NativeEvent, Presence, issue_by_person};
use bodyguard_protocol::ui::{AskState, Change, DecisionKind, DecisionView};
use bodyguard_protocol::{AskId, ErrorCode, Fault, canonical_digest};
use bodyguard_trace::{AskRecord, MoveNote};

use super::{Ask, Opening, Origin, Yes, ended_fault, move_ask};
use crate::changes;
use crate::core::Core;

/// The longest reason for a denial, in characters.
const MAX_REASON: usize = 1_000;

/// Takes a person's yes: signs it, and records it before anything can use it.
///
/// # Errors
/// `expired`, `withdrawn` and the like where it came too late; `authorization_failure` where it was
/// given to something else; `stopped`; `signer_unavailable`.
pub(crate) async fn approve(core: &Arc<Core>, id: &AskId, presence: Presence) -> Result<(), Fault> {
    let ask = open_ask(core, id).await?;
    let _one = ask.deciding.lock().await;
    match &ask.origin {
        Origin::Agent { session, facts } => {
            core.refuse_if_stopped()?;
            let signer = core.keys.require_signer()?;
            let now = core.now();
            let device = presence.device().to_owned();
            let draft = facts.draft(session, Some(ask.id.clone()), ask.shown_digest.clone());
            let ttl_ms = i64::try_from(ask.ttl_ms).unwrap_or(i64::MAX);
            let block = issue_by_person(signer, draft, presence, core.keys.person(), now.wall, ttl_ms, nonce()?)?;
            *ask.yes.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Yes { block: block.clone(), boot_ms: now.boot_ms });
            let note = MoveNote { reason: None, device: Some(device), block: Some(block) };
            move_ask(core, &ask, AskState::Open, AskState::Approved, note).await
        }
        Origin::Change(change) => approve_change(core, &ask, change, presence).await,
    }
}

async fn approve_change(core: &Arc<Core>, ask: &Arc<Ask>, change: &Change, presence: Presence) -> Result<(), Fault> {
    if *presence.ask_id() != ask.id || *presence.shown_digest() != ask.shown_digest {
        return Err(Fault::new(ErrorCode::AuthorizationFailure, "the yes was given to something else"));
    }
    let device = presence.device().to_owned();
    drop(presence);
    let note = MoveNote { device: Some(device.clone()), ..MoveNote::default() };
    move_ask(core, ask, AskState::Open, AskState::Approved, note).await?;
    move_ask(core, ask, AskState::Approved, AskState::Claimed, MoveNote::default()).await?;
    move_ask(core, ask, AskState::Claimed, AskState::Executing, MoveNote::default()).await?;
    let applied = changes::apply(core, change, Some(&ask.id), Some(device)).await;
    let (to, reason) = match &applied {
        Ok(()) => (AskState::Done, None),
        Err(fault) => (AskState::Interrupted, Some(fault.message.clone())),
    };
    move_ask(core, ask, AskState::Executing, to, MoveNote { reason, ..MoveNote::default() }).await?;
    applied
}

/// Takes a person's no. It may come from any input, because refusing is the safe side; the record
/// says which.
///
/// # Errors
/// `expired`, `withdrawn` and the like where it came too late; `invalid_argument` for a reason that
/// is too long.
pub(crate) async fn deny(
    core: &Core,
    id: &AskId,
    reason: Option<String>,
    event: Option<NativeEvent>,
) -> Result<(), Fault> {
    let reason = reason.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if reason.as_ref().is_some_and(|text| text.chars().count() > MAX_REASON) {
        return Err(Fault::invalid("reason", format!("at most {MAX_REASON} characters")));
    }
    let ask = open_ask(core, id).await?;
    let device = event.and_then(|event| event.device);
    move_ask(core, &ask, AskState::Open, AskState::Denied, MoveNote { reason, device, block: None }).await
}

/// The ask, if it still waits for the person. One clock decides, here.
async fn open_ask(core: &Core, id: &AskId) -> Result<Arc<Ask>, Fault> {
    let ask = core
        .pendings
        .get(id)
        .filter(|ask| ask.asked)
        .ok_or_else(|| Fault::new(ErrorCode::UnknownEscalation, "no such request waits"))?;
    if ask.state() == AskState::Open && ask.has_lapsed(core.now()) {
        super::clock::lapse(core, &ask).await;
    }
    match ask.state() {
        AskState::Open => Ok(ask),
        ended => Err(ended_fault(ended, ask.reason())),
    }
}

/// Opens an ask for a change that the person wants in the window.
///
/// # Errors
/// Where the change isn't possible, before anyone is asked.
pub(crate) async fn open_change(core: &Arc<Core>, change: Change) -> Result<AskId, Fault> {
    changes::check(core, &change).await?;
    let id = core.new_ask_id();
    let now = core.now();
    let ttl_ms = core.ask_ttl_ms().await?;
    let subject = serde_json::to_value(&change).map_err(|e| Fault::internal(e.to_string()))?;
    let action_digest = canonical_digest(&subject)?;
    let view = DecisionView {
        ask_id: id.clone(),
        kind: DecisionKind::Change,
        headline: changes::headline(&change),
        requester: "you".into(),
        session_id: None,
        replays: None,
        contents: changes::contents(core, &change).await?,
        facts: changes::facts(core, &change).await,
        warnings: Vec::new(),
        agent_words: None,
        why: "It widens what agents may do, or who counts as present.".into(),
        policy_id: "policy:bodyguard/settings".into(),
        action_digest: action_digest.clone(),
        asked_at: now.wall,
        expires_at: now.wall.plus_millis(i64::try_from(ttl_ms).unwrap_or(i64::MAX)),
    };
    let shown_digest = view.digest()?;
    let ask = Arc::new(Ask::new(id.clone(), true, Origin::Change(change), shown_digest, now, ttl_ms));
    record_ask(core, &ask, action_digest, Opening { subject, context: serde_json::Value::Null, view }).await?;
    core.pendings.add(ask);
    core.ask_changed(&id);
    Ok(id)
}

/// Puts a new ask on the record; it exists from then on.
pub(crate) async fn record_ask(
    core: &Core,
    ask: &Ask,
    action_digest: bodyguard_protocol::Digest,
    opening: Opening,
) -> Result<(), Fault> {
    let session = ask.session();
    let record = AskRecord {
        ask_id: ask.id.clone(),
        ask_kind: opening.view.kind,
        session_id: session.map(|s| s.id.clone()),
        trace_id: session.map(|s| s.trace_id.clone()),
        agent_id: session.map_or_else(|| "you".to_owned(), |s| s.agent_id()),
        subject: opening.subject,
        action_digest,
        context: opening.context,
        shown_digest: ask.shown_digest.clone(),
        policy_id: opening.view.policy_id.clone(),
        view: opening.view,
        opened_at: ask.opened.wall,
        opened_boot_ms: ask.opened.boot_ms,
        boot_id: core.log.boot_id().to_owned(),
        ttl_ms: ask.ttl_ms,
    };
    core.log.open_ask(record).await?;
    Ok(())
}

/// 128 random bits.
pub(crate) fn nonce() -> Result<[u8; 16], Fault> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| Fault::internal(format!("no random numbers: {e}")))?;
    Ok(bytes)
}
