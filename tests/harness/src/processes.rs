//! Finding and ending processes by pid, through `/proc`: by descent, and by a marker in their
//! environment, which also finds daemons that left their parents.

use crate::wait::poll;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// One process, as `/proc/PID/stat` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: i32,
    /// Parent's process id.
    pub parent: i32,
    /// Name, at most 15 bytes of it.
    pub name: String,
    /// State letter: `R`, `S`, `T` (stopped), `Z` (ended, not yet reaped) …
    pub state: char,
    /// Start in clock ticks since boot; with the pid it names a process for good.
    pub started: u64,
}

/// Reads one process; `None` if it is gone.
#[must_use]
pub fn process(pid: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may itself contain spaces and brackets: take it between the outermost ones.
    let (head, rest) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        name,
        state: fields.first()?.chars().next()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// All processes that haven't ended.
#[must_use]
pub fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(process)
        .filter(|process| !matches!(process.state, 'Z' | 'X'))
        .collect()
}

/// Living descendants of a process, nearest first, without itself.
#[must_use]
pub fn descendants(pid: i32) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut waiting = vec![pid];
    while let Some(parent) = waiting.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            waiting.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// Living processes that were started with `NAME=VALUE` (given as that) in their environment.
#[must_use]
pub fn marked(marker: &str) -> Vec<Process> {
    all()
        .into_iter()
        .filter(|process| {
            std::fs::read(format!("/proc/{}/environ", process.pid)).is_ok_and(|environment| {
                environment.split(|byte| *byte == 0).any(|variable| variable == marker.as_bytes())
            })
        })
        .collect()
}

/// Sends a signal to a process; `false` if it is gone.
pub fn signal(pid: i32, signal: Signal) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// True while this very process (pid and start time) lives.
#[must_use]
pub fn lives(known: &Process) -> bool {
    process(known.pid).is_some_and(|now| now.started == known.started && !matches!(now.state, 'Z' | 'X'))
}

/// Kills every process that `find` gives, again until it gives none (they may be forking).
pub fn kill_all(mut find: impl FnMut() -> Vec<Process>) {
    let me = std::process::id().cast_signed();
    poll(Duration::from_secs(5), || {
        let found: Vec<_> = find().into_iter().filter(|p| p.pid != me).collect();
        for process in &found {
            signal(process.pid, Signal::KILL);
        }
        found.is_empty().then_some(())
    });
}

/// Waits for a child to end, at most `timeout`; its exit status, or `None` if it still runs.
pub fn wait_child(child: &mut Child, timeout: Duration) -> Option<std::process::ExitStatus> {
    poll(timeout, || child.try_wait().ok().flatten())
}

/// Asks a child to end, then makes it, and reaps it.
pub fn end_child(child: &mut Child, patience: Duration) {
    let pid = child.id().cast_signed();
    if matches!(child.try_wait(), Ok(None)) {
        signal(pid, Signal::TERM);
        if wait_child(child, patience).is_none() {
            signal(pid, Signal::KILL);
        }
    }
    // The process is ended or killed, so this can't hang and only reaps it.
    let _ = child.wait();
}

/// Cleans up after a test process that was itself killed, when no `Drop` can run.
///
/// It waits on a pipe which closes with the test process, then ends all marked processes and
/// removes the folder.
#[derive(Debug)]
pub struct Keeper(Child);

const KEEPER: &str = r#"
cat >/dev/null
marked() { grep -lzxF "$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }
for signal in TERM KILL KILL; do
  for pid in $(marked "$1"); do kill -$signal "$pid" 2>/dev/null; done
  sleep 0.3
done
if [ -r "$2/display" ]; then n=$(cat "$2/display"); rm -f "/tmp/.X11-unix/X$n"; fi
rm -rf "$2"
"#;

impl Keeper {
    /// Starts it for a marker (`NAME=VALUE`) and a folder.
    ///
    /// # Errors
    /// If `sh` can't be started.
    pub fn start(marker: &str, folder: &Path) -> Result<Self> {
        let child = Command::new("sh")
            .arg("-c")
            .arg(KEEPER)
            .arg("keeper")
            .arg(marker)
            .arg(folder)
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("start sh as keeper")?;
        Ok(Self(child))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Whoever drops it has cleaned up. Its `cat` ends by the closed pipe, or is its child.
        let children = descendants(self.0.id().cast_signed());
        let _ = self.0.kill();
        let _ = self.0.wait();
        for child in children {
            signal(child.pid, Signal::KILL);
        }
    }
}
