//! Raw lines over the socket.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::scripted::{House, session_of};

pub(super) struct Wire {
    pub(super) read: BufReader<OwnedReadHalf>,
    pub(super) write: OwnedWriteHalf,
}

pub(super) fn initialize(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}})
}

pub(super) fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

pub(super) fn act(id: u64, command: &str, wait_ms: u64) -> Value {
    let action = json!({"type": "shell_exec", "command": command});
    call(id, "body_os_act", json!({"session_id": session_of("alice"), "action": action, "wait_ms": wait_ms}))
}

impl Wire {
    /// Connects without saying anything.
    pub(super) async fn bare(house: &House) -> Self {
        Self::to(&house.doors.socket_path).await
    }

    pub(super) async fn to(socket: &std::path::Path) -> Self {
        let stream = UnixStream::connect(socket).await.unwrap();
        let (read, write) = stream.into_split();
        Self { read: BufReader::new(read), write }
    }

    /// Connects as `alice`.
    pub(super) async fn greeted(house: &House) -> Self {
        let mut wire = Self::bare(house).await;
        wire.send(&json!({"bodyguard": 1, "agent": "alice", "token": "token-alice"})).await;
        assert_eq!(wire.next().await, json!({"ok": true}));
        wire
    }

    /// Connects as `alice` and opens the protocol.
    pub(super) async fn ready(house: &House) -> Self {
        let mut wire = Self::greeted(house).await;
        wire.send(&initialize(1)).await;
        assert_eq!(wire.next().await["id"], 1);
        wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        wire
    }

    pub(super) async fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes()).await;
    }

    pub(super) async fn raw(&mut self, bytes: &[u8]) {
        self.write.write_all(bytes).await.unwrap();
    }

    /// The next line; every one has to be JSON.
    pub(super) async fn next(&mut self) -> Value {
        let mut line = String::new();
        let read = tokio::time::timeout(std::time::Duration::from_secs(20), self.read.read_line(&mut line));
        assert!(read.await.expect("an answer in time").unwrap() > 0, "the connection ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Sends and takes the next line.
    pub(super) async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.next().await
    }
}
