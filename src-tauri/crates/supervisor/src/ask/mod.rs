//! Asks: what waits for a person, and how it ends.
//!
//! The log holds each ask and its moves; every arrow is a compare-and-set there. What is here is
//! the live side: who waits for the answer, and what runs once it is a yes.

mod clock;
mod decide;
mod wait;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bodyguard_policy::{Draft, Expectation};
use bodyguard_protocol::ui::{AskState, Change, DecisionView, UiEventKind};
use bodyguard_protocol::{AskId, Block, BlockKind, Digest, ErrorCode, Fault, Moment, SessionId, StateHash};
use bodyguard_trace::MoveNote;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::agent::{ActReply, PerceiveReply, Refusal};
use crate::core::Core;
use crate::session::Session;

pub(crate) use clock::watch_clock;
pub(crate) use decide::{approve, deny, nonce, open_change, record_ask};
pub(crate) use wait::{Present, wait, wait_for_yes};

/// One ask, or one act that nobody had to be asked about and that still runs.
pub(crate) struct Ask {
    pub(crate) id: AskId,
    /// Whether a person is asked. An act that the policy allows has an id only to be polled by.
    pub(crate) asked: bool,
    pub(crate) origin: Origin,
    pub(crate) shown_digest: Digest,
    pub(crate) opened: Moment,
    pub(crate) ttl_ms: u64,
    /// Cancelled by the requester, a stop, or the session's end.
    pub(crate) cancel: CancellationToken,
    state: watch::Sender<AskState>,
    reason: Mutex<Option<String>>,
    yes: Mutex<Option<Yes>>,
    /// Held while a person's answer is taken, so that two answers can't mix.
    deciding: tokio::sync::Mutex<()>,
    waiters: watch::Sender<u32>,
    last_seen_boot_ms: AtomicU64,
    result: watch::Sender<Option<Finished>>,
}

/// Who asks.
pub(crate) enum Origin {
    Agent { session: Arc<Session>, facts: Facts },
    Change(Change),
}

/// What a block for this ask says; from the supervisor's own records.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) kind: BlockKind,
    pub(crate) action_digest: Digest,
    pub(crate) state_before: StateHash,
    pub(crate) binding_digest: Digest,
    pub(crate) sandbox_digest: Digest,
    pub(crate) policy_digest: Digest,
    pub(crate) policy_id: String,
}

/// A person's yes.
#[derive(Debug, Clone)]
pub(crate) struct Yes {
    pub(crate) block: Block,
    pub(crate) boot_ms: u64,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(crate) enum Finished {
    Act(Box<ActReply>),
    View(Result<Box<PerceiveReply>, Refusal>),
}

impl Facts {
    pub(crate) fn draft(&self, session: &Session, ask_id: Option<AskId>, shown_digest: Digest) -> Draft {
        Draft {
            kind: self.kind,
            action_digest: self.action_digest.clone(),
            state_before: self.state_before.clone(),
            binding_digest: self.binding_digest.clone(),
            shown_digest,
            sandbox_digest: self.sandbox_digest.clone(),
            policy_digest: self.policy_digest.clone(),
            agent_id: session.agent_id(),
            session_id: session.id.clone(),
            trace_id: session.trace_id.clone(),
            ask_id,
            policy_id: self.policy_id.clone(),
        }
    }

    /// What is about to happen, for comparing with a block. `policy_digest` is that of the policy
    /// in force now, so that a policy that changed during the wait asks anew.
    pub(crate) fn expectation(
        &self,
        session: &Session,
        policy_digest: &Digest,
        asked: Option<(&Ask, &Yes)>,
    ) -> Expectation {
        Expectation {
            kind: self.kind,
            action_digest: self.action_digest.clone(),
            state_before: self.state_before.clone(),
            binding_digest: self.binding_digest.clone(),
            shown_digest: asked.map(|(ask, _)| ask.shown_digest.clone()),
            sandbox_digest: self.sandbox_digest.clone(),
            policy_digest: policy_digest.clone(),
            agent_id: session.agent_id(),
            session_id: session.id.clone(),
            trace_id: session.trace_id.clone(),
            ask_id: asked.map(|(ask, _)| ask.id.clone()),
            approved_boot_ms: asked.map(|(_, yes)| yes.boot_ms),
        }
    }
}

impl Ask {
    pub(crate) fn new(
        id: AskId,
        asked: bool,
        origin: Origin,
        shown_digest: Digest,
        opened: Moment,
        ttl_ms: u64,
    ) -> Self {
        let cancel = match &origin {
            Origin::Agent { session, .. } => session.ended.child_token(),
            Origin::Change(_) => CancellationToken::new(),
        };
        Self {
            id,
            asked,
            origin,
            shown_digest,
            opened,
            ttl_ms,
            cancel,
            state: watch::channel(AskState::Open).0,
            reason: Mutex::default(),
            yes: Mutex::default(),
            deciding: tokio::sync::Mutex::default(),
            waiters: watch::channel(0).0,
            last_seen_boot_ms: AtomicU64::new(opened.boot_ms),
            result: watch::channel(None).0,
        }
    }

    pub(crate) fn state(&self) -> AskState {
        *self.state.borrow()
    }

    pub(crate) fn reason(&self) -> Option<String> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The block of its yes, once there is one.
    pub(crate) fn block(&self) -> Option<Block> {
        self.yes.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|yes| yes.block.clone())
    }

    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        match &self.origin {
            Origin::Agent { session, .. } => Some(session),
            Origin::Change(_) => None,
        }
    }

    /// Whether somebody waits for the answer. The person, who asks for a change, always does.
    pub(crate) fn requester_present(&self) -> bool {
        matches!(self.origin, Origin::Change(_)) || *self.waiters.borrow() > 0
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.result.borrow().is_some()
    }

    /// Waits for what came of it, without counting as a requester who is there.
    pub(crate) async fn finished(&self) -> Result<Finished, Fault> {
        let mut result = self.result.subscribe();
        let finished = result.wait_for(Option::is_some).await.ok().and_then(|finished| finished.clone());
        finished.ok_or_else(|| Fault::internal("an act ended without an outcome"))
    }

    pub(crate) fn finish(&self, finished: Finished) {
        self.result.send_replace(Some(finished));
    }

    /// Whether its time is over, by either clock; the stricter wins.
    pub(crate) fn has_lapsed(&self, now: Moment) -> bool {
        let by_boot = now.boot_ms.saturating_sub(self.opened.boot_ms) >= self.ttl_ms;
        let wall = now.wall.millis().saturating_sub(self.opened.wall.millis());
        by_boot || wall >= i64::try_from(self.ttl_ms).unwrap_or(i64::MAX)
    }

    fn seen(&self, now: Moment) {
        self.last_seen_boot_ms.store(now.boot_ms, Ordering::SeqCst);
    }
}

/// The live asks.
#[derive(Default)]
pub(crate) struct Pendings {
    asks: Mutex<HashMap<AskId, Arc<Ask>>>,
    /// Held while an ask is opened, so that counting and adding are one step.
    pub(crate) opening: tokio::sync::Mutex<()>,
}

impl Pendings {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<AskId, Arc<Ask>>> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, ask: Arc<Ask>) {
        self.lock().insert(ask.id.clone(), ask);
    }

    pub(crate) fn get(&self, id: &AskId) -> Option<Arc<Ask>> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn remove(&self, id: &AskId) {
        self.lock().remove(id);
    }

    pub(crate) fn all(&self) -> Vec<Arc<Ask>> {
        self.lock().values().cloned().collect()
    }

    pub(crate) fn of_session(&self, id: &SessionId) -> Vec<Arc<Ask>> {
        self.all().into_iter().filter(|ask| ask.session().is_some_and(|session| session.id == *id)).collect()
    }

    /// Asks that wait for the person: of one agent, and of all.
    pub(crate) fn open_counts(&self, agent: Option<&bodyguard_protocol::AgentName>) -> (u32, u32) {
        let waits = |ask: &&Arc<Ask>| ask.asked && ask.state() == AskState::Open;
        let all = self.all();
        let total = all.iter().filter(waits).count();
        let of_agent = all.iter().filter(waits).filter(|ask| ask.session().map(|s| &s.agent) == agent).count();
        (u32::try_from(of_agent).unwrap_or(u32::MAX), u32::try_from(total).unwrap_or(u32::MAX))
    }

    /// An ask of this session for the very same thing that nobody has answered yet.
    pub(crate) fn same(&self, session: &Session, digest: &Digest) -> Option<Arc<Ask>> {
        self.of_session(&session.id).into_iter().find(|ask| {
            let waits = matches!(ask.state(), AskState::Open | AskState::Approved);
            let alike = matches!(&ask.origin, Origin::Agent { facts, .. } if facts.action_digest == *digest);
            ask.asked && waits && alike && !ask.is_finished() && !ask.cancel.is_cancelled()
        })
    }

    pub(crate) fn cancel_all_of(&self, id: &SessionId) {
        for ask in self.of_session(id) {
            ask.cancel.cancel();
        }
    }
}

/// Moves an ask on, if it still stands where the caller saw it: first in the log, then here.
///
/// # Errors
/// The code of what happened to it meanwhile.
pub(crate) async fn move_ask(
    core: &Core,
    ask: &Ask,
    from: AskState,
    to: AskState,
    note: MoveNote,
) -> Result<(), Fault> {
    let reason = note.reason.clone();
    core.log.move_ask(&ask.id, from, to, note).await?;
    note_move(core, ask, to, reason);
    Ok(())
}

/// Makes a move that the log already holds visible.
pub(crate) fn note_move(core: &Core, ask: &Ask, to: AskState, reason: Option<String>) {
    if reason.is_some() {
        *ask.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }
    ask.state.send_replace(to);
    core.ask_changed(&ask.id);
}

/// Takes back everything of a session that waits.
pub(crate) async fn withdraw_all_of(core: &Core, session: &Session, reason: &str) {
    for ask in core.pendings.of_session(&session.id) {
        withdraw(core, &ask, reason).await;
    }
}

/// Takes back one ask that waits; one that runs is left to its own end.
pub(crate) async fn withdraw(core: &Core, ask: &Ask, reason: &str) {
    if !ask.asked {
        return;
    }
    for from in [AskState::Open, AskState::Approved] {
        let note = MoveNote { reason: Some(reason.to_owned()), ..MoveNote::default() };
        if move_ask(core, ask, from, AskState::Withdrawn, note).await.is_ok() {
            return;
        }
    }
}

impl Core {
    /// Tells everyone that an ask moved: window, tray, bar.
    pub(crate) fn ask_changed(&self, id: &AskId) {
        let (_, open) = self.pendings.open_counts(None);
        self.counts.send_if_modified(|counts| {
            let changed = counts.open_asks != open;
            counts.open_asks = open;
            changed
        });
        if let Some(ask) = self.pendings.get(id) {
            let state = ask.state();
            self.bar.send_if_modified(|bar| match bar {
                Some(content) if content.ask_id == *id && state != AskState::Open && content.ended.is_none() => {
                    content.ended = Some(ended_sentence(state, ask.reason().as_deref()));
                    true
                }
                Some(_) | None => false,
            });
        }
        self.events.send(UiEventKind::AskChanged { ask_id: id.clone() });
    }
}

/// How an ask ended, as the bar says it.
pub(crate) fn ended_sentence(state: AskState, reason: Option<&str>) -> String {
    let what = match state {
        AskState::Open => "waits",
        AskState::Approved => "approved; waits for the requester",
        AskState::Claimed | AskState::Executing => "approved; it runs",
        AskState::Done => "approved and done",
        AskState::Denied => "denied",
        AskState::Expired => "expired: nobody decided in time",
        AskState::Withdrawn => "withdrawn",
        AskState::Superseded => "replaced by another request",
        AskState::Interrupted => "cut off; it is not repeated",
    };
    match reason {
        Some(reason) => format!("{what} ({})", bodyguard_protocol::escape_line(reason)),
        None => what.to_owned(),
    }
}

/// The fault that tells a requester how an ask ended without a yes.
pub(crate) fn ended_fault(state: AskState, reason: Option<String>) -> Fault {
    let with = |code, message: &str, hint: &str| {
        let message = match &reason {
            Some(reason) => format!("{message}: {reason}"),
            None => message.to_owned(),
        };
        Fault::new(code, message).hint(hint)
    };
    match state {
        AskState::Denied => with(
            ErrorCode::DeniedByPerson,
            "the person said no",
            "don't ask for the same again; ask what to do instead",
        ),
        AskState::Expired => {
            with(ErrorCode::Expired, "nobody decided in time", "nobody said no; ask again when somebody may be there")
        }
        AskState::Withdrawn => {
            with(ErrorCode::Withdrawn, "the request was taken back", "ask again if it is still needed")
        }
        AskState::Superseded => {
            with(ErrorCode::Superseded, "another request took its place", "look at the other request")
        }
        AskState::Interrupted => with(
            ErrorCode::Interrupted,
            "it was cut off and may have had effects",
            "look at the state before trying again",
        ),
        AskState::Open | AskState::Approved | AskState::Claimed | AskState::Executing | AskState::Done => {
            with(ErrorCode::AuthorizationFailure, "the request was answered already", "ask anew")
        }
    }
}

/// An ask as it is put on the record.
pub(crate) struct Opening {
    pub(crate) subject: serde_json::Value,
    pub(crate) context: serde_json::Value,
    pub(crate) view: DecisionView,
}
