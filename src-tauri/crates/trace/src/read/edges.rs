//! Edges, and each one whole.

use bodyguard_protocol::ui::{EdgePage, EdgeSummary, EdgeView};
use bodyguard_protocol::{ActionType, AskId, ErrorCode, OutcomeStatus, TraceId, escape_line, escape_text};
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde_json::Value;

use super::leaves::parse;
use super::{LogReader, MAX_PAGE, read_leaf};
use crate::LogError;
use crate::records::{Intent, Leaf, Outcome, Record};

const SELECT: &str = "SELECT e.edge_id, e.intent_seq, i.bytes, e.outcome_seq, o.bytes
    FROM edges e JOIN leaves i ON i.seq = e.intent_seq LEFT JOIN leaves o ON o.seq = e.outcome_seq";

/// The longest summary, in characters.
const SUMMARY: usize = 160;

impl LogReader {
    /// Some edges of a trace, in order.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn edges(&self, trace_id: &TraceId, offset: u32, limit: u32) -> Result<EdgePage, LogError> {
        let trace_id = trace_id.clone();
        self.read(move |conn| {
            let sql = "SELECT count(*) FROM edges WHERE trace_id = ?1";
            let total = conn.prepare_cached(sql)?.query_row([trace_id.as_str()], |row| row.get(0))?;
            let sql = format!("{SELECT} WHERE e.trace_id = ?1 ORDER BY e.edge_id LIMIT ?2 OFFSET ?3");
            Ok(EdgePage { total, offset, items: page(conn, &sql, &trace_id, limit, offset)? })
        })
        .await
    }

    /// The latest edges of a trace, newest first.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn latest_edges(&self, trace_id: &TraceId, limit: u32) -> Result<Vec<EdgeSummary>, LogError> {
        let trace_id = trace_id.clone();
        self.read(move |conn| {
            let sql = format!("{SELECT} WHERE e.trace_id = ?1 ORDER BY e.edge_id DESC LIMIT ?2 OFFSET ?3");
            page(conn, &sql, &trace_id, limit, 0)
        })
        .await
    }

    /// One edge, whole. The JSON texts are the leaves' bytes, indented and escaped; the bytes
    /// themselves are given by [`LogReader::leaf`] for `intent_seq` and `outcome_seq`.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn edge(&self, trace_id: &TraceId, edge_id: u64) -> Result<Option<EdgeView>, LogError> {
        let trace_id = trace_id.clone();
        self.read(move |conn| {
            let sql = format!("{SELECT} WHERE e.trace_id = ?1 AND e.edge_id = ?2");
            let found = conn.prepare_cached(&sql)?.query_row((trace_id.as_str(), edge_id), raw).optional()?;
            found.map(|raw| view(conn, raw)).transpose()
        })
        .await
    }
}

struct Raw {
    edge_id: u32,
    intent_seq: u64,
    intent: Vec<u8>,
    outcome_seq: Option<u64>,
    outcome: Option<Vec<u8>>,
}

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    Ok(Raw {
        edge_id: row.get(0)?,
        intent_seq: row.get(1)?,
        intent: row.get(2)?,
        outcome_seq: row.get(3)?,
        outcome: row.get(4)?,
    })
}

fn page(
    conn: &Connection,
    sql: &str,
    trace_id: &TraceId,
    limit: u32,
    offset: u32,
) -> Result<Vec<EdgeSummary>, LogError> {
    let mut statement = conn.prepare_cached(sql)?;
    let rows = statement.query_map((trace_id.as_str(), limit.min(MAX_PAGE), offset), raw)?;
    rows.map(|row| Ok(Edge::read(&row?)?.summary())).collect()
}

struct Edge {
    edge_id: u32,
    leaf: Leaf,
    intent: Intent,
    outcome: Option<Outcome>,
    interrupted: bool,
}

impl Edge {
    fn read(raw: &Raw) -> Result<Self, LogError> {
        let seq = raw.intent_seq;
        let leaf = parse(seq, &raw.intent)?;
        let Record::Intent(intent) = &leaf.record else {
            return Err(LogError::Unreadable { seq, reason: "it isn't an intent".into() });
        };
        let intent = intent.as_ref().clone();
        let (mut outcome, mut interrupted) = (None, false);
        if let (Some(seq), Some(bytes)) = (raw.outcome_seq, &raw.outcome) {
            match parse(seq, bytes)?.record {
                Record::Outcome(found) => outcome = Some(*found),
                Record::Interrupted(_) => interrupted = true,
                other => {
                    let reason = format!("it is `{}`, not an outcome", other.kind());
                    return Err(LogError::Unreadable { seq, reason });
                }
            }
        }
        Ok(Self { edge_id: raw.edge_id, leaf, intent, outcome, interrupted })
    }

    fn summary(&self) -> EdgeSummary {
        let outcome = self.outcome.as_ref().map(|outcome| &outcome.outcome);
        let (status, error) = match outcome {
            Some(outcome) => (Some(outcome.status), outcome.error.as_ref().map(|error| error.code)),
            None if self.interrupted => (Some(OutcomeStatus::Failure), Some(ErrorCode::Interrupted)),
            None => (None, None),
        };
        EdgeSummary {
            edge_id: self.edge_id,
            action_type: self.intent.action_type,
            summary: summary(self.intent.action_type, &self.intent.action),
            outcome_status: status,
            error,
            latency_ms: outcome.map_or(0, |outcome| outcome.latency_ms),
            at: self.leaf.at,
            approved_by: self.intent.authorization.as_ref().map(|block| block.payload.approved_by.clone()),
        }
    }
}

fn view(conn: &Connection, raw: Raw) -> Result<EdgeView, LogError> {
    let edge = Edge::read(&raw)?;
    let decision = edge.intent.ask_id.as_ref().map(|ask_id| decision(conn, ask_id)).transpose()?.flatten();
    Ok(EdgeView {
        summary: edge.summary(),
        state_before: edge.intent.state_before,
        state_after: edge.outcome.as_ref().and_then(|outcome| outcome.outcome.state_after.clone()),
        authorization: edge.intent.authorization,
        decision,
        picture: edge.outcome.and_then(|outcome| outcome.outcome.picture),
        intent_json: indented(raw.intent_seq, &raw.intent)?,
        outcome_json: raw.outcome.map(|bytes| indented(raw.outcome_seq.unwrap_or_default(), &bytes)).transpose()?,
        intent_seq: raw.intent_seq,
        outcome_seq: raw.outcome_seq,
    })
}

fn decision(conn: &Connection, ask_id: &AskId) -> Result<Option<bodyguard_protocol::ui::DecisionView>, LogError> {
    let sql = "SELECT opened_seq FROM asks WHERE ask_id = ?1";
    let seq: Option<u64> = conn.prepare_cached(sql)?.query_row([ask_id.as_str()], |row| row.get(0)).optional()?;
    let Some(seq) = seq else { return Ok(None) };
    match read_leaf(conn, seq)?.record {
        Record::AskOpened(ask) => Ok(Some(ask.view)),
        other => Err(LogError::Unreadable { seq, reason: format!("it is `{}`, not a request", other.kind()) }),
    }
}

fn indented(seq: u64, bytes: &[u8]) -> Result<String, LogError> {
    let unreadable = |error: serde_json::Error| LogError::Unreadable { seq, reason: error.to_string() };
    let value: Value = serde_json::from_slice(bytes).map_err(unreadable)?;
    Ok(escape_text(&serde_json::to_string_pretty(&value).map_err(unreadable)?))
}

/// One line on what an action does.
fn summary(kind: ActionType, action: &Value) -> String {
    let param = |name: &str| action.get("params").and_then(|params| params.get(name));
    let target = action.get("target").and_then(Value::as_str).unwrap_or("");
    let text = match kind {
        ActionType::ShellExec => match (param("command").and_then(Value::as_str), param("argv")) {
            (Some(command), _) => command.to_owned(),
            (None, Some(Value::Array(items))) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            (None, _) => target.to_owned(),
        },
        ActionType::FileRead
        | ActionType::FileWrite
        | ActionType::FileEdit
        | ActionType::FileDelete
        | ActionType::KeyboardInput
        | ActionType::MouseClick
        | ActionType::MouseDrag
        | ActionType::ScreenCapture
        | ActionType::ProcessSpawn
        | ActionType::ProcessSignal => target.to_owned(),
    };
    let mut line: String = text.chars().take(SUMMARY).collect();
    if line.len() < text.len() {
        line.push('…');
    }
    escape_line(&line)
}
