//! A throwaway supervisor with workspaces of several policies over one folder.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bodyguard_mcp::{Doors, ServeConfig};
use bodyguard_policy::EnrolledDevices;
use bodyguard_protocol::{AgentName, Fault, WorkspaceName};
use bodyguard_supervisor::{Config, InitOptions, Supervisor, Surroundings, SystemClock, init, token_file};
use bodyguard_trace::WorkspaceBody;
use tempfile::TempDir;

use super::door::Door;
use super::transport::Broken;

/// Everything in the workspace, at once and signed by the policy.
pub(super) const FREE: &str = "free";
/// Looking; every change is asked, and nobody is there to answer.
pub(super) const ASKING: &str = "asking";
/// Looking, and nothing else.
pub(super) const READING: &str = "reading";
/// As [`FREE`], until [`House::forbid_commands`].
pub(super) const NARROWED: &str = "narrowed";

const LOOK: &str = include_str!("policies/look.cedar");
const CHANGE: &str = include_str!("policies/change.cedar");
const ASK: &str = include_str!("policies/ask.cedar");
const FORBID_COMMANDS: &str = include_str!("policies/forbid-commands.cedar");

/// What acts in the workspaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Backend {
    /// A simulation in memory.
    Simulator,
    /// This machine, in a folder of its own.
    Host,
}

impl Backend {
    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulator => "simulator",
            Self::Host => "host",
        }
    }
}

/// Why the throwaway supervisor didn't start.
#[derive(Debug, thiserror::Error)]
pub enum HouseError {
    /// The backend needs what isn't on this machine.
    #[error("{} backend can't run here: {why}", .backend.name())]
    Unavailable {
        /// Which backend.
        backend: Backend,
        /// What is missing, and what to do.
        why: String,
    },
    /// A folder, the supervisor or its door.
    #[error("the throwaway supervisor can't be started: {0}")]
    Failed(String),
}

impl HouseError {
    fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A running supervisor whose folders go with it.
pub struct House {
    backend: Backend,
    supervisor: Supervisor,
    doors: Doors,
    data_dir: PathBuf,
    _folder: TempDir,
}

impl House {
    /// Starts one. `body_program` is the body host's.
    ///
    /// # Errors
    /// Where the backend can't run on this machine, or a part doesn't start.
    pub async fn start(backend: Backend, body_program: &Path) -> Result<Self, HouseError> {
        if backend == Backend::Host {
            host_can_run(body_program)?;
        }
        let folder = tempfile::Builder::new().prefix("bodyguard-conformance-").tempdir().map_err(HouseError::failed)?;
        // Commands may run as another user than this process.
        open_to_all(folder.path()).map_err(HouseError::failed)?;
        let root = folder.path().join("workspace");
        make_workspace(&root).map_err(HouseError::failed)?;
        let data_dir = folder.path().join("data");
        init(options(backend, &data_dir, &root).map_err(HouseError::failed)?).await.map_err(HouseError::failed)?;
        let config = Config {
            data_dir: data_dir.clone(),
            body_program: body_program.to_owned(),
            // No device is enrolled, so that nothing counts as a person.
            presence: Arc::new(|_| Arc::new(EnrolledDevices::new([]))),
            clock: Arc::new(SystemClock),
            health: Arc::new(Vec::new),
            surroundings: Surroundings::Apart,
        };
        let supervisor = Supervisor::start(config).await.map_err(HouseError::failed)?;
        let (socket, http_port) = (data_dir.join("run/agent.sock"), None);
        let serve = ServeConfig { data_dir: data_dir.clone(), socket, http_port };
        let doors = bodyguard_mcp::serve(supervisor.clone(), serve).await.map_err(HouseError::failed)?;
        Ok(Self { backend, supervisor, doors, data_dir, _folder: folder })
    }

    /// What acts here.
    pub const fn backend(&self) -> Backend {
        self.backend
    }

    /// A connection to the door for one of the tests. Each has an agent of its own, because an agent may
    /// have only so many sessions.
    ///
    /// # Errors
    /// Where the door doesn't open.
    pub async fn door(&self, number: usize) -> Result<Door, Broken> {
        let agent = agent(number).map_err(|fault| Broken(fault.message))?;
        let token = std::fs::read_to_string(token_file(&self.data_dir, &agent));
        let token = token.map_err(|error| Broken(format!("there is no agent for test {number}: {error}")))?;
        Door::open(&self.doors.socket_path, &self.data_dir, agent.as_str(), token.trim()).await
    }

    /// Forbids commands in the workspace [`NARROWED`], as a person would who edits its policy. What
    /// narrows takes effect at once; the rest would need that person's presence.
    pub(super) fn forbid_commands(&self) -> std::io::Result<()> {
        let file = self.data_dir.join("policies").join(format!("{NARROWED}.cedar"));
        std::fs::write(file, [LOOK, CHANGE, FORBID_COMMANDS].concat())
    }

    /// Ends it.
    pub async fn end(self) {
        self.doors.shutdown().await;
        self.supervisor.shutdown().await;
    }
}

fn host_can_run(body_program: &Path) -> Result<(), HouseError> {
    let missing = |why: String| HouseError::Unavailable { backend: Backend::Host, why };
    crate::health::containment().map_err(missing)?;
    if body_program.is_file() {
        return Ok(());
    }
    Err(missing(format!("there is no {}", bodyguard_protocol::escape_line(&body_program.display().to_string()))))
}

fn open_to_all(folder: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
}

/// A file, and a repository whose head is a branch without commits.
fn make_workspace(root: &Path) -> std::io::Result<()> {
    for part in ["", ".git", ".git/objects", ".git/refs"] {
        let folder = root.join(part);
        std::fs::create_dir(&folder)?;
        open_to_all(&folder)?;
    }
    let files = [
        ("README.md", "# Sample\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/config", "[core]\n\trepositoryformatversion = 0\n"),
    ];
    files.iter().try_for_each(|(name, text)| std::fs::write(root.join(name), text))
}

fn agent(number: usize) -> Result<AgentName, Fault> {
    format!("test-{number}").parse()
}

fn options(backend: Backend, data_dir: &Path, root: &Path) -> Result<InitOptions, Fault> {
    let body = match backend {
        Backend::Simulator => WorkspaceBody::Simulator,
        Backend::Host => WorkspaceBody::Host,
    };
    let texts: [(&str, &[&str]); 4] =
        [(FREE, &[LOOK, CHANGE]), (ASKING, &[LOOK, ASK]), (READING, &[LOOK]), (NARROWED, &[LOOK, CHANGE])];
    let (mut workspaces, mut policies) = (Vec::new(), BTreeMap::new());
    for (name, parts) in texts {
        let name: WorkspaceName = name.parse()?;
        workspaces.push((name.clone(), root.to_owned(), Some(body)));
        policies.insert(name, parts.concat());
    }
    let agents =
        (1..=super::NAMES.len()).map(|number| Ok((agent(number)?, Vec::new()))).collect::<Result<_, Fault>>()?;
    Ok(InitOptions { data_dir: data_dir.to_owned(), workspaces, agents, policies, ..InitOptions::default() })
}
