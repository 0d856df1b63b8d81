//! Waiting for a person: APR-03, APR-09, MCP-04 as far as the door is concerned.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequestParams, ClientConfig, ProgressNotificationParam};
use rmcp::service::{NotificationContext, PeerRequestOptions};
use rmcp::{ClientHandler, RoleClient, ServiceExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use super::scripted::{ASK, House, session_of, until};
use super::wire::{Wire, act, call};

/// The protocol library's own client; it keeps the progress it was told.
#[derive(Clone, Default)]
struct Client(Arc<Mutex<Vec<ProgressNotificationParam>>>);

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.lock().await.push(params);
    }
}

async fn connect(house: &House, agent: &str) -> UnixStream {
    let mut stream = UnixStream::connect(&house.doors.socket_path).await.unwrap();
    let hello = json!({"bodyguard": 1, "agent": agent, "token": format!("token-{agent}")});
    stream.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    assert_eq!(line, "{\"ok\":true}\n");
    reader.into_inner()
}

fn params(name: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name).with_arguments(arguments.as_object().unwrap().clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_client_lists_calls_and_hears_progress() {
    let house = House::new().await;
    let client = Client::default();
    let told = Arc::clone(&client.0);
    let service = client.serve(connect(&house, "alice").await).await.unwrap();
    assert_eq!(service.list_all_tools().await.unwrap().len(), 7);
    let action = json!({"type": "shell_exec", "command": "ask"});
    let request = params("body_os_act", json!({"session_id": session_of("alice"), "action": action, "wait_ms": 300}));
    let answer = service.call_tool(request).await.unwrap();
    assert_eq!(answer.is_error, Some(true));
    let object = answer.structured_content.unwrap();
    assert_eq!(object["error"]["code"], "authorization_required");
    assert_eq!(object["error"]["escalation_id"], ASK);
    let told = told.lock().await;
    assert!(told.iter().any(|note| note.message.as_deref() == Some("waiting for the person's decision")), "{told:?}");
    assert!(told.is_sorted_by(|a, b| a.progress < b.progress));
    drop(told);
    let again = params("body_os_act", json!({"session_id": session_of("alice"), "escalation_id": ASK, "wait_ms": 0}));
    assert_eq!(service.call_tool(again).await.unwrap().structured_content.unwrap()["error"]["escalation_id"], ASK);
    service.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn apr_03_four_wait_at_once_and_none_holds_up_another() {
    let house = House::new().await;
    let mut wire = Wire::ready(&house).await;
    let began = Instant::now();
    for id in 10..14 {
        wire.send(&act(id, "ask", 1500)).await;
    }
    wire.send(&act(20, "stall", 1500)).await;
    assert_eq!(wire.ask(&act(15, "quick", 0)).await["id"], 15);
    assert!(began.elapsed() < Duration::from_millis(1200));
    let mut ids = Vec::new();
    for _ in 0..4 {
        let answer = wire.next().await;
        assert_eq!(answer["result"]["structuredContent"]["error"]["code"], "authorization_required");
        ids.push(answer["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, [10, 11, 12, 13]);
    assert!(began.elapsed() < Duration::from_millis(5000));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_takes_the_act_back() {
    let house = House::new().await;
    let service = Client::default().serve(connect(&house, "alice").await).await.unwrap();
    let action = json!({"type": "shell_exec", "command": "ask"});
    let request = params("body_os_act", json!({"session_id": session_of("alice"), "action": action}));
    let request = rmcp::model::CallToolRequest::new(request);
    let handle = service.send_cancellable_request(request.into(), PeerRequestOptions::no_options()).await.unwrap();
    until("the act waits", || house.book.waiting.load(Ordering::SeqCst) == 1).await;
    handle.cancel(Some("changed my mind".into())).await.unwrap();
    until("it was taken back", || house.book.cancelled.load(Ordering::SeqCst) == 1).await;
    until("nobody waits", || house.book.waiting.load(Ordering::SeqCst) == 0).await;
    service.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_04_a_closed_connection_stops_waiting_and_takes_nothing_back() {
    let house = House::new().await;
    let mut wire = Wire::ready(&house).await;
    wire.send(&act(2, "ask", 60_000)).await;
    wire.send(&act(3, "stall", 60_000)).await;
    until("both wait", || house.book.waiting.load(Ordering::SeqCst) == 2).await;
    assert_eq!(house.book.connections.load(Ordering::SeqCst), 1);
    let began = Instant::now();
    drop(wire);
    until("nobody waits", || house.book.waiting.load(Ordering::SeqCst) == 0).await;
    until("nobody is connected", || house.book.connections.load(Ordering::SeqCst) == 0).await;
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(house.book.cancelled.load(Ordering::SeqCst), 0, "a lost connection isn't a cancellation");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_doors_takes_nothing_back_either() {
    let mut house = House::new().await;
    let mut wire = Wire::ready(&house).await;
    wire.send(&act(2, "ask", 60_000)).await;
    until("it waits", || house.book.waiting.load(Ordering::SeqCst) == 1).await;
    let other = House::new().await;
    std::mem::replace(&mut house.doors, other.doors).shutdown().await;
    until("nobody waits", || house.book.waiting.load(Ordering::SeqCst) == 0).await;
    assert_eq!(house.book.cancelled.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_belong_to_their_agent_on_any_of_its_connections() {
    let house = House::new().await;
    let state = |id, agent| call(id, "body_os_encode_state", json!({"session_id": session_of(agent)}));
    let (mut one, mut two) = (Wire::ready(&house).await, Wire::ready(&house).await);
    assert_eq!(one.ask(&state(2, "alice")).await["result"]["isError"], false);
    assert_eq!(two.ask(&state(2, "alice")).await["result"]["isError"], false);
    let foreign = one.ask(&state(3, "bob")).await;
    assert_eq!(foreign["result"]["structuredContent"]["error"]["code"], "unknown_session");
    let resumed = two.ask(&call(4, "body_os_ensure_session", json!({"session_id": session_of("bob")}))).await;
    assert_eq!(resumed["result"]["structuredContent"]["error"]["code"], "unknown_session");
}
