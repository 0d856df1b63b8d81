//! The real app on a virtual desktop.

use crate::agent::http::HttpAgent;
use crate::agent::stdio::StdioAgent;
use crate::binaries::binary;
use crate::desktop::Desktop;
use crate::environment::Environment;
use crate::processes::{Process, descendants, end_child, kill_all, lives, marked, process, signal, wait_child};
use crate::wait::{poll, wait_until};
use crate::webdriver::WebDriver;
use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde_json::Value;
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Names the app in the environment of all that it starts.
const MARKER: &str = "APP_UNDER_TEST";
/// The body host's process name.
const BODY: &str = "bodyguard-body";

/// What to start.
#[derive(Clone, Debug)]
pub struct AppOptions {
    /// Workspaces: name and root folder.
    pub workspaces: Vec<(String, PathBuf)>,
    /// Agents: name, and the workspace they are assigned to (none: all).
    pub agents: Vec<(String, Option<String>)>,
    /// More arguments for the app.
    pub arguments: Vec<OsString>,
    /// More arguments for `bodyguard init`.
    pub init_arguments: Vec<OsString>,
    /// More environment variables.
    pub environment: Vec<(String, OsString)>,
    /// Another program than the built `bodyguard`.
    pub binary: Option<PathBuf>,
    /// How long the start may take.
    pub patience: Duration,
}

impl Default for AppOptions {
    fn default() -> Self {
        Self {
            workspaces: Vec::new(),
            agents: Vec::new(),
            arguments: Vec::new(),
            init_arguments: Vec::new(),
            environment: Vec::new(),
            binary: None,
            patience: Duration::from_secs(60),
        }
    }
}

impl AppOptions {
    /// One workspace and one agent in it.
    #[must_use]
    pub fn one(workspace: &str, root: &Path, agent: &str) -> Self {
        Self::default().workspace(workspace, root).agent(agent, Some(workspace))
    }

    /// Adds a workspace.
    #[must_use]
    pub fn workspace(mut self, name: &str, root: &Path) -> Self {
        self.workspaces.push((name.to_owned(), root.to_owned()));
        self
    }

    /// Adds an agent, in one workspace or all.
    #[must_use]
    pub fn agent(mut self, name: &str, workspace: Option<&str>) -> Self {
        let workspace = workspace.map(str::to_owned);
        self.agents.push((name.to_owned(), workspace));
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }
}

/// The app with its data folder. Dropping it ends all that it started.
#[derive(Debug)]
pub struct App {
    environment: Environment,
    options: AppOptions,
    binary: PathBuf,
    marker: String,
    folder: tempfile::TempDir,
    info: Value,
    child: Option<Child>,
    driver: Option<WebDriver>,
    agents: Cell<u32>,
    /// What an app that is gone had started.
    orphans: Vec<Process>,
}

impl App {
    /// Sets up a data folder with `bodyguard init`, and starts the app.
    ///
    /// # Errors
    /// If one of both fails; what the app wrote is in the message.
    pub fn start(desktop: &Desktop, options: AppOptions) -> Result<Self> {
        let mut new = Self::init(desktop, options)?;
        new.launch()?;
        Ok(new)
    }

    /// The same with `WebKitWebDriver` attached: see [`App::page`].
    ///
    /// # Errors
    /// As [`App::start`].
    pub fn start_with_driver(desktop: &Desktop, options: AppOptions) -> Result<Self> {
        let mut new = Self::init(desktop, options)?;
        new.launch_with_driver()?;
        Ok(new)
    }

    /// Sets up a data folder, and starts nothing.
    ///
    /// # Errors
    /// If `bodyguard init` fails.
    pub fn init(desktop: &Desktop, options: AppOptions) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("bg-app-").tempdir_in("/tmp")?;
        let mut environment = desktop.environment().clone();
        for (name, value) in &options.environment {
            environment.set(name, value);
        }
        environment.set(MARKER, folder.path());
        let binary = match &options.binary {
            Some(path) => path.clone(),
            None => binary("bodyguard")?,
        };
        let mut new = Self {
            marker: format!("{MARKER}={}", folder.path().display()),
            environment,
            options,
            binary,
            folder,
            info: Value::Null,
            child: None,
            driver: None,
            agents: Cell::new(0),
            orphans: Vec::new(),
        };
        new.info = new.run_init()?;
        Ok(new)
    }

    fn run_init(&self) -> Result<Value> {
        let mut arguments: Vec<OsString> = vec!["init".into(), "--json".into()];
        for (name, root) in &self.options.workspaces {
            let mut pair = OsString::from(format!("{name}="));
            pair.push(root);
            arguments.extend(["--workspace".into(), pair]);
        }
        for (name, workspace) in &self.options.agents {
            let agent = match workspace {
                Some(workspace) => format!("{name}:{workspace}"),
                None => name.clone(),
            };
            arguments.extend(["--agent".into(), agent.into()]);
        }
        arguments.extend(self.options.init_arguments.iter().cloned());
        let output = self.cli(&arguments).output().context("run init")?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            bail!("bodyguard init: {}\n{text}{why}", output.status);
        }
        serde_json::from_str(&text).with_context(|| format!("init didn't print JSON: {text}"))
    }

    /// A command of the `bodyguard` program on this data folder (`--data` is added).
    pub fn cli(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = self.environment.command(&self.binary);
        command.args(arguments).arg("--data").arg(self.data_dir());
        command
    }

    /// The data folder.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What `bodyguard init --json` printed.
    #[must_use]
    pub fn info(&self) -> &Value {
        &self.info
    }

    fn info_path(&self, field: &str) -> Result<PathBuf> {
        let text = self.info[field].as_str();
        text.map(PathBuf::from).with_context(|| format!("init gave no {field}: {}", self.info))
    }

    /// The Unix socket for agents.
    ///
    /// # Errors
    /// If `bodyguard init` didn't say.
    pub fn agent_socket(&self) -> Result<PathBuf> {
        self.info_path("agent_socket")
    }

    /// Where the app's output of all starts goes.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.folder.path().join("app.log")
    }

    /// What the app wrote so far.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn open_log(&self) -> Result<File> {
        let mut options = File::options();
        Ok(options.create(true).append(true).open(self.log_path())?)
    }

    fn app_arguments(&self) -> Vec<OsString> {
        let mut arguments = vec!["--data".into(), self.data_dir().into()];
        arguments.extend(self.options.arguments.iter().cloned());
        arguments
    }

    /// Starts the app on its data folder (again), and waits until it answers agents.
    ///
    /// # Errors
    /// If it ends or doesn't answer in time; what it wrote is in the message.
    pub fn launch(&mut self) -> Result<()> {
        self.forget_ended();
        let log = self.open_log()?;
        let child = self
            .environment
            .command(&self.binary)
            .args(self.app_arguments())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .current_dir("/")
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {:?}", self.binary))?;
        self.child = Some(child);
        self.wait_ready()
    }

    /// The same with `WebKitWebDriver` attached.
    ///
    /// # Errors
    /// As [`App::launch`].
    pub fn launch_with_driver(&mut self) -> Result<()> {
        self.forget_ended();
        let log = self.open_log()?;
        let arguments = self.app_arguments();
        let driver = WebDriver::start(&self.environment, &self.binary, &arguments, &log).with_context(|| self.log())?;
        self.driver = Some(driver);
        self.wait_ready()
    }

    fn forget_ended(&mut self) {
        self.driver = None;
        if let Some(mut child) = self.child.take() {
            end_child(&mut child, Duration::from_secs(5));
        }
    }

    fn wait_ready(&mut self) -> Result<()> {
        let socket = self.agent_socket()?;
        let patience = self.options.patience;
        let ready = poll(patience, || {
            if let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) {
                return Some(Err(status));
            }
            UnixStream::connect(&socket).ok().map(|_| Ok(()))
        });
        match ready {
            Some(Ok(())) => Ok(()),
            Some(Err(status)) => bail!("the app ended with {status}\n{}", self.log()),
            None => bail!("{socket:?} doesn't answer within {patience:?}\n{}", self.log()),
        }
    }

    /// The page of the window, if the app was started with a driver.
    ///
    /// # Errors
    /// If it wasn't.
    pub fn page(&self) -> Result<&WebDriver> {
        let driver = self.driver.as_ref();
        driver.context("the app was started without a driver")
    }

    /// The app's own process; `None` while it doesn't run.
    #[must_use]
    pub fn process(&self) -> Option<Process> {
        if let Some(child) = &self.child {
            return process(child.id().cast_signed()).filter(|p| !matches!(p.state, 'Z' | 'X'));
        }
        let driver = self.driver.as_ref()?.pid();
        descendants(driver).into_iter().find(|p| p.parent == driver)
    }

    /// The app's process id.
    ///
    /// # Errors
    /// If it doesn't run.
    pub fn pid(&self) -> Result<i32> {
        let process = self.process();
        Ok(process.context("the app doesn't run")?.pid)
    }

    /// All living processes that the app started.
    #[must_use]
    pub fn descendants(&self) -> Vec<Process> {
        self.process().map_or_else(Vec::new, |p| descendants(p.pid))
    }

    /// The process ids of the running body hosts.
    #[must_use]
    pub fn body_host_pids(&self) -> Vec<i32> {
        let all = self.descendants().into_iter();
        all.filter(|p| p.name == BODY).map(|p| p.pid).collect()
    }

    /// Kills the app alone, at once, as a crash would; whatever it started must see to itself.
    ///
    /// # Errors
    /// If it doesn't run.
    pub fn kill9(&mut self) -> Result<()> {
        let app = self.process().context("the app doesn't run")?;
        self.orphans.extend(descendants(app.pid));
        signal(app.pid, Signal::KILL);
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        wait_until("the killed app is gone", Duration::from_secs(10), || !lives(&app))
    }

    /// Kills all body hosts at once; how many.
    pub fn kill9_body_hosts(&self) -> usize {
        let pids = self.body_host_pids().into_iter();
        pids.filter(|pid| signal(*pid, Signal::KILL)).count()
    }

    /// Asks the app to end (SIGTERM), and waits.
    ///
    /// # Errors
    /// If it doesn't run or doesn't end within `timeout`.
    pub fn quit(&mut self, timeout: Duration) -> Result<ExitStatus> {
        self.orphans.extend(self.descendants());
        let mut child = self.child.take().context("the app doesn't run by itself")?;
        signal(child.id().cast_signed(), Signal::TERM);
        if let Some(status) = wait_child(&mut child, timeout) {
            return Ok(status);
        }
        self.child = Some(child);
        bail!("the app doesn't end within {timeout:?}")
    }

    /// Kills the app and starts it again on the same data.
    ///
    /// # Errors
    /// As [`App::kill9`] and [`App::launch`].
    pub fn crash_and_restart(&mut self) -> Result<()> {
        let with_driver = self.driver.is_some();
        self.kill9()?;
        if with_driver { self.launch_with_driver() } else { self.launch() }
    }

    /// Stops the app's process (SIGSTOP), until [`App::thaw`].
    ///
    /// # Errors
    /// If it doesn't run.
    pub fn freeze(&self) -> Result<()> {
        freeze(self.pid()?)
    }

    /// Lets it run on (SIGCONT).
    ///
    /// # Errors
    /// If it doesn't run.
    pub fn thaw(&self) -> Result<()> {
        thaw(self.pid()?)
    }

    /// An agent behind the stdio bridge, not yet initialised.
    ///
    /// # Errors
    /// If the bridge can't be started.
    pub fn agent(&self, name: &str) -> Result<StdioAgent> {
        let number = self.agents.get();
        self.agents.set(number + 1);
        let log = self.folder.path().join(format!("bridge-{number}.log"));
        StdioAgent::start(self.cli(&["mcp", "--agent", name]), &log)
    }

    /// The URL of the HTTP door.
    ///
    /// # Errors
    /// If it isn't open.
    pub fn http_url(&self) -> Result<String> {
        let file = self.info_path("http_url_file")?;
        let url = poll(self.options.patience, || {
            let url = fs::read_to_string(&file).ok()?;
            (!url.trim().is_empty()).then(|| url.trim().to_owned())
        });
        url.with_context(|| format!("{file:?} has no URL\n{}", self.log()))
    }

    /// An agent's bearer token.
    ///
    /// # Errors
    /// If it has none.
    pub fn token(&self, agent: &str) -> Result<String> {
        let file = self.data_dir().join("tokens").join(agent);
        let token = fs::read_to_string(&file).with_context(|| format!("read {file:?}"))?;
        Ok(token.trim().to_owned())
    }

    /// An agent over HTTP with its token, not yet initialised.
    ///
    /// # Errors
    /// If the door isn't open or the agent has no token.
    pub fn http_agent(&self, name: &str) -> Result<HttpAgent> {
        HttpAgent::new(&self.http_url()?, Some(&self.token(name)?))
    }
}

impl Drop for App {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- what the app wrote\n{}", self.log());
        }
        self.driver = None;
        let root = self.child.as_ref().map(|child| child.id().cast_signed());
        let (marker, orphans) = (&self.marker, &self.orphans);
        kill_all(|| {
            let mut found = marked(marker);
            if let Some(root) = root {
                // Sandboxed descendants don't carry the marker.
                found.extend(descendants(root));
            }
            found.extend(orphans.iter().filter(|p| lives(p)).cloned());
            found
        });
        if let Some(child) = &mut self.child {
            end_child(child, Duration::from_secs(1));
        }
    }
}

/// Stops any process, and waits until it stands still.
///
/// # Errors
/// If it is gone.
pub fn freeze(pid: i32) -> Result<()> {
    signal(pid, Signal::STOP);
    wait_until("the process is stopped", Duration::from_secs(5), || process(pid).is_some_and(|p| p.state == 'T'))
}

/// Lets any stopped process run on.
///
/// # Errors
/// If it is gone.
pub fn thaw(pid: i32) -> Result<()> {
    if !signal(pid, Signal::CONT) {
        bail!("process {pid} is gone");
    }
    Ok(())
}
