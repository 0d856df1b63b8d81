//! A trace as it is replayed: what was recorded of each edge, for comparing.

use bodyguard_protocol::ui::SessionState;
use bodyguard_protocol::{ActionType, Digest, OutcomeStatus, StateHash, Timestamp, TraceId};
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde_json::Value;

use super::leaves::parse;
use super::{LogReader, MAX_PAGE, read_leaf};
use crate::LogError;
use crate::project::variant;
use crate::records::{OutcomeRecord, Record, SeenState, SessionBegan};

/// A trace without its edges.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedTrace {
    /// Its beginning.
    pub began: SessionBegan,
    /// How its session stands.
    pub state: SessionState,
    /// How many edges it has; they count from 1.
    pub edges: u64,
}

/// One edge.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEdge {
    /// From 1, without gaps.
    pub edge_id: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// What kind of action.
    pub action_type: ActionType,
    /// The action with its resolved target; secret values as commitments.
    pub action: Value,
    /// The state before.
    pub state_before: StateHash,
    /// How it ended.
    pub end: RecordedEnd,
}

/// How an edge ended.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordedEnd {
    /// It was refused, so that nothing was carried out.
    Refused(OutcomeStatus),
    /// It runs, or was cut off: what it did isn't known.
    Unknown,
    /// It was carried out.
    Ended(Box<RecordedAct>),
}

/// What was recorded of an act that was carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedAct {
    /// The digest of the exact action.
    pub action_digest: Digest,
    /// Whether secrets were replaced in `action`, so that it isn't the exact one.
    pub redacted: bool,
    /// What the body expected to come of it.
    pub prediction: Value,
    /// What came of it.
    pub outcome: OutcomeRecord,
}

impl LogReader {
    /// A trace to replay.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn recorded_trace(&self, trace_id: &TraceId) -> Result<Option<RecordedTrace>, LogError> {
        let trace_id = trace_id.clone();
        self.read(move |conn| {
            let sql = "SELECT s.began_seq, s.state, (SELECT count(*) FROM edges e WHERE e.trace_id = s.trace_id)
                FROM sessions s WHERE s.trace_id = ?1";
            let columns = |row: &Row<'_>| Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?, row.get::<_, u64>(2)?));
            let found = conn.prepare_cached(sql)?.query_row([trace_id.as_str()], columns).optional()?;
            let Some((seq, state, edges)) = found else { return Ok(None) };
            match read_leaf(conn, seq)?.record {
                Record::SessionBegan(began) => Ok(Some(RecordedTrace { began, state: variant(&state)?, edges })),
                other => Err(unreadable(seq, other.kind())),
            }
        })
        .await
    }

    /// Edges `from` to `to` of a trace, both counted in; at most 1000.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn recorded_edges(&self, trace_id: &TraceId, from: u64, to: u64) -> Result<Vec<RecordedEdge>, LogError> {
        let trace_id = trace_id.clone();
        self.read(move |conn| {
            let sql = "SELECT edge_id, intent_seq, outcome_seq FROM edges
                WHERE trace_id = ?1 AND edge_id BETWEEN ?2 AND ?3 ORDER BY edge_id LIMIT ?4";
            let mut statement = conn.prepare_cached(sql)?;
            let rows = statement.query_map((trace_id.as_str(), from, to, MAX_PAGE), |row| {
                Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?, row.get::<_, Option<u64>>(2)?))
            })?;
            rows.map(|row| row.map_err(LogError::from).and_then(|columns| edge(conn, columns))).collect()
        })
        .await
    }

    /// The fields behind a state hash, where a look of this trace noted them.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn seen_state(&self, trace_id: &TraceId, hash: &StateHash) -> Result<Option<SeenState>, LogError> {
        let (trace_id, hash) = (trace_id.clone(), hash.clone());
        self.read(move |conn| {
            let sql = "SELECT seq, bytes FROM leaves WHERE trace_id = ?1 AND kind = 'perceived'
                AND json_extract(CAST(bytes AS TEXT), '$.state_hash') = ?2
                AND json_extract(CAST(bytes AS TEXT), '$.seen') IS NOT NULL LIMIT 1";
            let columns = |row: &Row<'_>| Ok((row.get::<_, u64>(0)?, row.get::<_, Vec<u8>>(1)?));
            let found = conn.prepare_cached(sql)?.query_row([trace_id.as_str(), hash.as_str()], columns).optional()?;
            let Some((seq, bytes)) = found else { return Ok(None) };
            match parse(seq, &bytes)?.record {
                Record::Perceived(look) => Ok(look.seen),
                other => Err(unreadable(seq, other.kind())),
            }
        })
        .await
    }
}

fn edge(
    conn: &Connection,
    (edge_id, intent_seq, outcome_seq): (u64, u64, Option<u64>),
) -> Result<RecordedEdge, LogError> {
    let leaf = read_leaf(conn, intent_seq)?;
    match leaf.record {
        Record::Intent(intent) => {
            let outcome = outcome_seq.map(|seq| outcome(conn, seq)).transpose()?.flatten();
            let end = match outcome {
                Some(outcome) => RecordedEnd::Ended(Box::new(RecordedAct {
                    action_digest: intent.action_digest,
                    redacted: intent.redacted,
                    prediction: intent.prediction,
                    outcome,
                })),
                None => RecordedEnd::Unknown,
            };
            let (action_type, action, state_before) = (intent.action_type, intent.action, intent.state_before);
            Ok(RecordedEdge { edge_id, at: leaf.at, action_type, action, state_before, end })
        }
        Record::Refused(refused) => {
            let edge = refused.edge.ok_or_else(|| unreadable(intent_seq, "a refusal that is no edge"))?;
            Ok(RecordedEdge {
                edge_id,
                at: leaf.at,
                action_type: edge.action_type,
                action: refused.attempted,
                state_before: edge.state,
                end: RecordedEnd::Refused(edge.status),
            })
        }
        other => Err(unreadable(intent_seq, other.kind())),
    }
}

fn outcome(conn: &Connection, seq: u64) -> Result<Option<OutcomeRecord>, LogError> {
    match read_leaf(conn, seq)?.record {
        Record::Outcome(found) => Ok(Some(found.outcome)),
        Record::Interrupted(_) => Ok(None),
        other => Err(unreadable(seq, other.kind())),
    }
}

fn unreadable(seq: u64, what: &str) -> LogError {
    LogError::Unreadable { seq, reason: format!("a trace doesn't begin, go on or end with it: {what}") }
}
