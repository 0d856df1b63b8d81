//! What a start makes of what the last run left behind.

use bodyguard_protocol::ui::AskState;
use bodyguard_protocol::{AskId, SessionId, TraceId};
use rusqlite::Connection;

use super::{Batch, Log};
use crate::LogError;
use crate::project::variant;
use crate::records::{AskMoved, Interrupted, MoveNote, Record};

const RESTARTED: &str = "supervisor_restarted";

/// An act that was cut off. It may have had effects, and is never repeated by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct InterruptedEdge {
    pub session_id: SessionId,
    pub trace_id: TraceId,
    pub edge_id: u64,
    pub action_type: String,
    pub ask_id: Option<AskId>,
}

/// What was found at a start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Acts without an outcome.
    pub interrupted: Vec<InterruptedEdge>,
    /// Asks that nobody waits for any more: `open` and `approved` ones.
    pub withdrawn: Vec<AskId>,
    /// Asks that were cut off: `claimed` and `executing` ones.
    pub interrupted_asks: Vec<AskId>,
    /// Sessions that were running.
    pub sessions: Vec<SessionId>,
}

impl Log {
    /// Ends what the last run left behind, in one transaction: asks that wait are `withdrawn`, what
    /// was claimed or ran is `interrupted`, and so are running sessions. Call it once, at the start,
    /// before any session begins. Nothing is run again.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn recover(&self) -> Result<Recovery, LogError> {
        self.run(recover).await
    }
}

fn recover(batch: &mut Batch<'_>) -> Result<Recovery, LogError> {
    let mut recovery = Recovery::default();
    for edge in edges(batch.conn)? {
        let interrupted = Interrupted {
            session_id: edge.session_id.clone(),
            trace_id: edge.trace_id.clone(),
            edge_id: Some(edge.edge_id),
            reason: RESTARTED.into(),
        };
        batch.add(Record::Interrupted(interrupted))?;
        recovery.interrupted.push(edge);
    }
    for (ask_id, from, trace_id) in asks(batch.conn)? {
        let waits = matches!(from, AskState::Open | AskState::Approved);
        let to = if waits { AskState::Withdrawn } else { AskState::Interrupted };
        let note = MoveNote { reason: Some(RESTARTED.into()), ..MoveNote::default() };
        let moved = AskMoved { ask_id: ask_id.clone(), trace_id, from, to, note };
        batch.add(Record::AskMoved(Box::new(moved)))?;
        if waits { recovery.withdrawn.push(ask_id) } else { recovery.interrupted_asks.push(ask_id) }
    }
    for (session_id, trace_id) in sessions(batch.conn)? {
        let reason = RESTARTED.into();
        let interrupted = Interrupted { session_id: session_id.clone(), trace_id, edge_id: None, reason };
        batch.add(Record::Interrupted(interrupted))?;
        recovery.sessions.push(session_id);
    }
    if recovery != Recovery::default() {
        batch.want_checkpoint();
    }
    Ok(recovery)
}

fn edges(conn: &Connection) -> Result<Vec<InterruptedEdge>, LogError> {
    let sql = "SELECT session_id, trace_id, edge_id, action_type, ask_id FROM edges
               WHERE state = 'executing' ORDER BY intent_seq";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let ask_id: Option<String> = row.get(4)?;
        found.push(InterruptedEdge {
            session_id: parsed(&row.get::<_, String>(0)?)?,
            trace_id: parsed(&row.get::<_, String>(1)?)?,
            edge_id: row.get(2)?,
            action_type: row.get(3)?,
            ask_id: ask_id.as_deref().map(parsed).transpose()?,
        });
    }
    Ok(found)
}

fn asks(conn: &Connection) -> Result<Vec<(AskId, AskState, Option<TraceId>)>, LogError> {
    let sql = "SELECT ask_id, state, trace_id FROM asks
               WHERE state IN ('open', 'approved', 'claimed', 'executing') ORDER BY opened_seq";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let trace_id: Option<String> = row.get(2)?;
        let state = variant(&row.get::<_, String>(1)?)?;
        found.push((parsed(&row.get::<_, String>(0)?)?, state, trace_id.as_deref().map(parsed).transpose()?));
    }
    Ok(found)
}

fn sessions(conn: &Connection) -> Result<Vec<(SessionId, TraceId)>, LogError> {
    let sql = "SELECT session_id, trace_id FROM sessions WHERE state = 'running' ORDER BY began_seq";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((parsed(&row.get::<_, String>(0)?)?, parsed(&row.get::<_, String>(1)?)?));
    }
    Ok(found)
}

fn parsed<T: std::str::FromStr<Err = bodyguard_protocol::Fault>>(text: &str) -> Result<T, LogError> {
    text.parse().map_err(LogError::Unrepresentable)
}
