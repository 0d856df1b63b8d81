//! A scene for black-box tests of decisions: the real app on a virtual desktop, an agent that
//! speaks only MCP, and a person who sees and acts by VNC only.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use harness::{Agent, App, AppOptions, Desktop, Person, StdioAgent, ToolResult, Workspace};
use serde_json::{Value, json};

/// How long the app may take to show something, on a busy machine.
pub const SOON: Duration = Duration::from_secs(40);

/// Everything one test needs. Dropped in this order, agent first.
pub struct Scene {
    /// The agent, in a session.
    pub agent: StdioAgent,
    /// The agent's session.
    pub session: Value,
    /// The person at the desktop.
    pub person: Person,
    /// The app.
    pub app: App,
    /// The workspace.
    pub workspace: Workspace,
    /// The desktop.
    pub desktop: Desktop,
}

impl Scene {
    /// The shipped app.
    ///
    /// # Errors
    /// If anything doesn't start.
    pub fn start() -> Result<Self> {
        Self::with(|options| options)
    }

    /// The app with other options.
    ///
    /// # Errors
    /// If anything doesn't start.
    pub fn with(change: impl FnOnce(AppOptions) -> AppOptions) -> Result<Self> {
        let desktop = Desktop::start()?;
        let workspace = Workspace::temp()?;
        let app = App::start(&desktop, change(AppOptions::one("ws", workspace.path(), "tester")))?;
        Self::join(desktop, workspace, app)
    }

    /// The app with `WebKitWebDriver` attached for reading.
    ///
    /// # Errors
    /// If anything doesn't start.
    pub fn with_driver() -> Result<Self> {
        let desktop = Desktop::start()?;
        let workspace = Workspace::temp()?;
        let app = App::start_with_driver(&desktop, AppOptions::one("ws", workspace.path(), "tester"))?;
        Self::join(desktop, workspace, app)
    }

    fn join(desktop: Desktop, workspace: Workspace, app: App) -> Result<Self> {
        let person = Person::at(&desktop)?;
        let mut agent = app.agent("tester")?;
        agent.initialize()?;
        let session = begin(&mut agent)?;
        let mut scene = Self { agent, session, person, app, workspace, desktop };
        scene.perceive()?;
        Ok(scene)
    }

    /// Looks, so that acts are admitted.
    ///
    /// # Errors
    /// If the tool fails.
    pub fn perceive(&mut self) -> Result<ToolResult> {
        let result = self.agent.call("body_os_perceive", json!({ "session_id": self.session }))?;
        if result.is_error { bail!("perceive: {}", result.text) }
        Ok(result)
    }

    /// Sends an act without waiting for its answer.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn begin_act(&mut self, action: Value) -> Result<i64> {
        let arguments = json!({ "session_id": self.session, "action": action, "wait_ms": 120_000 });
        self.agent.begin_call("body_os_act", arguments)
    }

    /// Waits for the answer of an act.
    ///
    /// # Errors
    /// If none comes.
    pub fn end_act(&mut self, id: i64) -> Result<ToolResult> {
        self.agent.wait_call(id, Duration::from_secs(150))
    }

    /// Acts with little patience: what isn't decided comes back as `authorization_required`.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn act_now(&mut self, action: Value) -> Result<ToolResult> {
        let arguments = json!({ "session_id": self.session, "action": action, "wait_ms": 500 });
        self.agent.call("body_os_act", arguments)
    }

    /// Comes back for an ask.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn poll(&mut self, escalation: &str, wait_ms: u64) -> Result<ToolResult> {
        let arguments = json!({ "session_id": self.session, "escalation_id": escalation, "wait_ms": wait_ms });
        self.agent.call("body_os_act", arguments)
    }

    /// Moves on from a decided ask to the next that waits.
    ///
    /// # Errors
    /// If there is none.
    pub fn next_request(&mut self) -> Result<()> {
        let next = self.person.wait_for_text("Next of", SOON)?;
        self.person.click_on(next)
    }

    /// `touch NAME` in the workspace.
    #[must_use]
    pub fn touch(&self, name: &str) -> Value {
        json!({ "type": "shell_exec", "target": self.root(), "params": { "argv": ["touch", name] } })
    }

    /// The workspace's root.
    #[must_use]
    pub fn root(&self) -> String {
        self.workspace.path().display().to_string()
    }

    /// Whether a file of the workspace exists; looked at by the test itself, not through the app.
    #[must_use]
    pub fn exists(&self, name: &str) -> bool {
        self.workspace.path().join(name).exists()
    }

    /// Saves what the person sees, for looking at after a failure.
    pub fn picture(&mut self, name: &str) {
        let folder = std::env::temp_dir().join("bodyguard-pictures");
        let _ = std::fs::create_dir_all(&folder);
        let _ = self.person.save_screenshot(folder.join(format!("{name}.png")));
    }
}

/// Begins a session; its id.
///
/// # Errors
/// If the tool fails.
pub fn begin(agent: &mut StdioAgent) -> Result<Value> {
    let session = agent.call("body_os_ensure_session", json!({ "goal": "test" }))?;
    if session.is_error { bail!("ensure_session: {}", session.text) }
    Ok(session.at("/session_id"))
}

/// The code of a result's error.
#[must_use]
pub fn code(result: &ToolResult) -> String {
    result.text_at("/error/code")
}

/// Runs `bodyguard verify` on a data folder; whether all holds, and what it said.
///
/// # Errors
/// If it can't be run.
pub fn verify(app: &App) -> Result<(bool, Value)> {
    let output = app.cli(&["verify", "--json"]).output().context("bodyguard verify")?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("verify said {}", String::from_utf8_lossy(&output.stdout)))?;
    Ok((output.status.success(), said))
}

/// A file's content, if it is there.
#[must_use]
pub fn content(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}
