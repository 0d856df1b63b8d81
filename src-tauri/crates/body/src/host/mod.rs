//! The body host: a process of its own that does what touches the world, and obeys only the socket
//! that it was started with.

mod cancel;
mod command;
mod delete;
mod draft;
mod edit;
mod files;
mod git;
mod harden;
mod held;
mod inner;
mod input;
mod output;
mod processes;
mod read;
mod sandbox;
mod screen;
mod serve;
mod shell;
mod signal;
mod snapshot;
mod spawned;
mod spawner;
mod state;
mod work;
mod write;

use std::process::ExitCode;

pub(crate) use read::observed as observed_read;
pub(crate) use screen::{Picture, region_of};
pub(crate) use state::fingerprint;

/// Runs this process as a body host on its standard input, or, with the word for it, as the first
/// program in a sandbox.
pub fn run() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next() {
        None => serve::serve(),
        Some(word) if word == inner::WORD => inner::run(&arguments.collect::<Vec<_>>()),
        Some(_) => {
            eprintln!("bodyguard-body is started by bodyguard and takes no arguments");
            ExitCode::from(2)
        }
    }
}
