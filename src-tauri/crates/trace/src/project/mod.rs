//! The projection: what a leaf does to the tables beside it, and whether it may stand at all.
//!
//! The writer runs it in the transaction that adds the leaf, `verify` runs it again over the leaves
//! alone; both therefore hold the same rules.

mod acts;
mod asks;
mod settings;

use bodyguard_protocol::ui::SessionState;
use bodyguard_protocol::{Block, BlockKind, SessionId, TraceId, TraceOutcome, canonical_digest};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::LogError;
use crate::records::{Leaf, Record, SessionBegan};

pub(crate) use acts::next_edge;

/// Applies one leaf. On an error nothing of it may be kept: the caller rolls back.
pub(crate) fn project(conn: &Connection, seq: u64, leaf: &Leaf) -> Result<(), LogError> {
    let at = leaf.at.millis();
    match &leaf.record {
        Record::Created(r) => {
            let sql = "INSERT INTO meta(key, value) VALUES('log_id', ?1)";
            conn.prepare_cached(sql)?.execute([&r.log_id])?;
        }
        Record::SessionBegan(r) => began(conn, seq, at, r)?,
        Record::SessionEnded(r) => {
            end(conn, seq, at, (&r.session_id, &r.trace_id), SessionState::Ended, r.outcome)?;
        }
        Record::Perceived(r) => {
            touch(conn, at, &r.session_id, &r.trace_id)?;
            if let Some(block) = &r.authorization {
                fits(block, &r.session_id, &r.trace_id)?;
                if block.payload.kind != BlockKind::View {
                    return Err(LogError::BlockMismatch("kind"));
                }
                use_block(conn, seq, block)?;
            }
        }
        Record::AskOpened(r) => asks::opened(conn, seq, at, r)?,
        Record::AskMoved(r) => asks::moved(conn, seq, at, r)?,
        Record::BlockIssued(r) => know_block(conn, seq, &r.block)?,
        Record::Intent(r) => acts::intent(conn, seq, at, r)?,
        Record::Outcome(r) => acts::outcome(conn, seq, at, r)?,
        Record::Interrupted(r) => match r.edge_id {
            Some(edge_id) => acts::interrupted(conn, seq, &r.trace_id, edge_id)?,
            None => {
                let ids = (&r.session_id, &r.trace_id);
                end(conn, seq, at, ids, SessionState::Interrupted, TraceOutcome::Aborted)?;
            }
        },
        Record::SettingChanged(r) => settings::changed(conn, &r.change)?,
        Record::Stopped(_) => settings::put(conn, STOPPED, "1")?,
        Record::Resumed(_) => settings::put(conn, STOPPED, "0")?,
        Record::PolicyLoaded(r) => {
            let sql = "INSERT OR REPLACE INTO policies(workspace, digest, seq) VALUES(?1, ?2, ?3)";
            conn.prepare_cached(sql)?.execute(params![r.workspace.as_str(), r.digest.as_str(), seq])?;
        }
        Record::Refused(r) => acts::refused(conn, seq, at, r)?,
        Record::Started(_) | Record::PresenceRefused(_) => {}
    }
    Ok(())
}

/// The setting that says whether a person stopped everything.
pub(crate) const STOPPED: &str = "stopped";

fn began(conn: &Connection, seq: u64, at: i64, r: &SessionBegan) -> Result<(), LogError> {
    let sql = "INSERT INTO sessions(session_id, trace_id, agent_id, state, started_at, last_active_at, began_seq)
               VALUES(?1, ?2, ?3, ?4, ?5, ?5, ?6) ON CONFLICT DO NOTHING";
    let values = params![r.session_id.as_str(), r.trace_id.as_str(), r.agent_id, name(&SessionState::Running), at, seq];
    match conn.prepare_cached(sql)?.execute(values)? {
        0 => Err(LogError::SessionExists),
        _ => Ok(()),
    }
}

fn end(
    conn: &Connection,
    seq: u64,
    at: i64,
    (session_id, trace_id): (&SessionId, &TraceId),
    state: SessionState,
    outcome: TraceOutcome,
) -> Result<(), LogError> {
    touch(conn, at, session_id, trace_id)?;
    let sql = "UPDATE sessions SET state = ?2, outcome = ?3, ended_at = ?4, ended_seq = ?5 WHERE session_id = ?1";
    let values = params![session_id.as_str(), name(&state), name(&outcome), at, seq];
    conn.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Notes that a session is active, and refuses what belongs to no running session.
fn touch(conn: &Connection, at: i64, session_id: &SessionId, trace_id: &TraceId) -> Result<(), LogError> {
    let sql = "UPDATE sessions SET last_active_at = ?3
               WHERE session_id = ?1 AND trace_id = ?2 AND state = 'running'";
    if conn.prepare_cached(sql)?.execute(params![session_id.as_str(), trace_id.as_str(), at])? == 1 {
        return Ok(());
    }
    let sql = "SELECT 1 FROM sessions WHERE session_id = ?1 AND trace_id = ?2";
    let found = conn.prepare_cached(sql)?.exists([session_id.as_str(), trace_id.as_str()])?;
    Err(if found { LogError::SessionEnded } else { LogError::UnknownSession })
}

/// Remembers the leaf that a block first stands in.
fn know_block(conn: &Connection, seq: u64, block: &Block) -> Result<(), LogError> {
    let token = canonical_digest(&block.payload).map_err(LogError::Unrepresentable)?;
    if token != block.authorization_token {
        return Err(LogError::BlockMismatch("token"));
    }
    let sql = "INSERT INTO blocks(token, seq) VALUES(?1, ?2) ON CONFLICT DO NOTHING";
    conn.prepare_cached(sql)?.execute(params![token.as_str(), seq])?;
    Ok(())
}

/// Uses a block up. Neither the block nor its nonce is ever accepted again.
fn use_block(conn: &Connection, seq: u64, block: &Block) -> Result<(), LogError> {
    know_block(conn, seq, block)?;
    let sql = "INSERT INTO used_blocks(token, nonce, seq) VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let values = params![block.authorization_token.as_str(), block.payload.nonce, seq];
    match conn.prepare_cached(sql)?.execute(values)? {
        0 => Err(LogError::BlockUsed),
        _ => Ok(()),
    }
}

fn fits(block: &Block, session_id: &SessionId, trace_id: &TraceId) -> Result<(), LogError> {
    if block.payload.session_id != *session_id {
        return Err(LogError::BlockMismatch("session"));
    }
    if block.payload.trace_id != *trace_id {
        return Err(LogError::BlockMismatch("trace"));
    }
    Ok(())
}

/// The written name of a closed enum's variant.
pub(crate) fn name<T: Serialize>(variant: &T) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(text)) => text,
        Ok(_) | Err(_) => String::new(),
    }
}

/// The variant of a written name.
pub(crate) fn variant<T: DeserializeOwned>(text: &str) -> Result<T, LogError> {
    serde_json::from_value(Value::String(text.to_owned()))
        .map_err(|error| LogError::Storage(format!("a table holds `{text}`: {error}")))
}

/// The agent of a session.
pub(crate) fn agent_of(conn: &Connection, session_id: &SessionId) -> Result<String, LogError> {
    let sql = "SELECT agent_id FROM sessions WHERE session_id = ?1";
    let found = conn.prepare_cached(sql)?.query_row([session_id.as_str()], |row| row.get(0)).optional()?;
    found.ok_or(LogError::UnknownSession)
}

/// The log's id, from its first leaf.
pub(crate) fn log_id(conn: &Connection) -> Result<String, LogError> {
    let found = conn.query_row("SELECT value FROM meta WHERE key = 'log_id'", [], |row| row.get(0)).optional()?;
    found.ok_or_else(|| LogError::Storage("the log has no id".into()))
}
