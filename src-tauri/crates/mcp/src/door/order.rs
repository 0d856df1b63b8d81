//! In which order a connection's messages make sense.

use rmcp::model::{ErrorCode as RpcCode, JsonRpcMessage};
use serde_json::Value;

use super::{Admitted, Refusal};
use crate::tools;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Order {
    /// Nothing agreed yet.
    #[default]
    New,
    /// `initialize` was answered, `notifications/initialized` hasn't come.
    Opened,
    /// Open for everything.
    Ready,
    /// Opened by a request that carries its own version and capabilities (2026-07-28).
    Inline,
}

/// What to do with a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Pass it on.
    Pass,
    /// It means nothing here and needs no answer.
    Drop,
    /// Answer it with this.
    Refuse(Refusal),
}

impl Order {
    /// Judges the next message and moves on if it passes.
    pub(crate) fn admit(&mut self, message: &Admitted) -> Verdict {
        let id = message.request_id().cloned();
        let refuse =
            |text: &'static str, code| Verdict::Refuse(Refusal::new(id, RpcCode::INVALID_REQUEST, text).coded(code));
        let is_request = matches!(message.message, JsonRpcMessage::Request(_));
        match (*self, message.method()) {
            (Self::New, Some("initialize")) => {
                *self = Self::Opened;
                Verdict::Pass
            }
            (Self::New, Some("ping" | "server/discover")) => Verdict::Pass,
            (Self::New, _) if !is_request => Verdict::Drop,
            (Self::New, _) if carries_version(message) => {
                *self = Self::Inline;
                Verdict::Pass
            }
            (Self::New, _) => refuse("send `initialize` first", "not_initialized"),
            (_, Some("initialize")) => {
                refuse("this connection is initialized already; nothing was changed", "already_initialized")
            }
            (Self::Opened, Some("notifications/initialized")) => {
                *self = Self::Ready;
                Verdict::Pass
            }
            (Self::Opened, Some("tools/call")) if has_effects(message) => {
                refuse("send `notifications/initialized` before a call that changes something", "not_initialized")
            }
            (Self::Opened | Self::Ready | Self::Inline, _) => Verdict::Pass,
        }
    }
}

fn has_effects(message: &Admitted) -> bool {
    let name = message.params().and_then(|params| params.get("name")).and_then(Value::as_str);
    !name.is_some_and(tools::is_read_only)
}

/// Whether a request brings what the library needs to serve it without `initialize`.
fn carries_version(message: &Admitted) -> bool {
    let meta = message.params().and_then(|params| params.get("_meta")).and_then(Value::as_object);
    meta.is_some_and(|meta| {
        let version = meta.get("io.modelcontextprotocol/protocolVersion").and_then(Value::as_str);
        let known = rmcp::model::ProtocolVersion::KNOWN_VERSIONS;
        version.is_some_and(|version| known.iter().any(|one| one.as_str() == version))
            && meta.get("io.modelcontextprotocol/clientCapabilities").is_some_and(Value::is_object)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::check;

    fn judge(order: &mut Order, text: &str) -> Verdict {
        order.admit(&check(text.as_bytes()).unwrap().unwrap())
    }

    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

    #[test]
    fn mcp_02_an_early_call_with_effects_is_refused_and_a_second_initialize_changes_nothing() {
        let mut order = Order::default();
        let act = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"body_os_act","arguments":{}}}"#;
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(judge(&mut order, r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#), Verdict::Pass);
        assert_eq!(judge(&mut order, ready), Verdict::Drop);
        assert!(matches!(judge(&mut order, act), Verdict::Refuse(_)));
        assert_eq!(judge(&mut order, INITIALIZE), Verdict::Pass);
        assert_eq!(judge(&mut order, r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#), Verdict::Pass);
        assert!(matches!(judge(&mut order, act), Verdict::Refuse(_)));
        assert_eq!(judge(&mut order, ready), Verdict::Pass);
        assert_eq!(judge(&mut order, act), Verdict::Pass);
        assert!(matches!(judge(&mut order, INITIALIZE), Verdict::Refuse(_)));
        assert_eq!(order, Order::Ready);
        assert_eq!(judge(&mut order, act), Verdict::Pass);
    }
}
