//! `process_signal`: one signal to one process of the session, and never to another.

use std::os::fd::OwnedFd;

use bodyguard_protocol::action::Signal;
use bodyguard_protocol::{ErrorCode, Fault, TypedAction};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use serde_json::{Value, json};

use super::processes;
use crate::{Inspection, Review};

const FIELD: &str = "action.target";
/// How long a process gets to end before it is told that it goes on.
const BRIEFLY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// A process held by a descriptor, so that whatever gets its number later isn't hit.
#[derive(Debug)]
pub(super) struct Aim(OwnedFd);

/// Finds the process that a signal is for.
///
/// # Errors
/// `invalid_argument`; `not_found` where the session has no such process, whether or not it is one of
/// somebody else.
pub(super) fn inspect(action: &TypedAction) -> Result<(Inspection, Aim), Fault> {
    let parsed = processes::parse_target(&action.target);
    let (pid, started) = parsed.ok_or_else(|| Fault::invalid(FIELD, "a process's target is `process:PID:START`"))?;
    let number = i32::try_from(pid).ok().filter(|&pid| pid > 1).and_then(Pid::from_raw).ok_or_else(gone)?;
    // The order matters: what is looked at now is what the descriptor holds, or started later than it.
    let aim = rustix::process::pidfd_open(number, PidfdFlags::empty()).map_err(|_| gone())?;
    let found = processes::find(pid, started).ok_or_else(gone)?;
    if found.state == "ended" {
        return Err(gone());
    }
    let binding = json!({ "type": action.kind, "target": found.target, "command": found.command });
    let review = Review::Signal { command: found.command };
    let inspection = Inspection { resolved: action.clone(), binding, review, prediction: Value::Null };
    Ok((inspection, Aim(aim)))
}

/// Sends a signal, and looks for a moment whether it ended the process.
///
/// # Errors
/// `not_found` where it ended meanwhile, `permission_denied`.
pub(super) fn send(aim: &Aim, target: &str, signal: Signal) -> Result<Value, Fault> {
    rustix::process::pidfd_send_signal(&aim.0, number(signal)).map_err(|errno| match errno {
        Errno::SRCH => gone(),
        other => Fault::new(ErrorCode::PermissionDenied, format!("it can't be signalled: {other}")).at(FIELD),
    })?;
    let mut wait = [PollFd::new(&aim.0, PollFlags::IN)];
    let ended = rustix::event::poll(&mut wait, Some(&BRIEFLY)).is_ok_and(|ready| ready > 0);
    Ok(json!({ "target": target, "signal": signal, "ended": ended }))
}

fn gone() -> Fault {
    Fault::new(ErrorCode::NotFound, "the session has no such process, or it has ended")
        .at(FIELD)
        .hint("perceive with mode `process`; it shows what runs, and how what ended has ended")
}

const fn number(signal: Signal) -> rustix::process::Signal {
    use rustix::process::Signal as Number;
    match signal {
        Signal::Hup => Number::HUP,
        Signal::Int => Number::INT,
        Signal::Quit => Number::QUIT,
        Signal::Kill => Number::KILL,
        Signal::Usr1 => Number::USR1,
        Signal::Usr2 => Number::USR2,
        Signal::Term => Number::TERM,
        Signal::Cont => Number::CONT,
        Signal::Stop => Number::STOP,
    }
}
