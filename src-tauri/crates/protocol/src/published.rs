//! What is published for others: the capability contract (OS-011 §5.3) and the JSON Schemas of what
//! goes in and out. `schemas/` in the repository holds the same, written by `export-types`.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::{
    ActionOutcome, ActionType, AffordanceSet, Block, CAPABILITY, InteractionTrace, OS011_VERSION, Observation,
    OutcomeError, PROVIDER, PULSE_VERSION, PerceptionQuery, Prediction, ReplayResult, SURPRISE_EVENT, SurpriseSignal,
    TypedAction, surprise_metric,
};

pub use crate::loop_manifest::loop_manifest;

/// A type of which there is a schema, by its name on the command line.
pub type Schema = (&'static str, fn() -> Value);

/// Every published schema.
pub const SCHEMAS: [Schema; 11] = [
    ("action_outcome", schema::<ActionOutcome>),
    ("affordance_set", schema::<AffordanceSet>),
    ("authorization", schema::<Block>),
    ("interaction_trace", schema::<InteractionTrace>),
    ("os_observation", schema::<Observation>),
    ("outcome_error", schema::<OutcomeError>),
    ("perception_query", schema::<PerceptionQuery>),
    ("prediction", schema::<Prediction>),
    ("replay_result", schema::<ReplayResult>),
    ("surprise_signal", emitted::<SurpriseSignal>),
    ("typed_action", schema::<TypedAction>),
];

fn schema<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value()
}

/// The schema of what only ever goes out: every key is there, also where its value is null.
fn emitted<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().to_value()
}

/// The capability contract of `&body.os` as this provider keeps it.
pub fn contract() -> Value {
    let names = |kinds: Vec<ActionType>| kinds.into_iter().map(ActionType::name).collect::<Vec<_>>();
    let destructive = ActionType::ALL.into_iter().filter(|kind| kind.is_destructive()).collect();
    // REQUIREMENTS, resolution 3: the registry's list, beside the union that is in force.
    let registry = ActionType::ALL.into_iter().filter(|kind| {
        !matches!(kind, ActionType::KeyboardInput | ActionType::MouseClick | ActionType::MouseDrag)
            && kind.is_destructive()
    });
    json!({
        "$schema": "https://protocol.ampersandboxdesign.com/schema/v0.1.0/capability-contract.schema.json",
        "capability": CAPABILITY,
        "provider": PROVIDER,
        "version": env!("CARGO_PKG_VERSION"),
        "description": "The body of an agent on this computer, and a person's guard over it: every destructive \
            action needs an authorization that a person, or a policy that a person chose, has signed for it.",
        "operations": operations(),
        "accepts_from": [
            "&memory.episodic", "&reason.plan", "&govern.telemetry", "&govern.identity", "&govern.escalation",
            "context", "typed_action", "interaction_trace"
        ],
        "feeds_into": ["&memory.episodic", "&reason.*", "&govern.telemetry", "&govern.escalation", "output"],
        "a2a_skills": [
            "shell-automation", "filesystem-read", "filesystem-mutation", "screen-capture", "coordinate-input",
            "git-operations", "embodied-os-replay"
        ],
        "metadata": {
            "primitive": "body",
            "subtype": "os",
            "os_protocol": "OS-011 (Embodiment Protocol)",
            "os_protocol_version": OS011_VERSION,
            "action_types": names(ActionType::ALL.to_vec()),
            "destructive_actions": names(destructive),
            "destructive_actions_registry": names(registry.collect()),
            "state_encoding": "sha256(RFC 8785(stable fields))",
            "state_profiles": {
                "os011.registry.v0": ["cwd", "focused_window_title", "git_head", "key_process_names", "env_fingerprint"],
                "bodyos.readme.v0": ["cwd", "env_summary", "fs_snapshot_hash", "process_list_hash"]
            },
            "state_profile_default": "os011.registry.v0",
            "authorization_required": "every destructive action, each time, also at replay",
            "pulse_protocol_version": PULSE_VERSION,
            "surprise_event_type": SURPRISE_EVENT,
            "surprise_metric": surprise_metric(),
            "sensitive": true,
            "provenance_required": true
        }
    })
}

fn operations() -> Value {
    json!({
        "perceive": {
            "in": "perception_query", "out": "os_observation", "deterministic": true, "side_effects": false,
            "description": "Looks, within what the policy lets the agent see."
        },
        "act": {
            "in": "typed_action", "out": "action_outcome", "deterministic": false, "side_effects": true,
            "description": "Carries out one typed action, once, after whoever has to has permitted it."
        },
        "affordances": {
            "in": "scope_query", "out": "affordance_set", "deterministic": true, "side_effects": false,
            "description": "Lists what the environment offers and the policy permits."
        },
        "encode_state": {
            "in": "perception_query", "out": "state_hash", "deterministic": true, "side_effects": false,
            "description": "Hashes the stable fields of the state."
        },
        "replay": {
            "in": "interaction_trace", "out": "replay_result", "deterministic": false, "side_effects": true,
            "description": "Carries out a trace again, each destructive edge authorised anew, up to the first difference."
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The registry's contract, where its folder is beside this repository.
    fn registry() -> Option<Value> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/data/body.os.contract.json");
        serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
    }

    #[test]
    fn r31_r61_r62_the_contract_names_its_stable_fields_and_neighbours() {
        let ours = contract();
        assert_eq!(ours["accepts_from"].as_array().map(Vec::len), Some(8));
        assert_eq!(ours["a2a_skills"].as_array().map(Vec::len), Some(7));
        let fields = serde_json::to_value(crate::StableFields {
            cwd: String::new(),
            focused_window_title: String::new(),
            git_head: String::new(),
            key_process_names: Vec::new(),
            env_fingerprint: crate::Digest::of(b""),
        })
        .unwrap();
        let mut hashed: Vec<&String> = fields.as_object().unwrap().keys().collect();
        hashed.sort();
        let profile = &ours["metadata"]["state_profiles"]["os011.registry.v0"];
        let mut named: Vec<String> = serde_json::from_value(profile.clone()).unwrap();
        named.sort();
        assert_eq!(named.iter().collect::<Vec<_>>(), hashed, "the contract names exactly what is hashed");
        let Some(theirs) = registry() else { return };
        for key in ["capability", "accepts_from", "feeds_into", "a2a_skills"] {
            assert_eq!(ours[key], theirs[key], "{key}");
        }
        assert_eq!(ours["metadata"]["action_types"], theirs["metadata"]["action_types"]);
        let sorted = |value: &Value| {
            let mut names: Vec<String> = serde_json::from_value(value.clone()).unwrap();
            names.sort();
            names
        };
        let lists = ["destructive_actions_registry", "destructive_actions"];
        assert_eq!(sorted(&ours["metadata"][lists[0]]), sorted(&theirs["metadata"][lists[1]]), "resolution 3");
        for (name, operation) in theirs["operations"].as_object().unwrap() {
            for key in ["in", "out", "deterministic", "side_effects"] {
                assert_eq!(ours["operations"][name][key], operation[key], "{name}.{key}");
            }
        }
    }

    #[test]
    fn r54_r57_the_contract_declares_the_metric_of_surprise() {
        let metadata = &contract()["metadata"];
        assert_eq!(metadata["surprise_metric"]["range"], json!([0, 1]));
        assert_eq!(metadata["pulse_protocol_version"], "0.1.1");
    }

    #[test]
    fn r53_the_schema_of_a_signal_demands_the_twelve_keys_and_no_other() {
        let schema = emitted::<SurpriseSignal>();
        assert_eq!(schema["required"].as_array().map(Vec::len), Some(12));
        assert_eq!(schema["properties"].as_object().map(serde_json::Map::len), Some(12));
        assert_eq!(schema["additionalProperties"], false);
    }

    #[test]
    fn every_schema_closes_or_names_its_fields() {
        for (name, schema) in SCHEMAS {
            let schema = schema();
            assert!(schema["$schema"].is_string(), "{name}");
            assert!(schema.get("properties").is_some_and(Value::is_object), "{name}");
        }
    }
}
