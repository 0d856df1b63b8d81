//! The ask machine.

use bodyguard_protocol::ui::AskState;
use bodyguard_protocol::{AskId, Block};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{know_block, name, touch, variant};
use crate::LogError;
use crate::records::{AskMoved, AskRecord, MoveNote};

/// Whether the machine has this arrow. There is none from time to `approved`, and none back.
const fn legal(from: AskState, to: AskState) -> bool {
    use AskState::{Approved, Claimed, Denied, Done, Executing, Expired, Interrupted, Open, Superseded, Withdrawn};
    match from {
        Open => matches!(to, Approved | Denied | Expired | Withdrawn | Superseded),
        Approved => matches!(to, Claimed | Expired | Withdrawn),
        Claimed => matches!(to, Executing | Interrupted | Expired),
        Executing => matches!(to, Done | Interrupted),
        Denied | Expired | Withdrawn | Superseded | Done | Interrupted => false,
    }
}

pub(super) fn opened(conn: &Connection, seq: u64, at: i64, r: &AskRecord) -> Result<(), LogError> {
    let shown = r.view.digest().map_err(LogError::Unrepresentable)?;
    let fits = shown == r.shown_digest
        && r.view.ask_id == r.ask_id
        && r.view.action_digest == r.action_digest
        && r.view.session_id == r.session_id
        && r.view.kind == r.ask_kind;
    if !fits {
        return Err(LogError::ShownMismatch);
    }
    if let Some(session_id) = &r.session_id {
        let trace_id = r.trace_id.as_ref().ok_or(LogError::UnknownTrace)?;
        touch(conn, at, session_id, trace_id)?;
    }
    let sql = "INSERT INTO asks(ask_id, session_id, trace_id, agent_id, action_digest, shown_digest, state,
                   opened_seq, moved_seq)
               VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8) ON CONFLICT DO NOTHING";
    let values = params![
        r.ask_id.as_str(),
        r.session_id.as_ref().map(|id| id.as_str()),
        r.trace_id.as_ref().map(|id| id.as_str()),
        r.agent_id,
        r.action_digest.as_str(),
        r.shown_digest.as_str(),
        name(&AskState::Open),
        seq
    ];
    match conn.prepare_cached(sql)?.execute(values)? {
        0 => Err(LogError::AskExists(r.ask_id.clone())),
        _ => Ok(()),
    }
}

pub(super) fn moved(conn: &Connection, seq: u64, at: i64, r: &AskMoved) -> Result<(), LogError> {
    if let Some(block) = &r.note.block {
        answers(conn, block, &r.ask_id)?;
        know_block(conn, seq, block)?;
    }
    advance(conn, seq, at, &r.ask_id, (r.from, r.to), &r.note)
}

/// What was shown is what is signed.
fn answers(conn: &Connection, block: &Block, ask_id: &AskId) -> Result<(), LogError> {
    if block.payload.ask_id.as_ref() != Some(ask_id) {
        return Err(LogError::BlockMismatch("request"));
    }
    let sql = "SELECT action_digest, shown_digest FROM asks WHERE ask_id = ?1";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let found: Option<(String, String)> = conn.prepare_cached(sql)?.query_row([ask_id.as_str()], read).optional()?;
    let (action, shown) = found.ok_or_else(|| LogError::UnknownAsk(ask_id.clone()))?;
    if block.payload.action_digest.as_str() != action {
        return Err(LogError::BlockMismatch("action"));
    }
    if block.payload.shown_digest.as_str() != shown {
        return Err(LogError::BlockMismatch("view"));
    }
    Ok(())
}

/// The compare-and-set.
pub(super) fn advance(
    conn: &Connection,
    seq: u64,
    at: i64,
    ask_id: &AskId,
    (from, to): (AskState, AskState),
    note: &MoveNote,
) -> Result<(), LogError> {
    if !legal(from, to) {
        return Err(LogError::IllegalMove { from, to });
    }
    let decided = if to == AskState::Approved || to.is_final() { Some(at) } else { None };
    let sql = "UPDATE asks SET state = ?3, moved_seq = ?4, decided_at = coalesce(decided_at, ?5),
                   reason = coalesce(?6, reason), device = coalesce(?7, device), token = coalesce(?8, token)
               WHERE ask_id = ?1 AND state = ?2";
    let token = note.block.as_ref().map(|block| block.authorization_token.as_str());
    let values = params![ask_id.as_str(), name(&from), name(&to), seq, decided, note.reason, note.device, token];
    if conn.prepare_cached(sql)?.execute(values)? == 1 {
        return Ok(());
    }
    let actual = state(conn, ask_id)?.ok_or_else(|| LogError::UnknownAsk(ask_id.clone()))?;
    Err(LogError::AskConflict { actual })
}

fn state(conn: &Connection, ask_id: &AskId) -> Result<Option<AskState>, LogError> {
    let sql = "SELECT state FROM asks WHERE ask_id = ?1";
    let text: Option<String> = conn.prepare_cached(sql)?.query_row([ask_id.as_str()], |row| row.get(0)).optional()?;
    text.map(|text| variant(&text)).transpose()
}
