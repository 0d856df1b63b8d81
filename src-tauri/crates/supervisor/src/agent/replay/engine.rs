//! Carries the edges out, one after the other, and stops at the first difference.

use std::sync::Arc;
use std::time::Duration;

use bodyguard_protocol::ui::EdgeAddress;
use bodyguard_protocol::{
    ActionOutcome, ActionType, ErrorCode, Fault, PerceptionQuery, QueryMode, ReplayStatus, StateHash, TraceId,
};
use bodyguard_trace::{RecordedAct, RecordedEnd};
use tokio::time::{Instant, sleep};

use super::differences::{explained, foreseen_otherwise, state_stop};
use super::plan::{Deed, Plan, Step};
use super::result::{Stop, difference, is_called_off, trace_outcome};
use super::{Ended, Replay, known_in};
use crate::agent::admission::{Admitted, admit};
use crate::agent::pipeline::{self, Purpose};
use crate::agent::{PerceiveCall, Waiting, perceive};
use crate::ask::{self, Ask, Finished};
use crate::core::Core;
use crate::session::Session;

/// How long an edge waits for its recorded state. What the one before set off may still come about.
const SETTLE: Duration = Duration::from_secs(10);
const SETTLE_STEP: Duration = Duration::from_millis(250);
/// Longer than any ask lives.
const FOREVER: Duration = Duration::from_secs(7 * 24 * 3600);

/// A replay as its task holds it.
pub(super) struct Run {
    pub(super) core: Arc<Core>,
    /// The replay's own session.
    pub(super) session: Arc<Session>,
    pub(super) replay: Arc<Replay>,
    pub(super) plan: Plan,
    pub(super) words: Option<String>,
}

impl Run {
    /// Goes from edge to edge until one isn't as recorded.
    pub(super) async fn edges(self: Arc<Self>) -> Result<(), Stop> {
        let mut begun = false;
        for step in &self.plan.steps {
            match step {
                Step::Skip(edge) => self.replay.note(|progress| progress.skipped.push(*edge)),
                Step::Act(deed) => {
                    self.repeat(deed, begun).await?;
                    begun = true;
                    self.replay.note(|progress| progress.replayed.push(deed.edge_id));
                }
            }
        }
        Ok(())
    }

    /// Ends the session and its trace, and keeps the result for whoever comes back.
    pub(super) async fn end(&self, ended: Result<(), Stop>) {
        let progress = self.replay.progress.borrow().clone();
        let now = self.core.now();
        let heading = &self.replay.heading;
        let (result, reason) = match ended {
            Ok(()) => {
                let result = heading.result(now.wall, ReplayStatus::Success, &progress);
                (result, "every edge came out as recorded".to_owned())
            }
            Err(stop) => {
                let stop = self.called_off(stop);
                let reason = match stop.edge {
                    Some(edge) => format!("stopped at act {edge}: {}", stop.fault.message),
                    None => stop.fault.message.clone(),
                };
                let aborted = is_called_off(stop.fault.code);
                (heading.stopped(now.wall, &progress, stop, aborted), reason)
            }
        };
        self.core.end_session(&self.session, trace_outcome(result.status), &reason).await;
        for ask in self.core.pendings.of_session(&self.session.id) {
            // Nobody can poll these, and they would keep the body.
            self.core.pendings.remove(&ask.id);
        }
        self.replay.note(|progress| {
            progress.ask = None;
            progress.ended = Some(Ended { result: Box::new(result), boot_ms: now.boot_ms });
        });
    }

    /// A stop or a cancellation shows first as whatever it cut short; it is told as what it was.
    fn called_off(&self, stop: Stop) -> Stop {
        match self.may_go_on() {
            Err(fault) => Stop { fault, ..stop },
            Ok(()) => stop,
        }
    }

    fn may_go_on(&self) -> Result<(), Fault> {
        self.core.refuse_if_stopped()?;
        if self.replay.cancel.is_cancelled() || !self.session.is_running() {
            return Err(Fault::new(
                ErrorCode::Cancelled,
                "the replay was taken back, or the session that asked for it ended",
            ));
        }
        Ok(())
    }

    fn known(&self) -> Vec<&TraceId> {
        known_in(&self.plan.of, Some(&self.session.trace_id))
    }

    async fn repeat(&self, deed: &Deed, may_settle: bool) -> Result<(), Stop> {
        self.replay.note(|progress| (progress.edge, progress.ask) = (Some(deed.edge_id), None));
        self.settle(deed, may_settle).await?;
        let admitted = self.admit(deed).await?;
        let ask = self.open(deed, admitted).await.map_err(|fault| Stop::at(deed.edge_id, fault))?;
        self.replay.note(|progress| progress.ask = Some(Arc::clone(&ask)));
        let outcome = self.outcome(&ask).await.map_err(|fault| Stop::at(deed.edge_id, fault))?;
        self.compare(deed, outcome).await
    }

    /// Waits until the state is the recorded one: for the first edge not at all, else within a bound.
    async fn settle(&self, deed: &Deed, may_wait: bool) -> Result<(), Stop> {
        let failed = |fault: Fault| Stop::at(deed.edge_id, fault);
        let end = Instant::now() + if may_wait { SETTLE } else { Duration::ZERO };
        loop {
            self.may_go_on().map_err(failed)?;
            self.core.revive(&self.session).await.map_err(failed)?;
            let state = self.core.stable(&self.session).await.map_err(failed)?;
            if state.fields.hash().map_err(failed)? == deed.state_before {
                return Ok(());
            }
            if Instant::now() >= end {
                let when = format!("before act {}", deed.edge_id);
                let (expected, known) = (&deed.state_before, self.known());
                return Err(state_stop(&self.core, deed.edge_id, &when, expected, &state.fields, &known).await);
            }
            tokio::select! {
                () = sleep(SETTLE_STEP) => {}
                () = self.replay.cancel.cancelled() => {}
            }
        }
    }

    /// Looks, as an act needs it, and admits the act as any other.
    async fn admit(&self, deed: &Deed) -> Result<Admitted, Stop> {
        let (core, session, edge) = (&self.core, &self.session, deed.edge_id);
        // Windows and processes can only be named as the current look shows them.
        let mode = match deed.action.kind {
            ActionType::KeyboardInput | ActionType::MouseClick | ActionType::MouseDrag => QueryMode::Screen,
            ActionType::ProcessSignal => QueryMode::Process,
            _ => QueryMode::Filesystem,
        };
        let query = PerceptionQuery { mode, depth: 1, ..PerceptionQuery::default() };
        let waiting = Waiting { wait: FOREVER, cancel: self.replay.cancel.clone(), progress: Arc::new(drop) };
        let call = PerceiveCall { query, words: self.words.clone(), waiting };
        perceive::perceive(core, session, call).await.map_err(|refusal| Stop::at(edge, refusal))?;
        let admitted = match admit(core, session, &deed.action).await {
            Ok(admitted) => admitted,
            Err(why) => {
                let stop = match pipeline::not_admitted(core, session, &deed.action, why).await {
                    Ok(reply) => self.refusal(edge, reply.outcome),
                    Err(refusal) => Stop::at(edge, refusal),
                };
                return Err(explained(core, session, stop, &deed.state_before, &self.known()).await);
            }
        };
        if admitted.state_before != deed.state_before {
            let fault = Fault::new(ErrorCode::StateHashMismatch, "the state changed before the act was admitted");
            return Err(explained(core, session, Stop::at(edge, fault), &deed.state_before, &self.known()).await);
        }
        let foreseen = &admitted.inspection.prediction;
        match foreseen_otherwise(core, edge, &deed.recorded.prediction, foreseen) {
            None => Ok(admitted),
            Some(stop) => {
                let state = Some(admitted.state_before.clone());
                pipeline::refused(core, session, &deed.action, stop.fault.clone(), (None, state)).await;
                Err(stop)
            }
        }
    }

    async fn open(&self, deed: &Deed, admitted: Admitted) -> Result<Arc<Ask>, Fault> {
        let edge_id = u32::try_from(deed.edge_id).map_err(|_| Fault::internal("an edge has too large a number"))?;
        let replays = Some(EdgeAddress { trace_id: self.plan.of.trace_id.clone(), edge_id });
        let purpose = Purpose { words: self.words.clone(), replays };
        pipeline::open(&self.core, &self.session, admitted, purpose).await
    }

    /// What came of the ask. Whoever waits for the replay counts as there; this task doesn't.
    async fn outcome(&self, ask: &Arc<Ask>) -> Result<ActionOutcome, Fault> {
        let finished = tokio::select! {
            finished = ask.finished() => finished?,
            () = self.replay.cancel.cancelled() => {
                ask::withdraw(&self.core, ask, "the replay was taken back").await;
                ask.cancel.cancel();
                ask.finished().await?
            }
        };
        match finished {
            Finished::Act(reply) => Ok(reply.outcome),
            Finished::View(_) => Err(Fault::internal("an act was answered like a look")),
        }
    }

    fn refusal(&self, edge: u64, outcome: ActionOutcome) -> Stop {
        let Some(error) = outcome.error else {
            return Stop::at(edge, Fault::internal("an act wasn't carried out, and nothing says why"));
        };
        let escalation_id = error.escalation_id.and_then(|id| id.parse().ok());
        let fault = Fault { code: error.code, message: error.message, field: error.field, hint: error.hint };
        Stop { escalation_id, ..Stop::at(edge, fault) }
    }

    /// Compares what came of an act with what was recorded (OS-011 §5.4).
    async fn compare(&self, deed: &Deed, outcome: ActionOutcome) -> Result<(), Stop> {
        let edge = deed.edge_id;
        let Some(now) = self.carried_out(outcome.edge_id).await.map_err(|fault| Stop::at(edge, fault))? else {
            let stop = self.refusal(edge, outcome);
            return Err(explained(&self.core, &self.session, stop, &deed.state_before, &self.known()).await);
        };
        self.replay.note(|progress| progress.carried_out = true);
        let cut_off = outcome.error.as_ref().map(|error| error.code);
        if matches!(cut_off, Some(ErrorCode::Interrupted | ErrorCode::BodyLost | ErrorCode::Cancelled)) {
            return Err(self.refusal(edge, outcome));
        }
        let (then, now) = (&deed.recorded.outcome, now.outcome);
        if now.status != then.status {
            let fault = Fault::new(ErrorCode::OutcomeMismatch, "it was carried out and ended otherwise than recorded");
            let mut details = vec![difference("outcome_status", Some(then.status), Some(now.status))];
            let exit = |observed: &Option<serde_json::Value>| observed.as_ref()?.get("exit_code").cloned();
            if exit(&then.observed) != exit(&now.observed) {
                details.push(difference("observed_outcome.exit_code", exit(&then.observed), exit(&now.observed)));
            }
            return Err(Stop::at(edge, fault).differing(details));
        }
        self.same_after(deed, now.state_after).await
    }

    async fn same_after(&self, deed: &Deed, now: Option<StateHash>) -> Result<(), Stop> {
        let (edge, expected) = (deed.edge_id, &deed.state_after);
        match now {
            Some(now) if now == *expected => Ok(()),
            Some(now) => {
                let fault = Fault::new(
                    ErrorCode::StateHashMismatch,
                    format!("the state after act {edge} isn't the recorded one"),
                );
                let stop = explained(&self.core, &self.session, Stop::at(edge, fault), expected, &self.known()).await;
                Err(stop.between(expected, &now))
            }
            None => {
                Err(Stop::at(edge, Fault::new(ErrorCode::StateHashMismatch, "the state after it could not be read")))
            }
        }
    }

    /// What the new trace says of an edge; none where nothing was carried out.
    async fn carried_out(&self, edge_id: Option<u64>) -> Result<Option<RecordedAct>, Fault> {
        let Some(edge_id) = edge_id else { return Ok(None) };
        let edges = self.core.log.reader().recorded_edges(&self.session.trace_id, edge_id, edge_id).await?;
        Ok(edges.into_iter().next().and_then(|edge| match edge.end {
            RecordedEnd::Ended(act) => Some(*act),
            RecordedEnd::Refused(_) | RecordedEnd::Unknown => None,
        }))
    }
}
