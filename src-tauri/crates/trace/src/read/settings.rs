//! Settings.

use bodyguard_policy::KeyList;
use bodyguard_protocol::{Digest, Timestamp, WorkspaceName};
use rusqlite::{Connection, OptionalExtension as _};
use serde::de::DeserializeOwned;

use super::{LogReader, parsed, read_leaf};
use crate::LogError;
use crate::project::{STOPPED, variant};
use crate::records::Record;
use crate::settings::{AgentRow, DeviceRow, KeyRow, WorkspaceRow};

impl LogReader {
    /// Agents by name.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn agents(&self) -> Result<Vec<AgentRow>, LogError> {
        self.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT name, token_sha256, workspaces, added_at FROM agents ORDER BY name")?;
            let mut rows = statement.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(AgentRow {
                    name: parsed(&row.get::<_, String>(0)?)?,
                    token_sha256: parsed(&row.get::<_, String>(1)?)?,
                    workspaces: list(&row.get::<_, String>(2)?)?,
                    added_at: Timestamp::from_millis(row.get(3)?),
                });
            }
            Ok(found)
        })
        .await
    }

    /// The agent whose token has this digest. Looking a digest up tells nothing about tokens, so the
    /// time it takes needn't be constant.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn agent_by_token(&self, token_sha256: &Digest) -> Result<Option<AgentRow>, LogError> {
        Ok(self.agents().await?.into_iter().find(|agent| agent.token_sha256 == *token_sha256))
    }

    /// Workspaces by name.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn workspaces(&self) -> Result<Vec<WorkspaceRow>, LogError> {
        self.read(|conn| {
            let sql = "SELECT name, root, body, template, key_processes, env_allow FROM workspaces ORDER BY name";
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(WorkspaceRow {
                    name: parsed(&row.get::<_, String>(0)?)?,
                    root: row.get(1)?,
                    body: variant(&row.get::<_, String>(2)?)?,
                    template: row.get(3)?,
                    key_processes: list(&row.get::<_, String>(4)?)?,
                    env_allow: list(&row.get::<_, String>(5)?)?,
                });
            }
            Ok(found)
        })
        .await
    }

    /// Devices by name.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn devices(&self) -> Result<Vec<DeviceRow>, LogError> {
        self.read(|conn| {
            let mut statement = conn.prepare_cached("SELECT name, kind, enrolled FROM devices ORDER BY name")?;
            let rows = statement
                .query_map([], |row| Ok(DeviceRow { name: row.get(0)?, kind: row.get(1)?, enrolled: row.get(2)? }))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Keys, oldest first.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn keys(&self) -> Result<Vec<KeyRow>, LogError> {
        self.read(keys).await
    }

    /// The list of keys whose signatures count.
    ///
    /// # Errors
    /// Storage errors; [`LogError::Unrepresentable`] for a key that isn't one.
    pub async fn key_list(&self) -> Result<KeyList, LogError> {
        let mut list = KeyList::new();
        for key in self.keys().await? {
            list.add(&key.public_key).map_err(LogError::Unrepresentable)?;
        }
        Ok(list)
    }

    /// The policy text that came into force last in a workspace.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn last_policy(&self, workspace: &WorkspaceName) -> Result<Option<String>, LogError> {
        let workspace = workspace.clone();
        self.read(move |conn| {
            let sql = "SELECT seq FROM policies WHERE workspace = ?1";
            let seq: Option<u64> =
                conn.prepare_cached(sql)?.query_row([workspace.as_str()], |row| row.get(0)).optional()?;
            let Some(seq) = seq else { return Ok(None) };
            match read_leaf(conn, seq)?.record {
                Record::PolicyLoaded(loaded) => Ok(Some(loaded.text)),
                other => Err(LogError::Unreadable { seq, reason: format!("it is `{}`, not a policy", other.kind()) }),
            }
        })
        .await
    }

    /// A single value.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn value(&self, key: &str) -> Result<Option<String>, LogError> {
        let key = key.to_owned();
        self.read(move |conn| value(conn, &key)).await
    }
}

pub(crate) fn keys(conn: &Connection) -> Result<Vec<KeyRow>, LogError> {
    let sql = "SELECT key_id, public_key, kept_in, created_at, current FROM keys ORDER BY created_at, key_id";
    let mut statement = conn.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok(KeyRow {
            key_id: row.get(0)?,
            public_key: row.get(1)?,
            kept_in: row.get(2)?,
            created_at: Timestamp::from_millis(row.get(3)?),
            current: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether a person stopped everything.
pub(super) fn stopped(conn: &Connection) -> Result<bool, LogError> {
    Ok(value(conn, STOPPED)?.as_deref() == Some("1"))
}

fn value(conn: &Connection, key: &str) -> Result<Option<String>, LogError> {
    let sql = "SELECT value FROM settings WHERE key = ?1";
    Ok(conn.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?)
}

fn list<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, LogError> {
    serde_json::from_str(text).map_err(|error| LogError::Storage(format!("a table holds `{text}`: {error}")))
}
