//! What a person sees of an act before deciding: exact, escaped, whole.

mod contents;
mod input;
mod warnings;

use bodyguard_body::{Review, SandboxInfo};
use bodyguard_policy::Verdict;
use bodyguard_protocol::action::{ShellExec, WriteMode};
use bodyguard_protocol::ui::{DecisionKind, DecisionView, EdgeAddress, Fact};
use bodyguard_protocol::{AskId, Fault, Params, Timestamp, escape_line, escape_text};

use super::admission::Admitted;
use crate::session::Session;
use contents::contents;
pub(crate) use contents::reviewable_diff;
use warnings::warnings;

/// Characters of a command that still fit a headline.
const SHORT_COMMAND: usize = 64;

/// What a decision carries beside the action.
pub(crate) struct Frame {
    pub(crate) id: AskId,
    pub(crate) asked_at: Timestamp,
    pub(crate) ttl_ms: u64,
    pub(crate) words: Option<String>,
    /// The recorded edge that it repeats.
    pub(crate) replays: Option<EdgeAddress>,
}

/// The decision as it is shown and signed. `params` are the action's, with secrets as commitments.
///
/// # Errors
/// `too_long_to_review` where it can't be shown whole.
pub(crate) fn decision_view(
    session: &Session,
    admitted: &Admitted,
    params: &Params,
    frame: Frame,
) -> Result<DecisionView, Fault> {
    let action = admitted.action();
    let review = &admitted.inspection.review;
    let contents = contents(params, review)?;
    let mut facts = workspace_facts(session);
    facts.extend(action_facts(params, review, &action.target));
    if matches!(review, Review::Command { .. }) {
        facts.push(fact("Containment", &containment_sentence(&admitted.sandbox)));
    }
    let why = match admitted.decision.verdict() {
        Verdict::Ask { why, .. } => why.as_str(),
        Verdict::Allow { .. } | Verdict::Deny { .. } => "",
    };
    let headline = headline(session, params, review);
    Ok(DecisionView {
        ask_id: frame.id,
        kind: DecisionKind::Act,
        headline: match &frame.replays {
            Some(edge) => format!("Replay, act {}: {headline}", edge.edge_id),
            None => headline,
        },
        requester: session.agent_id(),
        session_id: Some(session.id.clone()),
        replays: frame.replays,
        contents,
        facts,
        warnings: warnings(admitted, params, review),
        agent_words: frame.words.as_deref().map(escape_text),
        why: escape_line(why),
        policy_id: admitted.decision.policy_id(),
        action_digest: admitted.action_digest.clone(),
        asked_at: frame.asked_at,
        expires_at: frame.asked_at.plus_millis(i64::try_from(frame.ttl_ms).unwrap_or(i64::MAX)),
    })
}

/// Where: the rows that every decision of a session has.
pub(crate) fn workspace_facts(session: &Session) -> Vec<Fact> {
    let mut facts = vec![fact("Workspace", &format!("{} — {}", session.workspace.name, session.workspace.root))];
    // The goal of a replay is no agent's words; `replays` says what it is.
    if let (Some(goal), None) = (&session.goal, &session.replay_of) {
        facts.push(fact("Goal, as the agent says", goal));
    }
    facts
}

fn fact(label: &str, value: &str) -> Fact {
    Fact { label: label.to_owned(), value: escape_line(value) }
}

fn headline(session: &Session, params: &Params, review: &Review) -> String {
    let agent = &session.agent;
    let place = &session.workspace.name;
    match (params, review) {
        (Params::ShellExec(shell), _) => format!("{agent} wants to run {} in {place}", command_phrase(shell)),
        (Params::FileEdit(_), Review::Edit { path, .. }) => {
            format!("{agent} wants to change {} in {place}", escape_line(file_name(path)))
        }
        (_, Review::New { path, .. }) => {
            format!("{agent} wants to make {} in {place}", escape_line(file_name(path)))
        }
        (Params::FileWrite(write), Review::Edit { path, .. }) => {
            let what = if write.mode == WriteMode::Append { "add to" } else { "replace" };
            format!("{agent} wants to {what} {} in {place}", escape_line(file_name(path)))
        }
        (_, Review::Delete { path, entries, .. }) => {
            let more = entries.len() - 1;
            let all = if more == 0 { String::new() } else { format!(" and {more} files and folders in it") };
            format!("{agent} wants to delete {}{all} in {place}", escape_line(file_name(path)))
        }
        (Params::ProcessSpawn(_), Review::Command { program, .. }) => {
            format!("{agent} wants to start {} in {place}", escape_line(&program.name))
        }
        (Params::ProcessSignal(wanted), Review::Signal { command }) => {
            format!("{agent} wants to send {} to {}", wanted.signal.name(), quoted(command))
        }
        (_, Review::Input { window, .. }) => {
            format!("{agent} wants to {} {}", input::phrase(params), input::place(window.as_ref()))
        }
        (Params::ScreenCapture(_), Review::Capture { monitor, .. }) => {
            format!("{agent} wants a picture of your screen {}", escape_line(monitor))
        }
        (Params::FileRead(_), Review::Read { path, .. }) => {
            format!("{agent} wants to read {} in {place}", escape_line(file_name(path)))
        }
        _ => format!("{agent} wants to act in {place}"),
    }
}

/// The beginning of a text that may be long, in quotes.
fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(SHORT_COMMAND).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("“{}”", escape_line(&shown))
}

/// A short command itself; of a long one its size, because half a command misleads.
fn command_phrase(shell: &ShellExec) -> String {
    let exact = match (&shell.command, &shell.argv) {
        (Some(command), _) => command.trim_end().to_owned(),
        (None, argv) => argv.as_deref().unwrap_or_default().join(" "),
    };
    let lines = exact.lines().count();
    let shown = escape_line(&exact);
    if lines <= 1 && shown.chars().count() <= SHORT_COMMAND {
        format!("“{shown}”")
    } else if lines <= 1 {
        format!("a command of {} characters", exact.chars().count())
    } else {
        format!("a command of {lines} lines")
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn action_facts(params: &Params, review: &Review, target: &str) -> Vec<Fact> {
    let mut facts = Vec::new();
    match review {
        Review::Command { program, scripts, cwd, env: _ } => {
            facts.push(fact("Program", &format!("{} ({})", program.path, short(program.sha256.short()))));
            facts.push(fact("Folder", cwd));
            for script in scripts {
                facts.push(fact("Runs the script", &format!("{} ({})", script.path, short(script.sha256.short()))));
            }
        }
        Review::Edit { path, bytes_before, bytes_after, .. } => {
            facts.push(fact("File", path));
            facts.push(fact("Size", &format!("{bytes_before} → {bytes_after} bytes")));
        }
        Review::New { path, bytes, permissions, .. } => {
            facts.push(fact("New file", path));
            facts.push(fact("Size", &format!("{bytes} bytes")));
            facts.push(fact("Permissions", permissions));
        }
        Review::Delete { path, entries, .. } => {
            let bytes: u64 = entries.iter().map(|entry| entry.size).sum();
            facts.push(fact("Deletes", path));
            facts.push(fact("Size", &format!("{bytes} bytes in {} files and folders", entries.len())));
        }
        Review::Read { path, size } => {
            facts.push(fact("File", path));
            facts.push(fact("Size", &format!("{size} bytes")));
        }
        Review::Input { window, point } => facts.extend(input::facts(params, window.as_ref(), *point)),
        Review::Signal { command } => facts.push(fact("Process", command)),
        Review::Capture { monitor, width, height } => {
            facts.push(fact("Screen", &format!("{monitor} ({target}), {width} × {height} pixels")));
        }
    }
    if let Params::ProcessSpawn(_) = params {
        facts.push(fact("Ends", "with the session, if not before"));
    }
    if let Params::ShellExec(shell) = params {
        if shell.stdin.is_some() {
            facts.push(fact("Standard input", "the text above"));
        }
        facts.push(fact("Ends after", &format!("{} s", shell.timeout_ms.div_ceil(1000))));
    }
    facts
}

/// What contains a command, in one row.
fn containment_sentence(sandbox: &SandboxInfo) -> String {
    let row = |(label, value): &(String, String)| match label.as_str() {
        "containment" => value.clone(),
        _ => format!("{label}: {value}"),
    };
    sandbox.facts.iter().map(row).collect::<Vec<_>>().join("; ")
}

fn short(digest: &str) -> String {
    format!("sha256 {digest}…")
}
