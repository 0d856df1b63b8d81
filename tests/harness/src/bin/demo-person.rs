//! The demo's person: sees the screen and moves a pointer by VNC, and approves what is asked.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use harness::Person;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo-person: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Approves whatever becomes approvable, until it is ended.
fn run() -> Result<()> {
    let mut socket = None;
    let mut password = None;
    let mut arguments = std::env::args_os().skip(1);
    while let (Some(flag), Some(value)) = (arguments.next(), arguments.next()) {
        match flag.to_str() {
            Some("--vnc-socket") => socket = Some(PathBuf::from(value)),
            Some("--vnc-password-file") => password = Some(std::fs::read_to_string(value)?),
            _ => bail!("usage: demo-person --vnc-socket FILE --vnc-password-file FILE"),
        }
    }
    let socket = socket.context("--vnc-socket FILE is missing")?;
    let mut person = Person::connect(&socket, password.as_deref().map(str::trim))?;
    loop {
        // Nothing to approve for a while is fine: the agent may be busy.
        if person.approve(Duration::from_secs(5)).is_ok() {
            say("pressed Approve");
        } else if person.next_request(Duration::from_secs(1)).is_ok() {
            // What was decided stays on the screen until the person moves on.
            say("moved on to the next request");
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[allow(clippy::print_stdout, reason = "the demo tells what it does")]
fn say(line: &str) {
    println!("  person {line}");
}
