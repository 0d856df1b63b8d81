//! Before anything runs: whether a trace can be replayed here at all, and from this state.

use bodyguard_protocol::action::ActRequest;
use bodyguard_protocol::ui::SessionState;
use bodyguard_protocol::{ErrorCode, Fault, ReplayOf, StateHash, TraceId, TypedAction, WorkspaceName};
use bodyguard_trace::{RecordedAct, RecordedEdge, RecordedEnd, RecordedTrace};

use super::differences::state_stop;
use super::known_in;
use super::result::{Stop, difference};
use crate::core::Core;
use crate::session::Session;

/// The most edges of one replay.
const MAX_EDGES: u64 = 1_000;

/// What a replay will do.
pub(super) struct Plan {
    pub(super) of: ReplayOf,
    pub(super) steps: Vec<Step>,
}

/// What it does about one recorded edge.
pub(super) enum Step {
    /// Nothing was carried out, so nothing is.
    Skip(u64),
    Act(Box<Deed>),
}

/// One recorded act, whole.
pub(super) struct Deed {
    pub(super) edge_id: u64,
    pub(super) action: TypedAction,
    pub(super) recorded: RecordedAct,
    pub(super) state_before: StateHash,
    pub(super) state_after: StateHash,
}

impl Plan {
    fn first(&self) -> Option<&Deed> {
        self.steps.iter().find_map(|step| match step {
            Step::Act(deed) => Some(&**deed),
            Step::Skip(_) => None,
        })
    }
}

/// The agent's own trace of the session's workspace. Any other is as unknown as one that never was.
pub(super) async fn find(
    core: &Core,
    session: &Session,
    trace_id: &TraceId,
    assigned: &[WorkspaceName],
) -> Result<RecordedTrace, Fault> {
    let found = core.log.reader().recorded_trace(trace_id).await?;
    let its_own = |trace: &RecordedTrace| {
        let agent = trace.began.agent_id.split_once('@').map(|(name, _)| name);
        let workspace = &trace.began.workspace;
        agent == Some(session.agent.as_str()) && *workspace == session.workspace.name && assigned.contains(workspace)
    };
    found.filter(its_own).ok_or_else(|| {
        Fault::new(ErrorCode::NotFound, "no such trace of yours in this workspace")
            .at("trace_id")
            .hint("every session's trace_id is in the answer of body_os_ensure_session")
    })
}

/// The edges that are asked for.
pub(super) fn range(
    trace: &RecordedTrace,
    trace_id: &TraceId,
    from: Option<u64>,
    to: Option<u64>,
) -> Result<ReplayOf, Fault> {
    let last = trace.edges;
    if last == 0 {
        return Err(Fault::new(ErrorCode::NotReplayable, "nothing was done in this trace").at("trace_id"));
    }
    let (from_edge, to_edge) = (from.unwrap_or(1), to.unwrap_or(last));
    if !(1..=last).contains(&from_edge) {
        return Err(Fault::invalid("from_edge", format!("the trace has edges 1 to {last}")));
    }
    if !(from_edge..=last).contains(&to_edge) {
        return Err(Fault::invalid("to_edge", format!("from {from_edge} the trace has edges up to {last}")));
    }
    if to_edge - from_edge >= MAX_EDGES {
        let message = format!("at most {MAX_EDGES} edges at a time; replay the rest from where these end");
        return Err(Fault::invalid("to_edge", message));
    }
    Ok(ReplayOf { trace_id: trace_id.clone(), from_edge, to_edge })
}

/// Plans the edges of a range.
pub(super) async fn make(core: &Core, session: &Session, trace: &RecordedTrace, of: ReplayOf) -> Result<Plan, Stop> {
    same_place(session, trace)?;
    let edges = core.log.reader().recorded_edges(&of.trace_id, of.from_edge, of.to_edge).await;
    let edges = edges.map_err(|error| Stop::of(None, Fault::from(error)))?;
    let steps = edges.into_iter().map(|edge| step(edge, trace.state)).collect::<Result<Vec<_>, _>>()?;
    let plan = Plan { of, steps };
    if plan.first().is_none() {
        let message = "every one of these edges was refused when it was recorded, so there is nothing to repeat";
        return Err(Stop::of(None, Fault::new(ErrorCode::NotReplayable, message)));
    }
    Ok(plan)
}

fn same_place(session: &Session, trace: &RecordedTrace) -> Result<(), Stop> {
    let (recorded, here) = (trace.began.os_family.as_str(), std::env::consts::OS);
    if recorded != here {
        let fault =
            Fault::new(ErrorCode::OsFamilyMismatch, format!("it was recorded on {recorded}, and this is {here}"));
        return Err(Stop::of(None, fault).differing(vec![difference("os_family", Some(recorded), Some(here))]));
    }
    let (recorded, here) = (trace.began.workspace_root.as_str(), session.workspace.root.as_str());
    if recorded != here {
        let fault = Fault::new(ErrorCode::NotReplayable, "it was recorded in another root folder")
            .hint("the trace names absolute paths, and this version maps none");
        return Err(Stop::of(None, fault).differing(vec![difference("workspace_root", Some(recorded), Some(here))]));
    }
    Ok(())
}

fn step(edge: RecordedEdge, trace: SessionState) -> Result<Step, Stop> {
    let edge_id = edge.edge_id;
    let not = |why: String| Stop::at(edge_id, Fault::new(ErrorCode::NotReplayable, why));
    let recorded = match edge.end {
        RecordedEnd::Refused(_) => return Ok(Step::Skip(edge_id)),
        RecordedEnd::Unknown if trace == SessionState::Running => {
            return Err(not(format!("act {edge_id} still runs, so what it does isn't known yet")));
        }
        RecordedEnd::Unknown => return Err(not(format!("act {edge_id} was cut off, so what it did isn't known"))),
        RecordedEnd::Ended(recorded) => *recorded,
    };
    let cut_off = recorded.outcome.error.as_ref().map(|error| error.code);
    if matches!(cut_off, Some(ErrorCode::Interrupted | ErrorCode::BodyLost | ErrorCode::Cancelled)) {
        return Err(not(format!("act {edge_id} was cut off, so what it did isn't known")));
    }
    if recorded.redacted {
        return Err(not(format!("act {edge_id} had secrets, and only commitments to them are on record")));
    }
    let Some(state_after) = recorded.outcome.state_after.clone() else {
        return Err(not(format!("which state act {edge_id} led to isn't on record")));
    };
    let request = ActRequest::parse(&edge.action).map_err(|fault| not(format!("act {edge_id}: {}", fault.message)))?;
    let action = request.action;
    if action.digest().ok().as_ref() != Some(&recorded.action_digest) {
        return Err(not(format!("act {edge_id} isn't on record as it was carried out")));
    }
    // A ref names something of one perception in one session.
    let names_ref = |text: &String| text.split_once('@').is_some_and(|(_, target)| target.starts_with('@'));
    if action.target.starts_with('@') || action.preconditions.iter().any(names_ref) {
        return Err(not(format!("act {edge_id} names refs, which are gone with their session")));
    }
    let state_before = edge.state_before;
    Ok(Step::Act(Box::new(Deed { edge_id, action, recorded, state_before, state_after })))
}

/// Whether the state is the one that the first act started from (OS-011 §5.4).
pub(super) async fn starts_here(core: &Core, session: &Session, plan: &Plan) -> Result<(), Stop> {
    let Some(first) = plan.first() else { return Ok(()) };
    let failed = |fault: Fault| Stop::at(first.edge_id, fault);
    core.revive(session).await.map_err(failed)?;
    let state = core.stable(session).await.map_err(failed)?;
    if state.fields.hash().map_err(failed)? == first.state_before {
        return Ok(());
    }
    let known = known_in(&plan.of, None);
    Err(state_stop(core, first.edge_id, "at the start", &first.state_before, &state.fields, &known).await)
}
