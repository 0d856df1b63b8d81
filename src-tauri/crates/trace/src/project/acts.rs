//! Intents and outcomes.

use bodyguard_protocol::ui::AskState;
use bodyguard_protocol::{AskId, BlockKind, ErrorCode, TraceId};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::asks::advance;
use super::{fits, name, touch, use_block};
use crate::LogError;
use crate::records::{Intent, MoveNote, Outcome, Refused};

pub(super) fn intent(conn: &Connection, seq: u64, at: i64, r: &Intent) -> Result<(), LogError> {
    touch(conn, at, &r.session_id, &r.trace_id)?;
    if next_edge(conn, &r.trace_id)? != r.edge_id {
        return Err(LogError::UnknownEdge);
    }
    authorized(conn, seq, r)?;
    if let Some(ask_id) = &r.ask_id {
        same_action(conn, ask_id, r)?;
        advance(conn, seq, at, ask_id, (AskState::Claimed, AskState::Executing), &MoveNote::default())?;
    }
    let sql = "INSERT INTO edges(trace_id, edge_id, session_id, action_type, destructive, ask_id, state, intent_seq)
               VALUES(?1, ?2, ?3, ?4, ?5, ?6, 'executing', ?7)";
    conn.prepare_cached(sql)?.execute(params![
        r.trace_id.as_str(),
        r.edge_id,
        r.session_id.as_str(),
        r.action_type.name(),
        r.action_type.is_destructive(),
        r.ask_id.as_ref().map(AskId::as_str),
        seq
    ])?;
    Ok(())
}

/// A destructive act stands on a block of its own, for exactly this.
fn authorized(conn: &Connection, seq: u64, r: &Intent) -> Result<(), LogError> {
    let Some(block) = &r.authorization else {
        return if r.action_type.is_destructive() { Err(LogError::BlockMissing) } else { Ok(()) };
    };
    fits(block, &r.session_id, &r.trace_id)?;
    let payload = &block.payload;
    if payload.kind == BlockKind::View {
        return Err(LogError::BlockMismatch("kind"));
    }
    if payload.action_digest != r.action_digest {
        return Err(LogError::BlockMismatch("action"));
    }
    if payload.ask_id != r.ask_id {
        return Err(LogError::BlockMismatch("request"));
    }
    if payload.agent_id != r.agent_id {
        return Err(LogError::BlockMismatch("agent"));
    }
    use_block(conn, seq, block)
}

fn same_action(conn: &Connection, ask_id: &AskId, r: &Intent) -> Result<(), LogError> {
    let sql = "SELECT action_digest, session_id FROM asks WHERE ask_id = ?1";
    let found: Option<(String, Option<String>)> =
        conn.prepare_cached(sql)?.query_row([ask_id.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (action, session) = found.ok_or_else(|| LogError::UnknownAsk(ask_id.clone()))?;
    if action != r.action_digest.as_str() {
        return Err(LogError::BlockMismatch("action"));
    }
    if session.as_deref() != Some(r.session_id.as_str()) {
        return Err(LogError::BlockMismatch("session"));
    }
    Ok(())
}

/// The number of a trace's next edge: from 1, without gaps.
pub(crate) fn next_edge(conn: &Connection, trace_id: &TraceId) -> Result<u64, LogError> {
    let sql = "SELECT coalesce(max(edge_id), 0) + 1 FROM edges WHERE trace_id = ?1";
    Ok(conn.prepare_cached(sql)?.query_row([trace_id.as_str()], |row| row.get(0))?)
}

pub(super) fn outcome(conn: &Connection, seq: u64, at: i64, r: &Outcome) -> Result<(), LogError> {
    let sql = "UPDATE edges SET state = 'ended', status = ?4, outcome_seq = ?5
               WHERE trace_id = ?1 AND edge_id = ?2 AND intent_seq = ?3 AND state = 'executing'";
    let status = name(&r.outcome.status);
    let values = params![r.trace_id.as_str(), r.edge_id, r.intent_seq, status, seq];
    if conn.prepare_cached(sql)?.execute(values)? == 0 {
        return Err(missing_or_ended(conn, &r.trace_id, r.edge_id)?);
    }
    // The session may have ended while the act ran; its outcome is recorded all the same.
    let sql = "UPDATE sessions SET last_active_at = max(last_active_at, ?2) WHERE session_id = ?1";
    conn.prepare_cached(sql)?.execute(params![r.session_id.as_str(), at])?;
    let Some(ask_id) = ask_of(conn, &r.trace_id, r.edge_id)? else { return Ok(()) };
    let unknown = |code| matches!(code, ErrorCode::Interrupted | ErrorCode::BodyLost | ErrorCode::Cancelled);
    let cut_off = r.outcome.error.as_ref().is_some_and(|error| unknown(error.code));
    let to = if cut_off { AskState::Interrupted } else { AskState::Done };
    advance(conn, seq, at, &ask_id, (AskState::Executing, to), &MoveNote::default())
}

/// What was refused stands in its trace like what was done. The session may have ended meanwhile.
pub(super) fn refused(conn: &Connection, seq: u64, at: i64, r: &Refused) -> Result<(), LogError> {
    let Some(edge) = &r.edge else { return Ok(()) };
    let (Some(session_id), Some(trace_id)) = (&r.session_id, &r.trace_id) else { return Err(LogError::UnknownSession) };
    let sql = "UPDATE sessions SET last_active_at = max(last_active_at, ?3) WHERE session_id = ?1 AND trace_id = ?2";
    if conn.prepare_cached(sql)?.execute(params![session_id.as_str(), trace_id.as_str(), at])? == 0 {
        return Err(LogError::UnknownSession);
    }
    if next_edge(conn, trace_id)? != edge.edge_id {
        return Err(LogError::UnknownEdge);
    }
    let sql =
        "INSERT INTO edges(trace_id, edge_id, session_id, action_type, destructive, ask_id, state, status, intent_seq)
               VALUES(?1, ?2, ?3, ?4, ?5, ?6, 'refused', ?7, ?8)";
    conn.prepare_cached(sql)?.execute(params![
        trace_id.as_str(),
        edge.edge_id,
        session_id.as_str(),
        edge.action_type.name(),
        edge.action_type.is_destructive(),
        edge.ask_id.as_ref().map(AskId::as_str),
        name(&edge.status),
        seq
    ])?;
    Ok(())
}

fn ask_of(conn: &Connection, trace_id: &TraceId, edge_id: u64) -> Result<Option<AskId>, LogError> {
    let sql = "SELECT ask_id FROM edges WHERE trace_id = ?1 AND edge_id = ?2";
    let text: Option<String> =
        conn.prepare_cached(sql)?.query_row(params![trace_id.as_str(), edge_id], |row| row.get(0))?;
    text.map(|text| text.parse().map_err(LogError::Unrepresentable)).transpose()
}

pub(super) fn interrupted(conn: &Connection, seq: u64, trace_id: &TraceId, edge_id: u64) -> Result<(), LogError> {
    let sql = "UPDATE edges SET state = 'interrupted', outcome_seq = ?3
               WHERE trace_id = ?1 AND edge_id = ?2 AND state = 'executing'";
    match conn.prepare_cached(sql)?.execute(params![trace_id.as_str(), edge_id, seq])? {
        0 => Err(missing_or_ended(conn, trace_id, edge_id)?),
        _ => Ok(()),
    }
}

fn missing_or_ended(conn: &Connection, trace_id: &TraceId, edge_id: u64) -> Result<LogError, LogError> {
    let sql = "SELECT 1 FROM edges WHERE trace_id = ?1 AND edge_id = ?2";
    let found = conn.prepare_cached(sql)?.exists(params![trace_id.as_str(), edge_id])?;
    Ok(if found { LogError::EdgeEnded } else { LogError::UnknownEdge })
}
