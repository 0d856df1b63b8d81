//! The line protocol: MCP-01, MCP-02, MCP-13, MCP-15 and bad input.

use serde_json::{Value, json};

use super::scripted::{House, session_of, until};
use super::wire::{Wire, act, call, initialize};
use std::sync::atomic::Ordering;

fn list(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_01_bad_lines_are_answered_and_good_ones_go_on() {
    let house = House::new().await;
    let mut wire = Wire::greeted(&house).await;
    wire.raw(b"{not json\n").await;
    let bad = wire.next().await;
    assert_eq!((bad.get("id"), &bad["error"]["code"]), (Some(&Value::Null), &json!(-32700)));
    wire.raw(&[b"\xef\xbb\xbf", format!("{}\n", initialize(1)).as_bytes()].concat()).await;
    assert_eq!(wire.next().await["result"]["serverInfo"]["name"], "bodyguard");
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    wire.send(&act(7, "ask", 60_000)).await;
    wire.raw(format!("\n  \n{}\r\n", list(2)).as_bytes()).await;
    assert_eq!(wire.next().await["id"], 2);
    wire.raw(b"\xff\n").await;
    let bad = wire.next().await;
    assert_eq!((bad.get("id"), &bad["error"]["code"]), (Some(&Value::Null), &json!(-32700)));
    assert_eq!(wire.ask(&list(3)).await["result"]["tools"].as_array().unwrap().len(), 7);
    assert_eq!(house.book.waiting.load(Ordering::SeqCst), 1, "the act still waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_02_order_is_kept_and_nothing_is_dropped() {
    let house = House::new().await;
    let mut wire = Wire::greeted(&house).await;
    assert!(wire.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await["result"].is_object());
    assert!(wire.ask(&json!({"jsonrpc": "2.0", "id": 2, "method": "server/discover"})).await["id"] == 2);
    let early = wire.ask(&act(3, "early", 0)).await;
    assert_eq!(early["error"]["data"]["code"], "not_initialized");
    // None of these means anything yet, and none ends the connection.
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    wire.send(&json!({"jsonrpc": "2.0", "id": 9, "result": {}})).await;
    assert!(wire.ask(&initialize(4)).await["result"].is_object());
    assert_eq!(
        wire.ask(&json!({"jsonrpc": "2.0", "id": 5, "method": "logging/setLevel", "params": {"level": "debug"}})).await
            ["id"],
        5
    );
    assert!(wire.ask(&list(6)).await["result"].is_object());
    assert_eq!(wire.ask(&act(7, "early", 0)).await["error"]["data"]["code"], "not_initialized");
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    wire.send(&act(8, "ask", 60_000)).await;
    until("the act waits", || house.book.waiting.load(Ordering::SeqCst) == 1).await;
    assert_eq!(wire.ask(&initialize(10)).await["error"]["data"]["code"], "already_initialized");
    assert_eq!(house.book.waiting.load(Ordering::SeqCst), 1);
    assert_eq!(house.book.acts(), ["ask"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_its_own_version_needs_no_initialize() {
    let house = House::new().await;
    let mut wire = Wire::greeted(&house).await;
    let mut message = call(1, "body_os_encode_state", json!({"session_id": session_of("alice")}));
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "new", "version": "1"}});
    assert_eq!(wire.ask(&message).await["result"]["isError"], false);
    assert_eq!(house.book.clients.lock().unwrap().as_slice(), [Some("new".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_13_there_is_one_page_and_no_other_cursor() {
    let house = House::new().await;
    let mut wire = Wire::ready(&house).await;
    let page = wire.ask(&list(2)).await;
    assert!(page["result"].get("nextCursor").is_none());
    let made_up = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": "made up"}});
    assert_eq!(wire.ask(&made_up).await["error"]["code"], -32602);
    assert!(wire.ask(&list(4)).await["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_15_a_panic_answers_its_own_request_only() {
    let house = House::new().await;
    let mut wire = Wire::ready(&house).await;
    wire.send(&act(2, "ask", 60_000)).await;
    until("it waits", || house.book.waiting.load(Ordering::SeqCst) == 1).await;
    assert_eq!(wire.ask(&act(3, "panic", 0)).await["error"]["code"], -32603);
    assert_eq!(wire.ask(&act(4, "fine", 0)).await["result"]["isError"], false);
    assert_eq!(house.book.waiting.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_malformed_is_refused_by_name_and_nothing_runs() {
    let house = House::new().await;
    let mut wire = Wire::ready(&house).await;
    let cases = [
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"body_os_act","name":"x","arguments":{}}}"#,
            -32600,
            "duplicate_field",
        ),
        (r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":7}}"#, -32602, "invalid_argument"),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"body_os_act","arguments":[]}}"#,
            -32602,
            "invalid_argument",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"body_os_act","sudo":true}}"#,
            -32602,
            "unknown_field",
        ),
        (r#"{"jsonrpc":"2.0","id":2,"method":"tools/call"}"#, -32602, "invalid_argument"),
        (r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"rm_rf"}}"#, -32602, "not_found"),
        (r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","extra":1}"#, -32600, "unknown_field"),
        (r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":[1]}"#, -32602, "invalid_argument"),
    ];
    for (line, code, name) in cases {
        wire.raw(format!("{line}\n").as_bytes()).await;
        let answer = wire.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(code)), "{line}");
        assert_eq!(answer["error"]["data"]["code"], name, "{line}");
    }
    for (line, code) in [
        (r#"[{"jsonrpc":"2.0","id":2,"method":"ping"}]"#.to_owned(), -32600),
        (r#"{"jsonrpc":"1.0","id":2,"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}"#.to_owned(), -32600),
        ("7".to_owned(), -32600),
        (format!("{}{}", "[".repeat(5000), "]".repeat(5000)), -32700),
        (r#"{"jsonrpc":"2.0","id":2,"method":"no/such"}"#.to_owned(), -32601),
    ] {
        wire.raw(format!("{line}\n").as_bytes()).await;
        assert_eq!(wire.next().await["error"]["code"], code, "{line:.60}");
    }
    assert!(wire.ask(&list(3)).await["result"].is_object());
    assert!(house.book.acts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_16_mb_is_refused_with_its_id_and_the_connection_lives() {
    let house = House::new().await;
    let mut wire = Wire::ready(&house).await;
    let mut huge = act(77, "x", 0);
    huge["params"]["arguments"]["reason"] = "y".repeat(16_000_000).into();
    let answer = wire.ask(&huge).await;
    assert_eq!((&answer["id"], &answer["error"]["data"]["code"]), (&json!(77), &json!("too_large")));
    assert!(wire.ask(&list(3)).await["result"].is_object());
    assert!(house.book.acts().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_in_use_and_too_many_at_once_are_refused() {
    let house = House::new().await;
    let mut wire = Wire::ready(&house).await;
    for id in 100..164 {
        wire.send(&act(id, "ask", 60_000)).await;
    }
    assert_eq!(wire.ask(&list(100)).await["error"]["data"]["code"], "duplicate_field");
    assert_eq!(wire.ask(&list(5)).await["error"]["data"]["code"], "budget_exceeded");
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 100}})).await;
    assert!(wire.ask(&list(6)).await["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_needs_the_agents_own_token() {
    let house = House::new().await;
    for (hello, code) in [
        (json!({"bodyguard": 1, "agent": "alice", "token": "token-bob"}), "unknown_agent"),
        (json!({"bodyguard": 1, "agent": "alice", "token": "wrong"}), "unknown_agent"),
        (json!({"bodyguard": 2, "agent": "alice", "token": "token-alice"}), "invalid_argument"),
        (json!({"bodyguard": 1, "agent": "../alice", "token": "token-alice"}), "invalid_argument"),
        (json!({"bodyguard": 1, "agent": "alice", "token": "token-alice", "x": 1}), "unknown_field"),
        (initialize(1), "invalid_argument"),
    ] {
        let mut wire = Wire::bare(&house).await;
        let answer = wire.ask(&hello).await;
        assert_eq!((&answer["ok"], &answer["error"]["code"]), (&json!(false), &json!(code)), "{hello}");
    }
    assert_eq!(house.book.connections.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::new().await;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&house.doors.socket_path), 0o600);
    assert_eq!(mode(house.doors.socket_path.parent().unwrap()), 0o700);
    assert_eq!(mode(&house.dir.path().join("http.url")), 0o600);
    assert_eq!(mode(&house.dir.path().join("agent.path")), 0o600);
}
