//! `bodyguard conformance`: the twelve tests of OS-011 §9 against this program.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use bodyguard_protocol::{Clock as _, escape_line};
use bodyguard_supervisor::SystemClock;
use clap::Args;

use super::output::{Failure, path, print, print_json};
use crate::CheckContext;
use crate::conformance::{Backend, House, HouseError, Report, SignedReport, TestResult, run_all};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// What acts: a simulation in memory, or this machine in a folder of its own
    #[arg(long, value_enum, default_value = "simulator")]
    backend: Backend,
    /// Writes the signed report to a file, which must not exist yet
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Prints the signed report instead of a line for each test
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(file) = arguments.report.as_deref().filter(|file| file.symlink_metadata().is_ok()) {
        return Err(Failure::usage(format!("{} is there already", path(file))));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let signed = runtime.map_err(|e| Failure::problem(format!("can't start: {e}")))?.block_on(tested(arguments))?;
    if arguments.json {
        print_json(&signed)?;
    } else {
        print(&format!("{} passed, {} failed\n", signed.report.passed, signed.report.failed))?;
    }
    if let Some(file) = &arguments.report {
        write(file, &signed)?;
    }
    Ok(ExitCode::from(u8::from(signed.report.failed > 0)))
}

async fn tested(arguments: &Arguments) -> Result<SignedReport, Failure> {
    // The body host beside this program; the data folder isn't looked at.
    let body_program = CheckContext::new(&PathBuf::new()).body_program;
    let started_at = SystemClock.now().wall;
    let house = House::start(arguments.backend, &body_program).await.map_err(not_started)?;
    let results = run_all(&house, |result| {
        if !arguments.json {
            let _ = print(&line(result));
        }
    })
    .await;
    house.end().await;
    Report::new(arguments.backend, started_at, results).sign().map_err(|fault| Failure::problem(fault.message))
}

fn not_started(error: HouseError) -> Failure {
    let message = escape_line(&error.to_string());
    match error {
        HouseError::Unavailable { .. } => Failure::usage(message),
        HouseError::Failed(_) => Failure::problem(message),
    }
}

fn line(result: &TestResult) -> String {
    let TestResult { number, name, reason, .. } = result;
    match reason {
        None => format!("ok {number} {name}\n"),
        Some(reason) => format!("not ok {number} {name}: {}\n", escape_line(reason)),
    }
}

fn write(file: &PathBuf, signed: &SignedReport) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::problem(format!("{}: {error}", path(file)));
    let text = serde_json::to_string_pretty(signed).map_err(|e| Failure::problem(e.to_string()))?;
    let mut out = std::fs::OpenOptions::new().write(true).create_new(true).open(file).map_err(failed)?;
    out.write_all(format!("{text}\n").as_bytes()).map_err(failed)
}
