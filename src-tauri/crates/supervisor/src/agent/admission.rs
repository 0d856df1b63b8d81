//! Admission: policy first, then the environment; freshness, preconditions, affordance, binding.

use std::sync::Arc;

use bodyguard_body::{Inspection, Review, SandboxInfo, SandboxLevel};
use bodyguard_policy::{Containment, Decision, Operation, Policy, Request, Verdict};
use bodyguard_protocol::ui::UiEventKind;
use bodyguard_protocol::{
    ActionType, AskId, Digest, ErrorCode, Fault, OutcomeStatus, StableFields, StateHash, TypedAction, canonical_digest,
};
use bodyguard_trace::{Record, Refused, RefusedEdge};
use serde_json::Value;

use super::{Refusal, affordances, resource};
use crate::core::Core;
use crate::session::Session;

/// An action that may go on to be asked about or carried out.
pub(crate) struct Admitted {
    pub(crate) inspection: Inspection,
    pub(crate) action_digest: Digest,
    pub(crate) binding_digest: Digest,
    pub(crate) state_before: StateHash,
    pub(crate) sandbox: SandboxInfo,
    pub(crate) decision: Decision,
}

impl Admitted {
    pub(crate) fn action(&self) -> &TypedAction {
        &self.inspection.resolved
    }
}

/// Why an action wasn't admitted.
pub(crate) enum NotAdmitted {
    /// The policy denies it; nothing was looked at.
    Denied { fault: Fault, policy_id: String },
    /// The environment doesn't permit it.
    Environment { fault: Fault, state: StateHash },
    /// The request itself doesn't hold: stale, unmet, malformed.
    Rejected(Fault),
}

impl From<Fault> for NotAdmitted {
    fn from(fault: Fault) -> Self {
        Self::Rejected(fault)
    }
}

/// Admits an action, or says why not.
pub(crate) async fn admit(core: &Core, session: &Session, action: &TypedAction) -> Result<Admitted, NotAdmitted> {
    let perceived = session.look().fresh()?;
    let named = TypedAction { target: resolve(session, action)?, ..action.clone() };
    let policy = core.policies.current(&core.log, &session.workspace.name).await?;
    permitted(&policy, session, &named, None)?;
    core.revive(session).await?;
    let state = core.stable(session).await?;
    unchanged(action.kind, &perceived.state.fields, &state.fields)?;
    let state_before = state.fields.hash()?;
    affordances::check_preconditions(core, session, &policy, &action.preconditions).await?;
    let environment = |fault: Fault| NotAdmitted::Environment { fault, state: state_before.clone() };
    let body = session.body();
    let inspection = body.inspect(&named).await.inspect_err(|fault| session.note_fault(fault)).map_err(environment)?;
    // A link may have led elsewhere: what counts is where it really is.
    let decision = permitted(&policy, session, &inspection.resolved, Some(&inspection.review))?;
    let resolved = &inspection.resolved;
    if !affordances::afforded(session, &policy, resolved.kind, &resolved.target) {
        return Err(environment(Fault::new(ErrorCode::NotAfforded, "this isn't in the current affordance set")));
    }
    Ok(Admitted {
        action_digest: resolved.digest()?,
        binding_digest: canonical_digest(&inspection.binding)?,
        sandbox: body.sandbox(),
        inspection,
        state_before,
        decision,
    })
}

fn permitted(
    policy: &Policy,
    session: &Session,
    action: &TypedAction,
    review: Option<&Review>,
) -> Result<Decision, NotAdmitted> {
    let decision = decide(policy, session, action, review);
    match decision.verdict() {
        Verdict::Deny { reason, .. } => {
            let fault = Fault::new(ErrorCode::DeniedByPolicy, reason.clone())
                .hint("body_os_affordances lists what may be done; the person can change the policy");
            Err(NotAdmitted::Denied { fault, policy_id: decision.policy_id() })
        }
        Verdict::Ask { .. } | Verdict::Allow { .. } => Ok(decision),
    }
}

/// What the policy says to an action whose target is resolved. `review` is what the body found, once
/// it has looked; before that, windows and processes are what the current perception showed.
pub(crate) fn decide(policy: &Policy, session: &Session, action: &TypedAction, review: Option<&Review>) -> Decision {
    policy.decide(&Request {
        workspace: &session.workspace.name,
        agent: &session.agent,
        operation: Operation::Act(action.kind),
        resource: resource::of(session, action, review),
        containment: containment(&session.body().sandbox()),
    })
}

/// How the policy's words name a body's containment. Namespaces alone are not every layer.
pub(crate) fn containment(sandbox: &SandboxInfo) -> Containment {
    match sandbox.level {
        SandboxLevel::Bubblewrap => Containment::Reduced,
        SandboxLevel::Simulated => Containment::Full,
        SandboxLevel::None => Containment::None,
    }
}

/// The target without refs: an absolute path, `monitor:N`, `window:N`, `point:X,Y`, `process:N`.
fn resolve(session: &Session, action: &TypedAction) -> Result<String, Fault> {
    let target =
        if action.target.starts_with('@') { session.resolve_ref(&action.target)? } else { action.target.clone() };
    let at = |fault: Fault| fault.at("action.target");
    match action.kind {
        ActionType::ScreenCapture => match target.strip_prefix("monitor:").and_then(|n| n.parse::<u32>().ok()) {
            Some(number) => Ok(format!("monitor:{number}")),
            None => Err(at(Fault::invalid("action.target", "a screen's target is `monitor:N` or a monitor's ref"))),
        },
        ActionType::KeyboardInput | ActionType::MouseClick | ActionType::MouseDrag => {
            resource::input_target(session, action.kind, &target).map_err(at)
        }
        ActionType::ProcessSignal => resource::process_target(session, &target).map_err(at),
        // A bare name is looked up where programs are.
        ActionType::ProcessSpawn if !target.contains('/') => Ok(target),
        ActionType::ProcessSpawn
        | ActionType::ShellExec
        | ActionType::FileRead
        | ActionType::FileWrite
        | ActionType::FileEdit
        | ActionType::FileDelete => absolute(&session.workspace.root, &target).map_err(at),
    }
}

/// A path made absolute and plain, by its words alone: nothing is looked at before the policy.
///
/// # Errors
/// `invalid_argument` where it climbs above the root of the file system.
pub(crate) fn absolute(root: &str, path: &str) -> Result<String, Fault> {
    let joined = if path.starts_with('/') { path.to_owned() } else { format!("{root}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or_else(|| Fault::invalid("path", "the path climbs above `/`"))?;
            }
            name => parts.push(name),
        }
    }
    Ok(format!("/{}", parts.join("/")))
}

/// Whether a plain absolute path is the root or lies below it.
pub(crate) fn is_inside(root: &str, path: &str) -> bool {
    path == root || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether the state that this kind of action depends on is still the perceived one. Which window
/// has the focus matters to what looks at the screen; to a file or a command it doesn't, and a
/// person who changes windows must not stop them.
fn unchanged(kind: ActionType, perceived: &StableFields, now: &StableFields) -> Result<(), Fault> {
    let concerns_screen = kind == ActionType::ScreenCapture || kind.is_input();
    let mut changed = perceived.differences(now);
    changed.retain(|field| concerns_screen || *field != "focused_window_title");
    if changed.is_empty() {
        return Ok(());
    }
    let message = format!("the state changed since it was perceived: {}", changed.join(", "));
    Err(Fault::new(ErrorCode::StateChanged, message).hint("perceive again, then decide anew"))
}

/// An act that was refused.
pub(crate) struct RefusedAct<'a> {
    pub(crate) action: &'a TypedAction,
    pub(crate) fault: &'a Fault,
    pub(crate) status: OutcomeStatus,
    /// The rule that denies, if one does.
    pub(crate) policy_id: Option<String>,
    /// The state at admission; else it is the one last seen.
    pub(crate) state: Option<StateHash>,
    /// The ask that came to nothing.
    pub(crate) ask_id: Option<AskId>,
}

/// Records an act that was refused: the escalation of OS-011 §5.2, and an edge where the session has
/// seen a state.
pub(crate) async fn refuse_act(core: &Core, session: &Arc<Session>, act: RefusedAct<'_>) -> (Refusal, Option<u64>) {
    let state = act.state.or_else(|| session.look().state_hash.clone());
    let attempted = serde_json::to_value(act.action).unwrap_or_default();
    let escalation_id = act.ask_id.clone().unwrap_or_else(|| core.new_ask_id());
    let record = refused(session, &escalation_id, attempted, act.fault, act.policy_id);
    let Some(state) = state else { return (append(core, session, escalation_id, record, act.fault).await, None) };
    let (action_type, status, ask_id) = (act.action.kind, act.status, act.ask_id);
    let edge = RefusedEdge { edge_id: 0, action_type, state, status, ask_id };
    let fault = act.fault.clone();
    session.look().last_active_at = core.now().wall;
    match core.log.refuse_act(record, edge).await {
        Ok(edge_id) => {
            session.look().edges += 1;
            core.edge_changed(session, edge_id).await;
            (Refusal { fault, escalation_id: Some(escalation_id) }, Some(edge_id))
        }
        Err(error) => (Refusal { fault: error.into(), escalation_id: None }, None),
    }
}

/// Records an attempt that was refused and is no act.
pub(crate) async fn refuse(
    core: &Core,
    session: &Arc<Session>,
    attempted: Value,
    fault: &Fault,
    policy_id: Option<String>,
) -> Refusal {
    let escalation_id = core.new_ask_id();
    let record = refused(session, &escalation_id, attempted, fault, policy_id);
    append(core, session, escalation_id, record, fault).await
}

fn refused(session: &Session, id: &AskId, attempted: Value, fault: &Fault, policy_id: Option<String>) -> Refused {
    Refused {
        escalation_id: id.to_string(),
        session_id: Some(session.id.clone()),
        trace_id: Some(session.trace_id.clone()),
        agent_id: session.agent_id(),
        attempted,
        code: fault.code,
        reason: fault.message.clone(),
        policy_id,
        edge: None,
    }
}

async fn append(core: &Core, session: &Arc<Session>, id: AskId, record: Refused, fault: &Fault) -> Refusal {
    session.look().last_active_at = core.now().wall;
    match core.log.append(Record::Refused(Box::new(record))).await {
        Ok(_) => {
            core.events.send(UiEventKind::SessionChanged { session_id: session.id.clone() });
            Refusal { fault: fault.clone(), escalation_id: Some(id) }
        }
        Err(error) => Refusal { fault: error.into(), escalation_id: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r5_a_path_is_inside_only_below_the_root() {
        assert!(is_inside("/ws", "/ws") && is_inside("/ws", "/ws/a"));
        assert!(!is_inside("/ws", "/wsx/a") && !is_inside("/ws", "/w") && !is_inside("/ws", "/"));
    }

    #[test]
    fn r5_dots_are_resolved_before_the_policy_sees_them() {
        assert_eq!(absolute("/ws", "a/../../etc/passwd").unwrap(), "/etc/passwd");
        assert_eq!(absolute("/ws", "./a//b/.").unwrap(), "/ws/a/b");
        assert_eq!(absolute("/ws", "/").unwrap(), "/");
        assert!(absolute("/ws", "../../..").is_err());
    }

    proptest::proptest! {
        #[test]
        fn r5_a_plain_path_has_no_dots_left(path in "[/.a]{0,20}") {
            if let Ok(plain) = absolute("/ws", &path) {
                proptest::prop_assert!(plain.starts_with('/'));
                proptest::prop_assert!(!plain.split('/').skip(1).any(|part| part == "." || part == ".."));
                proptest::prop_assert_eq!(absolute("/elsewhere", &plain).unwrap(), plain);
            }
        }
    }
}
