//! `process_spawn`: programs that go on while the session does.

use std::collections::VecDeque;
use std::io::{BufReader, PipeReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bodyguard_protocol::{ErrorCode, Fault, OutcomeStatus, ProcessEntry, escape_line};
use serde_json::{Map, Value, json};

use super::command::Fields;
use super::inner::{Report, Spec};
use super::output::{Output, pump};
use super::processes;
use super::sandbox::{Running, unavailable};
use super::shell::{end, not_started, settle, signal_name};
use crate::Effect;

const MAX_RUNNING: usize = 32;
/// So many that ended are still told of.
const MAX_ENDED: usize = 32;
/// What is kept of a program's output.
const TAIL_BYTES: usize = 2_000;
const REPORT_BYTES: u64 = 1024 * 1024;
/// A sandbox that hasn't started its program by then is given up. With the other limits this stays
/// within what a cancelled act may take to answer.
const START_LIMIT: Duration = Duration::from_secs(5);
/// A program that ends within this time is told as ended.
const BRIEFLY: Duration = Duration::from_millis(200);
/// What an ended sandbox needs to be cleared away.
const CLEAR_LIMIT: Duration = Duration::from_secs(4);

/// The programs of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct Spawned(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    /// How many run, start or are being cleared away.
    places: usize,
    running: Vec<Arc<Started>>,
    ended: VecDeque<(Arc<Started>, End)>,
}

#[derive(Debug)]
struct Started {
    target: String,
    command: String,
    output: Arc<Mutex<Output>>,
}

/// How a program ended, as far as it is known: its sandbox may have been ended from outside.
#[derive(Debug, Clone, Copy)]
struct End {
    exit_code: Option<i32>,
    signal: Option<i32>,
}

const UNKNOWN: End = End { exit_code: None, signal: None };

/// One of the places for running programs.
#[derive(Debug)]
pub(super) struct Slot(Spawned);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.list().places -= 1;
    }
}

impl Spawned {
    /// Takes a place for a program.
    ///
    /// # Errors
    /// `budget_exceeded`.
    pub(super) fn slot(&self) -> Result<Slot, Fault> {
        let mut list = self.list();
        if list.places >= MAX_RUNNING {
            let message = format!("{MAX_RUNNING} programs run already, the most that a session may have");
            return Err(Fault::new(ErrorCode::BudgetExceeded, message).hint("end one with process_signal"));
        }
        list.places += 1;
        Ok(Slot(self.clone()))
    }

    /// Follows a program that was started, until the end of it. Answers as soon as it is known that it
    /// runs, and a moment later, to tell of one that ends at once.
    ///
    /// # Errors
    /// Why it could not be started; then nothing of it is left.
    pub(super) fn follow(slot: Slot, running: Running, spec: Spec) -> Result<Effect, Fault> {
        let began = Instant::now();
        let Running { child, report, output: from } = running;
        let leash = Leash(child);
        let control = report.try_clone().map_err(|error| thread_fault(&error))?;
        let (born, is_born) = sync_channel(1);
        let (dead, is_dead) = sync_channel(1);
        let output = Arc::new(Mutex::new(Output::tail_only(TAIL_BYTES)));
        let follower = Follower { slot, leash, spec, output: Arc::clone(&output), born, dead };
        let thread = std::thread::Builder::new().name("program".to_owned());
        // Taken at once, so that it never waits for a reader.
        let reader = from.map(|from| drain(from, output)).transpose().map_err(|error| thread_fault(&error))?;
        thread.spawn(move || follower.run(&report, reader.as_slice())).map_err(|error| thread_fault(&error))?;
        let started = is_born.recv_timeout(START_LIMIT).unwrap_or_else(|_| {
            // To the follower this is the end of the sandbox, which it then clears away.
            let _ = control.shutdown(Shutdown::Both);
            Err(unavailable("the sandbox didn't start the program in time"))
        })?;
        let end = moment(&is_dead);
        let latency_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let observed = started.observed(end);
        Ok(Effect { status: OutcomeStatus::Success, observed, error: None, image: None, latency_ms })
    }

    /// What runs, with what is known of it, and what ended of the programs, the newest last.
    pub(super) fn listing(&self) -> Vec<ProcessEntry> {
        let deadline = Instant::now() + CLEAR_LIMIT;
        loop {
            let (mut listing, ending) = self.look();
            if ending.is_empty() || Instant::now() >= deadline {
                listing.extend(ending);
                return listing;
            }
            // It has gone, and how it ended is about to be known.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The listing, and the programs whose end isn't known yet.
    fn look(&self) -> (Vec<ProcessEntry>, Vec<ProcessEntry>) {
        // Looked at first: what ends meanwhile is then in both, and told as ended.
        let mut listing = processes::own();
        let list = self.list();
        listing.retain(|entry| !list.ended.iter().any(|(program, _)| program.target == entry.target));
        let mut ending = Vec::new();
        for program in &list.running {
            match listing.iter_mut().find(|entry| entry.target == program.target) {
                Some(entry) if entry.state != "ended" => entry.output_tail = program.tail(),
                Some(_) | None => ending.push(program.entry(UNKNOWN)),
            }
        }
        listing.retain(|entry| !ending.iter().any(|program| program.target == entry.target));
        listing.extend(list.ended.iter().map(|(program, end)| program.entry(*end)));
        (listing, ending)
    }

    fn runs(&self, program: &Arc<Started>) {
        self.list().running.push(Arc::clone(program));
    }

    fn ended(&self, program: Arc<Started>, end: End) {
        let mut list = self.list();
        list.running.retain(|running| !Arc::ptr_eq(running, &program));
        if list.ended.len() >= MAX_ENDED {
            list.ended.pop_front();
        }
        list.ended.push_back((program, end));
    }

    fn list(&self) -> MutexGuard<'_, List> {
        // Each change is one step, so the list is whole wherever a thread could stop.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Started {
    fn tail(&self) -> Option<String> {
        let text = lock(&self.output).tail_text();
        (!text.is_empty()).then_some(text)
    }

    fn observed(&self, end: Option<End>) -> Value {
        let mut observed = Map::new();
        let mut put = |name: &str, value: Value| observed.insert(name.to_owned(), value);
        put("target", json!(self.target));
        put("command", json!(self.command));
        put("state", json!(if end.is_some() { "ended" } else { "running" }));
        if let Some(End { exit_code, signal }) = end {
            put("exit_code", json!(exit_code));
            put("signal", json!(signal.map(signal_name)));
        }
        if let Some(tail) = self.tail() {
            put("output_tail", json!(tail));
        }
        Value::Object(observed)
    }

    fn entry(&self, end: End) -> ProcessEntry {
        ProcessEntry {
            reference: String::new(),
            target: self.target.clone(),
            command: self.command.clone(),
            state: "ended".to_owned(),
            exit_code: end.exit_code,
            signal: end.signal.map(signal_name),
            output_tail: self.tail(),
        }
    }
}

/// A sandbox that ends when nobody follows it any longer.
struct Leash(Child);

impl Drop for Leash {
    fn drop(&mut self) {
        let _ = end(&mut self.0, true);
    }
}

/// What follows one program, on a thread of its own.
struct Follower {
    slot: Slot,
    leash: Leash,
    spec: Spec,
    output: Arc<Mutex<Output>>,
    born: SyncSender<Result<Arc<Started>, Fault>>,
    dead: SyncSender<End>,
}

impl Follower {
    fn run(mut self, report: &UnixStream, readers: &[JoinHandle<()>]) {
        let spawned = self.slot.0.clone();
        let mut said = serde_json::Deserializer::from_reader(BufReader::new(report.take(REPORT_BYTES))).into_iter();
        let program = match said.next() {
            Some(Ok(Report::Started { pid })) => self.found(pid),
            Some(Ok(Report::NotStarted { what, message })) => {
                Err(not_started(what, &message, &self.spec, Fields::SPAWN))
            }
            Some(Ok(Report::Ended { .. }) | Err(_)) | None => Err(self.without_a_word(readers)),
        };
        let program = match program {
            Ok(program) => program,
            Err(fault) => return self.fail(fault),
        };
        spawned.runs(&program);
        // It has been found, so that it may vanish.
        let mut to_inner = report;
        let _ = to_inner.write_all(&[0]);
        let _ = self.born.send(Ok(Arc::clone(&program)));
        let end_of = match said.next() {
            Some(Ok(Report::Ended { exit_code, signal, .. })) => End { exit_code, signal },
            Some(Ok(Report::Started { .. } | Report::NotStarted { .. }) | Err(_)) | None => UNKNOWN,
        };
        let _ = self.dead.send(end_of);
        let _ = end(&mut self.leash.0, false);
        settle(readers);
        spawned.ended(program, end_of);
    }

    fn found(&self, number: u32) -> Result<Arc<Started>, Fault> {
        let found = processes::inside(self.leash.0.id(), number);
        let found = found.ok_or_else(|| Fault::internal("the program isn't among the processes"))?;
        let command = processes::shorten(self.spec.argv.join(" "));
        Ok(Arc::new(Started { target: found.target, command, output: Arc::clone(&self.output) }))
    }

    /// The sandbox ended before it could report. What it wrote says why.
    fn without_a_word(&mut self, readers: &[JoinHandle<()>]) -> Fault {
        let _ = end(&mut self.leash.0, false);
        settle(readers);
        let said = lock(&self.output).tail_text();
        unavailable(&escape_line(said.lines().next().unwrap_or("it ended without a word")))
    }

    fn fail(self, fault: Fault) {
        let Self { slot, leash, born, .. } = self;
        // Nothing of it is left, and its place is free, when the answer comes.
        drop(leash);
        drop(slot);
        let _ = born.send(Err(fault));
    }
}

/// How it ended, if it did within a moment; then also what it wrote is complete.
fn moment(is_dead: &Receiver<End>) -> Option<End> {
    let end = is_dead.recv_timeout(BRIEFLY).ok()?;
    // Nothing more is sent: this waits until the follower has gone.
    let _ = is_dead.recv_timeout(CLEAR_LIMIT);
    Some(end)
}

fn drain(from: PipeReader, output: Arc<Mutex<Output>>) -> std::io::Result<JoinHandle<()>> {
    let take = move |piece: &[u8]| {
        lock(&output).take(piece);
        true
    };
    std::thread::Builder::new().name("output".to_owned()).spawn(move || pump(from, take))
}

fn lock(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

fn thread_fault(error: &std::io::Error) -> Fault {
    Fault::internal(format!("the program can't be followed: {error}"))
}
