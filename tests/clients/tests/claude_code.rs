//! The real Claude Code works through Bodyguard, and the person at the desktop has the last word.

use anyhow::{Context, Result, ensure};
use clients::claude_code::TOOLS;
use clients::{Call, ClaudeCode, ScriptedModel, Seen, Turn};
use harness::{App, AppOptions, Desktop, Person, Workspace};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// How long the app may take to show something, on a busy machine.
const SOON: Duration = Duration::from_secs(90);
const AGENT: &str = "claude-code";
const REASON: &str = "not before the backup";
const CONTENT: &str = "the cat sleeps in the blue box";
const LAST_WORDS: &str = "One was denied, one was done.";

fn call(tool: &str, input: Value) -> Turn {
    Turn::Call(Call { tool: format!("{TOOLS}{tool}"), input })
}

/// What the model does: looks, reads a file, and asks twice to run a command. It comes back for
/// what isn't decided, by the id it was told.
struct Script {
    root: String,
    step: u32,
}

impl Script {
    fn next(&mut self, seen: &[Seen]) -> Turn {
        let session = seen.first().map(|first| first.text_at("/session_id")).unwrap_or_default();
        if let Some(last) = seen.last()
            && last.code() == "authorization_required"
        {
            let escalation = last.text_at("/error/escalation_id");
            let input = json!({ "session_id": session, "escalation_id": escalation, "wait_ms": 20_000 });
            return call("body_os_act", input);
        }
        self.step += 1;
        let act = |action: Value| {
            call("body_os_act", json!({ "session_id": session, "action": action, "wait_ms": 500, "reason": "a test" }))
        };
        let touch = |name: &str| {
            act(json!({ "type": "shell_exec", "target": self.root, "params": { "argv": ["touch", name] } }))
        };
        match self.step {
            1 => call("body_os_ensure_session", json!({ "goal": "read a note and make two files" })),
            2 | 5 => call("body_os_perceive", json!({ "session_id": session, "mode": "filesystem" })),
            3 => act(json!({ "type": "file_read", "target": format!("{}/note.txt", self.root), "params": {} })),
            4 => touch("denied"),
            6 => touch("approved"),
            _ => Turn::Say(LAST_WORDS.into()),
        }
    }
}

/// Denies the first request with a reason; reads the second to its end and approves it.
fn decide(person: &mut Person, (width, height): (u16, u16)) -> Result<()> {
    let entry = person.wait_for_text("Reason, for the agent", SOON)?;
    person.click_on(entry)?;
    person.type_text(REASON)?;
    person.wait_for_text(REASON, SOON)?;
    person.deny(SOON)?;
    person.next_request(SOON)?;
    person.wait_for_text("touch approved", SOON)?;
    person.wheel(i32::from(width) * 2 / 3, i32::from(height) / 2, 20)?;
    person.approve(SOON)
}

/// The results of calls of a tool whose action has this in its arguments, and of what followed by
/// `escalation_id`; the last of them is the outcome.
fn outcome<'a>(seen: &'a [Seen], what: &str) -> Result<(&'a Seen, usize)> {
    let begin =
        seen.iter().position(|one| one.call.input["action"].to_string().contains(what)).context("not called")?;
    let polls = seen.iter().skip(begin + 1).take_while(|one| one.call.input.get("escalation_id").is_some()).count();
    Ok((seen.get(begin + polls).context("no outcome")?, polls))
}

fn check_what_the_model_saw(seen: &[Seen]) -> Result<()> {
    let (read, _) = outcome(seen, "file_read")?;
    ensure!(read.text_at("/outcome_status") == "success" && read.text.contains(CONTENT), "{}", read.text);

    let (denied, polls) = outcome(seen, "denied")?;
    ensure!(polls > 0, "it was asked to come back first");
    ensure!(denied.code() == "denied_by_person" && denied.text_at("/outcome_status") == "blocked", "{}", denied.text);
    ensure!(denied.text.contains(REASON), "the person's reason reaches the model: {}", denied.text);

    let (approved, polls) = outcome(seen, "approved")?;
    ensure!(polls > 0, "it was asked to come back first");
    ensure!(approved.text_at("/outcome_status") == "success" && !approved.is_error, "{}", approved.text);
    ensure!(!approved.text_at("/authorization/authorization_token").is_empty(), "{}", approved.text);
    Ok(())
}

fn work(desktop: &Desktop, app: &App, model: &ScriptedModel, root: &Path) -> Result<()> {
    let mut person = Person::at(desktop)?;
    let tools = ["body_os_ensure_session", "body_os_perceive", "body_os_act"];
    let mut claude = ClaudeCode::start(desktop, app, AGENT, &model.url(), &tools, "Read the note, make the files.")?;
    decide(&mut person, desktop.size()).with_context(|| claude.output())?;
    let (status, report) = claude.wait(Duration::from_secs(60))?;
    ensure!(status.success() && report["is_error"] == false, "{status}: {report}");
    ensure!(report["result"] == LAST_WORDS, "{report}");
    check_what_the_model_saw(&model.seen())?;
    ensure!(root.join("approved").is_file(), "the approved command had its effect");
    ensure!(!root.join("denied").exists(), "the denied twin has none");
    Ok(())
}

#[test]
fn r1_r17_the_real_claude_code_reads_and_is_denied_and_approved_by_the_person() -> Result<()> {
    let desktop = Desktop::start()?;
    let workspace = Workspace::temp()?;
    workspace.write("note.txt", CONTENT)?;
    let app = App::start(&desktop, AppOptions::one("ws", workspace.path(), AGENT))?;
    let mut script = Script { root: workspace.path().display().to_string(), step: 0 };
    let model = ScriptedModel::start(TOOLS, Box::new(move |seen| script.next(seen)))?;
    work(&desktop, &app, &model, workspace.path()).with_context(|| model.report())?;

    let offered = model.offered();
    ensure!(offered.iter().all(|name| name.starts_with(TOOLS)), "Bodyguard is all it has: {offered:?}");
    ensure!(offered.len() == 7, "all seven tools: {offered:?}");
    let verify = app.cli(&["verify", "--json"]).output()?;
    ensure!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stdout));
    Ok(())
}
