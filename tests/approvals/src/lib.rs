//! A scene for black-box tests of decisions: the real app on a virtual desktop, an agent that
//! speaks only MCP, and a person who sees and acts by VNC only.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use harness::{Agent, App, AppOptions, Desktop, DesktopOptions, Person, StdioAgent, ToolResult, Workspace, poll};
use serde_json::{Value, json};

/// How long the app may take to show something. Much longer than it takes, because a machine that
/// compiles meanwhile gives a web page a second of processor time in twenty.
pub const SOON: Duration = Duration::from_secs(120);
/// How long an agent has patience for a person, in milliseconds.
const PATIENCE_MS: u64 = 300_000;

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

    /// The app with `WebKitWebDriver` attached for reading, with other options.
    ///
    /// # Errors
    /// If anything doesn't start.
    pub fn with_driver(change: impl FnOnce(AppOptions) -> AppOptions) -> Result<Self> {
        let desktop = Desktop::start()?;
        let workspace = Workspace::temp()?;
        let options = change(AppOptions::one("ws", workspace.path(), "tester"));
        let app = App::start_with_driver(&desktop, options)?;
        Self::join(desktop, workspace, app)
    }

    /// The shipped app on a desktop that shows tray icons.
    ///
    /// # Errors
    /// If anything doesn't start.
    pub fn with_tray() -> Result<Self> {
        let desktop = Desktop::with(DesktopOptions { tray: true, ..DesktopOptions::default() })?;
        let workspace = Workspace::temp()?;
        let app = App::start(&desktop, AppOptions::one("ws", workspace.path(), "tester"))?;
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
        if result.is_error {
            bail!("perceive: {}", result.text)
        }
        Ok(result)
    }

    /// Sends an act without waiting for its answer.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn begin_act(&mut self, action: Value) -> Result<i64> {
        let arguments = json!({ "session_id": self.session, "action": action, "wait_ms": PATIENCE_MS });
        self.agent.begin_call("body_os_act", arguments)
    }

    /// Waits for the answer of an act.
    ///
    /// # Errors
    /// If none comes.
    pub fn end_act(&mut self, id: i64) -> Result<ToolResult> {
        self.agent.wait_call(id, Duration::from_millis(PATIENCE_MS) + SOON)
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
        self.person.next_request(SOON)
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

    /// Waits until a text is read anywhere on the screen, also within other words.
    ///
    /// # Errors
    /// If it isn't.
    pub fn wait_to_read(&mut self, text: &str) -> Result<()> {
        let end = Instant::now() + SOON;
        loop {
            let screen = self.person.read_screen()?;
            if screen.contains(text) {
                return Ok(());
            }
            if Instant::now() > end {
                bail!("the person doesn't read {text:?}: {screen}");
            }
        }
    }

    /// Waits until Approve is armed; its middle.
    ///
    /// # Errors
    /// If it doesn't become so.
    pub fn armed(&mut self) -> Result<(i32, i32)> {
        Ok(self.person.read_until_armed(SOON)?.centre())
    }

    /// How many leaves the log has; read from the database, not through the app.
    ///
    /// # Errors
    /// If the log can't be read.
    pub fn leaves(&self) -> Result<u64> {
        let log = open_log(&self.app)?;
        Ok(log.query_row("SELECT count(*) FROM leaves", [], |row| row.get(0))?)
    }

    /// A new session for the same agent, which has looked.
    ///
    /// # Errors
    /// If a tool fails.
    pub fn begin_again(&mut self) -> Result<()> {
        self.session = begin(&mut self.agent)?;
        self.perceive()?;
        Ok(())
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
    if session.is_error {
        bail!("ensure_session: {}", session.text)
    }
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

/// Every record of one kind in the log, oldest first; read from the database, not through the app.
///
/// # Errors
/// If the log can't be read.
pub fn records(app: &App, kind: &str) -> Result<Vec<Value>> {
    let log = open_log(app)?;
    let mut statement = log.prepare("SELECT bytes FROM leaves WHERE kind = ?1 ORDER BY seq")?;
    let rows = statement.query_map([kind], |row| row.get::<_, Vec<u8>>(0))?;
    rows.map(|bytes| Ok(serde_json::from_slice(&bytes?)?)).collect()
}

fn open_log(app: &App) -> Result<rusqlite::Connection> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let log = rusqlite::Connection::open_with_flags(app.data_dir().join("log.db"), flags)?;
    log.busy_timeout(Duration::from_secs(10))?;
    Ok(log)
}

/// Waits until the log holds more than `known` records of one kind; all of them.
///
/// # Errors
/// If it doesn't.
pub fn wait_records(app: &App, kind: &str, known: usize) -> Result<Vec<Value>> {
    let found = poll(SOON, || records(app, kind).ok().filter(|all| all.len() > known));
    found.with_context(|| format!("no more than {known} records of kind {kind}"))
}

/// What the page is answered on a request of its own, as the page would make it.
///
/// # Errors
/// If the page is gone or gets no answer.
pub fn ask_as_page(app: &App, command: &str, arguments: &Value) -> Result<Value> {
    let page = app.page()?;
    page.script(
        "window.__answer = null;
         window.__TAURI_INTERNALS__.invoke(arguments[0], arguments[1]).then(
           (value) => { window.__answer = { value }; },
           (error) => { window.__answer = { error: typeof error === 'string' ? error : JSON.stringify(error) }; });
         return true;",
        &[json!(command), arguments.clone()],
    )?;
    let answer = poll(Duration::from_secs(20), || {
        page.script("return window.__answer", &[]).ok().filter(|answer| !answer.is_null())
    });
    answer.with_context(|| format!("the page got no answer to {command} {arguments}"))
}

/// A file's content, if it is there.
#[must_use]
pub fn content(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}
