//! `bodyguard verify`: the log, or an exported trace.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bodyguard_protocol::Fault;
use bodyguard_trace::{KeyList, Log, LogError, verify_export};
use clap::Args;
use serde::Serialize;

use super::output::{Failure, path, print, print_json, wait};

/// An exported trace is read whole; this is far more than one can hold.
const MAX_FILE: u64 = 2 * 1024 * 1024 * 1024;

const PROVES: &str = "A signature proves that the key of the data folder signed it, and that nothing was changed since. \
It doesn't prove who sat at the computer: a program of the same user that can unlock the keyring could sign too.";

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// An exported trace; without it, the log of the data folder is checked
    file: Option<PathBuf>,
    /// A public key in hexadecimal that may sign, from Settings on the machine that signed; may be
    /// repeated. By default the keys of the data folder
    #[arg(long, value_name = "HEX")]
    key: Vec<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

const PROVES_EXPORT: &str = "It doesn't prove that the file holds the whole trace: records that nothing else in it depends \
on could have been left out. The log that it came from shows that.";

/// What was found.
#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    leaves: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoints: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<String>,
    blocks: u32,
    keys: Vec<String>,
    /// Whether the keys were given, or taken from the same folder as what they are to prove.
    keys_given: bool,
    problems: Vec<String>,
    proves: String,
}

pub(super) fn run(data: &Path, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let given = given_keys(&arguments.key)?;
    let report = wait(async {
        match &arguments.file {
            None => log(data, given).await,
            Some(file) => exported(data, file, given).await,
        }
    })?;
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&text(&report))?;
    }
    Ok(ExitCode::from(u8::from(!report.ok)))
}

fn given_keys(keys: &[String]) -> Result<Option<KeyList>, Fault> {
    if keys.is_empty() {
        return Ok(None);
    }
    let mut list = KeyList::new();
    for key in keys {
        list.add(key)?;
    }
    Ok(Some(list))
}

async fn log(data: &Path, given: Option<KeyList>) -> Result<Report, Failure> {
    let reader = Log::open_readonly(data)?;
    let keys_given = given.is_some();
    let keys = match given {
        Some(keys) => keys,
        None => reader.key_list().await?,
    };
    let ids = keys.ids().map(str::to_owned).collect();
    let found = bodyguard_trace::verify(&reader, &keys).await?;
    Ok(Report {
        ok: found.ok,
        what: "log",
        leaves: Some(found.leaves),
        root: Some(found.root.to_string()),
        checkpoints: Some(found.checkpoints),
        records: None,
        origin: None,
        key_id: None,
        blocks: found.blocks,
        keys: ids,
        keys_given,
        problems: found.problems.into_iter().map(|problem| problem.text).collect(),
        proves: PROVES.to_owned(),
    })
}

async fn exported(data: &Path, file: &Path, given: Option<KeyList>) -> Result<Report, Failure> {
    let missing = |error: std::io::Error| Failure::unavailable(format!("{}: {error}", path(file)));
    let about = std::fs::metadata(file).map_err(missing)?;
    if !about.is_file() {
        return Err(Failure::problem(format!("{} isn't a file", path(file))));
    }
    if about.len() > MAX_FILE {
        return Err(Failure::problem(format!("{} is too large for an exported trace", path(file))));
    }
    let bytes = std::fs::read(file).map_err(missing)?;
    let keys_given = given.is_some();
    let keys = match given {
        Some(keys) => keys,
        None => known_keys(data).await?,
    };
    let ids = keys.ids().map(str::to_owned).collect();
    let found = verify_export(&bytes, &keys).map_err(|fault| Failure::problem(fault.message))?;
    Ok(Report {
        ok: found.ok,
        what: "exported trace",
        leaves: None,
        root: None,
        checkpoints: None,
        records: Some(found.records),
        origin: Some(found.origin),
        key_id: Some(found.key_id),
        blocks: found.blocks,
        keys: ids,
        keys_given,
        problems: found.problems,
        proves: format!("{PROVES} {PROVES_EXPORT}"),
    })
}

/// The keys of this machine's log; a file's own keys would prove nothing.
async fn known_keys(data: &Path) -> Result<KeyList, Failure> {
    match Log::open_readonly(data) {
        Ok(reader) => Ok(reader.key_list().await?),
        Err(LogError::NoLog(_)) => Err(Failure::usage(
            "there is no data folder whose keys could be trusted: say --key HEX, the key that may sign",
        )),
        Err(error) => Err(error.into()),
    }
}

fn text(report: &Report) -> String {
    let mut lines = vec![match (report.leaves, report.records) {
        (Some(leaves), _) => {
            let checkpoints = report.checkpoints.unwrap_or(0);
            format!("log: {leaves} records, {checkpoints} signed checkpoints, {} authorizations", report.blocks)
        }
        (None, records) => {
            format!("exported trace: {} records, {} authorizations", records.unwrap_or(0), report.blocks)
        }
    }];
    lines.extend(report.root.iter().map(|root| format!("root: {root}")));
    lines.extend(report.origin.iter().map(|origin| format!("from: {origin}")));
    let whose = if report.keys_given { "given" } else { "of the data folder" };
    lines.push(format!(
        "keys {whose}: {}",
        if report.keys.is_empty() { "none".to_owned() } else { report.keys.join(", ") }
    ));
    lines
        .extend(report.problems.iter().map(|problem| format!("PROBLEM: {}", bodyguard_protocol::escape_line(problem))));
    lines.push(if report.ok { "everything holds".to_owned() } else { "IT DOES NOT HOLD".to_owned() });
    if report.ok {
        lines.push(report.proves.clone());
    }
    lines.join("\n") + "\n"
}
