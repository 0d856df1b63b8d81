//! How an act ended, in OS-011's words.

use bodyguard_body::{Effect, Image};
use bodyguard_protocol::{ErrorCode, Fault, OutcomeError, OutcomeStatus};
use serde_json::Value;

/// How an act ended, as it is recorded and answered.
pub(super) struct Ended {
    pub(super) status: OutcomeStatus,
    pub(super) observed: Option<Value>,
    pub(super) error: Option<OutcomeError>,
    pub(super) image: Option<Image>,
    pub(super) latency_ms: u64,
}

impl Ended {
    pub(super) fn from_effect(effect: Effect) -> Self {
        Self {
            status: effect.status,
            observed: Some(effect.observed),
            error: effect.error.map(OutcomeError::from),
            image: effect.image,
            latency_ms: effect.latency_ms,
        }
    }

    pub(super) fn from_fault(fault: Fault) -> Self {
        Self { status: status_of(fault.code), observed: None, error: Some(fault.into()), image: None, latency_ms: 0 }
    }
}

/// `blocked` where policy or person didn't permit it, `failure` where the environment didn't
/// (OS-011 §5.2).
pub(super) fn status_of(code: ErrorCode) -> OutcomeStatus {
    match code {
        ErrorCode::AuthorizationRequired
        | ErrorCode::AuthorizationFailure
        | ErrorCode::InProgress
        | ErrorCode::DeniedByPolicy
        | ErrorCode::DeniedByPerson
        | ErrorCode::Expired
        | ErrorCode::Withdrawn
        | ErrorCode::Superseded
        | ErrorCode::BudgetExceeded
        | ErrorCode::SignerUnavailable
        | ErrorCode::Cancelled
        | ErrorCode::Stopped => OutcomeStatus::Blocked,
        ErrorCode::Timeout => OutcomeStatus::Timeout,
        _ => OutcomeStatus::Failure,
    }
}
