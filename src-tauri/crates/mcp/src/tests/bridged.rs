//! The stdio bridge between a client and the app, and the app's absence.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::task::JoinHandle;

use super::scripted::{House, Script, session_of, until};
use super::wire::{act, call, initialize};
use crate::bridge::{BridgeOptions, bridge};

struct Stdio {
    input: DuplexStream,
    output: BufReader<DuplexStream>,
    task: JoinHandle<std::io::Result<()>>,
}

fn options(dir: &TempDir, patience: u64) -> BridgeOptions {
    let token_file = dir.path().join("tokens/alice");
    if !token_file.exists() {
        std::fs::create_dir_all(dir.path().join("tokens")).unwrap();
        std::fs::write(&token_file, "token-alice").unwrap();
        std::fs::set_permissions(&token_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    BridgeOptions {
        data_dir: dir.path().to_owned(),
        socket: dir.path().join("elsewhere.sock"),
        token_file,
        agent: "alice".parse().unwrap(),
        patience: Duration::from_millis(patience),
    }
}

impl Stdio {
    fn start(options: BridgeOptions) -> Self {
        let (input, their_input) = tokio::io::duplex(1 << 16);
        let (their_output, output) = tokio::io::duplex(1 << 16);
        let task = tokio::spawn(bridge(options, their_input, their_output));
        Self { input, output: BufReader::new(output), task }
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_secs(20), self.output.read_line(&mut line));
        assert!(read.await.expect("an answer in time").unwrap() > 0, "the bridge ended");
        serde_json::from_str(&line).unwrap()
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.next().await
    }

    async fn ready(options: BridgeOptions) -> Self {
        let mut stdio = Self::start(options);
        assert!(stdio.ask(&initialize(1)).await["result"].is_object());
        stdio.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        stdio
    }
}

fn state(id: u64) -> Value {
    call(id, "body_os_encode_state", json!({"session_id": session_of("alice")}))
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_01_and_15_the_bridge_passes_good_lines_and_answers_bad_ones() {
    let house = House::new().await;
    let mut stdio = Stdio::start(options(&house.dir, 2000));
    stdio.input.write_all(b"{not json\n\n\xef\xbb\xbf").await.unwrap();
    assert_eq!(stdio.next().await["error"]["code"], -32700);
    assert!(stdio.ask(&initialize(1)).await["result"].is_object());
    stdio.input.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\r\n\xff\n").await.unwrap();
    assert_eq!(stdio.next().await["error"]["code"], -32700);
    assert_eq!(stdio.ask(&act(2, "panic", 0)).await["error"]["code"], -32603);
    let mut huge = act(77, "x", 0);
    huge["params"]["arguments"]["reason"] = "y".repeat(16_000_000).into();
    let answer = stdio.ask(&huge).await;
    assert_eq!((&answer["id"], &answer["error"]["data"]["code"]), (&json!(77), &json!("too_large")));
    assert_eq!(stdio.ask(&state(3)).await["result"]["isError"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_04_closing_stdin_ends_the_connection_and_the_bridge() {
    let house = House::new().await;
    let mut stdio = Stdio::ready(options(&house.dir, 2000)).await;
    stdio.send(&act(2, "ask", 60_000)).await;
    until("it waits", || house.book.waiting.load(Ordering::SeqCst) == 1).await;
    drop(stdio.input);
    until("nobody waits", || house.book.waiting.load(Ordering::SeqCst) == 0).await;
    until("nobody is connected", || house.book.connections.load(Ordering::SeqCst) == 0).await;
    tokio::time::timeout(Duration::from_secs(5), stdio.task).await.unwrap().unwrap().unwrap();
    assert_eq!(house.book.cancelled.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn last_answers_pass_after_stdin_closed() {
    let house = House::new().await;
    let mut stdio = Stdio::start(options(&house.dir, 2000));
    stdio.send(&initialize(1)).await;
    stdio.input.write_all(br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await.unwrap();
    stdio.input.shutdown().await.unwrap();
    assert_eq!(stdio.next().await["id"], 1);
    assert_eq!(stdio.next().await["id"], 2);
    stdio.task.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn apr_09_a_restart_is_bridged_and_nothing_is_repeated() {
    let house = House::new().await;
    let mut stdio = Stdio::ready(options(&house.dir, 8000)).await;
    stdio.send(&act(2, "ask", 60_000)).await;
    stdio.send(&act(3, "stall", 60_000)).await;
    until("both wait", || house.book.waiting.load(Ordering::SeqCst) == 2).await;
    house.doors.shutdown().await;
    let mut cut = Vec::new();
    for _ in 0..2 {
        let answer = stdio.next().await;
        // Told by the app as it closes, or by the bridge when it is gone: the same code.
        let code = answer["error"]["data"]["code"].as_str();
        let code = code.or_else(|| answer["result"]["structuredContent"]["error"]["code"].as_str());
        assert_eq!(code, Some("interrupted"), "{answer}");
        cut.push(answer["id"].as_u64().unwrap());
    }
    cut.sort_unstable();
    assert_eq!(cut, [2, 3]);
    // Asked while the app is away, answered when it is back, without another `initialize`.
    stdio.send(&state(4)).await;
    let script = Script::default();
    let book = std::sync::Arc::clone(&script.book);
    let _doors = House::open(&house.dir, script).await;
    let mut answer = stdio.next().await;
    if answer["error"]["data"]["code"] == "interrupted" {
        // It was on its way already as the app closed; a client asks again.
        answer = stdio.ask(&state(4)).await;
    }
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(4), &json!(false)), "{answer}");
    assert!(book.acts().is_empty(), "nothing was repeated");
    assert_eq!(stdio.ask(&act(5, "once", 0)).await["result"]["isError"], false);
    assert_eq!(book.acts(), ["once"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_is_killed_leaves_typed_errors() {
    let dir = TempDir::new().unwrap();
    let socket = dir.path().join("elsewhere.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let app = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        stream.write_all(b"{\"ok\":true}\n").await.unwrap();
        for _ in 0..2 {
            line.clear();
            stream.read_line(&mut line).await.unwrap();
        }
        // Half an answer, then nothing: it must not reach the client.
        stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"resu").await.unwrap();
        stream.flush().await.unwrap();
    });
    let mut stdio = Stdio::start(options(&dir, 300));
    stdio.send(&initialize(1)).await;
    stdio.send(&act(2, "x", 0)).await;
    app.await.unwrap();
    let act = stdio.next().await;
    assert_eq!((&act["id"], &act["error"]["data"]["code"]), (&json!(2), &json!("interrupted")));
    let initialize = stdio.next().await;
    assert_eq!(initialize["id"], 1);
    assert!(initialize["error"]["message"].as_str().unwrap().contains("start Bodyguard"), "{initialize}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_app_initialize_is_told_to_start_it() {
    let dir = TempDir::new().unwrap();
    let mut stdio = Stdio::start(options(&dir, 300));
    let answer = stdio.ask(&initialize(1)).await;
    assert_eq!(answer["id"], 1);
    assert!(answer["error"]["message"].as_str().unwrap().contains("start Bodyguard"), "{answer}");
    // Started after all: the same client may go on.
    let _doors = House::open(&dir, Script::default()).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(stdio.ask(&initialize(2)).await["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_others_can_read_is_not_used() {
    let house = House::new().await;
    let options = options(&house.dir, 100);
    std::fs::set_permissions(&options.token_file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let answer = Stdio::start(options).ask(&initialize(1)).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("0600"), "{answer}");
    assert!(!answer.to_string().contains("token-alice"));
    let mut unknown = self::options(&house.dir, 100);
    unknown.token_file = house.dir.path().join("tokens/nobody");
    let answer = Stdio::start(unknown).ask(&initialize(1)).await;
    assert_eq!(answer["error"]["data"]["code"], "unknown_agent");
}
