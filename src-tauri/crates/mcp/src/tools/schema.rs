//! Input schemas: flat at the top (several model providers accept no alternatives there), closed
//! against unknown fields, and without `$ref`, which some clients don't follow.

use bodyguard_protocol::action::{
    FileDelete, FileEdit, FileRead, FileWrite, KeyboardInput, MouseClick, MouseDrag, ProcessSignal, ProcessSpawn,
    ScreenCapture, ShellExec,
};
use bodyguard_protocol::{QueryMode, StateProfile};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The longest wait, in milliseconds.
pub(crate) const MAX_WAIT_MS: u64 = 600_000;
/// The wait when nothing is said. Clients give up after 60 s.
pub(crate) const DEFAULT_WAIT_MS: u64 = 45_000;

/// A type's schema, inlined, without dialect, titles and formats that validators don't know.
pub(super) fn of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut value = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut value);
    value
}

fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // A property may be called `title`; the keyword's value is text.
            if fields.get("title").is_some_and(Value::is_string) {
                fields.remove("title");
            }
            if fields.get("format").and_then(Value::as_str).is_some_and(|format| format.contains("int")) {
                fields.remove("format");
            }
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(super) fn object(properties: Value, required: &[&str]) -> JsonObject {
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties);
    schema.insert("required".into(), json!(required));
    schema.insert("additionalProperties".into(), false.into());
    schema
}

fn session_id() -> Value {
    json!({"type": "string", "pattern": "^s_[0-9a-fA-F]{32}$", "description": "From body_os_ensure_session."})
}

fn wait_ms() -> Value {
    json!({
        "type": "integer", "minimum": 0, "maximum": MAX_WAIT_MS, "default": DEFAULT_WAIT_MS,
        "description": "How long to wait for the person, in milliseconds. Keep it below your own call timeout."
    })
}

fn profile() -> Value {
    let mut schema = of::<StateProfile>();
    describe(&mut schema, "Which fields the state hash covers.");
    schema
}

fn mode() -> Value {
    let names: Vec<_> = QueryMode::ALL.iter().map(|mode| mode.name()).collect();
    json!({
        "type": "string", "enum": names, "default": "filesystem",
        "description": "What to look at; `full` is all of it that the policy allows without asking."
    })
}

fn query() -> Map<String, Value> {
    let fields = json!({
        "session_id": session_id(),
        "mode": mode(),
        "scope": {"type": "string", "minLength": 1, "description": "For `filesystem` and `full`: the folder to list. The workspace's root when absent."},
        "depth": {"type": "integer", "minimum": 1, "maximum": 8, "default": 2, "description": "For `filesystem` and `full`: levels to descend."},
        "profile": profile(),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn escalation(how: &str) -> Value {
    json!({
        "type": "string", "pattern": "^a_[0-9A-Za-z]{26}$",
        "description": format!("From an earlier `authorization_required` of this tool: asks what became of it. {how}")
    })
}

fn reason() -> Value {
    json!({"type": "string", "maxLength": 4000, "description": "Why, in your own words. The person reads it, marked as yours."})
}

pub(super) fn ensure_session() -> JsonObject {
    object(
        json!({
            "session_id": {"type": "string", "pattern": "^s_[0-9a-fA-F]{32}$", "description": "A session of yours to go on with. Absent: a new one."},
            "workspace": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "description": "One of your workspaces; may be left out where you have just one."},
            "goal": {"type": "string", "maxLength": 4000, "description": "What you want to achieve, in a sentence. The person reads it, marked as yours."}
        }),
        &[],
    )
}

pub(super) fn perceive() -> JsonObject {
    let mut fields = query();
    fields.insert("escalation_id".into(), escalation("Send it without mode, scope, depth and profile."));
    fields.insert("reason".into(), reason());
    fields.insert("wait_ms".into(), wait_ms());
    object(Value::Object(fields), &["session_id"])
}

pub(super) fn encode_state() -> JsonObject {
    object(Value::Object(query()), &["session_id"])
}

pub(super) fn affordances() -> JsonObject {
    let scope =
        json!({"type": "string", "minLength": 1, "description": "A path; only what concerns it or what is below it."});
    object(json!({"session_id": session_id(), "scope": scope}), &["session_id"])
}

pub(super) fn act() -> JsonObject {
    let fields = json!({
        "session_id": session_id(), "action": action(), "escalation_id": escalation("Send it without `action`."),
        "dry_run": {"type": "boolean", "default": false, "description": "Predict only, as body_os_dry_run does."},
        "reason": reason(), "wait_ms": wait_ms()
    });
    object(fields, &["session_id"])
}

pub(super) fn dry_run() -> JsonObject {
    object(json!({"session_id": session_id(), "action": action()}), &["session_id", "action"])
}

pub(super) fn replay() -> JsonObject {
    let edge = |what: &str| json!({"type": "integer", "minimum": 1, "description": what});
    let fields = json!({
        "session_id": session_id(),
        "trace_id": {"type": "string", "pattern": "^[0-9A-Za-z]{26}$", "description": "The trace to replay: one of yours, of this session's workspace."},
        "from_edge": edge("The first edge; the trace's first when absent."),
        "to_edge": edge("The last edge; the trace's last when absent. At most 1000 edges at a time."),
        "dry_run": {"type": "boolean", "default": false, "description": "Predict only: nothing is done, asked or recorded."},
        "replay_id": {
            "type": "string", "pattern": "^r_[0-9A-Za-z]{26}$",
            "description": "From an earlier answer of this tool: asks what became of that replay. Send it without trace_id."
        },
        "reason": reason(),
        "wait_ms": wait_ms()
    });
    object(fields, &["session_id"])
}

/// The eleven types with their parameters, and the flat shape of `shell_exec`.
fn action() -> Value {
    let flat = json!({
        "type": "object", "description": "Short form of shell_exec.",
        "properties": {
            "type": {"const": "shell_exec"}, "command": {"type": "string"}, "cwd": target("The working directory."),
            "preconditions": preconditions(), "authorization": authorization()
        },
        "required": ["type", "command"], "additionalProperties": false
    });
    json!({
        "description": "One typed action.",
        "anyOf": [
            variant("shell_exec", "Runs a command. Exactly one of params.command and params.argv.", "The working directory; the workspace's root when absent.", of::<ShellExec>(), &["type", "params"]),
            variant("file_read", "Reads a regular file.", "The file.", of::<FileRead>(), &["type", "target"]),
            variant("file_write", "Makes a file, or replaces or extends one, atomically.", "The file; its folder has to be there.", of::<FileWrite>(), &["type", "target", "params"]),
            variant("file_delete", "Deletes a file, or with params.recursive a folder.", "The file or folder.", of::<FileDelete>(), &["type", "target"]),
            variant("file_edit", "Replaces exact text in a file, atomically.", "The file.", of::<FileEdit>(), &["type", "target", "params"]),
            variant("screen_capture", "Takes a picture of a monitor or a region of it.", "A monitor's ref or `monitor:N`; `monitor:0` when absent.", of::<ScreenCapture>(), &["type"]),
            variant("keyboard_input", "Types text or presses keys in a window, which gets the focus first. Exactly one of params.text and params.keys.", "A window's ref or `window:N`.", of::<KeyboardInput>(), &["type", "target", "params"]),
            pointing("mouse_click", "Clicks, turns the wheel, or only moves the pointer.", of::<MouseClick>(), &["type", "target"]),
            pointing("mouse_drag", "Drags from the target along params.path.", of::<MouseDrag>(), &["type", "target", "params"]),
            variant("process_spawn", "Starts a program in the workspace's containment; it ends with the session.", "A program's name, or its path in the workspace.", of::<ProcessSpawn>(), &["type", "target"]),
            variant("process_signal", "Sends a signal to a process that the session started.", "A process's ref.", of::<ProcessSignal>(), &["type", "target"]),
            flat
        ]
    })
}

fn variant(kind: &str, about: &str, what: &str, params: Value, required: &[&str]) -> Value {
    json!({
        "type": "object", "description": about,
        "properties": {
            "type": {"const": kind}, "target": target(what), "params": params, "preconditions": preconditions(),
            "authorization": authorization(), "semantic_locator": {"description": "A note of your own; takes no part."}
        },
        "required": required, "additionalProperties": false
    })
}

/// A variant whose target may be a point.
fn pointing(kind: &str, about: &str, params: Value, required: &[&str]) -> Value {
    let what = "A window's ref (its middle), or a point of the desktop in physical pixels, `point:X,Y` or {x, y}.";
    let mut variant = variant(kind, about, what, params, required);
    let point = json!({
        "type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
        "required": ["x", "y"], "additionalProperties": false
    });
    if let Some(ways) = variant.pointer_mut("/properties/target/anyOf").and_then(Value::as_array_mut) {
        ways.push(point);
    }
    variant
}

fn target(what: &str) -> Value {
    json!({
        "description": format!("{what} A ref of the latest perception, or an absolute path."),
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "object", "properties": {"path": {"type": "string", "minLength": 1}}, "required": ["path"], "additionalProperties": false},
            {"type": "object", "properties": {"ref": {"type": "string", "minLength": 1}}, "required": ["ref"], "additionalProperties": false}
        ]
    })
}

fn preconditions() -> Value {
    json!({"type": "array", "items": {"type": "string"}, "maxItems": 64, "description": "Affordance ids that have to hold."})
}

fn authorization() -> Value {
    json!({
        "type": ["object", "null"], "properties": {"authorization_token": {"type": "string"}},
        "description": "A block you were given. It is looked up and authorises nothing by itself."
    })
}

fn describe(schema: &mut Value, text: &str) {
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("description".into(), text.into());
    }
}
