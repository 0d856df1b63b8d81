//! Settings.

use bodyguard_protocol::WorkspaceName;
use rusqlite::{Connection, params};

use super::name;
use crate::LogError;
use crate::settings::{AgentRow, DeviceRow, KeyRow, SettingChange, WorkspaceRow};

pub(super) fn changed(conn: &Connection, change: &SettingChange) -> Result<(), LogError> {
    match change {
        SettingChange::Agent(row) => agent(conn, row),
        SettingChange::AgentRemoved { name } => {
            conn.prepare_cached("DELETE FROM agents WHERE name = ?1")?.execute([name.as_str()])?;
            Ok(())
        }
        SettingChange::Workspace(row) => workspace(conn, row),
        SettingChange::Device(row) => device(conn, row),
        SettingChange::DeviceRemoved { name } => {
            conn.prepare_cached("DELETE FROM devices WHERE name = ?1")?.execute([name])?;
            Ok(())
        }
        SettingChange::Key(row) => key(conn, row),
        SettingChange::Value { key, value } => put(conn, key, value),
    }
}

fn agent(conn: &Connection, row: &AgentRow) -> Result<(), LogError> {
    let sql = "INSERT INTO agents(name, token_sha256, workspaces, added_at) VALUES(?1, ?2, ?3, ?4)
               ON CONFLICT(name) DO UPDATE SET token_sha256 = excluded.token_sha256, workspaces = excluded.workspaces";
    let workspaces: Vec<&str> = row.workspaces.iter().map(WorkspaceName::as_str).collect();
    let values = params![row.name.as_str(), row.token_sha256.as_str(), list(&workspaces)?, row.added_at.millis()];
    conn.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn workspace(conn: &Connection, row: &WorkspaceRow) -> Result<(), LogError> {
    let sql = "INSERT OR REPLACE INTO workspaces(name, root, body, template, key_processes, env_allow)
               VALUES(?1, ?2, ?3, ?4, ?5, ?6)";
    conn.prepare_cached(sql)?.execute(params![
        row.name.as_str(),
        row.root,
        name(&row.body),
        row.template,
        list(&row.key_processes)?,
        list(&row.env_allow)?
    ])?;
    Ok(())
}

fn device(conn: &Connection, row: &DeviceRow) -> Result<(), LogError> {
    let sql = "INSERT OR REPLACE INTO devices(name, kind, enrolled) VALUES(?1, ?2, ?3)";
    conn.prepare_cached(sql)?.execute(params![row.name, row.kind, row.enrolled])?;
    Ok(())
}

fn key(conn: &Connection, row: &KeyRow) -> Result<(), LogError> {
    if row.current {
        conn.prepare_cached("UPDATE keys SET current = 0")?.execute([])?;
    }
    let sql = "INSERT OR REPLACE INTO keys(key_id, public_key, kept_in, created_at, current)
               VALUES(?1, ?2, ?3, ?4, ?5)";
    let values = params![row.key_id, row.public_key, row.kept_in, row.created_at.millis(), row.current];
    conn.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

pub(super) fn put(conn: &Connection, key: &str, value: &str) -> Result<(), LogError> {
    let sql = "INSERT OR REPLACE INTO settings(key, value) VALUES(?1, ?2)";
    conn.prepare_cached(sql)?.execute([key, value])?;
    Ok(())
}

/// A list as JSON text.
fn list<T: serde::Serialize>(items: &[T]) -> Result<String, LogError> {
    serde_json::to_string(items).map_err(|error| LogError::Storage(error.to_string()))
}
