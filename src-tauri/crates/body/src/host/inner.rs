//! The first program in a sandbox: this binary again. It starts the command, tells that it runs if
//! that is wanted, how it ended and what it left behind, and ends, which ends everything in the sandbox.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitCode};

use rustix::io::FdFlags;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use serde::{Deserialize, Serialize};

/// The argument that makes this binary the inner program.
pub(crate) const WORD: &str = "inner";
const MAX_SURVIVORS: usize = 64;

/// What to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) program: String,
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: String,
    pub(crate) processes: u64,
    /// Whether the host is told when it runs, and has found it before it can vanish.
    pub(crate) goes_on: bool,
}

/// How it ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It runs; only where that was wanted. It isn't reaped until the host has answered one byte.
    Started {
        /// Its number in the sandbox.
        pid: u32,
    },
    Ended {
        exit_code: Option<i32>,
        signal: Option<i32>,
        survivors: Vec<Survivor>,
    },
    NotStarted {
        what: NotStarted,
        message: String,
    },
}

/// Why it was not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NotStarted {
    Folder,
    Missing,
    Refused,
}

/// A process that was still there when the command had ended. It is ended with the action.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Survivor {
    /// Its number in the sandbox.
    pub(crate) pid: u32,
    pub(crate) name: String,
    /// Milliseconds after boot at which it started.
    pub(crate) started_boot_ms: u64,
}

/// Runs as the inner program. The arguments are the numbers of two inherited descriptors: the
/// specification to read and the socket for reports.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let numbers: Vec<RawFd> = arguments.iter().filter_map(|text| text.parse().ok()).collect();
    let [spec, report] = numbers[..] else { return ExitCode::from(125) };
    let (Some(spec), Some(report)) = (inherited(spec), inherited(report)) else { return ExitCode::from(125) };
    // The command runs as the same user; it must not reach into this process for the report.
    if rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return ExitCode::from(125);
    }
    let Ok(spec) = serde_json::from_reader::<_, Spec>(File::from(spec)) else { return ExitCode::from(125) };
    let mut report = File::from(report);
    let ended = start(&spec, &mut report);
    let code = match &ended {
        Report::Ended { exit_code, .. } => exit_code.and_then(|code| u8::try_from(code).ok()).unwrap_or(128),
        Report::Started { .. } | Report::NotStarted { .. } => 127,
    };
    let text = serde_json::to_vec(&ended).unwrap_or_default();
    let _ = report.write_all(&text);
    ExitCode::from(code)
}

/// Takes over an inherited descriptor, so that the command doesn't inherit it too.
#[allow(unsafe_code, reason = "a descriptor that was inherited by number can't be named in another way")]
fn inherited(number: RawFd) -> Option<OwnedFd> {
    if number < 3 {
        return None;
    }
    // SAFETY: runs once for each number, at the very start of a process with one thread that has
    // opened nothing itself; the standard library owns only 0 to 2. A number that isn't open fails
    // in the next call and is then only closed once more, which does nothing.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    match rustix::io::fcntl_setfd(&fd, FdFlags::CLOEXEC) {
        Ok(()) => Some(fd),
        Err(_) => {
            std::mem::forget(fd);
            None
        }
    }
}

fn start(spec: &Spec, report: &mut File) -> Report {
    let limit = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    let limited = rustix::process::setrlimit(Resource::Core, limit(0))
        .and_then(|()| rustix::process::setrlimit(Resource::Nproc, limit(spec.processes)));
    if let Err(error) = limited {
        return Report::NotStarted { what: NotStarted::Refused, message: error.to_string() };
    }
    if let Err(error) = std::env::set_current_dir(&spec.cwd) {
        return Report::NotStarted { what: NotStarted::Folder, message: error.to_string() };
    }
    let mut words = spec.argv.iter();
    let mut command = Command::new(&spec.program);
    command.arg0(words.next().unwrap_or(&spec.program)).args(words).env_clear().envs(&spec.env);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let what = if missing { NotStarted::Missing } else { NotStarted::Refused };
            return Report::NotStarted { what, message: error.to_string() };
        }
    };
    if spec.goes_on
        && let Err(error) = announce(child.id(), report)
    {
        return Report::NotStarted { what: NotStarted::Refused, message: error.to_string() };
    }
    match child.wait() {
        Ok(status) => Report::Ended {
            exit_code: status.code(),
            signal: status.signal(),
            survivors: survivors(std::process::id()),
        },
        Err(error) => Report::NotStarted { what: NotStarted::Refused, message: error.to_string() },
    }
}

/// Tells that the program runs, and waits until the host has found it by its number.
fn announce(pid: u32, report: &mut File) -> std::io::Result<()> {
    report.write_all(&serde_json::to_vec(&Report::Started { pid })?)?;
    report.read_exact(&mut [0])
}

fn survivors(own: u32) -> Vec<Survivor> {
    let Ok(listing) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<Survivor> = pids.filter(|&pid| pid > 1 && pid != own).filter_map(survivor).collect();
    found.sort_by_key(|one| one.pid);
    found.truncate(MAX_SURVIVORS);
    found
}

fn survivor(pid: u32) -> Option<Survivor> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(pid, &stat)
}

/// `/proc/PID/stat`: the name stands in brackets and may hold brackets itself.
fn parse_stat(pid: u32, stat: &[u8]) -> Option<Survivor> {
    const TICKS_PER_SECOND: u64 = 100;
    let text = String::from_utf8_lossy(stat);
    let (head, tail) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let mut fields = tail.split_ascii_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    // The state was field 3; the start is field 22.
    let ticks: u64 = fields.nth(18)?.parse().ok()?;
    Some(Survivor { pid, name, started_boot_ms: ticks.saturating_mul(1000) / TICKS_PER_SECOND })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prc_04_names_with_brackets_don_t_shift_the_fields() {
        let tail = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 0 0";
        let one = parse_stat(9, format!("9 (a) R 1 (b) {tail}").as_bytes()).unwrap();
        assert_eq!((one.name.as_str(), one.started_boot_ms), ("a) R 1 (b", 7770));
        assert!(parse_stat(9, b"9 (x) Z 1").is_none());
    }
}
