//! The agents' door as a client uses it: MCP in lines over the Unix socket, and exported traces.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bodyguard_protocol::{SurpriseSignal, TraceId};
use bodyguard_trace::{ExportFile, Log};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::transport::{Answer, Broken, Record, Transport};

/// How long an answer may take; longer than any call of the suite waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// One connection.
pub struct Door {
    read: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
    data_dir: PathBuf,
    last_id: u64,
}

impl Door {
    /// Connects as an agent and opens the protocol.
    ///
    /// # Errors
    /// Where nobody is there, or the agent isn't known.
    pub async fn open(socket: &Path, data_dir: &Path, agent: &str, token: &str) -> Result<Self, Broken> {
        let stream = UnixStream::connect(socket).await.map_err(|e| Broken::because("the door is closed", e))?;
        let (read, write) = stream.into_split();
        let mut door = Self { read: BufReader::new(read), write, data_dir: data_dir.to_owned(), last_id: 0 };
        door.send(&json!({"bodyguard": 1, "agent": agent, "token": token})).await?;
        let greeting = door.line().await?;
        if greeting["ok"] != true {
            return Err(Broken(format!("the door refused the agent: {greeting}")));
        }
        let client = json!({"name": "conformance", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        door.request("initialize", hello).await?;
        door.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(door)
    }

    async fn send(&mut self, message: &Value) -> Result<(), Broken> {
        let line = format!("{message}\n");
        self.write.write_all(line.as_bytes()).await.map_err(|e| Broken::because("the door closed", e))
    }

    async fn line(&mut self) -> Result<Value, Broken> {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.read.read_line(&mut line)).await;
        let bytes = read.map_err(|e| Broken::because("no answer", e))?.map_err(|e| Broken::because("no answer", e))?;
        if bytes == 0 {
            return Err(Broken("the door closed".to_owned()));
        }
        serde_json::from_str(&line).map_err(|e| Broken::because("not JSON", e))
    }

    /// Asks, and passes over what comes beside the answer, such as progress.
    async fn request(&mut self, method: &str, params: Value) -> Result<Value, Broken> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        loop {
            let mut message = self.line().await?;
            if message["id"] != id {
                continue;
            }
            return match message["error"].take() {
                Value::Null => Ok(message["result"].take()),
                error => Err(Broken(format!("{method} was answered with an error of the protocol: {error}"))),
            };
        }
    }

    async fn read_record(&self, record: Record, trace_id: &str) -> Result<Value, Broken> {
        let trace_id: TraceId = trace_id.parse().map_err(|e| Broken::because("not a trace id", e))?;
        let unreadable = |error| Broken::because("the trace can't be read", error);
        let log = Log::open_readonly(&self.data_dir).map_err(unreadable)?;
        if record == Record::Surprises {
            let signals = log.surprises(&trace_id).await.map_err(unreadable)?;
            return Ok(signals.iter().map(SurpriseSignal::to_cloud_event).collect());
        }
        let export = bodyguard_trace::export(&log, &trace_id).await.map_err(unreadable)?;
        let file: ExportFile =
            serde_json::from_slice(&export.bytes).map_err(|e| Broken::because("not an export", e))?;
        serde_json::to_value(&file.trace).map_err(|e| Broken::because("not a trace", e))
    }
}

impl Transport for Door {
    fn call<'a>(&'a mut self, tool: &'a str, arguments: Value) -> Answer<'a> {
        Box::pin(async move {
            let mut result = self.request("tools/call", json!({"name": tool, "arguments": arguments})).await?;
            Ok(result["structuredContent"].take())
        })
    }

    fn read<'a>(&'a mut self, record: Record, trace_id: &'a str) -> Answer<'a> {
        Box::pin(async move { self.read_record(record, trace_id).await })
    }
}
