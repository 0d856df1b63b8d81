//! The demo's agent: a real MCP client over the stdio bridge, following a script. It says each step
//! and what came of it, and ends with 0 if every step went as the script expects.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Result, bail};

use harness::{Agent, StdioAgent, ToolResult, sibling_binary};
use serde_json::{Value, json};

/// How long the person may take for one decision.
const PATIENCE: Duration = Duration::from_secs(900);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo-agent: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let data: PathBuf = match (arguments.next(), arguments.next()) {
        (Some(flag), Some(dir)) if flag == "--data" => dir.into(),
        _ => bail!("usage: demo-agent --data DIR"),
    };
    let mut bridge = Command::new(sibling_binary("bodyguard")?);
    bridge.args(["mcp", "--agent", "demo", "--data"]).arg(&data);
    let log = data.with_extension("agent.log");
    let mut demo = Demo { agent: StdioAgent::start(bridge, &log)?, session: Value::Null, step: 0 };
    demo.follow()?;
    demo.agent.close();
    Ok(())
}

struct Demo {
    agent: StdioAgent,
    session: Value,
    step: u32,
}

impl Demo {
    fn follow(&mut self) -> Result<()> {
        let server = self.agent.initialize()?;
        say(&format!("connected to {} over the stdio bridge", server["serverInfo"]["name"]));
        let session =
            self.call("begin a session", "body_os_ensure_session", json!({ "goal": "Tidy up the shopping list" }))?;
        self.session = session.at("/session_id");
        let root = session.text_at("/root");
        let notes = format!("{root}/notes.md");
        self.perceive()?;
        let set = self.call("ask what may be done", "body_os_affordances", json!({}))?;
        say(&format!("    {} affordances", set.at("/affordances").as_array().map_or(0, Vec::len)));
        let read =
            self.act("read notes.md", "to see what is on the list", json!({ "type": "file_read", "target": notes }))?;
        expect(&read, "success")?;
        say(&format!("    it reads {}", read.at("/observed_outcome/content")));
        let edit = json!({ "type": "file_edit", "target": notes, "params": { "edits": [{ "old": "- milk\n", "new": "- milk\n- apples\n" }] } });
        self.decided("ask to edit notes.md", "apples were forgotten", edit)?;
        self.perceive()?;
        let count = json!({ "type": "shell_exec", "target": root, "params": { "command": "wc -l notes.md" } });
        self.decided("ask to run a command", "to count the lines", count)?;
        self.perceive()?;
        let outside =
            self.act("try to read /etc/shadow", "curious", json!({ "type": "file_read", "target": "/etc/shadow" }))?;
        expect(&outside, "blocked")?;
        say("    refused by the policy, and recorded");
        say("done");
        Ok(())
    }

    fn perceive(&mut self) -> Result<()> {
        self.call("look around", "body_os_perceive", json!({ "mode": "filesystem" })).map(drop)
    }

    fn call(&mut self, step: &str, tool: &str, mut arguments: Value) -> Result<ToolResult> {
        self.step += 1;
        say(&format!("{}. {step}", self.step));
        if !self.session.is_null() {
            arguments["session_id"] = self.session.clone();
        }
        let result = self.agent.call_within(tool, arguments, PATIENCE)?;
        if result.is_error && tool != "body_os_act" {
            bail!("{step}: {}", result.text);
        }
        Ok(result)
    }

    /// Acts, and comes back with the escalation id for as long as the person thinks.
    fn act(&mut self, step: &str, words: &str, action: Value) -> Result<ToolResult> {
        let mut result = self.call(step, "body_os_act", json!({ "action": action, "reason": words }))?;
        let mut waited = Duration::ZERO;
        while matches!(code(&result).as_str(), "authorization_required" | "in_progress") {
            if waited >= PATIENCE {
                bail!("{step}: nobody decided");
            }
            say("    waiting for the person …");
            waited += Duration::from_secs(45);
            let id = result.at("/error/escalation_id");
            let arguments = json!({ "session_id": self.session, "escalation_id": id });
            result = self.agent.call_within("body_os_act", arguments, PATIENCE)?;
        }
        Ok(result)
    }

    /// An act that the person may approve or deny; both are fine for the demo.
    fn decided(&mut self, step: &str, words: &str, action: Value) -> Result<()> {
        let result = self.act(step, words, action)?;
        match (result.text_at("/outcome_status").as_str(), code(&result).as_str()) {
            ("success", _) => {
                let by = result.text_at("/authorization/approved_by");
                say(&format!("    approved by {by}, and done: {}", result.at("/observed_outcome")));
            }
            (_, "denied_by_person") => say(&format!("    denied: {}", result.text_at("/error/message"))),
            _ => bail!("{step}: {}", result.text),
        }
        Ok(())
    }
}

fn code(result: &ToolResult) -> String {
    result.text_at("/error/code")
}

fn expect(result: &ToolResult, status: &str) -> Result<()> {
    let found = result.text_at("/outcome_status");
    if found == status { Ok(()) } else { Err(anyhow::anyhow!("expected {status}: {}", result.text)) }
}

#[allow(clippy::print_stdout, reason = "the demo tells what it does")]
fn say(line: &str) {
    println!("  agent  {line}");
}
