//! A new data folder with workspaces and agents.
//!
//! Only a folder that isn't there yet or is empty can be set up this way: there is nothing whose
//! rights could be widened. Later changes need the person's presence, in the window.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bodyguard_policy::Policy;
use bodyguard_protocol::{AgentName, Clock as _, Digest, Fault, WorkspaceName};
use bodyguard_trace::{
    AgentRow, ChangeNote, Log, LogError, PolicyLoaded, Record, SettingChange, WorkspaceBody, WorkspaceRow,
};
use serde::Serialize;

use crate::SystemClock;
use crate::policies::Policies;

/// Seconds until an ask lapses, unless set otherwise.
pub(crate) const DEFAULT_ASK_SECONDS: u32 = 600;
pub(crate) const ASK_SECONDS: &str = "ask_seconds";
pub(crate) const PHRASE: &str = "phrase";
pub(crate) const DEVICES_ENROLLED: &str = "devices_enrolled";

/// What a new data folder starts with.
#[derive(Debug, Clone, Default)]
pub struct InitOptions {
    /// The folder.
    pub data_dir: PathBuf,
    /// Workspaces: name, root folder, body.
    pub workspaces: Vec<(WorkspaceName, PathBuf, Option<WorkspaceBody>)>,
    /// Agents with their workspaces; none named means all.
    pub agents: Vec<(AgentName, Vec<WorkspaceName>)>,
    /// Seconds until an ask lapses.
    pub ask_seconds: Option<u32>,
    /// Policies other than the template. There are no rights yet that they could widen.
    pub policies: BTreeMap<WorkspaceName, String>,
}

/// Where things are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InitReport {
    /// The data folder.
    pub data_dir: PathBuf,
    /// The socket that `bodyguard mcp` connects to.
    pub agent_socket: PathBuf,
    /// The file that holds the HTTP address while the app runs.
    pub http_url_file: PathBuf,
}

/// Why a data folder wasn't set up.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// It holds something already.
    #[error("{0} isn't empty; change agents and workspaces in the window")]
    NotEmpty(PathBuf),
    /// Something named isn't right.
    #[error(transparent)]
    Invalid(#[from] Fault),
    /// A folder or file.
    #[error("{0}: {1}")]
    Io(PathBuf, std::io::Error),
    /// The log.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// The folder of sockets: in the run-time folder of this login, else in the data folder.
pub fn runtime_dir(data_dir: &Path) -> PathBuf {
    let canonical = data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_owned());
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute()) {
        Some(dir) => {
            let digest = Digest::of(canonical.as_os_str().as_encoded_bytes());
            dir.join(format!("bodyguard-{}", digest.short()))
        }
        None => canonical.join("run"),
    }
}

/// The socket that `bodyguard mcp` connects to.
pub fn agent_socket(data_dir: &Path) -> PathBuf {
    runtime_dir(data_dir).join("agent.sock")
}

/// The file that holds the HTTP address while the app runs.
pub fn http_url_file(data_dir: &Path) -> PathBuf {
    data_dir.join("http.url")
}

/// The file with an agent's token, readable by its owner only.
pub fn token_file(data_dir: &Path, agent: &AgentName) -> PathBuf {
    data_dir.join("tokens").join(agent.as_str())
}

/// Sets up a new data folder.
///
/// # Errors
/// [`InitError::NotEmpty`] where the folder holds anything; nothing is changed then.
pub async fn init(options: InitOptions) -> Result<InitReport, InitError> {
    let dir = &options.data_dir;
    let io = |error| InitError::Io(dir.clone(), error);
    match std::fs::read_dir(dir) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(InitError::NotEmpty(dir.clone()));
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io)?;
        }
        Err(error) => return Err(io(error)),
    }
    let rows = workspace_rows(&options)?;
    let all: Vec<WorkspaceName> = rows.iter().map(|row| row.name.clone()).collect();
    check_names(&options, &all)?;
    for text in options.policies.values() {
        Policy::parse("the policy", text).map_err(Fault::from)?;
    }
    let log = Log::open(dir, Arc::new(SystemClock))?;
    let note = || ChangeNote::by("init");
    let policies = Policies::new(dir);
    for row in &rows {
        let text = options.policies.get(&row.name);
        policies.create(&row.name, text).map_err(|e| InitError::Io(policies.file(&row.name), e))?;
        log.change(SettingChange::Workspace(row.clone()), note()).await?;
        if let Some(text) = text {
            let (workspace, digest) = (row.name.clone(), Digest::of(text.as_bytes()));
            log.append(Record::PolicyLoaded(PolicyLoaded { workspace, digest, text: text.clone() })).await?;
        }
    }
    for (name, chosen) in &options.agents {
        let workspaces = if chosen.is_empty() { all.clone() } else { chosen.clone() };
        let row = new_agent(dir, name, workspaces).map_err(|e| InitError::Io(token_file(dir, name), e))?;
        log.change(SettingChange::Agent(row), note()).await?;
    }
    if let Some(seconds) = options.ask_seconds {
        log.change(SettingChange::Value { key: ASK_SECONDS.into(), value: seconds.to_string() }, note()).await?;
    }
    log.close().await?;
    Ok(InitReport { data_dir: dir.clone(), agent_socket: agent_socket(dir), http_url_file: http_url_file(dir) })
}

/// Whether everything is named once, and what is named is there; before anything is made.
fn check_names(options: &InitOptions, all: &[WorkspaceName]) -> Result<(), Fault> {
    let twice = all.iter().enumerate().find(|(index, name)| all.iter().take(*index).any(|before| before == *name));
    if let Some((_, name)) = twice {
        return Err(Fault::invalid("workspace", format!("`{name}` is named twice")));
    }
    if let Some(name) = options.policies.keys().find(|name| !all.contains(name)) {
        return Err(Fault::invalid("policy", format!("it is for the workspace `{name}`, which isn't there")));
    }
    for (name, chosen) in &options.agents {
        if let Some(unknown) = chosen.iter().find(|workspace| !all.contains(workspace)) {
            let message = format!("`{name}` names the workspace `{unknown}`, which isn't there");
            return Err(Fault::invalid("agent", message));
        }
    }
    Ok(())
}

fn workspace_rows(options: &InitOptions) -> Result<Vec<WorkspaceRow>, InitError> {
    let mut rows = Vec::new();
    for (name, root, body) in &options.workspaces {
        let body = body.unwrap_or(WorkspaceBody::Host);
        rows.push(new_workspace(name.clone(), root, body, &options.data_dir)?);
    }
    Ok(rows)
}

/// A workspace's row, once its root is known to be a real folder apart from the data folder.
///
/// # Errors
/// `invalid_argument`, `not_found`.
pub(crate) fn new_workspace(
    name: WorkspaceName,
    root: &Path,
    body: WorkspaceBody,
    data_dir: &Path,
) -> Result<WorkspaceRow, Fault> {
    let root = match body {
        WorkspaceBody::Host | WorkspaceBody::Private => {
            let shown = bodyguard_protocol::escape_line(&root.display().to_string());
            let real = root
                .canonicalize()
                .map_err(|e| Fault::new(bodyguard_protocol::ErrorCode::NotFound, format!("{shown}: {e}")).at("root"))?;
            let data = data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_owned());
            if !real.is_dir() {
                return Err(Fault::invalid("root", format!("{shown} isn't a folder")));
            }
            if data.starts_with(&real) || real.starts_with(&data) {
                return Err(Fault::invalid(
                    "root",
                    format!("{shown} and Bodyguard's data folder can't contain one another"),
                ));
            }
            real
        }
        WorkspaceBody::Simulator => root.to_owned(),
    };
    let root = root
        .into_os_string()
        .into_string()
        .map_err(|_| Fault::invalid("root", "a workspace's path must be valid UTF-8"))?;
    if root == "/" {
        return Err(Fault::invalid("root", "the whole file system can't be a workspace"));
    }
    Ok(WorkspaceRow {
        name,
        root,
        body,
        template: "careful".into(),
        key_processes: Vec::new(),
        env_allow: vec!["LANG".into()],
    })
}

/// An agent's row, with a new token in its file.
pub(crate) fn new_agent(
    data_dir: &Path,
    name: &AgentName,
    workspaces: Vec<WorkspaceName>,
) -> std::io::Result<AgentRow> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|e| std::io::Error::other(e.to_string()))?;
    let token = format!("bg_{}", URL_SAFE_NO_PAD.encode(random));
    let file = token_file(data_dir, name);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data_dir.join("tokens"))?;
    let _ = std::fs::remove_file(&file);
    let mut out = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
    out.write_all(token.as_bytes())?;
    out.sync_all()?;
    let added_at = SystemClock.now().wall;
    Ok(AgentRow { name: name.clone(), token_sha256: Digest::of(token.as_bytes()), workspaces, added_at })
}
