//! What an act would come to (OS-011 §5.7, §8.4): admitted like an act, then left undone. Nothing is
//! asked or recorded, and refs stay fresh.

use std::sync::Arc;

use bodyguard_policy::Verdict;
use bodyguard_protocol::action::ActRequest;
use bodyguard_protocol::{Fault, Foreseen, OutcomeError, Prediction, Provenance, StateHash};
use serde_json::Value;

use super::admission::{Admitted, NotAdmitted, admit};
use super::ended::status_of;
use super::forward::Outlook;
use crate::core::Core;
use crate::session::Session;

pub(super) async fn predict(core: &Arc<Core>, session: &Arc<Session>, action: &Value) -> Result<Prediction, Fault> {
    core.refuse_if_stopped()?;
    let request = ActRequest::parse(action)?;
    if request.authorization_token.is_some() {
        return Err(Fault::invalid("action.authorization", "a prediction needs no authorization and uses none up"));
    }
    let prediction = match admit(core, session, &request.action).await {
        Ok(admitted) => foreseen(core, session, admitted).await,
        Err(NotAdmitted::Denied { fault, policy_id }) => refused(core, session, fault, Some(policy_id), None),
        Err(NotAdmitted::Environment { fault, state }) => refused(core, session, fault, None, Some(state)),
        Err(NotAdmitted::Rejected(fault)) => return Err(fault),
    };
    Ok(prediction)
}

async fn foreseen(core: &Core, session: &Session, admitted: Admitted) -> Prediction {
    let decision = match admitted.decision.verdict() {
        Verdict::Allow { .. } => Foreseen::Allowed,
        Verdict::Ask { .. } => Foreseen::Asked,
        Verdict::Deny { .. } => Foreseen::Refused,
    };
    let outlook = Outlook::of(core, session, &admitted, &admitted.state_before).await;
    let prediction = match admitted.inspection.prediction.clone() {
        Value::Null if !outlook.observed.is_empty() => Value::Object(outlook.observed.clone()),
        told => told,
    };
    Prediction {
        decision,
        policy_id: Some(admitted.decision.policy_id()),
        outcome_status: outlook.status,
        state_after: outlook.state_after(&admitted.state_before),
        state_before: Some(admitted.state_before),
        latency_ms: outlook.latency_ms,
        predicted_outcome: Some(prediction).filter(|value| !value.is_null()),
        error: None,
        provenance: Provenance::new("dry_run", core.now().wall, session.agent_id()),
    }
}

fn refused(
    core: &Core,
    session: &Session,
    fault: Fault,
    policy_id: Option<String>,
    state: Option<StateHash>,
) -> Prediction {
    Prediction {
        decision: Foreseen::Refused,
        policy_id,
        outcome_status: status_of(fault.code),
        state_after: state.clone(),
        state_before: state,
        latency_ms: None,
        predicted_outcome: None,
        error: Some(OutcomeError::from(fault)),
        provenance: Provenance::new("dry_run", core.now().wall, session.agent_id()),
    }
}
