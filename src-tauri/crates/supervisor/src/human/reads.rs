//! Windows onto the log for the page.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use bodyguard_protocol::ui::{
    AgentView, AgentsView, AskDetail, AskState, AskSummary, CheckStatus, ConnectView, DeviceView, HealthView, KeyView,
    LiveView, Overview, SessionSummary, SettingsView, VerifyView, WorkspaceDesktop, WorkspaceView,
};
use bodyguard_protocol::{AgentName, AskId, ErrorCode, Fault, SessionId, escape_line};
use bodyguard_trace::{Recovery, WorkspaceBody};

use crate::changes::find_agent;
use crate::core::Core;
use crate::init::{PHRASE, http_url_file};
use crate::session::Session;

/// The most rows of one page.
pub(super) const MAX_PAGE: u32 = 500;
/// Decided asks shown below the open ones.
const RECENT_ASKS: u32 = 50;
const RECENT_SESSIONS: u32 = 100;
const RECENT_EDGES: u32 = 30;

/// What a crash or restart cut off, one plain sentence each.
pub(crate) fn interrupted_sentences(recovery: &Recovery) -> Vec<String> {
    let mut sentences: Vec<String> = recovery
        .interrupted
        .iter()
        .map(|edge| {
            format!(
                "Bodyguard ended while {} was running (trace {}, step {}). It may have had effects, and is not repeated.",
                edge.action_type, edge.trace_id, edge.edge_id
            )
        })
        .collect();
    let count = |n: usize, one: &str, many: &str| {
        (n > 0).then(|| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") })
    };
    let without_edge = recovery
        .interrupted_asks
        .len()
        .saturating_sub(recovery.interrupted.iter().filter(|edge| edge.ask_id.is_some()).count());
    sentences.extend(count(
        without_edge,
        "approved request was cut off before it ran; nothing was done.",
        "approved requests were cut off before they ran; nothing was done.",
    ));
    sentences.extend(count(
        recovery.withdrawn.len(),
        "request was waiting when Bodyguard ended; nothing was done, and the agent has to ask again.",
        "requests were waiting when Bodyguard ended; nothing was done, and the agents have to ask again.",
    ));
    sentences
}

pub(super) async fn overview(core: &Core) -> Result<Overview, Fault> {
    let (_, open_asks) = core.pendings.open_counts(None);
    let running = core.all_sessions().iter().filter(|session| session.is_running()).count();
    let problems = health(core).checks.iter().filter(|check| check.status != CheckStatus::Ok).count();
    Ok(Overview {
        open_asks,
        running_sessions: small(running),
        stopped: core.is_stopped(),
        health_problems: small(problems),
        interrupted: core.interrupted.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        last_event: core.events.last(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

pub(super) async fn asks(core: &Core) -> Result<Vec<AskSummary>, Fault> {
    let stored = core.log.reader().asks(RECENT_ASKS).await?;
    Ok(stored.iter().map(|ask| ask.summary(present(core, &ask.record.ask_id))).collect())
}

pub(super) async fn ask(core: &Core, id: &AskId) -> Result<AskDetail, Fault> {
    let stored = core.log.reader().ask(id).await?;
    let stored = stored.ok_or_else(|| Fault::new(ErrorCode::NotFound, "no such request"))?;
    Ok(stored.detail(present(core, id)))
}

fn present(core: &Core, id: &AskId) -> bool {
    core.pendings.get(id).is_some_and(|ask| ask.requester_present())
}

pub(super) async fn sessions(core: &Core) -> Result<Vec<SessionSummary>, Fault> {
    let mut stored = core.log.reader().sessions(RECENT_SESSIONS).await?;
    let live: BTreeMap<SessionId, _> = core.all_sessions().into_iter().map(|s| (s.id.clone(), s)).collect();
    for summary in &mut stored {
        if let Some(session) = live.get(&summary.session_id) {
            freshen(core, session, summary);
        }
    }
    Ok(stored)
}

fn freshen(core: &Core, session: &Session, summary: &mut SessionSummary) {
    let look = session.look();
    summary.last_active_at = summary.last_active_at.max(look.last_active_at);
    drop(look);
    let waits = |ask: &&std::sync::Arc<crate::ask::Ask>| ask.asked && ask.state() == AskState::Open;
    summary.open_asks = small(core.pendings.of_session(&session.id).iter().filter(waits).count());
}

pub(super) async fn live(core: &Core, id: &SessionId) -> Result<LiveView, Fault> {
    let unknown = || Fault::new(ErrorCode::UnknownSession, "no such session");
    let stored = core.log.reader().session(id).await?.ok_or_else(unknown)?;
    let edges = core.log.reader().latest_edges(&stored.summary.trace_id, RECENT_EDGES).await?;
    let mut summary = stored.summary;
    let session = core.all_sessions().into_iter().find(|session| session.id == *id);
    let mut view = LiveView {
        root: escape_line(&stored.began.workspace_root),
        cwd: escape_line(&stored.began.workspace_root),
        git: bodyguard_protocol::GitState { head: "none".into(), branch: None, dirty: None },
        focused_window: String::new(),
        screenshot: None,
        screenshot_at: None,
        state_hash: None,
        session: summary.clone(),
        edges,
    };
    if let Some(session) = session {
        freshen(core, &session, &mut summary);
        let look = session.look();
        view.git = look.git.clone();
        view.focused_window = escape_line(&look.focused_window);
        view.screenshot = look.screenshot.as_ref().map(|(digest, _)| digest.clone());
        view.screenshot_at = look.screenshot.as_ref().map(|(_, at)| *at);
        view.state_hash.clone_from(&look.state_hash);
        view.session = summary;
    } else if let Some((leaf, perceived)) = core.log.reader().last_picture(&view.session.trace_id).await? {
        view.screenshot = perceived.picture;
        view.screenshot_at = Some(leaf.at);
        view.state_hash = Some(perceived.state_hash);
    }
    Ok(view)
}

pub(super) async fn agents(core: &Core) -> Result<AgentsView, Fault> {
    let reader = core.log.reader();
    let connections = core.connections.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let agents = reader.agents().await?.into_iter().map(|row| {
        let connected = connections.get(&row.name).cloned().unwrap_or_default();
        AgentView {
            name: row.name,
            workspaces: row.workspaces,
            connections: connected.open,
            client: connected.client.as_deref().map(escape_line),
            last_seen: connected.last_seen,
            added_at: row.added_at,
        }
    });
    let agents = agents.collect();
    let mut workspaces = Vec::new();
    for row in reader.workspaces().await? {
        let policy = core.policies.view(&core.log, &row.name).await;
        let desktop = match row.body {
            WorkspaceBody::Host => WorkspaceDesktop::Shared,
            WorkspaceBody::Private | WorkspaceBody::Simulator => WorkspaceDesktop::Private,
        };
        workspaces.push(WorkspaceView { root: escape_line(&row.root), name: row.name, desktop, policy });
    }
    Ok(AgentsView { agents, workspaces })
}

/// How to connect an agent; the token isn't part of it.
pub(super) async fn connect(core: &Core, name: &AgentName) -> Result<ConnectView, Fault> {
    let agent = find_agent(core, name).await?.name;
    let program = std::env::current_exe().map_or_else(|_| "bodyguard".to_owned(), |path| path.display().to_string());
    let data_dir = core.config.data_dir.display().to_string();
    let arguments = ["mcp", "--agent", agent.as_str(), "--data", &data_dir];
    let quoted: Vec<String> = arguments.iter().map(|word| shell_quoted(word)).collect();
    let json = serde_json::json!({ "mcpServers": { "bodyguard": { "command": program, "args": arguments } } });
    let toml_strings: Vec<String> = arguments.iter().map(|word| format!("{word:?}")).collect();
    Ok(ConnectView {
        claude_code: format!("claude mcp add bodyguard -- {} {}", shell_quoted(&program), quoted.join(" ")),
        codex: format!("[mcp_servers.bodyguard]\ncommand = {program:?}\nargs = [{}]\n", toml_strings.join(", ")),
        json: serde_json::to_string_pretty(&json).unwrap_or_default(),
        http_url: std::fs::read_to_string(http_url_file(&core.config.data_dir)).ok().map(|url| url.trim().to_owned()),
        agent,
    })
}

fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '@' | ':' | '=' | '+' | ',');
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

pub(super) fn health(core: &Core) -> HealthView {
    HealthView { checks: core.health.lock().unwrap_or_else(PoisonError::into_inner).clone() }
}

pub(super) async fn settings(core: &Core) -> Result<SettingsView, Fault> {
    let reader = core.log.reader();
    let present = core.devices_present.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let keys = reader.keys().await?.into_iter().map(|row| KeyView {
        key_id: row.key_id,
        public_key: row.public_key,
        kept_in: row.kept_in,
        created_at: row.created_at,
        current: row.current,
    });
    let keys = keys.collect();
    let devices = reader.devices().await?.into_iter().map(|row| DeviceView {
        present: present.contains(&row.name),
        name: row.name,
        kind: row.kind,
        enrolled: row.enrolled,
    });
    Ok(SettingsView {
        keys,
        devices: devices.collect(),
        phrase: reader.value(PHRASE).await?.unwrap_or_default(),
        data_dir: core.config.data_dir.display().to_string(),
        ask_seconds: u32::try_from(core.ask_ttl_ms().await? / 1000).unwrap_or(u32::MAX),
    })
}

pub(super) async fn verify(core: &Core) -> Result<VerifyView, Fault> {
    let report = bodyguard_trace::verify(core.log.reader(), core.keys.list()).await?;
    Ok(report.view())
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_only_where_the_shell_would_read_it_otherwise() {
        assert_eq!(shell_quoted("/usr/bin/bodyguard"), "/usr/bin/bodyguard");
        assert_eq!(shell_quoted("a b"), "'a b'");
        assert_eq!(shell_quoted("it's"), r"'it'\''s'");
    }
}
