//! The real Claude Code, as pinned in `package-lock.json`, without its own tools and with no way
//! out: Bodyguard's tools are all it has, and the model is on the loopback interface.

use anyhow::{Context, Result, bail};
use harness::processes::{descendants, end_child, kill_all, lives, wait_child};
use harness::{App, Desktop};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Begins the names of Bodyguard's tools in Claude Code.
pub const TOOLS: &str = "mcp__bodyguard__";

/// A run of `claude -p`. Dropping it ends all that it started.
#[derive(Debug)]
pub struct ClaudeCode {
    child: Child,
    folder: PathBuf,
}

/// The installed program.
///
/// # Errors
/// If it isn't installed.
pub fn program() -> Result<PathBuf> {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("node_modules/@anthropic-ai");
    let program = modules.join(format!("claude-code-linux-{architecture}/claude"));
    if !program.is_file() {
        bail!("{} isn't there; tests/clients/install.sh installs it", program.display());
    }
    Ok(program)
}

impl ClaudeCode {
    /// Starts it with a task, as `agent`, behind the stdio bridge of `app`.
    ///
    /// # Errors
    /// If it isn't installed or can't be started.
    pub fn start(desktop: &Desktop, app: &App, agent: &str, model: &str, tools: &[&str], task: &str) -> Result<Self> {
        let folder = desktop.folder().join("claude-code");
        let work = folder.join("work");
        fs::create_dir_all(&work)?;
        let configuration = folder.join("mcp.json");
        fs::write(&configuration, mcp_config(app, agent)?.to_string())?;
        let mut command = desktop.command(program()?);
        own_world(&mut command, &folder, model);
        let allowed: Vec<String> = tools.iter().map(|tool| format!("{TOOLS}{tool}")).collect();
        command.args(["-p", task, "--strict-mcp-config", "--output-format", "json", "--tools", "", "--mcp-config"]);
        command.arg(&configuration).arg("--allowedTools").arg(allowed.join(","));
        command.current_dir(work).stdin(Stdio::null());
        command.stdout(File::create(folder.join("stdout"))?).stderr(File::create(folder.join("stderr"))?);
        let child = command.spawn().context("start Claude Code")?;
        Ok(Self { child, folder })
    }

    /// Waits for its end; how it ended, and what it reports.
    ///
    /// # Errors
    /// If it doesn't end, or reports nothing.
    pub fn wait(&mut self, timeout: Duration) -> Result<(ExitStatus, Value)> {
        let status = wait_child(&mut self.child, timeout)
            .with_context(|| format!("Claude Code doesn't end within {timeout:?}\n{}", self.output()))?;
        let stdout = fs::read_to_string(self.folder.join("stdout"))?;
        let report = serde_json::from_str(&stdout)
            .with_context(|| format!("Claude Code ended with {status}\n{}", self.output()))?;
        Ok((status, report))
    }

    /// What it wrote.
    #[must_use]
    pub fn output(&self) -> String {
        let read = |name| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        format!("--- stdout\n{}\n--- stderr\n{}", read("stdout"), read("stderr"))
    }
}

impl Drop for ClaudeCode {
    fn drop(&mut self) {
        let started = descendants(self.child.id().cast_signed());
        end_child(&mut self.child, Duration::from_secs(2));
        kill_all(|| started.iter().filter(|process| lives(process)).cloned().collect());
    }
}

/// The configuration that a person copies from the window: the bridge as a stdio server.
fn mcp_config(app: &App, agent: &str) -> Result<Value> {
    let bridge = app.cli(&["mcp", "--agent", agent]);
    let text = |part: &std::ffi::OsStr| part.to_str().map(str::to_owned).context("a path that isn't UTF-8");
    let arguments: Vec<String> = bridge.get_args().map(text).collect::<Result<_>>()?;
    let server = json!({ "type": "stdio", "command": text(bridge.get_program())?, "args": arguments });
    Ok(json!({ "mcpServers": { "bodyguard": server } }))
}

/// Own folders, the scripted model, and nothing that goes out or changes the program.
fn own_world(command: &mut Command, folder: &Path, model: &str) {
    let home = folder.join("home");
    command.env("HOME", &home).env("CLAUDE_CONFIG_DIR", home.join(".claude"));
    for (name, path) in [
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_STATE_HOME", ".local/state"),
        ("XDG_CACHE_HOME", ".cache"),
    ] {
        command.env(name, home.join(path));
    }
    command.env("ANTHROPIC_BASE_URL", model).env("ANTHROPIC_API_KEY", "sk-ant-not-a-key");
    for name in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
        "DISABLE_BUG_COMMAND",
    ] {
        command.env(name, "1");
    }
    // All tools from the first turn on, rather than searched for by the model; and a busy machine.
    command.env("ENABLE_TOOL_SEARCH", "false").env("MCP_TIMEOUT", "60000").env("NO_PROXY", "127.0.0.1");
}
