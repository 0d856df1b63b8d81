//! An agent that speaks only MCP: over the stdio bridge ([`stdio`]) or HTTP ([`http`]).

pub mod http;
pub mod stdio;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::time::Duration;

/// The protocol version that agents ask for unless told otherwise.
pub const DEFAULT_VERSION: &str = "2025-06-18";
/// How long an agent waits for an answer unless told otherwise; longer than the server's own
/// `wait_ms`.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A JSON-RPC error answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// Code, -32700 and the like.
    pub code: i64,
    /// Message.
    pub message: String,
    /// Data, or null.
    pub data: Value,
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} {}", self.code, self.message, self.data)
    }
}

impl std::error::Error for RpcError {}

/// What a JSON-RPC answer brings.
pub type Answer = Result<Value, RpcError>;

/// What a tool call brought.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The whole result.
    pub raw: Value,
    /// The tool says that it failed.
    pub is_error: bool,
    /// `structuredContent`; without it the text parsed as JSON, or null.
    pub structured: Value,
    /// All text parts, joined by line ends.
    pub text: String,
}

impl ToolResult {
    /// Takes a `tools/call` result apart.
    #[must_use]
    pub fn from_raw(raw: Value) -> Self {
        let parts = raw["content"].as_array().into_iter().flatten();
        let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
        let text = texts.join("\n");
        let structured = match raw.get("structuredContent") {
            Some(value) => value.clone(),
            None => serde_json::from_str(&text).unwrap_or_default(),
        };
        Self { is_error: raw["isError"] == json!(true), structured, text, raw }
    }

    /// A part of the structured result by JSON pointer (`/error/code`); null if it isn't there.
    #[must_use]
    pub fn at(&self, pointer: &str) -> Value {
        self.structured.pointer(pointer).cloned().unwrap_or_default()
    }

    /// The same as text, empty if it isn't one.
    #[must_use]
    pub fn text_at(&self, pointer: &str) -> String {
        self.at(pointer).as_str().unwrap_or_default().to_owned()
    }
}

/// What every MCP client does, over any transport.
pub trait Agent {
    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// If the connection fails or no answer comes in time. A JSON-RPC error is an [`Answer`].
    fn ask(&mut self, method: &str, params: Value, timeout: Duration) -> Result<Answer>;

    /// Sends a notification.
    ///
    /// # Errors
    /// If the connection fails.
    fn notify(&mut self, method: &str, params: Value) -> Result<()>;

    /// The protocol version to ask for.
    fn version(&self) -> &str;

    /// Notes the version that was agreed on.
    fn agreed(&mut self, version: &str);

    /// Sends a request, and takes a JSON-RPC error for an error (an [`RpcError`] inside).
    ///
    /// # Errors
    /// As [`Agent::ask`], or the server's error.
    fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.ask(method, params, PATIENCE)?.with_context(|| format!("{method} was answered by an error"))
    }

    /// `initialize` and `notifications/initialized`; what the server said of itself.
    ///
    /// # Errors
    /// As [`Agent::request`].
    fn initialize(&mut self) -> Result<Value> {
        let params = json!({
            "protocolVersion": self.version(),
            "capabilities": {},
            "clientInfo": { "name": "harness-agent", "version": env!("CARGO_PKG_VERSION") },
        });
        let answer = self.request("initialize", params)?;
        let version = answer["protocolVersion"].as_str().context("no version")?;
        self.agreed(version);
        self.notify("notifications/initialized", json!({}))?;
        Ok(answer)
    }

    /// All tools, over all pages.
    ///
    /// # Errors
    /// As [`Agent::request`].
    fn tools_list(&mut self) -> Result<Vec<Value>> {
        let mut tools = Vec::new();
        let mut params = json!({});
        loop {
            let page = self.request("tools/list", params)?;
            tools.extend(page["tools"].as_array().context("no tools")?.clone());
            match page.get("nextCursor") {
                Some(Value::String(cursor)) => params = json!({ "cursor": cursor }),
                _ => return Ok(tools),
            }
        }
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// As [`Agent::request`]; a failure that the tool reports is in the [`ToolResult`].
    fn call(&mut self, tool: &str, arguments: Value) -> Result<ToolResult> {
        self.call_within(tool, arguments, PATIENCE)
    }

    /// Calls a tool and waits for at most `timeout`.
    ///
    /// # Errors
    /// As [`Agent::call`].
    fn call_within(&mut self, tool: &str, args: Value, timeout: Duration) -> Result<ToolResult> {
        let params = json!({ "name": tool, "arguments": args });
        let raw = self
            .ask("tools/call", params, timeout)?
            .with_context(|| format!("calling {tool} was answered by an error"))?;
        Ok(ToolResult::from_raw(raw))
    }
}

/// Splits a JSON-RPC answer.
pub(crate) fn answer(message: &Value) -> Answer {
    match message.get("error") {
        Some(error) => Err(RpcError {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error["data"].clone(),
        }),
        None => Ok(message["result"].clone()),
    }
}

/// An answer, as opposed to a request or a notification.
pub(crate) fn is_answer(message: &Value) -> bool {
    message.get("method").is_none() && message.get("id").is_some()
}
