//! From what an agent sent to a [`TypedAction`], or a typed refusal that names the field.

use serde_json::{Map, Value};

use super::check::check;
use super::{ActionType, Params, TypedAction};
use crate::{ErrorCode, Fault};

const MAX_PRECONDITIONS: usize = 64;

/// A parsed request to act: the action, and the token of a block if the agent carried one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActRequest {
    /// The action without its authorization (`REQUIREMENTS` resolution 7).
    pub action: TypedAction,
    /// The token that the agent carried; it is looked up and never authorises by itself.
    pub authorization_token: Option<String>,
}

impl ActRequest {
    /// Parses the canonical shape `{type,target,params,preconditions}` or the flat one
    /// `{type,command,cwd}`.
    ///
    /// # Errors
    /// `nul_byte`, `unknown_field`, `invalid_argument`, `empty_match`, `too_long_to_review` or
    /// `not_yet_supported`, each naming the field.
    pub fn parse(value: &Value) -> Result<Self, Fault> {
        refuse_nul(value, "action")?;
        let mut fields = value.as_object().ok_or_else(|| Fault::invalid("action", "an action is an object"))?.clone();
        let authorization_token = take_token(&mut fields)?;
        let kind = take_type(&mut fields)?;
        // A locator is the agent's own note for replay on other screens; it takes no part in what runs.
        fields.remove("semantic_locator");
        let preconditions = take_preconditions(&mut fields)?;
        let (target, params) = take_target_and_params(kind, &mut fields)?;
        if let Some(unknown) = fields.keys().next() {
            return Err(unknown_field("action", unknown));
        }
        let params = parse_params(kind, params)?;
        check(&params)?;
        Ok(Self { action: TypedAction { kind, target, params, preconditions }, authorization_token })
    }
}

fn take_type(fields: &mut Map<String, Value>) -> Result<ActionType, Fault> {
    let value = fields.remove("type").ok_or_else(|| Fault::invalid("action.type", "an action has a `type`"))?;
    serde_json::from_value(value).map_err(|_| {
        let names: Vec<_> = ActionType::ALL.iter().map(|t| t.name()).collect();
        Fault::invalid("action.type", format!("`type` is one of {}", names.join(", ")))
    })
}

fn take_token(fields: &mut Map<String, Value>) -> Result<Option<String>, Fault> {
    match fields.remove("authorization") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(block)) => match block.get("authorization_token") {
            Some(Value::String(token)) => Ok(Some(token.clone())),
            Some(_) | None => {
                Err(Fault::invalid("action.authorization.authorization_token", "a block carries its token as text"))
            }
        },
        Some(_) => Err(Fault::invalid("action.authorization", "an authorization is an object")),
    }
}

fn take_preconditions(fields: &mut Map<String, Value>) -> Result<Vec<String>, Fault> {
    let Some(value) = fields.remove("preconditions") else { return Ok(Vec::new()) };
    let list: Vec<String> = serde_json::from_value(value)
        .map_err(|_| Fault::invalid("action.preconditions", "preconditions are a list of affordance ids"))?;
    if list.len() > MAX_PRECONDITIONS {
        return Err(Fault::invalid("action.preconditions", "at most 64 preconditions"));
    }
    Ok(list)
}

fn take_target_and_params(kind: ActionType, fields: &mut Map<String, Value>) -> Result<(String, Value), Fault> {
    let flat = kind == ActionType::ShellExec && fields.contains_key("command") && !fields.contains_key("params");
    let (target_key, params) = if flat {
        let mut params = Map::new();
        if let Some(command) = fields.remove("command") {
            params.insert("command".to_owned(), command);
        }
        (if fields.contains_key("cwd") { "cwd" } else { "target" }, Value::Object(params))
    } else {
        ("target", fields.remove("params").unwrap_or_else(|| Value::Object(Map::new())))
    };
    let field = format!("action.{target_key}");
    match fields.remove(target_key) {
        Some(Value::String(target)) if !target.is_empty() => Ok((target, params)),
        Some(Value::Object(target)) => target_of_object(kind, &target, &field).map(|target| (target, params)),
        // The working directory and the monitor have an obvious default; a file has none.
        None if matches!(kind, ActionType::ShellExec) => Ok((".".to_owned(), params)),
        None if matches!(kind, ActionType::ScreenCapture) => Ok(("monitor:0".to_owned(), params)),
        Some(_) | None => Err(Fault::invalid(field, what_is_a_target(kind))),
    }
}

const fn what_is_a_target(kind: ActionType) -> &'static str {
    match kind {
        ActionType::KeyboardInput => "a target is a window's ref",
        ActionType::MouseClick | ActionType::MouseDrag => {
            "a target is a window's ref, or a point: `point:X,Y` or `{\"x\": X, \"y\": Y}`"
        }
        ActionType::ProcessSpawn => "a target is a program: a name, or a path in the workspace",
        ActionType::ProcessSignal => "a target is the ref of a process of the session",
        _ => "a target is a ref, an absolute path or `monitor:N`",
    }
}

fn target_of_object(kind: ActionType, target: &Map<String, Value>, field: &str) -> Result<String, Fault> {
    if matches!(kind, ActionType::MouseClick | ActionType::MouseDrag) && target.len() == 2 {
        let side = |name: &str| target.get(name).and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
        if let (Some(x), Some(y)) = (side("x"), side("y")) {
            return Ok(format!("point:{x},{y}"));
        }
    }
    let mut entries = target.iter();
    match (entries.next(), entries.next()) {
        (Some((key, Value::String(text))), None) if matches!(key.as_str(), "path" | "ref") && !text.is_empty() => {
            Ok(text.clone())
        }
        _ => Err(Fault::invalid(field, "a target object is `{\"path\": …}` or `{\"ref\": …}`")),
    }
}

fn parse_params(kind: ActionType, value: Value) -> Result<Params, Fault> {
    Params::read(kind, value).map_err(|error| {
        let (path, message) = (error.path().to_string(), error.inner().to_string());
        let path = if path == "." { String::new() } else { format!(".{path}") };
        let code = if message.contains("unknown field") { ErrorCode::UnknownField } else { ErrorCode::InvalidArgument };
        Fault::new(code, crate::escape_line(&message)).at(format!("action.params{}", crate::escape_line(&path)))
    })
}

fn unknown_field(parent: &str, name: &str) -> Fault {
    let name = crate::escape_line(name);
    Fault::new(ErrorCode::UnknownField, format!("unknown field `{name}`")).at(format!("{parent}.{name}"))
}

/// Refuses a NUL anywhere in keys or text: the system would cut the text there, so that what ran
/// would not be what was shown.
fn refuse_nul(value: &Value, path: &str) -> Result<(), Fault> {
    let refuse = |path: &str| Err(Fault::new(ErrorCode::NulByte, "a NUL byte can't be part of it").at(path));
    match value {
        Value::String(text) if text.contains('\0') => refuse(path),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(i, item)| refuse_nul(item, &format!("{path}[{i}]")))
        }
        Value::Object(fields) => fields.iter().try_for_each(|(key, item)| {
            let path = format!("{path}.{}", crate::escape_line(key));
            if key.contains('\0') { refuse(&path) } else { refuse_nul(item, &path) }
        }),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::MAX_TYPED_BYTES;
    use super::*;
    use crate::{Digest, MAX_REVIEW_BYTES};
    use serde_json::json;

    fn code(value: Value) -> ErrorCode {
        ActRequest::parse(&value).unwrap_err().code
    }

    #[test]
    fn r11_both_shapes_give_the_same_action() {
        let flat = ActRequest::parse(&json!({"type":"shell_exec","command":"date","cwd":"/ws"})).unwrap();
        let full = json!({"type":"shell_exec","target":"/ws","params":{"command":"date"}});
        assert_eq!(flat, ActRequest::parse(&full).unwrap());
        assert_eq!(flat.action.digest().unwrap(), ActRequest::parse(&full).unwrap().action.digest().unwrap());
    }

    #[test]
    fn r10_defaults_are_part_of_the_digest() {
        let short = ActRequest::parse(&json!({"type":"file_read","target":"/ws/a"})).unwrap().action;
        let long =
            json!({"type":"file_read","target":"/ws/a","params":{"offset":0,"limit":1_048_576,"encoding":"utf8"}});
        assert_eq!(short.digest().unwrap(), ActRequest::parse(&long).unwrap().action.digest().unwrap());
    }

    #[test]
    fn dsp_09_a_nul_byte_is_refused_and_its_field_named() {
        let value = json!({"type":"shell_exec","target":".","params":{"argv":["x","y\u{0}--force"]}});
        let fault = ActRequest::parse(&value).unwrap_err();
        assert_eq!((fault.code, fault.field.as_deref()), (ErrorCode::NulByte, Some("action.params.argv[1]")));
    }

    #[test]
    fn dsp_06_what_cannot_be_reviewed_is_refused_before_a_prompt() {
        let long = format!(": {} ; touch ran", "x".repeat(119_000));
        assert_eq!(code(json!({"type":"shell_exec","command":long})), ErrorCode::TooLongToReview);
    }

    #[test]
    fn r9_the_set_of_types_is_closed() {
        assert_eq!(code(json!({"type":"format_disk","target":"/"})), ErrorCode::InvalidArgument);
        for kind in ActionType::ALL {
            let needs_params = matches!(
                kind,
                ActionType::FileWrite
                    | ActionType::FileEdit
                    | ActionType::KeyboardInput
                    | ActionType::MouseDrag
                    | ActionType::ShellExec
            );
            let parsed = ActRequest::parse(&json!({"type":kind.name(),"target":"/ws/a"}));
            assert_eq!(parsed.is_err(), needs_params, "{kind:?}");
        }
    }

    #[test]
    fn r9_input_is_of_one_kind_and_within_bounds() {
        let parse = |kind: &str, params: Value| {
            ActRequest::parse(&json!({"type":kind,"target":"@w1/g1","params":params})).map(|request| request.action)
        };
        for (kind, params) in [
            ("keyboard_input", json!({"text":"Grüße 🎈\n"})),
            ("keyboard_input", json!({"keys":["ctrl+s","enter"],"hold_ms":10})),
            ("mouse_click", json!({})),
            ("mouse_click", json!({"button":"wheel_down","clicks":50})),
            ("mouse_click", json!({"button":"none"})),
            ("mouse_click", json!({"phase":"down","modifiers":["ctrl"]})),
            ("mouse_drag", json!({"path":[[1,2],[3,4]]})),
        ] {
            let action = parse(kind, params.clone()).unwrap_or_else(|fault| panic!("{params}: {fault}"));
            let again: TypedAction = serde_json::from_value(serde_json::to_value(&action).unwrap()).unwrap();
            assert_eq!(again, action);
        }
        for (kind, params) in [
            ("keyboard_input", json!({})),
            ("keyboard_input", json!({"text":""})),
            ("keyboard_input", json!({"text":"a\u{1b}b"})),
            ("keyboard_input", json!({"text":"a","keys":["a"]})),
            ("keyboard_input", json!({"keys":[]})),
            ("keyboard_input", json!({"keys":["hyper+q"]})),
            ("keyboard_input", json!({"keys":["a"],"secret":true})),
            ("keyboard_input", json!({"text":"a","hold_ms":10_001})),
            ("mouse_click", json!({"clicks":4})),
            ("mouse_click", json!({"clicks":0})),
            ("mouse_click", json!({"button":"none","clicks":1})),
            ("mouse_click", json!({"button":"wheel_up","phase":"down"})),
            ("mouse_click", json!({"modifiers":["alt","alt"]})),
            ("mouse_drag", json!({"path":[]})),
            ("mouse_drag", json!({"path":[[1,2]],"button":"wheel_up"})),
            ("process_signal", json!({"signal":"SIGSEGV"})),
        ] {
            assert_eq!(parse(kind, params.clone()).unwrap_err().code, ErrorCode::InvalidArgument, "{params}");
        }
        let long = parse("keyboard_input", json!({"text":"x".repeat(MAX_TYPED_BYTES + 1)}));
        assert_eq!(long.unwrap_err().code, ErrorCode::TooLongToReview);
    }

    #[test]
    fn r9_a_point_is_written_in_two_ways_and_kept_in_one() {
        let click = |target: Value| ActRequest::parse(&json!({"type":"mouse_click","target":target}));
        assert_eq!(click(json!({"x":3,"y":-4})).unwrap().action.target, "point:3,-4");
        assert_eq!(click(json!("point:3,-4")).unwrap().action.target, "point:3,-4");
        assert!(click(json!({"x":3})).is_err() && click(json!({"x":3.5,"y":1})).is_err());
        assert!(ActRequest::parse(&json!({"type":"file_read","target":{"x":1,"y":2}})).is_err());
    }

    #[test]
    fn r9_a_write_has_one_content_that_arrived_whole() {
        let write = |params: Value| {
            ActRequest::parse(&json!({"type":"file_write","target":"/ws/a","params":params})).map(|r| r.action)
        };
        let text = write(json!({"content":"hi"})).unwrap();
        assert!(matches!(&text.params, Params::FileWrite(w) if w.bytes().unwrap() == b"hi"));
        let again: TypedAction = serde_json::from_value(serde_json::to_value(&text).unwrap()).unwrap();
        assert_eq!(again, text);
        let sum = Digest::of(b"hi");
        assert!(write(json!({"content_base64":"aGk=","content_sha256":sum})).is_ok());
        for bad in [
            json!({}),
            json!({"content":"a","content_base64":"YQ=="}),
            json!({"content_base64":"!"}),
            json!({"content":"ho","content_sha256":sum}),
            json!({"content":"a","permissions":"4755"}),
            json!({"content":"a","permissions":"+44"}),
            json!({"content":"a","mode":"overwrite","permissions":"0600"}),
            json!({"content":"a","before_sha256":sum}),
            json!({"content":"","mode":"append"}),
        ] {
            assert_eq!(write(bad.clone()).unwrap_err().code, ErrorCode::InvalidArgument, "{bad}");
        }
        let long = json!({"content":"x".repeat(MAX_REVIEW_BYTES + 1)});
        assert_eq!(write(long).unwrap_err().code, ErrorCode::TooLongToReview);
    }

    #[test]
    fn r9_parameters_are_those_of_the_type() {
        let delete = ActRequest::parse(&json!({"type":"file_delete","target":"/ws/a"})).unwrap().action;
        assert!(matches!(&delete.params, Params::FileDelete(d) if !d.recursive));
        for (kind, params) in [("file_delete", json!({"content":"x"})), ("file_read", json!({"recursive":true}))] {
            assert_eq!(code(json!({"type":kind,"target":"/a","params":params})), ErrorCode::UnknownField);
        }
    }

    #[test]
    fn a_parameter_of_the_wrong_type_is_named_exactly() {
        let field = |value: Value| ActRequest::parse(&value).unwrap_err().field.unwrap();
        let edit =
            json!({"type":"file_edit","target":"/a","params":{"edits":[{"old":"a","new":"b"},{"old":7,"new":"b"}]}});
        assert_eq!(field(edit), "action.params.edits[1].old");
        let shell = json!({"type":"shell_exec","params":{"command":"a","env":{"A":1}}});
        assert_eq!(field(shell), "action.params.env.A");
        let unknown = json!({"type":"file_edit","target":"/a","params":{"edits":[{"old":"a","new":"b","x":1}]}});
        assert_eq!(field(unknown), "action.params.edits[0].x");
    }

    #[test]
    fn unknown_fields_and_wrong_types_are_refused() {
        assert_eq!(code(json!({"type":"file_read","target":"/a","sudo":true})), ErrorCode::UnknownField);
        assert_eq!(code(json!({"type":"file_read","target":"/a","params":{"x":1}})), ErrorCode::UnknownField);
        assert_eq!(code(json!({"type":"file_read","target":7})), ErrorCode::InvalidArgument);
        assert_eq!(code(json!({"type":"shell_exec","params":{}})), ErrorCode::InvalidArgument);
        assert_eq!(
            code(json!({"type":"shell_exec","params":{"command":"a","argv":["b"]}})),
            ErrorCode::InvalidArgument
        );
        assert_eq!(
            code(json!({"type":"shell_exec","params":{"command":"a","network":true}})),
            ErrorCode::NotYetSupported
        );
        assert_eq!(
            code(json!({"type":"file_edit","target":"/a","params":{"edits":[{"old":"","new":"x"}]}})),
            ErrorCode::EmptyMatch
        );
    }

    #[test]
    fn resolution_7_a_block_is_taken_out_before_hashing() {
        let plain = json!({"type":"shell_exec","command":"date"});
        let carried = json!({"type":"shell_exec","command":"date","authorization":{"authorization_token":"sha256:00","approved_by":"me"}});
        let carried = ActRequest::parse(&carried).unwrap();
        assert_eq!(carried.action, ActRequest::parse(&plain).unwrap().action);
        assert_eq!(carried.authorization_token.as_deref(), Some("sha256:00"));
    }
}
