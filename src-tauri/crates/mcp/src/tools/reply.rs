//! From the supervisor's answers to tool results.
//!
//! `structuredContent` is the OS-011 object. The text blocks say the same: a sentence, then the
//! object as JSON for clients that hand their model the text alone. Pictures are image blocks only.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bodyguard_protocol::{ErrorCode, Fault, OutcomeError, OutcomeStatus, ReplayResult, ReplayStatus};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Value, json};

use bodyguard_body::Image;
use bodyguard_supervisor::{ActReply, PerceiveReply, Refusal};

/// The largest picture that is sent, in bytes before base64. Model providers refuse larger ones.
const MAX_IMAGE_BYTES: usize = 3_700_000;
/// The longest JSON repeated as text.
const MAX_TEXT_JSON: usize = 64 * 1024;

/// A result that went well.
pub(crate) fn give<T: Serialize>(sentence: &str, object: &T) -> CallToolResult {
    match serde_json::to_value(object) {
        Ok(value) => build(sentence.to_owned(), value, None, false),
        Err(error) => call_fault(Fault::internal(error.to_string())),
    }
}

/// A typed error.
pub(crate) fn call_fault(fault: Fault) -> CallToolResult {
    call_refusal(Refusal::from(fault))
}

/// A typed error with the ask or escalation it raised.
pub(crate) fn call_refusal(refusal: Refusal) -> CallToolResult {
    let mut error = OutcomeError::from(refusal.fault);
    error.escalation_id = refusal.escalation_id.map(|ask| ask.to_string());
    build(sentence_of(&error), json!({ "error": error }), None, true)
}

/// An observation, with its picture.
pub(crate) fn give_perception(reply: PerceiveReply) -> CallToolResult {
    let seen = &reply.observation;
    let sentence = format!("Perceived generation {}: {} refs.", seen.generation, seen.refs.len());
    match serde_json::to_value(seen) {
        Ok(value) => build(sentence, value, reply.image.as_deref(), false),
        Err(error) => call_fault(Fault::internal(error.to_string())),
    }
}

/// An outcome, with its picture. It is an error exactly where `error` is set.
pub(crate) fn give_act(reply: ActReply) -> CallToolResult {
    let outcome = &reply.outcome;
    let sentence = match &outcome.error {
        Some(error) => sentence_of(error),
        None => match outcome.outcome_status {
            OutcomeStatus::Success => "Done.".to_owned(),
            OutcomeStatus::Partial => "Done in part.".to_owned(),
            OutcomeStatus::Failure => "It failed.".to_owned(),
            OutcomeStatus::Blocked => "Not permitted.".to_owned(),
            OutcomeStatus::Timeout => "It took too long and was ended.".to_owned(),
        },
    };
    match serde_json::to_value(outcome) {
        Ok(value) => build(sentence, value, reply.image.as_deref(), outcome.error.is_some()),
        Err(error) => call_fault(Fault::internal(error.to_string())),
    }
}

/// A replay's result. It is an error exactly where `error` is set.
pub(crate) fn give_replay(result: &ReplayResult) -> CallToolResult {
    let count = result.edges_replayed.len();
    let at = result.failed_at_edge.map(|edge| format!(" at edge {edge}")).unwrap_or_default();
    let sentence = match (&result.error, result.status) {
        (Some(error), _) => format!("Stopped{at} after {count} edges. {}", sentence_of(error)),
        (None, ReplayStatus::Running) => format!(
            "Running, {count} edges done: {}. Ask again with session_id and replay_id {} alone.",
            result.waiting_for.as_deref().unwrap_or("it goes on"),
            result.replay_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        ),
        (None, _) if result.dry_run => format!("{count} edges would come out as recorded. Nothing was done."),
        (None, _) => format!("{count} edges came out as recorded."),
    };
    match serde_json::to_value(result) {
        Ok(value) => build(sentence, value, None, result.error.is_some()),
        Err(error) => call_fault(Fault::internal(error.to_string())),
    }
}

fn sentence_of(error: &OutcomeError) -> String {
    let code = serde_json::to_value(error.code).unwrap_or_default();
    let mut text = format!("{}: {}", code.as_str().unwrap_or("error"), error.message);
    if let Some(field) = &error.field {
        text.push_str(&format!(" (field {field})"));
    }
    if let (ErrorCode::AuthorizationRequired, Some(ask)) = (error.code, &error.escalation_id) {
        text.push_str(&format!(". Nothing has run yet. Ask again with session_id and escalation_id {ask} alone"));
    }
    if let Some(hint) = &error.hint {
        text.push_str(&format!(". {hint}"));
    }
    text
}

fn build(sentence: String, value: Value, image: Option<&Image>, is_error: bool) -> CallToolResult {
    let json = value.to_string();
    let mut content = vec![ContentBlock::text(sentence)];
    if json.len() <= MAX_TEXT_JSON {
        content.push(ContentBlock::text(json));
    } else {
        let note = format!(
            "The whole answer ({} bytes) is in structuredContent; ask for less with limit, depth or scope.",
            json.len()
        );
        content.push(ContentBlock::text(note));
    }
    if let Some(image) = image {
        content.push(ContentBlock::text(picture_note(image)));
        if image.bytes.len() <= MAX_IMAGE_BYTES {
            content.push(ContentBlock::image(STANDARD.encode(&image.bytes), image.media_type.clone()));
        }
    }
    let mut result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(value);
    result
}

fn picture_note(image: &Image) -> String {
    let size = format!("Picture {}×{}, scale {}", image.width, image.height, image.scale);
    if image.bytes.len() <= MAX_IMAGE_BYTES {
        format!("{size}: divide its coordinates by the scale to get physical pixels.")
    } else {
        format!(
            "{size}, {} bytes: too large to send here. The trace has it; ask for a smaller one with max_width, or for jpeg.",
            image.bytes.len()
        )
    }
}
