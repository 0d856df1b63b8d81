//! The PULSE loop that a body and its agent make (OS-011 §12), for runtimes that join loops.

use serde_json::{Value, json};

use crate::PULSE_VERSION;

/// The manifest of the loop `body_os.embodiment`.
///
/// The identifier has an underscore where OS-011 writes a hyphen, because the manifest's schema allows
/// no hyphens (`REQUIREMENTS` resolution 16).
pub fn loop_manifest() -> Value {
    json!({
        "pulse_protocol_version": PULSE_VERSION,
        "loop_id": "body_os.embodiment",
        "loop_name": "Embodiment on the operating system",
        "version": env!("CARGO_PKG_VERSION"),
        "owner": "bodyguard",
        "workspace_scope": "required",
        "description": "Perceive, enumerate what may be done, select, act under an authorization, learn from the outcome.",
        "phases": phases(),
        "closure": { "from_phase": "learn_from_outcome", "to_phase": "perceive_env", "guarantee": "eventual" },
        "cadence": { "type": "event", "params": { "event_source": "plan_step_emitted" } },
        "substrates": {
            "memory": "&memory.episodic",
            "policy": "cedar",
            "audit": "rfc6962",
            "auth": "ed25519",
            "transport": "mcp",
            "time": "CLOCK_BOOTTIME and wall clock"
        },
        "invariants": {
            "phase_atomicity": true,
            "feedback_immutability": true,
            "append_only_audit": true,
            "outcome_grounding": true,
            "trace_id_propagation": true
        },
        "connections": [
            connection("surprise_to_memory", "commit_action", "surprise_magnitude >= 0.3", "SurpriseSignal",
                "graphonomous.continual_learning", "learn_outcome"),
            connection("trace_to_prism", "learn_from_outcome", "outcome in ['success','failure']", "OutcomeSignal",
                "prism.benchmark", "observe")
        ]
    })
}

fn phases() -> Value {
    json!([
        {
            "id": "perceive_env", "kind": "retrieve", "idempotent": true, "timeout_ms": 30_000,
            "inputs": { "from": "agent", "schema": "perception_query" },
            "outputs": { "to": "enumerate_affordances", "schema": "os_observation" },
            "policy_check": "cedar://perceive", "audit_event": "os011.perceive"
        },
        {
            "id": "enumerate_affordances", "kind": "route", "idempotent": true, "timeout_ms": 30_000,
            "inputs": { "from": "perceive_env", "schema": "os_observation" },
            "outputs": { "to": "select_action", "schema": "affordance_set" },
            "policy_check": "cedar://act", "audit_event": "os011.affordances"
        },
        {
            "id": "select_action", "kind": "route", "idempotent": true,
            "description": "The agent's own part.",
            "inputs": { "from": "enumerate_affordances", "schema": "affordance_set" },
            "outputs": { "to": "commit_action", "schema": "typed_action" },
            "audit_event": "os011.select"
        },
        {
            "id": "commit_action", "kind": "act", "idempotent": false, "on_failure": "escalate",
            "inputs": { "from": "select_action", "schema": "typed_action" },
            "outputs": { "to": "learn_from_outcome", "schema": "action_outcome" },
            "policy_check": "cedar://authorize", "invariant": "perceive_before_act, affordance_bounded",
            "audit_event": "os011.act"
        },
        {
            "id": "learn_from_outcome", "kind": "learn", "idempotent": true,
            "inputs": { "from": "commit_action", "schema": "surprise_signal" },
            "outputs": { "to": "&memory.episodic", "schema": "interaction_trace" },
            "audit_event": "os011.learn"
        }
    ])
}

fn connection(id: &str, from: &str, condition: &str, token: &str, to_loop: &str, to_phase: &str) -> Value {
    json!({
        "id": id, "emit_phase": from, "emit_condition": condition, "envelope": "cloudevents.v1", "token": token,
        "to_loop": to_loop, "to_phase": to_phase, "cadence": "async", "delivery": "at_least_once"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r58_the_loop_has_the_five_phases_in_order_and_closes() {
        let manifest = loop_manifest();
        let ids: Vec<_> = manifest["phases"].as_array().unwrap().iter().map(|phase| phase["id"].clone()).collect();
        assert_eq!(
            json!(ids),
            json!(["perceive_env", "enumerate_affordances", "select_action", "commit_action", "learn_from_outcome"])
        );
        assert_eq!(manifest["closure"]["to_phase"], "perceive_env");
        for phase in manifest["phases"].as_array().unwrap() {
            assert!(phase["audit_event"].as_str().unwrap().starts_with("os011."));
        }
        assert_eq!(manifest["invariants"].as_object().unwrap().len(), 5);
        let connections = manifest["connections"].as_array().unwrap();
        assert!(connections.iter().all(|one| one["delivery"] == "at_least_once"));
        // Each schema that a phase names is one of ours.
        for phase in manifest["phases"].as_array().unwrap() {
            for side in ["inputs", "outputs"] {
                let name = phase[side]["schema"].as_str().unwrap();
                assert!(crate::published::SCHEMAS.iter().any(|(known, _)| *known == name), "{name}");
            }
        }
    }
}
