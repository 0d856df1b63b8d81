//! The trace in the shape of OS-011 §4, from its leaves.

use std::collections::BTreeMap;

use bodyguard_protocol::{
    BODY_SUBTYPE, InteractionTrace, OutcomeStatus, PROVIDER, Provenance, Timestamp, TraceEdge, TraceEnvironment,
    TraceOutcome,
};
use serde_json::{Value, json};

use crate::records::{Intent, Leaf, Outcome, Record, Refused, RefusedEdge, SessionBegan};

/// The trace of some leaves, which must hold its beginning. Edges whose action doesn't read as one
/// are left out; `verify` names their leaves.
pub(super) fn of(leaves: &[(u64, Leaf)]) -> Option<InteractionTrace> {
    let (began_at, began) = leaves.iter().find_map(|(_, leaf)| match &leaf.record {
        Record::SessionBegan(began) => Some((leaf.at, began)),
        _ => None,
    })?;
    let end = leaves.iter().find_map(|(_, leaf)| match &leaf.record {
        Record::SessionEnded(ended) => Some((leaf.at, ended.outcome)),
        Record::Interrupted(cut) if cut.edge_id.is_none() => Some((leaf.at, TraceOutcome::Aborted)),
        _ => None,
    });
    let (edges, unfinished) = edges(leaves);
    Some(InteractionTrace {
        trace_id: began.trace_id.clone(),
        body_subtype: BODY_SUBTYPE.into(),
        provider: PROVIDER.into(),
        agent_id: began.agent_id.clone(),
        started_at: began_at,
        ended_at: end.map(|(at, _)| at),
        environment: TraceEnvironment {
            os_family: began.os_family.clone(),
            workspace: began.workspace.as_str().into(),
            workspace_root: began.workspace_root.clone(),
        },
        edges,
        goal: began.goal.clone(),
        outcome: end.map(|(_, outcome)| outcome),
        metadata: metadata(began, &unfinished),
    })
}

fn metadata(began: &SessionBegan, unfinished: &[u64]) -> Value {
    let mut metadata = json!({
        "os_family": began.os_family,
        "state_profile": began.state_profile,
        "session": began.metadata,
        // Acts that were cut off: what they did isn't known.
        "interrupted_edges": unfinished,
    });
    if let (Some(fields), Some(replay_of)) = (metadata.as_object_mut(), began.metadata.get("replay_of")) {
        fields.insert("replay_of".to_owned(), replay_of.clone());
    }
    metadata
}

fn edges(leaves: &[(u64, Leaf)]) -> (Vec<TraceEdge>, Vec<u64>) {
    let mut outcomes: BTreeMap<u64, &Outcome> = BTreeMap::new();
    for (_, leaf) in leaves {
        if let Record::Outcome(outcome) = &leaf.record {
            outcomes.insert(outcome.edge_id, outcome);
        }
    }
    let (mut edges, mut unfinished) = (Vec::new(), Vec::new());
    for (_, leaf) in leaves {
        match &leaf.record {
            Record::Intent(intent) => {
                let outcome = outcomes.get(&intent.edge_id).copied();
                if outcome.is_none() {
                    unfinished.push(intent.edge_id);
                }
                edges.extend(edge(leaf.at, intent, outcome));
            }
            Record::Refused(refused) => {
                edges.extend(refused.edge.as_ref().and_then(|edge| refused_edge(leaf.at, refused, edge)));
            }
            _ => {}
        }
    }
    (edges, unfinished)
}

fn refused_edge(at: Timestamp, refused: &Refused, edge: &RefusedEdge) -> Option<TraceEdge> {
    Some(TraceEdge {
        edge_id: edge.edge_id,
        state_before: edge.state.clone(),
        typed_action: serde_json::from_value(refused.attempted.clone()).ok()?,
        state_after: edge.state.clone(),
        latency_ms: 0,
        outcome_status: edge.status,
        observed_outcome: Some(json!({ "error": { "code": refused.code, "message": refused.reason } })),
        authorization: None,
        surprise: None,
        provenance: Provenance::new("act", at, refused.agent_id.clone()),
    })
}

fn edge(at: Timestamp, intent: &Intent, outcome: Option<&Outcome>) -> Option<TraceEdge> {
    let outcome = outcome.map(|outcome| &outcome.outcome);
    let state_after = outcome.and_then(|outcome| outcome.state_after.clone());
    Some(TraceEdge {
        edge_id: intent.edge_id,
        state_before: intent.state_before.clone(),
        typed_action: serde_json::from_value(intent.action.clone()).ok()?,
        state_after: state_after.unwrap_or_else(|| intent.state_before.clone()),
        latency_ms: outcome.map_or(0, |outcome| outcome.latency_ms),
        outcome_status: outcome.map_or(OutcomeStatus::Failure, |outcome| outcome.status),
        observed_outcome: outcome.and_then(|outcome| outcome.observed.clone()),
        authorization: intent.authorization.clone(),
        surprise: outcome.and_then(|outcome| outcome.surprise.clone()),
        provenance: Provenance::new("act", at, intent.agent_id.clone()),
    })
}
