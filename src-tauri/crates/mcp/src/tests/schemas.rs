//! Schemas hold what comes, arguments are checked by name, and pictures are blocks.

use jsonschema::Validator;
use serde_json::{Value, json};

use super::scripted::{ASK, House, REPLAY, TRACE, session_of};
use super::wire::{Wire, act, call};
use crate::tools;

fn validator(tool: &str, output: bool) -> Validator {
    let tool = tools::find(tool).unwrap();
    let schema = if output { tool.output_schema.clone().unwrap() } else { tool.input_schema.clone() };
    jsonschema::draft202012::new(&Value::Object((*schema).clone())).unwrap()
}

/// Where an object doesn't fit its tool's output schema.
pub(super) fn complaints(tool: &str, object: &Value) -> Vec<String> {
    validator(tool, true).iter_errors(object).map(|error| format!("{}: {error}", error.instance_path)).collect()
}

#[test]
fn r59_r60_seven_tools_with_closed_schemas_and_each_takes_a_session_id() {
    assert_eq!(tools::all().len(), 7);
    for tool in tools::all() {
        let schema = &tool.input_schema;
        assert!(schema["properties"].get("session_id").is_some(), "{}", tool.name);
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
        assert_eq!(schema["type"], "object");
        for at_the_top in ["anyOf", "oneOf", "allOf", "$ref"] {
            assert!(!schema.contains_key(at_the_top), "{} has {at_the_top}", tool.name);
        }
        let output = tool.output_schema.as_ref().unwrap();
        assert_eq!(output["type"], "object");
        assert_eq!(output["additionalProperties"], false);
        let text = serde_json::to_string(tool).unwrap();
        assert!(!text.contains("$ref") && !text.contains("uint"), "{text}");
        let (input, _) = (validator(&tool.name, false), validator(&tool.name, true));
        assert!(!input.is_valid(&json!({"session_id": session_of("alice"), "surprise": 1})), "{}", tool.name);
    }
}

#[test]
fn the_input_schema_of_act_knows_its_actions() {
    let schema = validator("body_os_act", false);
    let with = |action: Value| json!({"session_id": session_of("alice"), "action": action});
    for good in [
        json!({"type": "shell_exec", "command": "date", "cwd": "/w"}),
        json!({"type": "shell_exec", "target": "@f1/g1", "params": {"argv": ["date"], "timeout_ms": 5}}),
        json!({"type": "file_read", "target": {"path": "/w/a"}, "params": {"limit": 10}}),
        json!({"type": "file_edit", "target": "/w/a", "params": {"edits": [{"old": "a", "new": "b"}]}}),
        json!({"type": "screen_capture", "params": {"format": "jpeg", "max_width": 800}}),
        json!({"type": "mouse_click", "target": {"x": 1, "y": 2}}),
    ] {
        assert!(schema.is_valid(&with(good.clone())), "{good}");
    }
    for bad in [
        json!({"type": "format_disk"}),
        json!({"type": "shell_exec", "command": 7}),
        json!({"type": "file_read"}),
        json!({"type": "file_read", "target": "/w/a", "params": {"sudo": true}}),
        json!({"type": "file_edit", "target": "/w/a", "params": {"edits": [{"old": "a"}]}}),
    ] {
        assert!(!schema.is_valid(&with(bad.clone())), "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_fits_its_tools_output_schema() {
    let house = House::new().await;
    let mut wire = Wire::ready(&house).await;
    let session = session_of("alice");
    let edit = json!({"type": "mouse_click", "target": "@f1/g1", "params": {"clicks": 9}});
    let cases = [
        ("body_os_ensure_session", json!({}), None),
        ("body_os_ensure_session", json!({"session_id": session_of("bob")}), Some("unknown_session")),
        ("body_os_ensure_session", json!({"goal": "a\u{0}b"}), Some("nul_byte")),
        ("body_os_perceive", json!({"session_id": session}), None),
        ("body_os_perceive", json!({"session_id": session, "mode": "full"}), None),
        ("body_os_perceive", json!({"session_id": session, "mode": "everything"}), Some("invalid_argument")),
        ("body_os_perceive", json!({"session_id": session, "escalation_id": ASK}), Some("authorization_required")),
        (
            "body_os_perceive",
            json!({"session_id": session, "escalation_id": ASK, "mode": "git"}),
            Some("invalid_argument"),
        ),
        ("body_os_affordances", json!({"session_id": session, "scope": "/w"}), None),
        ("body_os_affordances", json!({"session_id": "s_short"}), Some("invalid_argument")),
        ("body_os_encode_state", json!({"session_id": session}), None),
        ("body_os_encode_state", json!({}), Some("invalid_argument")),
        ("body_os_act", json!({"session_id": session, "action": {"type": "shell_exec", "command": "date"}}), None),
        (
            "body_os_act",
            json!({"session_id": session, "escalation_id": ASK, "wait_ms": 0}),
            Some("authorization_required"),
        ),
        ("body_os_act", json!({"session_id": session, "action": edit}), Some("invalid_argument")),
        ("body_os_act", json!({"session_id": session}), Some("invalid_argument")),
        ("body_os_act", json!({"session_id": session, "action": 7}), Some("invalid_argument")),
        ("body_os_act", json!({"session_id": session, "action": {}, "escalation_id": ASK}), Some("invalid_argument")),
        ("body_os_dry_run", json!({"session_id": session, "action": {"type": "shell_exec", "command": "x"}}), None),
        ("body_os_dry_run", json!({"session_id": session}), Some("invalid_argument")),
        ("body_os_replay", json!({"session_id": session, "trace_id": TRACE}), None),
        ("body_os_replay", json!({"session_id": session, "trace_id": TRACE, "dry_run": true, "from_edge": 1}), None),
        ("body_os_replay", json!({"session_id": session, "replay_id": REPLAY}), Some("state_hash_mismatch")),
        (
            "body_os_replay",
            json!({"session_id": session, "trace_id": ASK.replace("a_", "x")}),
            Some("invalid_argument"),
        ),
        ("body_os_replay", json!({"session_id": session}), Some("invalid_argument")),
        ("body_os_replay", json!({"session_id": session, "trace_id": TRACE, "from_edge": 0}), Some("invalid_argument")),
        ("body_os_replay", json!({"session_id": session, "trace_id": TRACE, "to_edge": "2"}), Some("invalid_argument")),
        ("body_os_replay", json!({"session_id": session, "trace_id": TRACE, "sudo": 1}), Some("unknown_field")),
        (
            "body_os_replay",
            json!({"session_id": session, "replay_id": REPLAY, "trace_id": TRACE}),
            Some("invalid_argument"),
        ),
        ("body_os_replay", json!({"session_id": session, "replay_id": ASK}), Some("invalid_argument")),
    ];
    for (id, (tool, arguments, error)) in (10..).zip(cases) {
        let answer = wire.ask(&call(id, tool, arguments.clone())).await;
        let result = &answer["result"];
        let object = &result["structuredContent"];
        assert_eq!(complaints(tool, object), Vec::<String>::new(), "{tool} {arguments}: {object}");
        assert_eq!(result["isError"], error.is_some(), "{tool} {arguments}: {object}");
        assert_eq!(object["error"]["code"].as_str(), error, "{tool} {arguments}");
        // Clients that read text alone get the same.
        let text: Value = serde_json::from_str(result["content"][1]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, *object);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_refused_by_name() {
    let house = House::new().await;
    let mut wire = Wire::ready(&house).await;
    let with = |field: &str, value: Value| {
        let mut arguments =
            json!({"session_id": session_of("alice"), "action": {"type": "shell_exec", "command": "x"}});
        arguments[field] = value;
        call(5, "body_os_act", arguments)
    };
    for (message, code, field) in [
        (with("sudo", json!(true)), "unknown_field", "sudo"),
        (with("wait_ms", json!(600_001)), "invalid_argument", "wait_ms"),
        (with("wait_ms", json!("5")), "invalid_argument", "wait_ms"),
        (with("wait_ms", json!(-1)), "invalid_argument", "wait_ms"),
        (with("reason", json!("a\u{0}")), "nul_byte", "reason"),
        (with("session_id", json!(7)), "invalid_argument", "session_id"),
        (
            with("action", json!({"type": "shell_exec", "command": "echo a\u{0}; touch ran"})),
            "nul_byte",
            "action.command",
        ),
        (with("action", json!({"type": "shell_exec", "command": "x", "sudo": 1})), "unknown_field", "action.sudo"),
    ] {
        let answer = wire.ask(&message).await;
        let error = &answer["result"]["structuredContent"]["error"];
        assert_eq!((&error["code"], &error["field"]), (&json!(code), &json!(field)), "{message}");
    }
    assert!(house.book.acts().is_empty(), "dsp_09: nothing ran");
    assert_eq!(wire.ask(&act(6, "x", 0)).await["result"]["isError"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn cap_14_a_picture_is_an_image_block_and_never_text() {
    let house = House::new().await;
    let mut wire = Wire::ready(&house).await;
    let look = |id, words| call(id, "body_os_perceive", json!({"session_id": session_of("alice"), "reason": words}));
    let answer = wire.ask(&look(2, "picture")).await;
    let content = answer["result"]["content"].as_array().unwrap();
    let image = content.iter().find(|block| block["type"] == "image").unwrap();
    assert_eq!(image["mimeType"], "image/png");
    let base64 = image["data"].as_str().unwrap();
    let rest = answer.to_string().replacen(base64, "", 1);
    assert!(!rest.contains(&base64[..40]), "no base64 elsewhere");
    assert!(content.iter().any(|block| block["text"].as_str().is_some_and(|text| text.contains("scale 0.5"))));
    let huge = wire.ask(&look(3, "huge picture")).await;
    let content = huge["result"]["content"].as_array().unwrap();
    assert!(content.iter().all(|block| block["type"] == "text"));
    assert!(content.iter().any(|block| block["text"].as_str().is_some_and(|text| text.contains("too large"))));
}
