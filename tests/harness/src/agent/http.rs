//! MCP over Streamable HTTP.

use super::{Agent, Answer, DEFAULT_VERSION, answer, is_answer};
use crate::http_client::{HttpReply, HttpRequest};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An agent over HTTP. Clones share the session and may ask at the same time.
#[derive(Clone, Debug)]
pub struct HttpAgent {
    address: String,
    path: String,
    token: Option<String>,
    version: String,
    agreed: bool,
    session: Option<String>,
    next: Arc<AtomicI64>,
    notifications: Arc<Mutex<Vec<Value>>>,
}

impl HttpAgent {
    /// An agent for `http://HOST:PORT/PATH`, with a bearer token or none.
    ///
    /// # Errors
    /// If the URL isn't such.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self> {
        let rest = url.trim().strip_prefix("http://").with_context(|| format!("not an http URL: {url}"))?;
        let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
        Ok(Self {
            address: address.to_owned(),
            path: format!("/{path}"),
            token: token.map(|token| token.trim().to_owned()),
            version: DEFAULT_VERSION.to_owned(),
            agreed: false,
            session: None,
            next: Arc::new(AtomicI64::new(1)),
            notifications: Arc::default(),
        })
    }

    /// Asks for another protocol version.
    #[must_use]
    pub fn with_version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    /// `HOST:PORT` of the server.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The session that the server gave.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Speaks of another session from now on, or none.
    pub fn set_session(&mut self, session: Option<&str>) {
        self.session = session.map(str::to_owned);
    }

    /// A request with the headers of a good client, to be changed at will before it is sent.
    #[must_use]
    pub fn http_request(&self, method: &str) -> HttpRequest {
        let mut request = HttpRequest::new(method, &self.path)
            .header("Host", &self.address)
            .header("Accept", "application/json, text/event-stream");
        if method == "POST" {
            request = request.header("Content-Type", "application/json");
        }
        if let Some(token) = &self.token {
            request = request.header("Authorization", &format!("Bearer {token}"));
        }
        if let Some(session) = &self.session {
            request = request.header("Mcp-Session-Id", session);
        }
        if self.agreed {
            request = request.header("MCP-Protocol-Version", &self.version);
        }
        request
    }

    /// Sends any request.
    ///
    /// # Errors
    /// If no HTTP answer comes in time.
    pub fn send(&self, request: &HttpRequest, timeout: Duration) -> Result<HttpReply> {
        request.send(&self.address, timeout)
    }

    /// Posts a body as a good client would; its answer, whatever it is.
    ///
    /// # Errors
    /// If no HTTP answer comes in time.
    pub fn post(&self, body: impl Into<Vec<u8>>, timeout: Duration) -> Result<HttpReply> {
        self.send(&self.http_request("POST").body(body), timeout)
    }

    /// Opens the stream of the server's own messages; read it by [`HttpReply::next_event`].
    ///
    /// # Errors
    /// If no HTTP answer comes in time.
    pub fn listen(&self, timeout: Duration) -> Result<HttpReply> {
        self.send(&self.http_request("GET"), timeout)
    }

    /// Ends the session; the status of the answer.
    ///
    /// # Errors
    /// If no HTTP answer comes in time.
    pub fn end_session(&mut self, timeout: Duration) -> Result<u16> {
        let status = self.send(&self.http_request("DELETE"), timeout)?.status;
        self.session = None;
        Ok(status)
    }

    /// All notifications that came with answers so far.
    #[must_use]
    pub fn notifications(&self) -> Vec<Value> {
        let all = self.notifications.lock();
        all.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A tool call in a thread of its own, with a progress token; join it for the result.
    #[must_use]
    pub fn begin_call(
        &self,
        tool: &str,
        arguments: Value,
        timeout: Duration,
    ) -> std::thread::JoinHandle<Result<Answer>> {
        let mut agent = self.clone();
        let token = self.next.load(Ordering::Relaxed);
        let meta = json!({ "progressToken": format!("{tool}-{token}") });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        std::thread::spawn(move || agent.ask("tools/call", params, timeout))
    }

    /// Reads an answer as JSON or from a stream of events.
    fn read_answer(&self, mut reply: HttpReply, id: i64) -> Result<Answer> {
        if !reply.is_event_stream() {
            let text = reply.text()?;
            let message: Value =
                serde_json::from_str(&text).with_context(|| format!("HTTP {}: {text}", reply.status))?;
            return Ok(answer(&message));
        }
        while let Some(event) = reply.next_event()? {
            let message: Value = serde_json::from_str(&event).with_context(|| format!("not JSON: {event}"))?;
            if is_answer(&message) && message["id"] == json!(id) {
                return Ok(answer(&message));
            }
            if message.get("method").is_some() {
                let all = self.notifications.lock();
                all.unwrap_or_else(PoisonError::into_inner).push(message);
            }
        }
        bail!("the stream ended without an answer to request {id}")
    }
}

impl Agent for HttpAgent {
    fn ask(&mut self, method: &str, params: Value, timeout: Duration) -> Result<Answer> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let reply = self.post(message.to_string(), timeout)?;
        if let Some(session) = reply.header("mcp-session-id") {
            self.session = Some(session.to_owned());
        }
        self.read_answer(reply, id)
    }

    fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let mut reply = self.post(message.to_string(), super::PATIENCE)?;
        if !(200..300).contains(&reply.status) {
            let text = reply.text()?;
            bail!("{method}: HTTP {}: {text}", reply.status);
        }
        Ok(())
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn agreed(&mut self, version: &str) {
        version.clone_into(&mut self.version);
        self.agreed = true;
    }
}
