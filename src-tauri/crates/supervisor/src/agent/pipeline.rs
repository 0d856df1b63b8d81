//! From an admitted action to its outcome: ask → block → permit → act → record.

use std::sync::Arc;

use bodyguard_policy::{Authorized, Verdict, accept, issue_by_policy};
use bodyguard_protocol::action::ActRequest;
use bodyguard_protocol::ui::{AskState, EdgeAddress};
use bodyguard_protocol::{
    ActionOutcome, AskId, Block, BlockKind, ErrorCode, Fault, OutcomeError, Provenance, StateHash, TypedAction,
};
use serde_json::json;

use super::admission::{self, Admitted, NotAdmitted, RefusedAct, admit, refuse_act};
use super::ended::status_of;
use super::{ActCall, ActReply, Refusal, Waiting, dispatch, review};
use crate::ask::{self, Ask, Facts, Finished, Opening, Origin, Yes};
use crate::core::Core;
use crate::desktop;
use crate::session::Session;

/// How long a policy's own block lives, in milliseconds; it is used at once.
const POLICY_BLOCK_MS: i64 = 60_000;

pub(super) async fn act(core: &Arc<Core>, session: &Arc<Session>, call: ActCall) -> Result<ActReply, Refusal> {
    core.refuse_if_stopped()?;
    let request = ActRequest::parse(&call.action)?;
    let words = call.words.map(|words| super::handle::checked_words("reason", words)).transpose()?;
    session.look().last_active_at = core.now().wall;
    if let Some(token) = &request.authorization_token {
        return redeem(core, session, &request, token, &call.waiting).await;
    }
    match admit(core, session, &request.action).await {
        Ok(admitted) => {
            let ask = open(core, session, admitted, Purpose { words, replays: None }).await?;
            answer(core, session, &ask, &call.waiting).await
        }
        Err(why) => not_admitted(core, session, &request.action, why).await,
    }
}

/// Records an act that wasn't admitted, and says why.
pub(super) async fn not_admitted(
    core: &Core,
    session: &Arc<Session>,
    action: &TypedAction,
    why: NotAdmitted,
) -> Result<ActReply, Refusal> {
    match why {
        NotAdmitted::Denied { fault, policy_id } => {
            Ok(refused(core, session, action, fault, (Some(policy_id), None)).await)
        }
        NotAdmitted::Environment { fault, state } => {
            Ok(refused(core, session, action, fault, (None, Some(state))).await)
        }
        NotAdmitted::Rejected(fault) => {
            let status = status_of(fault.code);
            let act = RefusedAct { action, fault: &fault, status, policy_id: None, state: None, ask_id: None };
            Err(refuse_act(core, session, act).await.0)
        }
    }
}

/// What an act is for.
pub(super) struct Purpose {
    /// The agent's own words about it.
    pub(super) words: Option<String>,
    /// The recorded edge that it repeats; then its block is one for a replay.
    pub(super) replays: Option<EdgeAddress>,
}

impl Purpose {
    const fn kind(&self) -> BlockKind {
        if self.replays.is_some() { BlockKind::Replay } else { BlockKind::Act }
    }
}

/// Records an act that was refused before anybody was asked, and answers with its edge.
pub(super) async fn refused(
    core: &Core,
    session: &Arc<Session>,
    action: &TypedAction,
    fault: Fault,
    (policy_id, state): (Option<String>, Option<StateHash>),
) -> ActReply {
    let status = status_of(fault.code);
    let act = RefusedAct { action, fault: &fault, status, policy_id, state: state.clone(), ask_id: None };
    let (refusal, edge_id) = refuse_act(core, session, act).await;
    let mut reply = unexecuted(core, session, refusal, state);
    reply.outcome.edge_id = edge_id;
    reply
}

pub(super) async fn poll(
    core: &Arc<Core>,
    session: &Arc<Session>,
    id: &AskId,
    waiting: &Waiting,
) -> Result<ActReply, Refusal> {
    let ask = find(core, session, id)?;
    answer(core, session, &ask, waiting).await
}

/// An ask of this session. Another session's is as unknown as one that never was.
pub(super) fn find(core: &Core, session: &Session, id: &AskId) -> Result<Arc<Ask>, Refusal> {
    let ask = core.pendings.get(id).filter(|ask| ask.session().is_some_and(|owner| owner.id == session.id));
    ask.ok_or_else(|| {
        Fault::new(ErrorCode::UnknownEscalation, "no such request in this session")
            .at("escalation_id")
            .hint("it ended long ago, or before Bodyguard was started again; ask anew if it is still needed")
            .into()
    })
}

/// A block that the agent carries. It is looked up and never authorises by its own content.
async fn redeem(
    core: &Arc<Core>,
    session: &Arc<Session>,
    request: &ActRequest,
    token: &str,
    waiting: &Waiting,
) -> Result<ActReply, Refusal> {
    let waits = core.pendings.of_session(&session.id).into_iter().find(|ask| {
        let state = ask.state();
        state == AskState::Approved && ask.token_is(token)
    });
    let fits = match &waits {
        Some(ask) => match admit(core, session, &request.action).await {
            Ok(admitted) => {
                matches!(&ask.origin, Origin::Agent { facts, .. } if facts.action_digest == admitted.action_digest)
            }
            Err(_) => false,
        },
        None => false,
    };
    match waits {
        Some(ask) if fits => answer(core, session, &ask, waiting).await,
        Some(_) | None => {
            let fault = Fault::new(
                ErrorCode::AuthorizationFailure,
                "the authorization isn't an open, unused one of this supervisor for this action",
            )
            .at("action.authorization")
            .hint("leave `authorization` out; the person is asked where the policy says so");
            Ok(refused(core, session, &request.action, fault, (None, None)).await)
        }
    }
}

async fn answer(
    core: &Arc<Core>,
    session: &Arc<Session>,
    ask: &Arc<Ask>,
    waiting: &Waiting,
) -> Result<ActReply, Refusal> {
    match ask::wait(core, ask, waiting).await {
        Some(Finished::Act(reply)) => Ok(*reply),
        Some(Finished::View(_)) => {
            Err(Fault::new(ErrorCode::UnknownEscalation, "that request was a perception").into())
        }
        None => {
            let refusal = Refusal { fault: still_waiting(ask), escalation_id: Some(ask.id.clone()) };
            Ok(unexecuted(core, session, refusal, None))
        }
    }
}

/// Why there is no outcome yet.
pub(super) fn still_waiting(ask: &Ask) -> Fault {
    let hint = "call again with this escalation_id alone; it waits until somebody decides";
    match ask.state() {
        AskState::Open if ask.asked => {
            Fault::new(ErrorCode::AuthorizationRequired, "a person has to decide first").hint(hint)
        }
        _ => Fault::new(ErrorCode::InProgress, "it was permitted and still runs")
            .hint("call again with this escalation_id alone for the outcome"),
    }
}

/// Opens an ask for an admitted action and sets it going; or joins the one that waits for the very
/// same. What the policy allows goes on at once.
pub(super) async fn open(
    core: &Arc<Core>,
    session: &Arc<Session>,
    admitted: Admitted,
    purpose: Purpose,
) -> Result<Arc<Ask>, Fault> {
    let asks = matches!(admitted.decision.verdict(), Verdict::Ask { .. });
    if asks || admitted.action().kind.is_destructive() {
        core.keys.require_signer()?;
    }
    let _opening = core.pendings.opening.lock().await;
    if asks && let Some(ask) = core.pendings.same(session, &admitted.action_digest) {
        return Ok(ask);
    }
    if asks {
        core.admit_ask(session)?;
    }
    let facts = Facts {
        kind: purpose.kind(),
        action_digest: admitted.action_digest.clone(),
        state_before: admitted.state_before.clone(),
        binding_digest: admitted.binding_digest.clone(),
        sandbox_digest: admitted.sandbox.digest.clone(),
        policy_digest: admitted.decision.policy_digest().clone(),
        policy_id: admitted.decision.policy_id(),
    };
    let (id, now, ttl_ms) = (core.new_ask_id(), core.now(), core.ask_ttl_ms().await?);
    let origin = Origin::Agent { session: Arc::clone(session), facts };
    let ask = if asks {
        let Purpose { words, replays } = purpose;
        let frame = review::Frame { id: id.clone(), asked_at: now.wall, ttl_ms, words, replays };
        // Secrets in variables and input are shown and stored as commitments; the exact action stays
        // in memory, and its digest is what is signed.
        let (subject, _) = core.log.redactor().action(admitted.action())?;
        let shown: TypedAction = serde_json::from_value(subject.clone()).map_err(|e| Fault::internal(e.to_string()))?;
        let view = review::decision_view(session, &admitted, &shown.params, frame)?;
        let ask = Arc::new(Ask::new(id, true, origin, view.digest()?, now, ttl_ms));
        let context = json!({ "binding": admitted.inspection.binding, "prediction": admitted.inspection.prediction });
        ask::record_ask(core, &ask, admitted.action_digest.clone(), Opening { subject, context, view }).await?;
        ask
    } else {
        Arc::new(Ask::new(id, false, origin, admitted.action_digest.clone(), now, ttl_ms))
    };
    core.pendings.add(Arc::clone(&ask));
    core.ask_changed(&ask.id);
    let (core, session, driven) = (Arc::clone(core), Arc::clone(session), Arc::clone(&ask));
    // A task of its own: a connection that drops must not leave an act half done.
    tokio::spawn(async move {
        let reply = run(&core, &session, &driven, admitted).await;
        driven.finish(Finished::Act(Box::new(reply)));
        core.ask_changed(&driven.id);
    });
    Ok(ask)
}

/// Waits for the yes where one is needed, and carries the action out once.
async fn run(core: &Arc<Core>, session: &Arc<Session>, ask: &Arc<Ask>, admitted: Admitted) -> ActReply {
    let state = admitted.state_before.clone();
    let action = admitted.action().clone();
    let refused = async |fault: Fault| {
        let (ask_id, status) = (ask.asked.then(|| ask.id.clone()), status_of(fault.code));
        let (action, state) = (&action, Some(state.clone()));
        let act = RefusedAct { action, fault: &fault, status, policy_id: None, state: state.clone(), ask_id };
        let (refusal, edge_id) = refuse_act(core, session, act).await;
        let mut reply = unexecuted(core, session, refusal, state);
        reply.outcome.edge_id = edge_id;
        reply
    };
    let yes = if ask.asked {
        match ask::wait_for_yes(core, ask).await {
            Ok(yes) => Some(yes),
            Err(fault) => return refused(fault).await,
        }
    } else {
        None
    };
    let desktop = if action.kind.is_input() && !session.is_private() {
        match desktop::take_turn(core, ask).await {
            Ok(turn) => Some(turn),
            Err(fault) => {
                ask::withdraw(core, ask, &fault.message).await;
                return refused(fault).await;
            }
        }
    } else {
        None
    };
    let cancel = desktop.as_ref().map_or_else(|| ask.cancel.clone(), |turn| turn.cancel.clone());
    let _turn = session.turn.lock().await;
    let authorized = match authorize(core, session, ask, &admitted, yes.as_ref()).await {
        Ok(authorized) => authorized,
        Err(fault) => {
            ask::withdraw(core, ask, &fault.message).await;
            return refused(fault).await;
        }
    };
    match dispatch::dispatch(core, session, ask, admitted, authorized, cancel).await {
        Ok(reply) => reply,
        Err(fault) => {
            tracing::error!(%fault, action = action.kind.name(), "an act was authorised but not carried out");
            // Its edge stands in the log where there is room for one.
            let escalation_id = ask.asked.then(|| ask.id.clone());
            unexecuted(core, session, Refusal { fault, escalation_id }, Some(state.clone()))
        }
    }
}

/// The dispatch check: policy, block and binding again, and nothing else.
async fn authorize(
    core: &Arc<Core>,
    session: &Arc<Session>,
    ask: &Arc<Ask>,
    admitted: &Admitted,
    yes: Option<&Yes>,
) -> Result<Authorized, Fault> {
    core.refuse_if_stopped()?;
    if !session.is_running() || ask.cancel.is_cancelled() {
        return Err(Fault::new(ErrorCode::Cancelled, "the request was taken back before it ran"));
    }
    let policy = core.policies.current(&core.log, &session.workspace.name).await?;
    let decision = admission::decide(&policy, session, admitted.action(), Some(&admitted.inspection.review));
    if let Verdict::Deny { reason, .. } = decision.verdict() {
        return Err(Fault::new(ErrorCode::DeniedByPolicy, reason.clone()));
    }
    recheck(core, session, admitted).await?;
    let Origin::Agent { facts, .. } = &ask.origin else { return Err(Fault::internal("not an agent's ask")) };
    if facts.kind == BlockKind::Replay {
        same_state(core, session, &facts.state_before).await?;
    }
    let now = core.now();
    if let Some(yes) = yes {
        let expect = facts.expectation(session, decision.policy_digest(), Some((ask, yes)));
        return accept(&yes.block, core.keys.list(), &expect, now).map_err(Fault::from);
    }
    let expect = facts.expectation(session, decision.policy_digest(), None);
    if let Some(authorized) = decision.allow_read(&expect) {
        return Ok(authorized);
    }
    let draft = facts.draft(session, None, facts.action_digest.clone());
    let signer = core.keys.require_signer()?;
    let block = issue_by_policy(signer, draft, &decision, now.wall, POLICY_BLOCK_MS, ask::nonce()?)?;
    accept(&block, core.keys.list(), &expect, now).map_err(Fault::from)
}

/// A replayed edge starts from the recorded state alone (OS-011 §5.4), also after a human wait.
async fn same_state(core: &Core, session: &Session, recorded: &StateHash) -> Result<(), Fault> {
    if core.stable(session).await?.fields.hash()? == *recorded {
        return Ok(());
    }
    Err(Fault::new(ErrorCode::StateHashMismatch, "the state isn't the recorded one any more"))
}

/// Compares the binding once more. A body that ended during the wait costs nothing: a new one takes
/// its place and looks.
async fn recheck(core: &Core, session: &Session, admitted: &Admitted) -> Result<(), Fault> {
    match recheck_once(core, session, admitted).await {
        Err(fault) if fault.code == ErrorCode::BodyLost => recheck_once(core, session, admitted).await,
        checked => checked,
    }
}

async fn recheck_once(core: &Core, session: &Session, admitted: &Admitted) -> Result<(), Fault> {
    core.revive(session).await?;
    let body = session.body();
    if body.sandbox().digest != admitted.sandbox.digest {
        return Err(Fault::new(ErrorCode::StateChanged, "the containment isn't the one that was shown any more"));
    }
    let checked = body.recheck(admitted.action(), &admitted.inspection.binding).await;
    checked.inspect_err(|fault| session.note_fault(fault))
}

/// The outcome of what did not run.
fn unexecuted(core: &Core, session: &Session, refusal: Refusal, state: Option<StateHash>) -> ActReply {
    let status = status_of(refusal.fault.code);
    let mut error = OutcomeError::from(refusal.fault);
    error.escalation_id = refusal.escalation_id.map(|id| id.to_string());
    ActReply {
        outcome: ActionOutcome {
            outcome_status: status,
            state_before: state.clone(),
            state_after: state,
            latency_ms: 0,
            observed_outcome: None,
            error: Some(error),
            trace_id: session.trace_id.clone(),
            edge_id: None,
            authorization: None,
            provenance: Provenance::new("act", core.now().wall, session.agent_id()),
        },
        image: None,
    }
}

impl Ask {
    /// Whether the block of its yes has this token.
    fn token_is(&self, token: &str) -> bool {
        self.block().is_some_and(|block: Block| block.authorization_token.as_str() == token)
    }
}
