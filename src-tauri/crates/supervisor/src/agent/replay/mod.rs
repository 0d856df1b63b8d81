//! Replay: a recorded trace carried out again until the first difference (OS-011 §5.4, §7.5).
//!
//! A replay runs in a task and a session of its own, so that what it carries out is a new trace. Each
//! edge goes the way of any act: admission, ask or policy, block, permit. What is added are the
//! comparisons with what was recorded.

mod differences;
mod engine;
mod forecast;
mod plan;
mod result;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use bodyguard_protocol::{ErrorCode, Fault, ReplayId, ReplayOf, ReplayResult, SessionId, TraceId, WorkspaceName};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::admission::refuse;
use super::{Refusal, ReplayCall, Waiting};
use crate::ask::Ask;
use crate::core::Core;
use crate::session::Session;
use engine::Run;
use plan::Plan;
use result::{Heading, Stop};

/// How long the result of a replay that ended can be fetched.
const KEPT_MS: u64 = 900_000;

/// One replay, while it runs and for a while after.
pub(super) struct Replay {
    heading: Heading,
    of: ReplayOf,
    /// The session that asked for it.
    owner: SessionId,
    /// Cancelled by the agent, and when the owner ends.
    cancel: CancellationToken,
    /// Calls that wait for it.
    callers: AtomicUsize,
    progress: watch::Sender<Progress>,
}

/// How far a replay is.
#[derive(Clone, Default)]
struct Progress {
    replayed: Vec<u64>,
    skipped: Vec<u64>,
    /// Whether anything was carried out, even if it came out otherwise.
    carried_out: bool,
    /// The edge that it is at.
    edge: Option<u64>,
    ask: Option<Arc<Ask>>,
    ended: Option<Ended>,
}

#[derive(Clone)]
struct Ended {
    result: Box<ReplayResult>,
    boot_ms: u64,
}

impl Replay {
    fn note(&self, change: impl FnOnce(&mut Progress)) {
        self.progress.send_modify(change);
    }

    fn runs(&self) -> bool {
        self.progress.borrow().ended.is_none()
    }

    /// This one, if it is the same that is asked for again.
    fn joined(self: Arc<Self>, of: &ReplayOf) -> Result<Arc<Self>, Fault> {
        if self.of == *of {
            return Ok(self);
        }
        let id = self.heading.replay_id.as_ref().map(ReplayId::to_string).unwrap_or_default();
        let fault = Fault::new(ErrorCode::BudgetExceeded, "this session replays something else now");
        Err(fault.hint(format!("come back with replay_id {id} until it ended, or use another session")))
    }
}

/// The replays that run or ended lately.
#[derive(Default)]
pub(crate) struct Replays {
    all: Mutex<HashMap<ReplayId, Arc<Replay>>>,
}

impl Replays {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ReplayId, Arc<Replay>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one that a session has running.
    fn running(&self, owner: &SessionId) -> Option<Arc<Replay>> {
        self.lock().values().find(|replay| replay.owner == *owner && replay.runs()).cloned()
    }

    /// Whether a session has one running.
    pub(crate) fn busy(&self, owner: &SessionId) -> bool {
        self.running(owner).is_some()
    }

    fn forget_old(&self, now_boot_ms: u64) {
        self.lock().retain(|_, replay| {
            let progress = replay.progress.borrow();
            progress.ended.as_ref().is_none_or(|ended| now_boot_ms.saturating_sub(ended.boot_ms) < KEPT_MS)
        });
    }
}

/// Begins a replay, or joins the same one of this session that runs already.
pub(super) async fn replay(
    core: &Arc<Core>,
    session: &Arc<Session>,
    call: ReplayCall,
    assigned: &[WorkspaceName],
) -> Result<ReplayResult, Refusal> {
    core.refuse_if_stopped()?;
    let words = call.words.map(|words| super::handle::checked_words("reason", words)).transpose()?;
    session.look().last_active_at = core.now().wall;
    let trace = plan::find(core, session, &call.trace_id, assigned).await?;
    let of = plan::range(&trace, &call.trace_id, call.from_edge, call.to_edge)?;
    if !call.dry_run
        && let Some(running) = core.replays.running(&session.id)
    {
        let replay = running.joined(&of)?;
        return Ok(waiting::wait(core, &replay, &call.waiting).await);
    }
    let heading = Heading::new(&of, session);
    let planned = match plan::make(core, session, &trace, of).await {
        Ok(plan) => plan::starts_here(core, session, &plan).await.map(|()| plan),
        Err(stop) => Err(stop),
    };
    match planned {
        Ok(plan) if call.dry_run => forecast::foresee(core, session, &heading, plan).await,
        Ok(plan) => {
            // In a task of its own: a connection that drops meanwhile must not leave a session half begun.
            let begun = tokio::spawn(begin(Arc::clone(core), Arc::clone(session), heading, plan, words)).await;
            let replay = begun.map_err(|error| Fault::internal(error.to_string()))??;
            Ok(waiting::wait(core, &replay, &call.waiting).await)
        }
        Err(stop) => Ok(never_begun(core, session, &heading, stop, call.dry_run).await),
    }
}

/// Comes back for one.
pub(super) async fn poll(
    core: &Arc<Core>,
    session: &Arc<Session>,
    id: &ReplayId,
    patience: &Waiting,
) -> Result<ReplayResult, Refusal> {
    session.look().last_active_at = core.now().wall;
    let found = core.replays.lock().get(id).filter(|replay| replay.owner == session.id).cloned();
    let replay = found.ok_or_else(|| {
        Fault::new(ErrorCode::NotFound, "no such replay in this session")
            .at("replay_id")
            .hint("it ended long ago, or before Bodyguard was started again; its trace is on record")
    })?;
    Ok(waiting::wait(core, &replay, patience).await)
}

/// A replay that ended before it began: nothing was carried out, so that there is no new trace.
async fn never_begun(
    core: &Core,
    session: &Arc<Session>,
    heading: &Heading,
    mut stop: Stop,
    dry_run: bool,
) -> ReplayResult {
    if !dry_run {
        let attempted = json!({ "replay": heading.of });
        stop.escalation_id = refuse(core, session, attempted, &stop.fault, None).await.escalation_id;
    }
    let mut result = heading.stopped(core.now().wall, &Progress::default(), stop, false);
    result.dry_run = dry_run;
    result
}

/// Begins one, unless another call did so meanwhile.
async fn begin(
    core: Arc<Core>,
    owner: Arc<Session>,
    mut heading: Heading,
    plan: Plan,
    words: Option<String>,
) -> Result<Arc<Replay>, Fault> {
    let of = plan.of.clone();
    let _one = owner.replaying.lock().await;
    if let Some(running) = core.replays.running(&owner.id) {
        return running.joined(&of);
    }
    let goal = format!("Replay of {}, acts {} to {}", of.trace_id, of.from_edge, of.to_edge);
    let workspace = owner.workspace.clone();
    let session = super::handle::begin_session(&core, &owner.agent, workspace, Some(goal), Some(of.clone())).await?;
    let id = ReplayId::from_ulid(ulid::Ulid::generate());
    heading.replay_id = Some(id.clone());
    heading.trace_id = Some(session.trace_id.clone());
    let replay = Arc::new(Replay {
        heading,
        of,
        owner: owner.id.clone(),
        cancel: owner.ended.child_token(),
        callers: AtomicUsize::new(0),
        progress: watch::channel(Progress::default()).0,
    });
    core.replays.forget_old(core.now().boot_ms);
    core.replays.lock().insert(id, Arc::clone(&replay));
    let run = Arc::new(Run { core: Arc::clone(&core), session, replay: Arc::clone(&replay), plan, words });
    // A task of its own: a connection that drops must not leave a replay half done. In another one the
    // edges are carried out, so that a fault of ours ends the replay too.
    tokio::spawn(async move {
        let ended = match tokio::spawn(Arc::clone(&run).edges()).await {
            Ok(ended) => ended,
            Err(error) => Err(Stop::of(None, Fault::internal(error.to_string()))),
        };
        run.end(ended).await;
    });
    Ok(replay)
}

/// The traces in which the fields behind a state hash may be on record.
fn known_in<'a>(of: &'a ReplayOf, own: Option<&'a TraceId>) -> Vec<&'a TraceId> {
    std::iter::once(&of.trace_id).chain(own).collect()
}
