//! The strict door: what every JSON-RPC text has to be before the protocol library sees it.
//!
//! `serde_json` keeps the last of two equal keys and the library takes a malformed `tools/call`
//! for an unknown method. Both would make "what was asked" ambiguous, so they end here.

mod lines;
mod order;
mod scan;

use std::borrow::Cow;

use bodyguard_protocol::{ErrorCode, Fault, escape_line, parse_strict};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode as RpcCode, ErrorData, JsonRpcMessage, RequestId,
};
use serde_json::{Map, Value, json};

pub(crate) use lines::{Line, LineReader};
pub(crate) use order::{Order, Verdict};
pub(crate) use scan::IdScan;

/// The longest message that is read, in bytes. Nothing an agent can rightly ask is longer: what a
/// person reviews ends at 64 KiB.
pub const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const CALL_FIELDS: [&str; 6] = ["name", "arguments", "_meta", "task", "inputResponses", "requestState"];

/// A message that isn't passed on, and the JSON-RPC error that answers it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) id: Option<RequestId>,
    pub(crate) error: ErrorData,
}

impl Refusal {
    pub(crate) fn new(id: Option<RequestId>, code: RpcCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { id, error: ErrorData::new(code, message, None) }
    }

    /// Adds the stable code that clients switch on.
    pub(crate) fn coded(mut self, code: &str) -> Self {
        self.error.data = Some(json!({ "code": code }));
        self
    }

    pub(crate) fn of(id: Option<RequestId>, rpc: RpcCode, fault: &Fault) -> Self {
        let mut error = ErrorData::new(rpc, fault.message.clone(), None);
        error.data = serde_json::to_value(fault).ok();
        Self { id, error }
    }

    /// A text longer than [`MAX_MESSAGE_BYTES`].
    pub(crate) fn too_large(id: Option<RequestId>, bytes: u64) -> Self {
        let message = format!("a message of {bytes} bytes; at most {MAX_MESSAGE_BYTES} are read");
        Self::new(id, RpcCode::INVALID_REQUEST, message).coded("too_large")
    }

    /// The answer as one line. JSON-RPC wants `"id": null` written out where the id isn't known.
    pub(crate) fn to_line(&self) -> Vec<u8> {
        to_line(&json!({"jsonrpc": "2.0", "id": self.id, "error": self.error}))
    }
}

/// One message as a line with its end.
pub(crate) fn to_line<T: serde::Serialize>(message: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// A message that may be passed on.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    /// The text as an object, free of duplicate keys.
    pub(crate) value: Map<String, Value>,
    /// The same in the protocol library's types.
    pub(crate) message: ClientJsonRpcMessage,
}

impl Admitted {
    /// The request's id; absent for notifications and answers.
    pub(crate) fn request_id(&self) -> Option<&RequestId> {
        match &self.message {
            JsonRpcMessage::Request(request) => Some(&request.id),
            JsonRpcMessage::Response(_) | JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_) => None,
        }
    }

    /// The id that a `notifications/cancelled` names.
    pub(crate) fn cancels(&self) -> Option<&RequestId> {
        match &self.message {
            JsonRpcMessage::Notification(note) => match &note.notification {
                ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
                _ => None,
            },
            JsonRpcMessage::Request(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
        }
    }

    pub(crate) fn method(&self) -> Option<&str> {
        self.value.get("method").and_then(Value::as_str)
    }

    pub(crate) fn params(&self) -> Option<&Map<String, Value>> {
        self.value.get("params").and_then(Value::as_object)
    }
}

/// Checks one text. Blank texts are nothing: `None`.
pub(crate) fn check(text: &[u8]) -> Result<Option<Admitted>, Refusal> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    let value = parse_strict(text).map_err(|fault| refuse_text(text, &fault))?;
    let Value::Object(value) = value else {
        let what = if value.is_array() { "batches aren't served; send one message at a time" } else { "not an object" };
        return Err(Refusal::new(None, RpcCode::INVALID_REQUEST, what));
    };
    let id = envelope(&value)?;
    let message = typed(&value, id)?;
    Ok(Some(Admitted { value, message }))
}

fn refuse_text(text: &[u8], fault: &Fault) -> Refusal {
    if fault.code != ErrorCode::DuplicateField {
        return Refusal::of(None, RpcCode::PARSE_ERROR, fault);
    }
    // Which of two ids was meant can't be told.
    let id = if fault.message.contains("`id`") { None } else { lenient_id(text) };
    Refusal::of(id, RpcCode::INVALID_REQUEST, fault)
}

fn lenient_id(text: &[u8]) -> Option<RequestId> {
    let value: Value = serde_json::from_slice(text).ok()?;
    request_id(value.get("id")?)
}

pub(crate) fn request_id(value: &Value) -> Option<RequestId> {
    match value {
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Checks what JSON-RPC 2.0 says about the outer object and returns the id.
fn envelope(value: &Map<String, Value>) -> Result<Option<RequestId>, Refusal> {
    let id = value.get("id").and_then(request_id);
    let bad = |message: &'static str| Err(Refusal::new(id.clone(), RpcCode::INVALID_REQUEST, message));
    if value.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return bad("`jsonrpc` has to be \"2.0\"");
    }
    if value.contains_key("id") && id.is_none() && !value.contains_key("error") {
        return bad("an `id` is text or a whole number");
    }
    if let Some(unknown) = value.keys().find(|key| !ENVELOPE.contains(&key.as_str())) {
        let message = format!("unknown field `{}`", escape_line(unknown));
        return Err(Refusal::new(id, RpcCode::INVALID_REQUEST, message).coded("unknown_field"));
    }
    let answers = usize::from(value.contains_key("result")) + usize::from(value.contains_key("error"));
    match (value.get("method"), answers) {
        (Some(Value::String(_)), 0) | (None, 1) => {}
        (Some(_), 0) => return bad("`method` is text"),
        _ => return bad("a message has a `method`, or a `result`, or an `error`"),
    }
    match value.get("params") {
        None | Some(Value::Object(_)) => Ok(id),
        Some(_) => Err(Refusal::new(id, RpcCode::INVALID_PARAMS, "`params` is an object").coded("invalid_argument")),
    }
}

fn typed(value: &Map<String, Value>, id: Option<RequestId>) -> Result<ClientJsonRpcMessage, Refusal> {
    let method = value.get("method").and_then(Value::as_str);
    if method == Some("tools/call") {
        check_call(value.get("params").and_then(Value::as_object), id.clone())?;
    }
    let message: ClientJsonRpcMessage = serde_json::from_value(Value::Object(value.clone()))
        .map_err(|error| Refusal::new(id.clone(), RpcCode::INVALID_REQUEST, error.to_string()))?;
    // A known method whose parameters don't fit is read as a method of someone's own.
    let misread = match &message {
        JsonRpcMessage::Request(request) => matches!(request.request, ClientRequest::CustomRequest(_)),
        JsonRpcMessage::Notification(note) => matches!(note.notification, ClientNotification::CustomNotification(_)),
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => false,
    };
    if let Some(method) = method.filter(|method| misread && KNOWN.contains(method)) {
        let message = format!("the parameters of `{method}` don't fit");
        return Err(Refusal::new(id, RpcCode::INVALID_PARAMS, message).coded("invalid_argument"));
    }
    Ok(message)
}

const KNOWN: [&str; 8] = [
    "initialize",
    "ping",
    "tools/call",
    "tools/list",
    "logging/setLevel",
    "server/discover",
    "notifications/cancelled",
    "notifications/initialized",
];

fn check_call(params: Option<&Map<String, Value>>, id: Option<RequestId>) -> Result<(), Refusal> {
    let bad = |message: String, code| Err(Refusal::new(id.clone(), RpcCode::INVALID_PARAMS, message).coded(code));
    let Some(params) = params else { return bad("`tools/call` has `params`".into(), "invalid_argument") };
    if !params.get("name").is_some_and(Value::is_string) {
        return bad("`params.name` is text".into(), "invalid_argument");
    }
    if params.get("arguments").is_some_and(|arguments| !arguments.is_object()) {
        return bad("`params.arguments` is an object".into(), "invalid_argument");
    }
    match params.keys().find(|key| !CALL_FIELDS.contains(&key.as_str())) {
        Some(unknown) => bad(format!("unknown field `params.{}`", escape_line(unknown)), "unknown_field"),
        None => Ok(()),
    }
}
