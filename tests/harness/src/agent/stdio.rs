//! MCP over a child's standard input and output, one JSON message a line.

use super::{Agent, Answer, DEFAULT_VERSION, ToolResult, answer, is_answer};
use crate::processes::{end_child, wait_child};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What has arrived so far.
#[derive(Debug, Default)]
struct Inbox {
    /// Every line as it came, without its line end.
    lines: Vec<Vec<u8>>,
    /// Parsed lines that haven't been taken as an answer.
    answers: Vec<Value>,
    notifications: Vec<Value>,
    requests: Vec<Value>,
    ended: bool,
}

type Shared = Arc<(Mutex<Inbox>, Condvar)>;
type Input = Arc<Mutex<Option<ChildStdin>>>;

/// An agent behind the stdio bridge.
#[derive(Debug)]
pub struct StdioAgent {
    child: Child,
    input: Input,
    inbox: Shared,
    next: i64,
    version: String,
    log: PathBuf,
}

impl StdioAgent {
    /// Starts `command` and speaks with it. Its standard error goes to the file `log`.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn start(mut command: Command, log: &Path) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log)?)
            .spawn()
            .with_context(|| format!("start {:?}", command.get_program()))?;
        let input: Input = Arc::new(Mutex::new(child.stdin.take()));
        let stdout = child.stdout.take().context("no stdout")?;
        let inbox = Shared::default();
        std::thread::spawn({
            let (inbox, input) = (inbox.clone(), input.clone());
            // Ends when the child closes its output.
            move || receive(stdout, &inbox, &input)
        });
        Ok(Self { child, input, inbox, next: 1, version: DEFAULT_VERSION.to_owned(), log: log.to_owned() })
    }

    /// Asks for another protocol version.
    #[must_use]
    pub fn with_version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    /// The child's process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Writes bytes as they are, a line end included only if it is in them.
    ///
    /// # Errors
    /// If the child no longer reads, as for all that send.
    pub fn send_raw(&self, bytes: &[u8]) -> Result<()> {
        write(&self.input, bytes).with_context(|| self.stderr())
    }

    /// Writes one message.
    pub fn send(&self, message: &Value) -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.send_raw(&line)
    }

    /// Sends a request without waiting; its id.
    pub fn begin(&mut self, method: &str, params: Value) -> Result<i64> {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        Ok(id)
    }

    /// Starts a tool call without waiting; its id, which is also its progress token.
    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> Result<i64> {
        let meta = json!({ "progressToken": self.next });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        self.begin("tools/call", params)
    }

    /// Waits for the answer to a request.
    ///
    /// # Errors
    /// If none comes in time or the child ends; its standard error is in the message.
    pub fn wait(&self, id: i64, timeout: Duration) -> Result<Answer> {
        let found = self.wait_where(timeout, |inbox| {
            let at = inbox.answers.iter().position(|m| m["id"] == json!(id))?;
            Some(inbox.answers.remove(at))
        })?;
        let message =
            found.with_context(|| format!("no answer to request {id} within {timeout:?}\n{}", self.stderr()))?;
        Ok(answer(&message))
    }

    /// Waits for the result of [`StdioAgent::begin_call`].
    ///
    /// # Errors
    /// As [`StdioAgent::wait`], or the server's error.
    pub fn wait_call(&self, id: i64, timeout: Duration) -> Result<ToolResult> {
        Ok(ToolResult::from_raw(self.wait(id, timeout)??))
    }

    /// True if the answer to a request is there, not yet taken.
    #[must_use]
    pub fn has_answer(&self, id: i64) -> bool {
        let inbox = self.lock();
        inbox.answers.iter().any(|m| m["id"] == json!(id))
    }

    /// Waits for an error answer without an id, as for a line that isn't JSON.
    ///
    /// # Errors
    /// If none comes in time.
    pub fn wait_error_without_id(&self, timeout: Duration) -> Result<super::RpcError> {
        let found = self.wait_where(timeout, |inbox| {
            let at = inbox.answers.iter().position(|m| m["id"].is_null() && m.get("error").is_some())?;
            Some(inbox.answers.remove(at))
        })?;
        let message = found.context("no error answer without id")?;
        answer(&message).err().context("not an error")
    }

    /// Cancels a request.
    pub fn cancel(&mut self, id: i64, reason: &str) -> Result<()> {
        let params = json!({ "requestId": id, "reason": reason });
        self.notify("notifications/cancelled", params)
    }

    /// All notifications so far.
    #[must_use]
    pub fn notifications(&self) -> Vec<Value> {
        self.lock().notifications.clone()
    }

    /// The progress notes of one request so far (the `params`).
    #[must_use]
    pub fn progress(&self, id: i64) -> Vec<Value> {
        let inbox = self.lock();
        let progress = inbox
            .notifications
            .iter()
            .filter(|m| m["method"] == "notifications/progress" && m["params"]["progressToken"] == json!(id));
        progress.map(|m| m["params"].clone()).collect()
    }

    /// Waits for a notification of this method for which `wanted` holds.
    ///
    /// # Errors
    /// If none comes in time.
    pub fn wait_notification(&self, method: &str, timeout: Duration, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        self.wait_where(timeout, |inbox| {
            let mut all = inbox.notifications.iter();
            all.find(|m| m["method"] == method && wanted(m)).cloned()
        })?
        .with_context(|| format!("no {method} within {timeout:?}"))
    }

    /// What the server has asked of this agent. A `ping` was answered; all else was refused.
    #[must_use]
    pub fn server_requests(&self) -> Vec<Value> {
        self.lock().requests.clone()
    }

    /// Every line of the child's standard output so far, as it came.
    #[must_use]
    pub fn lines(&self) -> Vec<Vec<u8>> {
        self.lock().lines.clone()
    }

    /// What the child wrote to its standard error.
    #[must_use]
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Closes the child's standard input.
    pub fn close(&self) {
        lock(&self.input).take();
    }

    /// Waits for the child to end by itself.
    ///
    /// # Errors
    /// If it still runs after `timeout`.
    pub fn wait_exit(&mut self, timeout: Duration) -> Result<ExitStatus> {
        wait_child(&mut self.child, timeout).context("the bridge still runs")
    }

    /// Kills the child at once.
    pub fn kill9(&mut self) {
        // It fails only if the child has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        lock(&self.inbox.0)
    }

    /// Waits until `take` finds something; `None` when time is up.
    fn wait_where<T>(&self, timeout: Duration, mut take: impl FnMut(&mut Inbox) -> Option<T>) -> Result<Option<T>> {
        let end = Instant::now() + timeout;
        let mut inbox = self.lock();
        loop {
            if let Some(found) = take(&mut inbox) {
                return Ok(Some(found));
            }
            if inbox.ended {
                drop(inbox);
                bail!("the bridge closed its output\n{}", self.stderr());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let waited = self.inbox.1.wait_timeout(inbox, left);
            inbox = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Agent for StdioAgent {
    fn ask(&mut self, method: &str, params: Value, timeout: Duration) -> Result<Answer> {
        let id = self.begin(method, params)?;
        self.wait(id, timeout)
    }

    fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn agreed(&mut self, version: &str) {
        version.clone_into(&mut self.version);
    }
}

impl Drop for StdioAgent {
    fn drop(&mut self) {
        self.close();
        if wait_child(&mut self.child, Duration::from_millis(500)).is_none() {
            end_child(&mut self.child, Duration::from_millis(500));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(input: &Input, bytes: &[u8]) -> Result<()> {
    let mut input = lock(input);
    let pipe = input.as_mut().context("the input is closed")?;
    pipe.write_all(bytes)?;
    Ok(pipe.flush()?)
}

fn receive(stdout: ChildStdout, inbox: &Shared, input: &Input) {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let ended = !matches!(reader.read_until(b'\n', &mut line), Ok(count) if count > 0);
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        let mut inbox_now = lock(&inbox.0);
        if ended {
            inbox_now.ended = true;
            inbox.1.notify_all();
            return;
        }
        let message: Value = serde_json::from_slice(&line).unwrap_or_default();
        inbox_now.lines.push(line);
        // Older protocol versions allow batches.
        let messages = match message {
            Value::Array(several) => several,
            one => vec![one],
        };
        let mut replies = Vec::new();
        for message in messages {
            if is_answer(&message) {
                inbox_now.answers.push(message);
            } else if message.get("id").is_some() {
                replies.push(reply_to(&message));
                inbox_now.requests.push(message);
            } else if message.get("method").is_some() {
                inbox_now.notifications.push(message);
            }
        }
        drop(inbox_now);
        inbox.1.notify_all();
        for mut reply in replies {
            reply.push(b'\n');
            // A server that no longer reads gets no reply; the test sees that by itself.
            let _ = write(input, &reply);
        }
    }
}

fn reply_to(request: &Value) -> Vec<u8> {
    let id = &request["id"];
    let reply = if request["method"] == "ping" {
        json!({ "jsonrpc": "2.0", "id": id, "result": {} })
    } else {
        let error = json!({ "code": -32601, "message": "this agent doesn't offer that" });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    };
    reply.to_string().into_bytes()
}
