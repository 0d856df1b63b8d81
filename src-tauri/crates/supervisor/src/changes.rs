//! Changes of what agents may do and of who counts as present.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use bodyguard_policy::EnrolledDevices;
use bodyguard_protocol::ui::{Change, Content, Fact, UiEventKind, WorkspaceDesktop};
use bodyguard_protocol::{AskId, ErrorCode, Fault, TraceOutcome, WorkspaceName, escape_line};
use bodyguard_trace::{AgentRow, ChangeNote, DeviceRow, Record, SettingChange, Stopped, WorkspaceBody};

use crate::core::Core;
use crate::init::{PHRASE, new_agent, new_workspace};

const MAX_PHRASE: usize = 60;

/// Whether a change is possible, before anyone is asked.
///
/// # Errors
/// What is wrong with it.
pub(crate) async fn check(core: &Core, change: &Change) -> Result<(), Fault> {
    let reader = core.log.reader();
    match change {
        Change::AddAgent { name, workspaces } => {
            if reader.agents().await?.iter().any(|agent| agent.name == *name) {
                return Err(Fault::invalid("name", format!("there is an agent `{name}` already")));
            }
            known_workspaces(core, workspaces).await
        }
        Change::AssignWorkspaces { agent, workspaces } => {
            find_agent(core, agent).await?;
            known_workspaces(core, workspaces).await
        }
        Change::RemoveAgent { agent } => find_agent(core, agent).await.map(drop),
        Change::AddWorkspace { name, root, desktop } => {
            if reader.workspaces().await?.iter().any(|row| row.name == *name) {
                return Err(Fault::invalid("name", format!("there is a workspace `{name}` already")));
            }
            if !root.starts_with('/') {
                return Err(Fault::invalid("root", "give the folder as an absolute path"));
            }
            let dir = &core.config.data_dir;
            new_workspace(name.clone(), Path::new(root), body_of(*desktop), dir).map(drop)
        }
        Change::EnrolDevice { device } => {
            EnrolledDevices::can_enrol(device).map_err(Fault::from)?;
            find_device(core, device).await.map(drop)
        }
        Change::RemoveDevice { device } => {
            let devices = reader.devices().await?;
            let others = devices.iter().filter(|row| row.enrolled && row.name != *device).count();
            if others == 0 {
                return Err(Fault::invalid(
                    "device",
                    "the last enrolled device can't be removed: nobody could enrol another",
                ));
            }
            find_device(core, device).await.map(drop)
        }
        Change::UsePolicy { workspace, digest } => {
            known_workspaces(core, std::slice::from_ref(workspace)).await?;
            core.policies.waiting(&core.log, workspace, digest).await.map(drop)
        }
        Change::Resume => match core.is_stopped() {
            true => Ok(()),
            false => Err(Fault::invalid("change", "nothing is stopped")),
        },
        Change::SetPhrase { phrase } => {
            let length = phrase.trim().chars().count();
            let plain = bodyguard_protocol::hidden_characters(phrase).total() == 0 && !phrase.contains(['\n', '\t']);
            if (1..=MAX_PHRASE).contains(&length) && plain {
                Ok(())
            } else {
                Err(Fault::invalid("phrase", format!("1 to {MAX_PHRASE} ordinary characters")))
            }
        }
    }
}

/// A sentence that says what the person wants.
pub(crate) fn headline(change: &Change) -> String {
    match change {
        Change::AddAgent { name, .. } => format!("Connect the agent {name}"),
        Change::AssignWorkspaces { agent, .. } => format!("Change the workspaces of {agent}"),
        Change::RemoveAgent { agent } => format!("Remove the agent {agent}"),
        Change::AddWorkspace { name, .. } => format!("Make the workspace {name}"),
        Change::EnrolDevice { device } => format!("Count the input device “{}” as yours", escape_line(device)),
        Change::RemoveDevice { device } => format!("No longer count “{}” as yours", escape_line(device)),
        Change::UsePolicy { workspace, .. } => format!("Use the changed policy of {workspace}"),
        Change::Resume => "Let agents go on".into(),
        Change::SetPhrase { .. } => "Change the phrase on the decision bar".into(),
    }
}

/// The rows that say what the change means.
pub(crate) async fn facts(core: &Core, change: &Change) -> Vec<Fact> {
    let fact = |label: &str, value: &str| Fact { label: label.to_owned(), value: escape_line(value) };
    let list = |names: &[WorkspaceName]| match names {
        [] => "none".to_owned(),
        names => names.iter().map(WorkspaceName::as_str).collect::<Vec<_>>().join(", "),
    };
    match change {
        Change::AddAgent { workspaces, .. } => vec![
            fact("Workspaces", &list(workspaces)),
            fact("What it means", "It may read in these workspaces, and ask you for what their policies say"),
        ],
        Change::AssignWorkspaces { agent, workspaces } => {
            let before = find_agent(core, agent).await.map(|row| list(&row.workspaces)).unwrap_or_default();
            vec![fact("Before", &before), fact("After", &list(workspaces))]
        }
        Change::AddWorkspace { root, desktop, .. } => vec![
            fact("Folder", root),
            fact(
                "Desktop",
                match desktop {
                    WorkspaceDesktop::Shared => {
                        "yours: pictures of the screen show what you see, and each is asked, as are keys and clicks"
                    }
                    WorkspaceDesktop::Private => {
                        "one of each session's own: it shows only programs that the agent started there"
                    }
                },
            ),
            fact(
                "Policy",
                "careful: reads inside are allowed, changes, commands and your screen are asked, the rest is refused",
            ),
        ],
        Change::EnrolDevice { device } => {
            vec![fact("Device", device), fact("What it means", "Its clicks and keys can approve")]
        }
        Change::SetPhrase { phrase } => vec![fact("New phrase", phrase)],
        Change::UsePolicy { workspace, .. } => vec![
            fact("File", &core.policies.file(workspace).display().to_string()),
            fact("What it means", "What it permits happens without a question, or is asked, as it says"),
        ],
        Change::Resume => vec![fact("What it means", "Agents may begin sessions, ask and act again")],
        Change::RemoveAgent { .. } | Change::RemoveDevice { .. } => Vec::new(),
    }
}

/// The exact content of a change, where it has one.
///
/// # Errors
/// `too_long_to_review` where it can't be shown whole.
pub(crate) async fn contents(core: &Core, change: &Change) -> Result<Vec<Content>, Fault> {
    let Change::UsePolicy { workspace, digest } = change else { return Ok(Vec::new()) };
    let (old, new, _) = core.policies.waiting(&core.log, workspace, digest).await?;
    crate::agent::reviewable_diff(&core.policies.file(workspace).display().to_string(), &old, &new)
}

/// Makes the change. `ask` and `device` say who decided it.
///
/// # Errors
/// Where it became impossible meanwhile; nothing is changed then.
pub(crate) async fn apply(
    core: &Arc<Core>,
    change: &Change,
    ask: Option<&AskId>,
    device: Option<String>,
) -> Result<(), Fault> {
    check(core, change).await?;
    let note = || ChangeNote { by: core.keys.person().to_owned(), ask_id: ask.cloned(), device: device.clone() };
    let set = |setting| core.log.change(setting, note());
    match change {
        Change::AddAgent { name, workspaces } => {
            let row = new_agent(&core.config.data_dir, name, workspaces.clone()).map_err(|e| {
                Fault::new(ErrorCode::StorageFailure, format!("the agent's token can't be written: {e}"))
            })?;
            set(SettingChange::Agent(row)).await?;
        }
        Change::AssignWorkspaces { agent, workspaces } => {
            let row = find_agent(core, agent).await?;
            set(SettingChange::Agent(AgentRow { workspaces: workspaces.clone(), ..row })).await?;
            for session in core.all_sessions() {
                if session.agent == *agent && !workspaces.contains(&session.workspace.name) {
                    core.end_session(&session, TraceOutcome::Aborted, "the workspace is no longer assigned").await;
                }
            }
        }
        Change::RemoveAgent { agent } => {
            set(SettingChange::AgentRemoved { name: agent.clone() }).await?;
            let _ = std::fs::remove_file(crate::init::token_file(&core.config.data_dir, agent));
            for session in core.all_sessions().into_iter().filter(|session| session.agent == *agent) {
                core.end_session(&session, TraceOutcome::Aborted, "the agent was removed").await;
            }
        }
        Change::AddWorkspace { name, root, desktop } => {
            let dir = &core.config.data_dir;
            let row = new_workspace(name.clone(), Path::new(root), body_of(*desktop), dir)?;
            core.policies
                .create(name, None)
                .map_err(|e| Fault::new(ErrorCode::StorageFailure, format!("the policy can't be written: {e}")))?;
            set(SettingChange::Workspace(row)).await?;
        }
        Change::EnrolDevice { device } | Change::RemoveDevice { device } => {
            let enrolled = matches!(change, Change::EnrolDevice { .. });
            let row = find_device(core, device).await?;
            set(SettingChange::Device(DeviceRow { enrolled, ..row })).await?;
        }
        Change::UsePolicy { workspace, digest } => core.policies.accept(&core.log, workspace, digest).await?,
        Change::Resume => {
            let record = Stopped { by: core.keys.person().to_owned(), way: device.clone().unwrap_or_default() };
            core.log.append(Record::Resumed(record)).await?;
            core.set_stopped(false);
        }
        Change::SetPhrase { phrase } => {
            set(SettingChange::Value { key: PHRASE.into(), value: phrase.trim().to_owned() }).await?;
        }
    }
    core.events.send(match change {
        Change::EnrolDevice { .. } | Change::RemoveDevice { .. } | Change::SetPhrase { .. } => {
            UiEventKind::HealthChanged
        }
        _ => UiEventKind::AgentsChanged,
    });
    Ok(())
}

async fn known_workspaces(core: &Core, names: &[WorkspaceName]) -> Result<(), Fault> {
    let rows = core.log.reader().workspaces().await?;
    match names.iter().find(|name| !rows.iter().any(|row| row.name == **name)) {
        Some(unknown) => Err(Fault::invalid("workspaces", format!("there is no workspace `{unknown}`"))),
        None => Ok(()),
    }
}

pub(crate) async fn find_agent(core: &Core, name: &bodyguard_protocol::AgentName) -> Result<AgentRow, Fault> {
    let agents = core.log.reader().agents().await?;
    agents
        .into_iter()
        .find(|agent| agent.name == *name)
        .ok_or_else(|| Fault::new(ErrorCode::NotFound, format!("there is no agent `{name}`")))
}

async fn find_device(core: &Core, name: &str) -> Result<DeviceRow, Fault> {
    let devices = core.log.reader().devices().await?;
    devices
        .into_iter()
        .find(|device| device.name == name)
        .ok_or_else(|| Fault::new(ErrorCode::NotFound, format!("no input device `{}` was seen", escape_line(name))))
}

const fn body_of(desktop: WorkspaceDesktop) -> WorkspaceBody {
    match desktop {
        WorkspaceDesktop::Shared => WorkspaceBody::Host,
        WorkspaceDesktop::Private => WorkspaceBody::Private,
    }
}

/// Notes which devices the shell sees. At the very first sight those that can be enrolled are: the
/// person who sets the computer up is at it. Later ones are listed, and enrolled only with presence.
///
/// # Errors
/// Where the log can't be written.
pub(crate) async fn devices_seen(core: &Arc<Core>, seen: Vec<crate::DeviceSeen>) -> Result<(), Fault> {
    let names = seen.iter().map(|device| device.name.clone()).collect();
    *core.devices_present.lock().unwrap_or_else(PoisonError::into_inner) = names;
    let known = core.log.reader().devices().await?;
    let first = core.log.reader().value(crate::init::DEVICES_ENROLLED).await?.is_none();
    let mut changes = Vec::new();
    for device in seen {
        let may = EnrolledDevices::can_enrol(&device.name).is_ok();
        let repeated = changes.iter().any(|c| matches!(c, SettingChange::Device(row) if row.name == device.name));
        if may && !repeated && !known.iter().any(|row| row.name == device.name) {
            changes.push(SettingChange::Device(DeviceRow { name: device.name, kind: device.kind, enrolled: first }));
        }
    }
    if first && !changes.is_empty() {
        changes.push(SettingChange::Value { key: crate::init::DEVICES_ENROLLED.into(), value: "yes".into() });
    }
    if !changes.is_empty() {
        core.log.change_all(changes, ChangeNote::by("bodyguard")).await?;
    }
    core.events.send(UiEventKind::HealthChanged);
    Ok(())
}
