//! Intent, act, outcome: what was authorised is recorded, carried out once, and recorded again.

use std::sync::Arc;

use bodyguard_body::Permit;
use bodyguard_policy::Authorized;
use bodyguard_protocol::ui::AskState;
use bodyguard_protocol::{ActionOutcome, Digest, ErrorCode, Fault, Provenance, StableFields, StateHash};
use bodyguard_trace::{IntentCommitted, IntentRecord, MoveNote, OutcomeRecord};
use tokio_util::sync::CancellationToken;

use super::ActReply;
use super::admission::Admitted;
use super::ended::Ended;
use super::forward::{Outlook, What};
use crate::ask::{self, Ask};
use crate::core::Core;
use crate::session::Session;

/// Carries out an admitted action under its authorization.
///
/// # Errors
/// Where the intent or the outcome could not be recorded.
pub(super) async fn dispatch(
    core: &Arc<Core>,
    session: &Arc<Session>,
    ask: &Arc<Ask>,
    admitted: Admitted,
    authorized: Authorized,
    cancel: CancellationToken,
) -> Result<ActReply, Fault> {
    let block = authorized.block().cloned();
    let committed = commit(core, session, ask, &admitted, &authorized).await?;
    let (edge, edge_id) = (committed.reference(), committed.edge_id());
    core.edge_changed(session, edge_id).await;
    let before = fields(core, session).await;
    let now = before.as_ref().and_then(|fields| fields.hash().ok());
    let outlook = Outlook::of(core, session, &admitted, now.as_ref().unwrap_or(&admitted.state_before)).await;
    let permit = Permit::mint(authorized, committed)?;
    let mut ended = carry_out(session, permit, &admitted, cancel).await;
    let after = fields(core, session).await;
    let state_after = after.as_ref().and_then(|fields| fields.hash().ok());
    let surprise = outlook.signal(What {
        before: before.as_ref(),
        after: after.as_ref(),
        ended: &ended,
        trace_id: &session.trace_id,
        edge_id,
        kind: admitted.action().kind,
        now: core.now().wall,
    });
    let picture = match &ended.image {
        Some(image) => Some(core.log.put_blob(image.bytes.clone()).await?),
        None => None,
    };
    let record = OutcomeRecord {
        status: ended.status,
        state_after: state_after.clone(),
        latency_ms: ended.latency_ms,
        observed: ended.observed.clone(),
        error: ended.error.clone(),
        picture: picture.clone(),
        surprise,
    };
    core.log.record_outcome(edge, record).await?;
    if ask.asked {
        note_end(core, ask, &ended);
    }
    note_look(core, session, state_after.as_ref(), picture);
    core.edge_changed(session, edge_id).await;
    Ok(ActReply {
        outcome: ActionOutcome {
            outcome_status: ended.status,
            state_after: state_after.or_else(|| Some(admitted.state_before.clone())),
            state_before: Some(admitted.state_before),
            latency_ms: ended.latency_ms,
            observed_outcome: ended.observed.take(),
            error: ended.error.take(),
            trace_id: session.trace_id.clone(),
            edge_id: Some(edge_id),
            authorization: block,
            provenance: Provenance::new("act", core.now().wall, session.agent_id()),
        },
        image: ended.image.map(Arc::new),
    })
}

/// Uses the yes up, and makes the intent durable.
async fn commit(
    core: &Arc<Core>,
    session: &Session,
    ask: &Arc<Ask>,
    admitted: &Admitted,
    authorized: &Authorized,
) -> Result<IntentCommitted, Fault> {
    if ask.asked {
        ask::move_ask(core, ask, AskState::Approved, AskState::Claimed, MoveNote::default()).await?;
    }
    let intent = IntentRecord {
        session_id: session.id.clone(),
        trace_id: session.trace_id.clone(),
        action: admitted.action().clone(),
        action_digest: admitted.action_digest.clone(),
        state_before: admitted.state_before.clone(),
        binding: admitted.inspection.binding.clone(),
        prediction: admitted.inspection.prediction.clone(),
        ask_id: ask.asked.then(|| ask.id.clone()),
        policy_id: authorized.policy_id().to_owned(),
        authorization: authorized.block().cloned(),
    };
    let committed = match core.log.commit_intent(intent).await {
        Ok(committed) => committed,
        Err(error) => {
            let fault = Fault::from(error);
            if ask.asked {
                let note = MoveNote { reason: Some(fault.message.clone()), ..MoveNote::default() };
                ask::move_ask(core, ask, AskState::Claimed, AskState::Interrupted, note).await?;
            }
            return Err(fault);
        }
    };
    if ask.asked {
        ask::note_move(core, ask, AskState::Executing, None);
    }
    Ok(committed)
}

async fn carry_out(session: &Session, permit: Permit, admitted: &Admitted, cancel: CancellationToken) -> Ended {
    let action = admitted.action().clone();
    let destructive = action.kind.is_destructive();
    let ended = match session.body().act(permit, action, cancel).await {
        Ok(effect) => Ended::from_effect(effect),
        Err(fault) => {
            session.note_fault(&fault);
            Ended::from_fault(fault)
        }
    };
    if destructive {
        session.look().mutated();
    }
    ended
}

async fn fields(core: &Core, session: &Session) -> Option<StableFields> {
    core.stable(session).await.ok().map(|state| state.fields)
}

fn note_end(core: &Arc<Core>, ask: &Arc<Ask>, ended: &Ended) {
    let cut_off = matches!(
        ended.error.as_ref().map(|error| error.code),
        Some(ErrorCode::BodyLost | ErrorCode::Interrupted | ErrorCode::Cancelled)
    );
    let to = if cut_off { AskState::Interrupted } else { AskState::Done };
    ask::note_move(core, ask, to, ended.error.as_ref().map(|error| error.message.clone()));
}

fn note_look(core: &Core, session: &Session, state_after: Option<&StateHash>, picture: Option<Digest>) {
    let now = core.now().wall;
    let mut look = session.look();
    look.last_active_at = now;
    look.state_hash = state_after.cloned();
    look.edges += 1;
    if let Some(digest) = picture {
        look.screenshot = Some((digest, now));
    }
}
