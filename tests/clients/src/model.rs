//! A model that follows a script: the Messages API on the loopback interface, streamed and not.
//!
//! The script is asked once for each turn, with all that the model has seen so far. A request that
//! a client repeats gets the same turn again.

use crate::http;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A tool the model calls.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its name, as the client lists it.
    pub tool: String,
    /// Its arguments.
    pub input: Value,
}

/// What the model does next.
#[derive(Clone, Debug)]
pub enum Turn {
    /// It calls a tool.
    Call(Call),
    /// It says something, and its work is done.
    Say(String),
}

/// A call, and what the client made of its result for the model.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The call.
    pub call: Call,
    /// All text of the result.
    pub text: String,
    /// The object in it; null if there is none.
    pub object: Value,
    /// Whether the client marked it as an error.
    pub is_error: bool,
}

impl Seen {
    /// A text in the object; empty if it isn't there.
    #[must_use]
    pub fn text_at(&self, pointer: &str) -> String {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// The error's code; empty without one.
    #[must_use]
    pub fn code(&self) -> String {
        self.text_at("/error/code")
    }
}

/// What to do, by what was seen.
pub type Script = Box<dyn FnMut(&[Seen]) -> Turn + Send>;

struct State {
    script: Script,
    turns: Vec<Turn>,
    seen: Vec<Seen>,
    /// Names of the tools that the client offered last.
    offered: Vec<String>,
    /// What came that a client shouldn't send.
    problems: Vec<String>,
}

/// The running model. It ends when dropped.
pub struct ScriptedModel {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedModel {
    /// Serves on a free port. Only requests that offer tools whose name begins with `tools` are
    /// turns of the script; what else a client asks a model (a title, say) gets a word.
    ///
    /// # Errors
    /// If no port can be opened.
    pub fn start(tools: &str, script: Script) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = State { script, turns: Vec::new(), seen: Vec::new(), offered: Vec::new(), problems: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let ended = Arc::new(AtomicBool::new(false));
        let (shared, stop, prefix) = (Arc::clone(&state), Arc::clone(&ended), tools.to_owned());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let (shared, prefix) = (Arc::clone(&shared), prefix.clone());
                // Clients open connections ahead of time, which must not hold up the others.
                std::thread::spawn(move || {
                    if let Err(error) = serve(&stream, &shared, &prefix) {
                        lock(&shared).problems.push(format!("{error:#}"));
                    }
                });
            }
        });
        Ok(Self { address, state, ended, thread: Some(thread) })
    }

    /// The base URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All calls so far with their results.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.state).seen.clone()
    }

    /// The tools that the client offered last.
    #[must_use]
    pub fn offered(&self) -> Vec<String> {
        lock(&self.state).offered.clone()
    }

    /// All that was said and done, for failure messages.
    #[must_use]
    pub fn report(&self) -> String {
        let state = lock(&self.state);
        format!("turns: {:#?}\nseen: {:#?}\nproblems: {:#?}", state.turns, state.seen, state.problems)
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: &TcpStream, state: &Mutex<State>, tools: &str) -> Result<()> {
    const JSON: &str = "application/json";
    // A connection opened ahead and never used.
    if stream.peek(&mut [0]).is_ok_and(|bytes| bytes == 0) {
        return Ok(());
    }
    let request = http::read(stream)?;
    let path = request.path.split('?').next().unwrap_or_default();
    if request.method != "POST" {
        return http::answer(stream, "404 Not Found", JSON, "");
    }
    if path == "/v1/messages/count_tokens" {
        return http::answer(stream, "200 OK", JSON, r#"{"input_tokens":1}"#);
    }
    if path != "/v1/messages" {
        return http::answer(stream, "404 Not Found", JSON, "{}");
    }
    let wish: Value = serde_json::from_slice(&request.body).context("a request that isn't JSON")?;
    let (number, turn) = turn(&wish, state, tools);
    if wish["stream"] == true {
        http::answer(stream, "200 OK", "text/event-stream", &events(number, &turn))
    } else {
        let mut message = message(number);
        message["content"] = json!([block(number, &turn)]);
        message["stop_reason"] = stop_reason(&turn).into();
        http::answer(stream, "200 OK", JSON, &message.to_string())
    }
}

/// The turn that answers a request, and its number.
fn turn(wish: &Value, state: &Mutex<State>, tools: &str) -> (usize, Turn) {
    let list = wish["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let offered: Vec<String> = list.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect();
    if !offered.iter().any(|name| name.starts_with(tools)) {
        return (0, Turn::Say("ok".into()));
    }
    let mut state = lock(state);
    let state = &mut *state;
    state.offered = offered;
    let results = results(wish);
    let number = results.len();
    // Only what answers the last turn is news; the rest is the history that a client always sends.
    if let (Some(Turn::Call(call)), Some(result)) = (state.turns.last(), results.last())
        && number == state.turns.len()
        && number == state.seen.len() + 1
    {
        state.seen.push(seen(call.clone(), result));
    }
    if number == state.turns.len() && number == state.seen.len() {
        let turn = (state.script)(&state.seen);
        state.turns.push(turn);
    }
    let turn = state.turns.get(number).cloned().unwrap_or_else(|| {
        state.problems.push(format!("{number} results after {} turns", state.turns.len()));
        Turn::Say("I lost the thread.".into())
    });
    (number + 1, turn)
}

/// All `tool_result` blocks of a conversation, in order.
fn results(wish: &Value) -> Vec<&Value> {
    let messages = wish["messages"].as_array().into_iter().flatten();
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "tool_result").collect()
}

fn seen(call: Call, result: &Value) -> Seen {
    let texts: Vec<&str> = match &result["content"] {
        Value::String(text) => vec![text],
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => Vec::new(),
    };
    let object = texts.iter().find_map(|text| object_in(text)).unwrap_or_default();
    Seen { call, text: texts.join("\n"), object, is_error: result["is_error"] == true }
}

/// The first JSON object that begins a line of a text: sentences may stand before and after it.
fn object_in(text: &str) -> Option<Value> {
    let starts = text.match_indices('{').map(|(at, _)| at);
    let mut at_lines = starts.filter(|at| *at == 0 || text[..*at].ends_with('\n'));
    at_lines.find_map(|at| serde_json::Deserializer::from_str(&text[at..]).into_iter().next()?.ok())
}

fn message(number: usize) -> Value {
    json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "scripted", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 },
    })
}

fn block(number: usize, turn: &Turn) -> Value {
    match turn {
        Turn::Say(text) => json!({ "type": "text", "text": text }),
        Turn::Call(call) => {
            json!({ "type": "tool_use", "id": format!("toolu_{number}"), "name": call.tool, "input": call.input })
        }
    }
}

fn stop_reason(turn: &Turn) -> &'static str {
    match turn {
        Turn::Say(_) => "end_turn",
        Turn::Call(_) => "tool_use",
    }
}

/// A turn as server-sent events.
fn events(number: usize, turn: &Turn) -> String {
    let mut begin = block(number, turn);
    let delta = match turn {
        Turn::Say(text) => {
            begin["text"] = "".into();
            json!({ "type": "text_delta", "text": text })
        }
        Turn::Call(call) => {
            begin["input"] = json!({});
            json!({ "type": "input_json_delta", "partial_json": call.input.to_string() })
        }
    };
    let end = json!({ "stop_reason": stop_reason(turn), "stop_sequence": null });
    let all = [
        json!({ "type": "message_start", "message": message(number) }),
        json!({ "type": "content_block_start", "index": 0, "content_block": begin }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": end, "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ];
    let event = |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default());
    all.iter().map(event).collect()
}
