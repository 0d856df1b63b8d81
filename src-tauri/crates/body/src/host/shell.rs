//! `shell_exec`: running a command to its end.

use std::io::Read as _;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bodyguard_protocol::{ErrorCode, Fault, OutcomeStatus, escape_line};
use serde_json::{Map, Value, json};

use super::cancel::Cancel;
use super::command::Fields;
use super::inner::{NotStarted, Report, Spec};
use super::output::{Output, pump};
use super::sandbox::{Running, unavailable};
use crate::Effect;

/// After the end of a command its pipes close within milliseconds, because everything in it has gone.
const DRAIN_LIMIT: Duration = Duration::from_secs(3);

/// What can end the wait for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The inner program has reported, or the sandbox has gone.
    Ended,
    /// One stream has passed the limit.
    TooMuchOutput,
    /// The requester cancelled.
    Cancelled,
}

/// What to keep and when to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) timeout: Duration,
    pub(crate) kept_bytes: u64,
    pub(crate) output_bytes: u64,
}

/// Why a command was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Timeout,
    Output,
    Cancelled,
}

/// Waits for a command and tells what came of it.
pub(crate) fn finish(
    running: Running,
    spec: &Spec,
    stdin: bool,
    bounds: Bounds,
    cancel: &Cancel,
) -> Result<Effect, Fault> {
    let started = Instant::now();
    let Running { mut child, report, .. } = running;
    let (events, wait) = sync_channel(8);
    cancel.connect(events.clone());
    let streams = [
        Stream::follow(child.stdout.take(), bounds, events.clone()),
        Stream::follow(child.stderr.take(), bounds, events.clone()),
    ];
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = report.take(1024 * 1024).read_to_end(&mut text);
        let _ = events.try_send(Event::Ended);
        serde_json::from_slice::<Report>(&text).ok()
    });
    let cut = wait_for(&wait, started + bounds.timeout);
    let status = end(&mut child, cut.is_some());
    let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let report = reader.join().ok().flatten();
    let [stdout, stderr] = streams.map(Stream::close);
    let mut observed = Map::new();
    stdout.describe("stdout", &mut observed);
    stderr.describe("stderr", &mut observed);
    observed.insert("stdin".to_owned(), json!(if stdin { "text" } else { "empty" }));
    observed.insert("cwd".to_owned(), json!(spec.cwd));
    let outcome = Outcome { cut, report, status, latency_ms };
    outcome.effect(observed, spec, bounds)
}

struct Outcome {
    cut: Option<Cut>,
    report: Option<Report>,
    status: Option<ExitStatus>,
    latency_ms: u64,
}

impl Outcome {
    fn effect(self, mut observed: Map<String, Value>, spec: &Spec, bounds: Bounds) -> Result<Effect, Fault> {
        let Self { cut, report, status, latency_ms } = self;
        let (status, error) = match (cut, report) {
            (None, Some(Report::Ended { exit_code, signal, survivors })) => {
                observed.insert("exit_code".to_owned(), json!(exit_code));
                observed.insert("signal".to_owned(), json!(signal.map(signal_name)));
                observed.insert("survivors_ended".to_owned(), json!(survivors));
                let status = if exit_code == Some(0) { OutcomeStatus::Success } else { OutcomeStatus::Failure };
                (status, None)
            }
            (None, Some(Report::NotStarted { what, message })) => {
                return Err(not_started(what, &message, spec, Fields::SHELL));
            }
            (None, None | Some(Report::Started { .. })) => {
                let said = observed.get("stderr").and_then(Value::as_str).unwrap_or_default();
                let first = said.lines().next().unwrap_or("it ended without a word");
                let code = status.map_or_else(String::new, |status| format!(" ({status})"));
                return Err(unavailable(&format!("{}{code}", escape_line(first))));
            }
            (Some(Cut::Timeout), _) => {
                let message = format!("ended after {} ms; the output so far is kept", bounds.timeout.as_millis());
                (OutcomeStatus::Timeout, Some(Fault::new(ErrorCode::Timeout, message)))
            }
            (Some(Cut::Cancelled), _) => {
                let message = "cancelled while it ran; it may have had effects, and the output so far is kept";
                (OutcomeStatus::Partial, Some(Fault::new(ErrorCode::Cancelled, message)))
            }
            (Some(Cut::Output), _) => {
                let message = format!("ended after more than {} bytes of output", bounds.output_bytes);
                let fault =
                    Fault::new(ErrorCode::TooLarge, message).hint("send the output into a file of the workspace");
                (OutcomeStatus::Partial, Some(fault))
            }
        };
        Ok(Effect { status, observed: Value::Object(observed), error, image: None, latency_ms })
    }
}

fn wait_for(wait: &Receiver<Event>, deadline: Instant) -> Option<Cut> {
    match wait.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => None,
        Ok(Event::TooMuchOutput) => Some(Cut::Output),
        Ok(Event::Cancelled) => Some(Cut::Cancelled),
        Err(RecvTimeoutError::Timeout) => Some(Cut::Timeout),
    }
}

/// Ends the sandbox: with its first process, the kernel ends every other one in it.
pub(super) fn end(child: &mut Child, by_force: bool) -> Option<ExitStatus> {
    let deadline = Instant::now() + Duration::from_millis(500);
    while !by_force && Instant::now() < deadline {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = child.kill();
    child.wait().ok()
}

/// One stream and the thread that reads it.
struct Stream {
    output: Arc<Mutex<Output>>,
    reader: Option<JoinHandle<()>>,
}

impl Stream {
    fn follow(from: Option<impl std::io::Read + Send + 'static>, bounds: Bounds, events: SyncSender<Event>) -> Self {
        let output = Arc::new(Mutex::new(Output::with_limit(bounds.kept_bytes)));
        let reader = from.map(|from| {
            let output = Arc::clone(&output);
            std::thread::spawn(move || {
                pump(from, |piece| {
                    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                    output.take(piece);
                    if output.seen() <= bounds.output_bytes {
                        return true;
                    }
                    let _ = events.try_send(Event::TooMuchOutput);
                    false
                });
            })
        });
        Self { output, reader }
    }

    fn close(self) -> Output {
        settle(self.reader.as_slice());
        std::mem::take(&mut *self.output.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Waits until readers have come to the end of their streams. Not for ever: a command may have handed
/// its output on to another sandbox of the workspace.
pub(super) fn settle(readers: &[JoinHandle<()>]) {
    let deadline = Instant::now() + DRAIN_LIMIT;
    while readers.iter().any(|reader| !reader.is_finished()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(super) fn not_started(what: NotStarted, message: &str, spec: &Spec, fields: Fields) -> Fault {
    let program = escape_line(&spec.program);
    match what {
        NotStarted::Missing => Fault::new(ErrorCode::ProgramNotFound, format!("{program}: {message}"))
            .at(fields.program)
            .hint("a script's first line may name an interpreter that isn't there"),
        NotStarted::Folder => {
            let message = format!("the command can't enter {}: {message}", escape_line(&spec.cwd));
            Fault::new(ErrorCode::PermissionDenied, message)
                .at(fields.cwd)
                .hint("commands run as the workspace's owner, and never as root: give the folder to another user")
        }
        NotStarted::Refused => {
            Fault::new(ErrorCode::PermissionDenied, format!("{program}: {message}")).at(fields.program)
        }
    }
}

pub(super) fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        5 => "TRAP",
        6 => "ABRT",
        7 => "BUS",
        8 => "FPE",
        9 => "KILL",
        10 => "USR1",
        11 => "SEGV",
        12 => "USR2",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        24 => "XCPU",
        25 => "XFSZ",
        31 => "SYS",
        other => return format!("{other}"),
    };
    format!("SIG{name}")
}
