//! Sessions and traces.

use bodyguard_protocol::ui::{SessionSummary, TracePage, TraceSummary, TraceView};
use bodyguard_protocol::{AgentName, Digest, SessionId, Timestamp, TraceId, escape_line};
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::{LogReader, MAX_PAGE, read_leaf};
use crate::LogError;
use crate::project::variant;
use crate::records::{Record, SessionBegan};

/// A session with what was recorded at its beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSession {
    /// How it stands.
    pub summary: SessionSummary,
    /// Its beginning.
    pub began: SessionBegan,
}

const COLUMNS: &str = "s.began_seq, s.state, s.outcome, s.started_at, s.last_active_at, s.ended_at,
    (SELECT count(*) FROM edges e WHERE e.trace_id = s.trace_id),
    (SELECT count(*) FROM edges e WHERE e.trace_id = s.trace_id AND e.destructive AND e.state != 'refused'),
    (SELECT count(*) FROM asks a WHERE a.session_id = s.session_id AND a.state = 'open')";

impl LogReader {
    /// Sessions: running ones first, then the latest, newest first.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn sessions(&self, limit: u32) -> Result<Vec<SessionSummary>, LogError> {
        self.read(move |conn| {
            let sql = format!(
                "SELECT {COLUMNS} FROM sessions s ORDER BY s.state = 'running' DESC, s.began_seq DESC LIMIT ?1"
            );
            select(conn, &sql, [limit.min(MAX_PAGE)])?.iter().map(|row| row.session(conn)).collect()
        })
        .await
    }

    /// One session.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn session(&self, session_id: &SessionId) -> Result<Option<StoredSession>, LogError> {
        let session_id = session_id.clone();
        self.read(move |conn| {
            let sql = format!("SELECT {COLUMNS} FROM sessions s WHERE s.session_id = ?1");
            let Some(row) = select(conn, &sql, [session_id.as_str()])?.pop() else { return Ok(None) };
            Ok(Some(StoredSession { summary: row.session(conn)?, began: session_began(conn, row.began_seq)? }))
        })
        .await
    }

    /// Some traces, newest first.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn traces(&self, offset: u32, limit: u32) -> Result<TracePage, LogError> {
        self.read(move |conn| {
            let total = conn.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0))?;
            let sql = format!("SELECT {COLUMNS} FROM sessions s ORDER BY s.began_seq DESC LIMIT ?1 OFFSET ?2");
            let rows = select(conn, &sql, [limit.min(MAX_PAGE), offset])?;
            let items = rows.iter().map(|row| row.trace(conn)).collect::<Result<_, _>>()?;
            Ok(TracePage { total, offset, items })
        })
        .await
    }

    /// One trace without its edges.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn trace(&self, trace_id: &TraceId) -> Result<Option<TraceView>, LogError> {
        let trace_id = trace_id.clone();
        self.read(move |conn| {
            let sql = format!("SELECT {COLUMNS} FROM sessions s WHERE s.trace_id = ?1");
            let Some(row) = select(conn, &sql, [trace_id.as_str()])?.pop() else { return Ok(None) };
            let began = session_began(conn, row.began_seq)?;
            Ok(Some(TraceView {
                summary: row.trace(conn)?,
                workspace_root: escape_line(&began.workspace_root),
                os_family: began.os_family,
                first_state: first_state(conn, &trace_id)?,
                last_state: last_state(conn, &trace_id)?,
            }))
        })
        .await
    }
}

struct Raw {
    began_seq: u64,
    state: String,
    outcome: Option<String>,
    started_at: i64,
    last_active_at: i64,
    ended_at: Option<i64>,
    edges: u32,
    destructive: u32,
    open_asks: u32,
}

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    Ok(Raw {
        began_seq: row.get(0)?,
        state: row.get(1)?,
        outcome: row.get(2)?,
        started_at: row.get(3)?,
        last_active_at: row.get(4)?,
        ended_at: row.get(5)?,
        edges: row.get(6)?,
        destructive: row.get(7)?,
        open_asks: row.get(8)?,
    })
}

impl Raw {
    fn session(&self, conn: &Connection) -> Result<SessionSummary, LogError> {
        let began = session_began(conn, self.began_seq)?;
        Ok(SessionSummary {
            agent: agent_name(&began.agent_id)?,
            replay_of: began.replay_of(),
            session_id: began.session_id,
            trace_id: began.trace_id,
            workspace: began.workspace,
            goal: began.goal.as_deref().map(escape_line),
            state: variant(&self.state)?,
            started_at: Timestamp::from_millis(self.started_at),
            last_active_at: Timestamp::from_millis(self.last_active_at),
            edges: self.edges,
            open_asks: self.open_asks,
        })
    }

    fn trace(&self, conn: &Connection) -> Result<TraceSummary, LogError> {
        let began = session_began(conn, self.began_seq)?;
        Ok(TraceSummary {
            replay_of: began.replay_of(),
            trace_id: began.trace_id,
            agent_id: began.agent_id,
            goal: began.goal.as_deref().map(escape_line),
            started_at: Timestamp::from_millis(self.started_at),
            ended_at: self.ended_at.map(Timestamp::from_millis),
            outcome: self.outcome.as_deref().map(variant).transpose()?,
            edges: self.edges,
            destructive: self.destructive,
        })
    }
}

fn select<P: rusqlite::Params>(conn: &Connection, sql: &str, params: P) -> Result<Vec<Raw>, LogError> {
    let mut statement = conn.prepare_cached(sql)?;
    Ok(statement.query_map(params, raw)?.collect::<Result<_, _>>()?)
}

/// What was recorded at a session's beginning.
fn session_began(conn: &Connection, seq: u64) -> Result<SessionBegan, LogError> {
    match read_leaf(conn, seq)?.record {
        Record::SessionBegan(began) => Ok(began),
        other => Err(LogError::Unreadable { seq, reason: format!("it is `{}`, not a beginning", other.kind()) }),
    }
}

fn agent_name(agent_id: &str) -> Result<AgentName, LogError> {
    agent_id.split_once('@').map_or(agent_id, |(name, _)| name).parse().map_err(LogError::Unrepresentable)
}

fn first_state(conn: &Connection, trace_id: &TraceId) -> Result<Option<Digest>, LogError> {
    let sql = "SELECT intent_seq FROM edges WHERE trace_id = ?1 ORDER BY edge_id LIMIT 1";
    let seq: Option<u64> = conn.prepare_cached(sql)?.query_row([trace_id.as_str()], |row| row.get(0)).optional()?;
    let Some(seq) = seq else { return Ok(None) };
    match read_leaf(conn, seq)?.record {
        Record::Intent(intent) => Ok(Some(intent.state_before)),
        Record::Refused(refused) => Ok(refused.edge.map(|edge| edge.state)),
        other => Err(LogError::Unreadable { seq, reason: format!("it is `{}`, not an intent", other.kind()) }),
    }
}

fn last_state(conn: &Connection, trace_id: &TraceId) -> Result<Option<Digest>, LogError> {
    let sql = "SELECT coalesce(outcome_seq, intent_seq) FROM edges
               WHERE trace_id = ?1 AND state IN ('ended', 'refused') ORDER BY edge_id DESC LIMIT 1";
    let seq: Option<u64> = conn.prepare_cached(sql)?.query_row([trace_id.as_str()], |row| row.get(0)).optional()?;
    let Some(seq) = seq else { return Ok(None) };
    match read_leaf(conn, seq)?.record {
        Record::Outcome(outcome) => Ok(outcome.outcome.state_after),
        Record::Refused(refused) => Ok(refused.edge.map(|edge| edge.state)),
        other => Err(LogError::Unreadable { seq, reason: format!("it is `{}`, not an outcome", other.kind()) }),
    }
}
