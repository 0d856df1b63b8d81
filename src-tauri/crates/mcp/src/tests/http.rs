//! HTTP from raw bytes: MCP-04, MCP-06 and what is bound to an agent.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::scripted::{House, session_of, until};
use super::wire::{act, call, initialize};

/// One request over a connection of its own; the answer's head and body.
struct Ask<'a> {
    house: &'a House,
    method: &'a str,
    host: String,
    extra: Vec<(&'a str, String)>,
    token: Option<&'a str>,
    body: Vec<u8>,
}

impl<'a> Ask<'a> {
    fn post(house: &'a House, message: &Value) -> Self {
        let host = format!("127.0.0.1:{}", house.port());
        let body = message.to_string().into_bytes();
        Self { house, method: "POST", host, extra: Vec::new(), token: Some("token-alice"), body }
    }

    fn with(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.extra.push((name, value.into()));
        self
    }

    async fn open(&self) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.house.port())).await.unwrap();
        let mut head = format!(
            "{} /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\
             Accept: application/json, text/event-stream\r\n",
            self.method,
            self.host,
            self.body.len()
        );
        if let Some(token) = self.token {
            head.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for (name, value) in &self.extra {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&self.body).await.unwrap();
        stream
    }

    async fn send(&self) -> (u16, String) {
        let mut answer = Vec::new();
        self.open().await.read_to_end(&mut answer).await.unwrap();
        let text = String::from_utf8(answer).unwrap();
        (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
    }

    /// The JSON-RPC message in an answer, from a stream of events or plain.
    async fn message(&self) -> Value {
        let (_, text) = self.send().await;
        let start = text.find("{\"jsonrpc\"").unwrap_or_else(|| panic!("{text}"));
        serde_json::Deserializer::from_str(&text[start..]).into_iter().next().unwrap().unwrap()
    }
}

async fn open(house: &House, token: &str) -> String {
    let ask = Ask { token: Some(token), ..Ask::post(house, &initialize(1)) };
    let (status, text) = ask.send().await;
    assert_eq!(status, 200, "{text}");
    let line = text.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id:")).unwrap();
    line.split_once(": ").unwrap().1.trim().to_owned()
}

async fn ready(house: &House) -> String {
    let session = open(house, "token-alice").await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(Ask::post(house, &note).with("Mcp-Session-Id", &session).send().await.0, 202);
    session
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_06_only_this_doors_own_names_pass_and_no_foreign_page() {
    let house = House::new().await;
    let port = house.port();
    for host in [format!("localhost:{port}"), format!("[::1]:{port}"), format!("127.0.0.1:{port}")] {
        let (status, text) = Ask { host, ..Ask::post(&house, &initialize(1)) }.send().await;
        assert_eq!(status, 200, "{text}");
    }
    let counted = house.book.clients.lock().unwrap().len();
    for host in [
        format!("evil.example:{port}"),
        format!("0.0.0.0:{port}"),
        format!("localhost.:{port}"),
        format!("127.0.0.1.:{port}"),
        "localhost".to_owned(),
        "evil\u{1b}[31m.example".to_owned(),
    ] {
        let mut ask = Ask { host, ..Ask::post(&house, &initialize(1)) };
        ask.body = b"{not json".to_vec();
        let (status, text) = ask.send().await;
        // A host that isn't a header value at all never gets beyond the HTTP parser.
        assert!(status == 403 || (status == 400 && ask.host.contains('\u{1b}')), "{} {text}", ask.host);
        assert!(!text.contains("evil"));
    }
    for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
        let mut ask = Ask::post(&house, &initialize(1)).with("Origin", origin);
        ask.body = b"{not json".to_vec();
        assert_eq!(ask.send().await.0, 403, "{origin}");
    }
    assert_eq!(Ask::post(&house, &initialize(1)).with("Origin", "http://localhost:3000").send().await.0, 200);
    assert!(house.book.clients.lock().unwrap().len() <= counted + 1);
    assert!(house.book.acts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_needed_and_the_body_bounded() {
    let house = House::new().await;
    for token in [None, Some("wrong"), Some("")] {
        let (status, text) = Ask { token, ..Ask::post(&house, &initialize(1)) }.send().await;
        assert_eq!(status, 401);
        assert!(text.to_lowercase().contains("www-authenticate: bearer"), "{text}");
    }
    let session = ready(&house).await;
    let mut huge = Ask::post(&house, &json!({})).with("Mcp-Session-Id", &session);
    huge.body = vec![b' '; 16_000_000];
    let (status, text) = huge.send().await;
    assert_eq!(status, 413);
    assert!(text.contains("too_large"), "{text}");
    for (body, code) in [
        (&b"{not json"[..], -32700),
        (b"[]", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\"}", -32600),
        (b"", -32600),
    ] {
        let mut ask = Ask::post(&house, &json!({})).with("Mcp-Session-Id", &session);
        ask.body = body.to_vec();
        assert_eq!(ask.message().await["error"]["code"], code);
    }
    let fine = call(9, "body_os_encode_state", json!({"session_id": session_of("alice")}));
    let answer = Ask::post(&house, &fine).with("Mcp-Session-Id", &session).message().await;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protocol_session_belongs_to_its_agent() {
    let house = House::new().await;
    let session = ready(&house).await;
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    for method in ["POST", "GET", "DELETE"] {
        let ask = Ask { method, token: Some("token-bob"), ..Ask::post(&house, &list) };
        assert_eq!(ask.with("Mcp-Session-Id", &session).send().await.0, 404, "{method}");
    }
    assert_eq!(Ask::post(&house, &list).with("Mcp-Session-Id", "made-up").send().await.0, 404);
    let own = Ask::post(&house, &list).with("Mcp-Session-Id", &session).message().await;
    assert_eq!(own["result"]["tools"].as_array().unwrap().len(), 7);
    let delete = Ask { method: "DELETE", ..Ask::post(&house, &json!({})) };
    assert!(delete.with("Mcp-Session-Id", &session).send().await.0 < 300);
    assert_eq!(Ask::post(&house, &list).with("Mcp-Session-Id", &session).send().await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_02_over_http_an_early_act_and_a_second_initialize_are_refused() {
    let house = House::new().await;
    let session = open(&house, "token-alice").await;
    let early = Ask::post(&house, &act(2, "early", 0)).with("Mcp-Session-Id", &session).message().await;
    assert_eq!(early["error"]["data"]["code"], "not_initialized");
    let second = Ask::post(&house, &initialize(3)).with("Mcp-Session-Id", &session).message().await;
    assert_eq!(second["error"]["data"]["code"], "already_initialized");
    let without = Ask::post(&house, &act(4, "early", 0)).send().await;
    assert!(without.0 >= 400, "{without:?}");
    assert!(house.book.acts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_04_a_killed_client_waits_no_more_and_took_nothing_back() {
    let house = House::new().await;
    let session = ready(&house).await;
    let ask = Ask::post(&house, &act(2, "ask", 60_000)).with("Mcp-Session-Id", &session);
    let stream = ask.open().await;
    until("it waits", || house.book.waiting.load(Ordering::SeqCst) == 1).await;
    let reset = rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO));
    reset.unwrap();
    drop(stream);
    until("nobody waits", || house.book.waiting.load(Ordering::SeqCst) == 0).await;
    until("the agent isn't connected", || house.book.connections.load(Ordering::SeqCst) == 0).await;
    assert_eq!(house.book.cancelled.load(Ordering::SeqCst), 0);
    // The protocol session is still good for asking again.
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list"});
    assert!(Ask::post(&house, &list).with("Mcp-Session-Id", &session).message().await["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_progress_comes_and_a_cancellation_takes_back() {
    let house = House::new().await;
    let session = ready(&house).await;
    let mut message = act(2, "ask", 400);
    message["params"]["_meta"] = json!({"progressToken": "p"});
    let (_, text) = Ask::post(&house, &message).with("Mcp-Session-Id", &session).send().await;
    assert!(text.contains("waiting for the person's decision"), "{text}");
    assert!(text.contains("authorization_required"), "{text}");
    assert_eq!(house.book.connections.load(Ordering::SeqCst), 1, "it still counts as connected");
    let _stream = Ask::post(&house, &act(3, "ask", 60_000)).with("Mcp-Session-Id", &session).open().await;
    until("it waits", || house.book.waiting.load(Ordering::SeqCst) == 1).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    assert_eq!(Ask::post(&house, &cancel).with("Mcp-Session-Id", &session).send().await.0, 202);
    until("it was taken back", || house.book.cancelled.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_carries_its_version_is_served_without_a_session() {
    let house = House::new().await;
    let mut message = call(1, "body_os_encode_state", json!({"session_id": session_of("alice")}));
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "new", "version": "1"}});
    let ask = Ask::post(&house, &message)
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", "tools/call")
        .with("Mcp-Name", "body_os_encode_state");
    let answer = ask.message().await;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}
