//! Simulated programs: `sleep` goes on until a signal ends it; a builtin of the shell ends at once.

use std::collections::VecDeque;

use bodyguard_protocol::action::{ProcessSpawn, Signal};
use bodyguard_protocol::{Digest, ErrorCode, Fault, ProcessEntry, TypedAction, escape_line};
use serde_json::{Value, json};

use super::shell;
use super::world::World;
use crate::{Inspection, Program, Review};

const GOES_ON: &str = "sleep";
const MAX_RUNNING: usize = 32;
const MAX_ENDED: usize = 32;
const ENDED: &str = "ended";
const FIELD: &str = "action.target";

/// The programs of a simulated session.
#[derive(Debug, Default)]
pub(super) struct Programs {
    started: usize,
    running: Vec<Simulated>,
    ended: VecDeque<ProcessEntry>,
}

#[derive(Debug)]
struct Simulated {
    entry: ProcessEntry,
    /// What a stopped program gets when it goes on.
    pending: Option<Signal>,
}

pub(super) fn inspect_spawn(world: &World, action: &TypedAction, spawn: &ProcessSpawn) -> Result<Inspection, Fault> {
    let cwd = folder(world, spawn)?;
    let name = name(&action.target)?.to_owned();
    let program =
        Program { path: format!("/bin/{name}"), sha256: Digest::of(name.as_bytes()), name, inside_workspace: false };
    let binding = json!({ "type": action.kind, "cwd": cwd, "program": program.path });
    let review = Review::Command { program, scripts: Vec::new(), cwd, env: spawn.env.clone() };
    Ok(Inspection { resolved: action.clone(), binding, review, prediction: Value::Null })
}

/// The program that a target names.
fn name(target: &str) -> Result<&str, Fault> {
    if target == GOES_ON {
        return Ok(GOES_ON);
    }
    shell::builtin(&[target.to_owned()]).map(|_| target).map_err(|fault| fault.at(FIELD))
}

fn folder(world: &World, spawn: &ProcessSpawn) -> Result<String, Fault> {
    let folder = world.absolute_folder(spawn.cwd.as_deref().unwrap_or_default());
    folder.map_err(|fault| fault.at("action.params.cwd"))
}

impl Programs {
    /// What runs, and what ended, the newest last.
    pub(super) fn entries(&self) -> Vec<ProcessEntry> {
        self.running.iter().map(|program| &program.entry).chain(&self.ended).cloned().collect()
    }

    pub(super) fn spawn(&mut self, world: &World, target: &str, spawn: &ProcessSpawn) -> Result<Value, Fault> {
        if self.running.len() >= MAX_RUNNING {
            let message = format!("{MAX_RUNNING} programs run already, the most that a session may have");
            return Err(Fault::new(ErrorCode::BudgetExceeded, message).hint("end one with process_signal"));
        }
        let argv: Vec<String> =
            std::iter::once(target).chain(spawn.args.iter().map(String::as_str)).map(str::to_owned).collect();
        let mut entry = ProcessEntry {
            reference: String::new(),
            target: format!("process:{}:0", self.started + 1),
            command: argv.join(" "),
            state: "sleeping".to_owned(),
            exit_code: None,
            signal: None,
            output_tail: None,
        };
        let mut observed = json!({ "target": entry.target, "command": entry.command, "state": "running" });
        if target != GOES_ON {
            let ran = shell::run_words(world, &argv, None, &folder(world, spawn)?)?;
            ENDED.clone_into(&mut entry.state);
            entry.exit_code = Some(ran.exit_code);
            entry.output_tail = Some(ran.output()).filter(|text| !text.is_empty());
            observed["state"] = json!(ENDED);
            observed["exit_code"] = json!(ran.exit_code);
            observed["signal"] = Value::Null;
            if let Some(tail) = &entry.output_tail {
                observed["output_tail"] = json!(tail);
            }
        }
        self.started += 1;
        if entry.state == ENDED {
            self.end(entry);
        } else {
            self.running.push(Simulated { entry, pending: None });
        }
        Ok(observed)
    }

    fn end(&mut self, entry: ProcessEntry) {
        if self.ended.len() >= MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(entry);
    }

    pub(super) fn inspect_signal(&self, action: &TypedAction) -> Result<Inspection, Fault> {
        if !action.target.starts_with("process:") {
            return Err(Fault::invalid(FIELD, "a process's target is `process:PID:START`"));
        }
        let found = self.running.iter().find(|program| program.entry.target == action.target);
        let command = found.ok_or_else(|| gone(&action.target))?.entry.command.clone();
        let binding = json!({ "type": action.kind, "target": action.target, "command": command });
        let review = Review::Signal { command };
        Ok(Inspection { resolved: action.clone(), binding, review, prediction: Value::Null })
    }

    pub(super) fn signal(&mut self, target: &str, signal: Signal) -> Result<Value, Fault> {
        let found = self.running.iter_mut().enumerate().find(|(_, program)| program.entry.target == target);
        let (index, program) = found.ok_or_else(|| gone(target))?;
        program.take(signal);
        let ended = program.entry.state == ENDED;
        if ended {
            let program = self.running.remove(index);
            self.end(program.entry);
        }
        Ok(json!({ "target": target, "signal": signal, "ended": ended }))
    }
}

impl Simulated {
    fn take(&mut self, signal: Signal) {
        let stopped = self.entry.state == "stopped";
        match signal {
            Signal::Stop => "stopped".clone_into(&mut self.entry.state),
            Signal::Cont => match self.pending.take() {
                Some(pending) => self.end(pending),
                None => "sleeping".clone_into(&mut self.entry.state),
            },
            Signal::Kill => self.end(signal),
            Signal::Hup | Signal::Int | Signal::Quit | Signal::Usr1 | Signal::Usr2 | Signal::Term if stopped => {
                self.pending.get_or_insert(signal);
            }
            Signal::Hup | Signal::Int | Signal::Quit | Signal::Usr1 | Signal::Usr2 | Signal::Term => self.end(signal),
        }
    }

    fn end(&mut self, signal: Signal) {
        ENDED.clone_into(&mut self.entry.state);
        self.entry.signal = Some(signal.name().to_owned());
    }
}

fn gone(target: &str) -> Fault {
    let message = format!("the session has no process {}, or it has ended", escape_line(target));
    Fault::new(ErrorCode::NotFound, message).at(FIELD).hint("perceive with mode `process`; it shows what runs")
}
