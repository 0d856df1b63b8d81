//! `bodyguard trace`: reads the log; the app may run meanwhile.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bodyguard_protocol::ui::{EdgeSummary, TracePage, TraceView};
use bodyguard_protocol::{SurpriseSignal, TraceId};
use bodyguard_trace::{Log, LogError, LogReader};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::output::{Failure, or_dash, path, print, print_json, wait, word};

/// Edges read at a time.
const PAGE: u32 = 500;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists traces, newest first
    List {
        /// Skips the newest
        #[arg(long, value_name = "N", default_value_t = 0)]
        offset: u32,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// Shows a trace, act by act
    Show {
        /// The trace
        id: TraceId,
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// Lists the acts of a trace that came out otherwise than predicted
    Surprises {
        /// The trace
        id: TraceId,
        /// Prints CloudEvents of type org.opensentience.pulse.surprise_signal.v1 as JSON
        #[arg(long)]
        json: bool,
    },
    /// Writes a trace as one file that can be checked on any machine
    Export {
        /// The trace
        id: TraceId,
        /// The file, which must not exist yet; by default standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Prints what was done as JSON; needs --output
        #[arg(long, requires = "output")]
        json: bool,
    },
}

pub(super) fn run(data: &Path, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let reader = Log::open_readonly(data)?;
    wait(async {
        match &arguments.command {
            Command::List { offset, limit, json } => list(&reader, *offset, *limit, *json).await,
            Command::Show { id, json } => show(&reader, id, *json).await,
            Command::Surprises { id, json } => surprises(&reader, id, *json).await,
            Command::Export { id, output, json } => export(&reader, id, output.as_deref(), *json).await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn list(reader: &LogReader, offset: u32, limit: u32, json: bool) -> Result<(), Failure> {
    let page = reader.traces(offset, limit).await?;
    if json { print_json(&page) } else { print(&listed(&page)) }
}

fn listed(page: &TracePage) -> String {
    if page.items.is_empty() {
        return format!("no traces here ({} in all)\n", page.total);
    }
    let mut text = format!("{:<26}  {:<24}  {:<9}  {:>5}  {:<24}  GOAL\n", "TRACE", "BEGAN", "ENDED", "ACTS", "AGENT");
    for trace in &page.items {
        let ended = trace.outcome.as_ref().map_or_else(|| "running".to_owned(), word);
        let (id, began, acts, agent) = (&trace.trace_id, trace.started_at, trace.edges, &trace.agent_id);
        let goal = trace.goal.as_deref().unwrap_or("-");
        text.push_str(&format!("{id:<26}  {began:<24}  {ended:<9}  {acts:>5}  {agent:<24}  {goal}\n"));
    }
    text
}

/// A trace with all its edges.
#[derive(Serialize)]
struct Whole {
    trace: TraceView,
    edges: Vec<EdgeSummary>,
}

async fn show(reader: &LogReader, id: &TraceId, json: bool) -> Result<(), Failure> {
    let trace = reader.trace(id).await?.ok_or(LogError::UnknownTrace)?;
    let mut edges = Vec::new();
    loop {
        let offset = u32::try_from(edges.len()).map_err(|_| Failure::problem("a trace of too many acts"))?;
        let page = reader.edges(id, offset, PAGE).await?;
        let last = page.items.is_empty();
        edges.extend(page.items);
        if last {
            break;
        }
    }
    let whole = Whole { trace, edges };
    if json { print_json(&whole) } else { print(&shown(&whole)) }
}

fn shown(whole: &Whole) -> String {
    let (view, trace) = (&whole.trace, &whole.trace.summary);
    let ended = trace.outcome.as_ref().map_or_else(|| "running".to_owned(), word);
    let mut text = format!(
        "trace      {}\nagent      {}\ngoal       {}\nworkspace  {}\nbegan      {}\nended      {} ({ended})\n\n",
        trace.trace_id,
        trace.agent_id,
        trace.goal.as_deref().unwrap_or("-"),
        view.workspace_root,
        trace.started_at,
        or_dash(trace.ended_at),
    );
    for edge in &whole.edges {
        text.push_str(&line(edge));
    }
    if whole.edges.is_empty() {
        text.push_str("nothing was done\n");
    }
    text
}

fn line(edge: &EdgeSummary) -> String {
    let status = edge.outcome_status.as_ref().map_or_else(|| "running".to_owned(), word);
    let error = edge.error.as_ref().map(|code| format!(" ({})", word(code))).unwrap_or_default();
    let by = edge.approved_by.as_ref().map(|who| format!(", approved by {who}")).unwrap_or_default();
    format!(
        "{:>4}  {}  {:<14}  {status}{error}, {} ms{by}\n      {}\n",
        edge.edge_id,
        edge.at,
        word(&edge.action_type),
        edge.latency_ms,
        edge.summary,
    )
}

async fn surprises(reader: &LogReader, id: &TraceId, json: bool) -> Result<(), Failure> {
    let signals = reader.surprises(id).await?;
    if json {
        return print_json(&signals.iter().map(SurpriseSignal::to_cloud_event).collect::<Vec<_>>());
    }
    if signals.is_empty() {
        return print("everything came out as predicted\n");
    }
    print(&signals.iter().map(surprise_line).collect::<String>())
}

fn surprise_line(signal: &SurpriseSignal) -> String {
    let (edge, kind, size) = (signal.edge_id, word(&signal.surprise_kind), signal.surprise_magnitude);
    format!("{edge:>4}  {}  {:<14}  {kind}, {size:.2}\n", signal.timestamp, word(&signal.action_type))
}

async fn export(reader: &LogReader, id: &TraceId, output: Option<&Path>, json: bool) -> Result<(), Failure> {
    let exported = bodyguard_trace::export(reader, id).await?;
    if exported.left_out > 0 {
        eprintln!(
            "bodyguard: {} records are newer than the last signed checkpoint and were left out; end the app or wait, then export again",
            exported.left_out
        );
    }
    let Some(file) = output else {
        return print(&String::from_utf8_lossy(&exported.bytes));
    };
    let failed = |error: std::io::Error| Failure::problem(format!("{}: {error}", path(file)));
    let mut out = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(failed)?;
    out.write_all(&exported.bytes).and_then(|()| out.sync_all()).map_err(failed)?;
    if json {
        let done = serde_json::json!({ "file": file, "bytes": exported.bytes.len(), "left_out": exported.left_out });
        return print_json(&done);
    }
    print(&format!("wrote {}\n", path(file)))
}
