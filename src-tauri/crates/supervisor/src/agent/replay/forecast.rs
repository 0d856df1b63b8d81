//! What a replay would come to (OS-011 §5.7, R48). Nothing is done, asked or recorded.

use std::sync::Arc;

use bodyguard_policy::Verdict;
use bodyguard_protocol::{
    ErrorCode, Fault, Foreseen, ForeseenEdge, PerceptionQuery, Prediction, QueryMode, ReplayResult, ReplayStatus,
    SessionId, TraceId,
};

use super::Progress;
use super::differences::foreseen_otherwise;
use super::plan::{Deed, Plan, Step};
use super::result::{Heading, Stop};
use crate::agent::{Refusal, dry_run, perceive};
use crate::core::Core;
use crate::session::Session;

const NOT_EXACT: &str =
    "acts before it change something and aren't carried out in a dry run, so it may come out otherwise";

/// Predicts edge by edge, up to the first that would be refused.
pub(super) async fn foresee(
    core: &Arc<Core>,
    session: &Arc<Session>,
    heading: &Heading,
    plan: Plan,
) -> Result<ReplayResult, Refusal> {
    let beside = beside(core, session).await?;
    let mut progress = Progress::default();
    let mut predictions = Vec::new();
    let mut stopped = None;
    let mut exact = true;
    for step in &plan.steps {
        let deed = match step {
            Step::Skip(edge) => {
                progress.skipped.push(*edge);
                continue;
            }
            Step::Act(deed) => deed,
        };
        let foreseen = predict(core, &beside, deed, exact).await;
        let (prediction, stop) = match foreseen {
            Ok(prediction) => (Some(prediction), None),
            Err((prediction, stop)) => (prediction, Some(stop)),
        };
        let edge_id = deed.edge_id;
        predictions.extend(prediction.map(|prediction| ForeseenEdge { edge_id, exact, prediction }));
        if stop.is_some() {
            stopped = stop;
            break;
        }
        progress.replayed.push(edge_id);
        exact = exact && !deed.action.kind.is_destructive();
    }
    progress.carried_out = !progress.replayed.is_empty();
    let now = core.now().wall;
    let result = match stopped {
        None => heading.result(now, ReplayStatus::Success, &progress),
        Some(stop) => heading.stopped(now, &progress, stop, false),
    };
    Ok(ReplayResult { dry_run: true, predictions: Some(predictions), ..result })
}

/// The session's twin for looking ahead: the same body, but neither recorded nor known to anybody, so
/// that the session's own refs stay fresh.
async fn beside(core: &Arc<Core>, session: &Arc<Session>) -> Result<Arc<Session>, Fault> {
    let decision = perceive::decide(core, session, QueryMode::Filesystem, None).await?;
    let scope = match decision.verdict() {
        Verdict::Deny { reason, .. } => return Err(Fault::new(ErrorCode::DeniedByPolicy, reason.clone())),
        Verdict::Ask { .. } | Verdict::Allow { .. } => decision.view_scope(&session.workspace.root),
    };
    let scope = scope.ok_or_else(|| {
        Fault::new(ErrorCode::AuthorizationRequired, "looking is asked about here, and a dry run asks nothing")
    })?;
    let query = PerceptionQuery {
        mode: QueryMode::Filesystem,
        scope: Some(session.workspace.root.clone()),
        depth: 1,
        ..PerceptionQuery::default()
    };
    let seen = session.body().perceive(scope, query).await.inspect_err(|fault| session.note_fault(fault))?;
    let id = SessionId::from_random(crate::ask::nonce()?);
    let trace_id = TraceId::from_ulid(ulid::Ulid::generate());
    let (agent, workspace, now) = (session.agent.clone(), session.workspace.clone(), core.now().wall);
    let twin = Session::new(id, trace_id, agent, workspace, None, now, session.body(), session.has_screen);
    twin.look().perceive(seen.state, &mut [], &mut [], &[], &mut []);
    Ok(Arc::new(twin))
}

async fn predict(
    core: &Arc<Core>,
    beside: &Arc<Session>,
    deed: &Deed,
    exact: bool,
) -> Result<Prediction, (Option<Prediction>, Stop)> {
    let edge = deed.edge_id;
    let failed = |fault: Fault| (None, Stop::at(edge, fault));
    let action = serde_json::to_value(&deed.action).map_err(|error| failed(Fault::internal(error.to_string())))?;
    let prediction = dry_run::predict(core, beside, &action).await.map_err(failed)?;
    if let (Foreseen::Refused, Some(error)) = (prediction.decision, &prediction.error) {
        let mut fault = Fault::new(error.code, error.message.clone());
        (fault.field, fault.hint) = (error.field.clone(), error.hint.clone());
        if !exact && error.code != ErrorCode::DeniedByPolicy {
            fault.hint = Some(NOT_EXACT.to_owned());
        }
        return Err((Some(prediction), Stop::at(edge, fault)));
    }
    let foreseen = prediction.predicted_outcome.as_ref().filter(|_| exact);
    match foreseen.and_then(|now| foreseen_otherwise(core, edge, &deed.recorded.prediction, now)) {
        Some(stop) => Err((Some(prediction), stop)),
        None => Ok(prediction),
    }
}
