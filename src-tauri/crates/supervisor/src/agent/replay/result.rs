//! What an agent is told of a replay.

use bodyguard_protocol::{
    AskId, Difference, ErrorCode, Fault, OutcomeError, Provenance, ReplayId, ReplayOf, ReplayResult, ReplayStatus,
    StateHash, Timestamp, TraceId, TraceOutcome,
};

use super::Progress;
use crate::agent::Refusal;
use crate::session::Session;

/// What every answer about one replay says.
#[derive(Clone)]
pub(super) struct Heading {
    pub(super) of: ReplayOf,
    /// Absent where it never began.
    pub(super) replay_id: Option<ReplayId>,
    pub(super) trace_id: Option<TraceId>,
    agent_id: String,
}

/// Why a replay goes no further.
pub(super) struct Stop {
    /// The edge of the recorded trace.
    pub(super) edge: Option<u64>,
    pub(super) fault: Fault,
    pub(super) escalation_id: Option<AskId>,
    pub(super) expected: Option<StateHash>,
    pub(super) actual: Option<StateHash>,
    pub(super) details: Vec<Difference>,
}

impl Stop {
    pub(super) fn of(edge: Option<u64>, fault: impl Into<Refusal>) -> Self {
        let Refusal { fault, escalation_id } = fault.into();
        Self { edge, fault, escalation_id, expected: None, actual: None, details: Vec::new() }
    }

    pub(super) fn at(edge: u64, fault: impl Into<Refusal>) -> Self {
        Self::of(Some(edge), fault)
    }

    pub(super) fn differing(mut self, details: Vec<Difference>) -> Self {
        self.details.extend(details);
        self
    }

    pub(super) fn between(mut self, expected: &StateHash, actual: &StateHash) -> Self {
        self.expected = Some(expected.clone());
        self.actual = Some(actual.clone());
        self
    }
}

/// One difference.
pub(super) fn difference<T: serde::Serialize>(field: &str, expected: Option<T>, actual: Option<T>) -> Difference {
    let value = |side: Option<T>| side.and_then(|side| serde_json::to_value(side).ok());
    Difference { field: field.to_owned(), expected: value(expected), actual: value(actual) }
}

impl Heading {
    pub(super) fn new(of: &ReplayOf, session: &Session) -> Self {
        Self { of: of.clone(), replay_id: None, trace_id: None, agent_id: session.agent_id() }
    }

    pub(super) fn result(&self, now: Timestamp, status: ReplayStatus, progress: &Progress) -> ReplayResult {
        ReplayResult {
            status,
            dry_run: false,
            replay_id: self.replay_id.clone(),
            trace_id: self.trace_id.clone(),
            replayed_trace_id: self.of.trace_id.clone(),
            edges_replayed: progress.replayed.clone(),
            edges_skipped: progress.skipped.clone(),
            failed_at_edge: None,
            reason: None,
            expected_hash: None,
            actual_hash: None,
            divergence_details: None,
            escalation_id: None,
            waiting_for: None,
            predictions: None,
            error: None,
            provenance: Provenance::new("replay", now, self.agent_id.clone()),
        }
    }

    pub(super) fn stopped(&self, now: Timestamp, progress: &Progress, stop: Stop, aborted: bool) -> ReplayResult {
        let status = if aborted {
            ReplayStatus::Aborted
        } else if progress.carried_out {
            ReplayStatus::Partial
        } else {
            ReplayStatus::Failure
        };
        let mut error = OutcomeError::from(stop.fault);
        error.escalation_id = stop.escalation_id.map(|id| id.to_string());
        ReplayResult {
            failed_at_edge: stop.edge,
            reason: Some(error.code),
            expected_hash: stop.expected,
            actual_hash: stop.actual,
            divergence_details: Some(stop.details).filter(|details| !details.is_empty()),
            error: Some(error),
            ..self.result(now, status, progress)
        }
    }
}

/// How the new trace ended.
pub(super) const fn trace_outcome(status: ReplayStatus) -> TraceOutcome {
    match status {
        ReplayStatus::Success => TraceOutcome::Success,
        ReplayStatus::Partial => TraceOutcome::Partial,
        ReplayStatus::Failure => TraceOutcome::Failure,
        ReplayStatus::Aborted | ReplayStatus::Running => TraceOutcome::Aborted,
    }
}

/// Whether a replay that stopped for this was called off, and didn't fail.
pub(super) const fn is_called_off(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::Stopped | ErrorCode::Cancelled | ErrorCode::Withdrawn)
}
