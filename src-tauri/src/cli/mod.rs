//! The command line. Text that could have been written by an agent is escaped; nothing here
//! approves anything.

mod conformance;
mod doctor;
mod init;
mod mcp;
mod output;
mod published;
mod trace;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::{AppOptions, Guards, StartFailure, default_data_dir, process, run};

pub use output::Failure;

const AFTER_HELP: &str = "\
Without a command, the app starts.

Exit codes:
  0  done; verify: everything holds; doctor: nothing is missing
  1  it ran and found a problem: verify found something wrong, doctor something that doesn't work,
     conformance a test that doesn't hold
  2  it was called wrongly, or conformance for a backend that can't run here
  3  what was asked for is not there: no such trace, no log, no display, the app runs already
     and doesn't answer, or another process holds the data folder

BODYGUARD_LOG sets what is logged to standard error, as in BODYGUARD_LOG=debug.";

/// Bodyguard: a desktop supervisor for computer-use agents.
#[derive(Debug, Parser)]
#[command(name = "bodyguard", version, about, after_help = AFTER_HELP)]
struct Cli {
    /// The data folder, by default $XDG_DATA_HOME/bodyguard
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Connects an agent over standard input and output (MCP); the app has to run
    Mcp(mcp::Arguments),
    /// Says what works on this machine, and what to do about the rest
    Doctor(doctor::Arguments),
    /// Lists, shows and exports traces
    Trace(trace::Arguments),
    /// Checks that the log, or an exported trace, is whole, in order and signed by a known key
    Verify(verify::Arguments),
    /// Prints the capability contract that this body keeps
    Contract(published::ContractArguments),
    /// Prints the JSON Schema of what goes in or out
    Schema(published::SchemaArguments),
    /// Runs the twelve conformance tests of OS-011 against this program, apart from your data
    Conformance(conformance::Arguments),
    /// Makes a data folder where there is none, for tests and demos
    Init(init::Arguments),
}

/// Runs the command line of this process with the guards that ship.
pub fn main() -> ExitCode {
    main_with(Guards::shipped())
}

/// Runs the command line of this process with other guards.
pub fn main_with(guards: Guards) -> ExitCode {
    let cli = Cli::parse();
    start_logging(if cli.command.is_some() { "warn" } else { "info" });
    let result = match data_dir(cli.data.as_deref(), cli.command.is_none()) {
        Ok(data) => dispatch(cli.command, &data, guards),
        Err(failure) => Err(failure),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("bodyguard: {}", failure.message);
            failure.code()
        }
    }
}

fn dispatch(command: Option<Command>, data: &Path, guards: Guards) -> Result<ExitCode, Failure> {
    if !matches!(command, None | Some(Command::Doctor(_))) {
        process::harden();
    }
    match command {
        None => app(data, guards),
        Some(Command::Mcp(arguments)) => Ok(mcp::run(data, &arguments)),
        Some(Command::Doctor(arguments)) => doctor::run(data, &arguments),
        Some(Command::Trace(arguments)) => trace::run(data, &arguments),
        Some(Command::Verify(arguments)) => verify::run(data, &arguments),
        Some(Command::Contract(arguments)) => published::show_contract(&arguments),
        Some(Command::Schema(arguments)) => published::show_schema(&arguments),
        Some(Command::Conformance(arguments)) => conformance::run(&arguments),
        Some(Command::Init(arguments)) => init::run(data, arguments),
    }
}

fn app(data: &Path, guards: Guards) -> Result<ExitCode, Failure> {
    match run(AppOptions { data_dir: data.to_owned(), guards }) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(shown @ StartFailure::Shown(_)) => {
            eprintln!("bodyguard: {shown}");
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => Err(Failure::unavailable(failure.to_string())),
    }
}

/// The data folder by its real path, so that two ways to it are one. The app makes it.
fn data_dir(given: Option<&Path>, make: bool) -> Result<PathBuf, Failure> {
    let dir = given
        .map(Path::to_owned)
        .or_else(default_data_dir)
        .ok_or_else(|| Failure::usage("there is no home folder: say --data DIR"))?;
    if make {
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let shown = output::path(&dir);
        builder.recursive(true).create(&dir).map_err(|e| Failure::unavailable(format!("{shown}: {e}")))?;
    }
    let absolute = std::path::absolute(&dir).unwrap_or(dir);
    Ok(absolute.canonicalize().unwrap_or(absolute))
}

fn start_logging(default: &str) {
    let mut filter = EnvFilter::try_from_env("BODYGUARD_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    // At finer levels it prints whole messages of agents, secrets included.
    if let Ok(cap) = "rmcp=warn".parse() {
        filter = filter.add_directive(cap);
    }
    // A second subscriber in one process is refused; the first one then goes on.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).try_init();
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed_and_says_its_exit_codes() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        let help = command.render_long_help().to_string();
        for word in ["mcp", "doctor", "trace", "verify", "init", "--data", "Exit codes"] {
            assert!(help.contains(word), "{word}");
        }
    }

    #[test]
    fn no_command_approves() {
        let commands: Vec<_> = Cli::command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
        assert_eq!(commands, ["mcp", "doctor", "trace", "verify", "contract", "schema", "conformance", "init"]);
    }

    #[test]
    fn sto_02_two_ways_to_a_folder_are_one() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        std::fs::create_dir(&real).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(data_dir(Some(&link), false).unwrap(), data_dir(Some(&real), true).unwrap());
    }
}
