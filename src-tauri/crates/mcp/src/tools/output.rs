//! Output schemas. Each admits the tool's object or an `error`, because clients also validate the
//! structured content of errors.

use bodyguard_protocol::{
    ActionOutcome, AffordanceSet, Observation, OutcomeError, Prediction, Provenance, ReplayResult, StateHash,
    StateProfile,
};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::schema;

pub(super) fn session() -> JsonObject {
    let names = json!({"type": "array", "items": {"type": "string"}});
    let properties = json!({
        "session_id": {"type": "string", "description": "Give this to every call."},
        "trace_id": {"type": "string", "description": "The trace that records the session."},
        "workspace": {"type": "string"},
        "root": {"type": "string", "description": "The workspace's root folder."},
        "resumed": {"type": "boolean", "description": "Whether the session existed before."},
        "generation": {"type": "integer", "minimum": 0, "description": "0 until the first perception."},
        "workspaces": names,
        "action_types": names,
        "query_modes": names,
    });
    let required = ["session_id", "trace_id", "workspace", "root", "resumed", "generation", "workspaces"];
    or_error(properties, &required)
}

pub(super) fn observation() -> JsonObject {
    of::<Observation>()
}

pub(super) fn affordance_set() -> JsonObject {
    of::<AffordanceSet>()
}

pub(super) fn state() -> JsonObject {
    let properties = json!({
        "state_hash": schema::of::<StateHash>(),
        "state_profile": schema::of::<StateProfile>(),
        "provenance": closed(schema::of::<Provenance>()),
    });
    or_error(properties, &["state_hash", "state_profile", "provenance"])
}

pub(super) fn prediction() -> JsonObject {
    of::<Prediction>()
}

/// An outcome has its own `error`, which is null where nothing went wrong.
pub(super) fn outcome() -> JsonObject {
    of::<ActionOutcome>()
}

/// A result has its own `error`, which is null unless it stopped.
pub(super) fn replay() -> JsonObject {
    of::<ReplayResult>()
}

fn of<T: JsonSchema>() -> JsonObject {
    let mut schema = closed(schema::of::<T>());
    let mut take = |name| schema.as_object_mut().and_then(|fields| fields.remove(name));
    let required = take("required").unwrap_or_else(|| json!([]));
    let required: Vec<_> = required.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    or_error(take("properties").unwrap_or_else(|| json!({})), &required)
}

fn or_error(mut properties: Value, required: &[&str]) -> JsonObject {
    if let Some(properties) = properties.as_object_mut() {
        properties.entry("error").or_insert_with(error);
    }
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties);
    schema.insert("anyOf".into(), json!([{"required": required}, {"required": ["error"]}]));
    schema.insert("additionalProperties".into(), false.into());
    schema
}

fn error() -> Value {
    closed(schema::of::<OutcomeError>())
}

/// Closes every object that names its fields.
fn closed(mut value: Value) -> Value {
    close(&mut value);
    value
}

fn close(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object) && !fields.contains_key("oneOf") {
                fields.entry("additionalProperties").or_insert(false.into());
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
