//! Edges, and each one whole.

use bodyguard_protocol::ui::{EdgePage, EdgeSummary, EdgeView};
use bodyguard_protocol::{
    ActionType, AskId, Block, ErrorCode, OutcomeStatus, StateHash, Timestamp, TraceId, escape_line, escape_text,
};
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde_json::Value;

use super::leaves::parse;
use super::{LogReader, MAX_PAGE, read_leaf};
use crate::LogError;
use crate::records::{OutcomeRecord, Record};

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

    /// The latest commands of a trace, oldest first: what was run and how it ended.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn commands(&self, trace_id: &TraceId, limit: u32) -> Result<Vec<EdgeSummary>, LogError> {
        let trace_id = trace_id.clone();
        self.read(move |conn| {
            let sql = format!(
                "{SELECT} WHERE e.trace_id = ?1 AND e.action_type = 'shell_exec' AND e.state != 'refused'
                 ORDER BY e.edge_id DESC LIMIT ?2 OFFSET ?3"
            );
            let mut commands = page(conn, &sql, &trace_id, limit, 0)?;
            commands.reverse();
            Ok(commands)
        })
        .await
    }

    /// The median of the milliseconds that the latest `examples` acts of a type took; none where there
    /// were none.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn typical_latency(&self, kind: ActionType, examples: u32) -> Result<Option<u64>, LogError> {
        self.read(move |conn| {
            let sql = "SELECT e.outcome_seq, o.bytes FROM edges e JOIN leaves o ON o.seq = e.outcome_seq
                WHERE e.action_type = ?1 AND e.state = 'ended' ORDER BY e.outcome_seq DESC LIMIT ?2";
            let mut statement = conn.prepare_cached(sql)?;
            let rows = statement.query_map((kind.name(), examples.min(MAX_PAGE)), |row| {
                Ok((row.get::<_, u64>(0)?, row.get::<_, Vec<u8>>(1)?))
            })?;
            let mut took = Vec::new();
            for row in rows {
                let (seq, bytes) = row?;
                if let Record::Outcome(outcome) = parse(seq, &bytes)?.record {
                    took.push(outcome.outcome.latency_ms);
                }
            }
            took.sort_unstable();
            Ok(took.get(took.len() / 2).copied())
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
    at: Timestamp,
    action_type: ActionType,
    action: Value,
    state_before: StateHash,
    ask_id: Option<AskId>,
    authorization: Option<Block>,
    end: End,
}

enum End {
    /// It runs, or ran when the app last ended.
    None,
    Outcome(Box<OutcomeRecord>),
    Interrupted,
    Refused {
        status: OutcomeStatus,
        code: ErrorCode,
        reason: String,
    },
}

impl Edge {
    fn read(raw: &Raw) -> Result<Self, LogError> {
        let seq = raw.intent_seq;
        let leaf = parse(seq, &raw.intent)?;
        let (edge_id, at) = (raw.edge_id, leaf.at);
        match leaf.record {
            Record::Intent(intent) => Ok(Self {
                edge_id,
                at,
                action_type: intent.action_type,
                action: intent.action,
                state_before: intent.state_before,
                ask_id: intent.ask_id,
                authorization: intent.authorization,
                end: end(raw)?,
            }),
            Record::Refused(refused) => {
                let edge = refused.edge.ok_or_else(|| unreadable(seq, "a refusal that is no edge"))?;
                Ok(Self {
                    edge_id,
                    at,
                    action_type: edge.action_type,
                    action: refused.attempted,
                    state_before: edge.state,
                    ask_id: edge.ask_id,
                    authorization: None,
                    end: End::Refused { status: edge.status, code: refused.code, reason: refused.reason },
                })
            }
            other => Err(unreadable(seq, other.kind())),
        }
    }

    fn summary(&self) -> EdgeSummary {
        let (status, error) = match &self.end {
            End::None => (None, None),
            End::Outcome(outcome) => (Some(outcome.status), outcome.error.as_ref().map(|error| error.code)),
            End::Interrupted => (Some(OutcomeStatus::Failure), Some(ErrorCode::Interrupted)),
            End::Refused { status, code, .. } => (Some(*status), Some(*code)),
        };
        EdgeSummary {
            edge_id: self.edge_id,
            action_type: self.action_type,
            summary: summary(self.action_type, &self.action),
            outcome_status: status,
            refused: matches!(self.end, End::Refused { .. }),
            error,
            latency_ms: self.outcome().map_or(0, |outcome| outcome.latency_ms),
            at: self.at,
            approved_by: self.authorization.as_ref().map(|block| block.payload.approved_by.clone()),
        }
    }

    fn outcome(&self) -> Option<&OutcomeRecord> {
        match &self.end {
            End::Outcome(outcome) => Some(outcome),
            End::None | End::Interrupted | End::Refused { .. } => None,
        }
    }

    fn state_after(&self) -> Option<StateHash> {
        match &self.end {
            End::Refused { .. } => Some(self.state_before.clone()),
            _ => self.outcome().and_then(|outcome| outcome.state_after.clone()),
        }
    }
}

fn end(raw: &Raw) -> Result<End, LogError> {
    let (Some(seq), Some(bytes)) = (raw.outcome_seq, &raw.outcome) else { return Ok(End::None) };
    match parse(seq, bytes)?.record {
        Record::Outcome(found) => Ok(End::Outcome(Box::new(found.outcome))),
        Record::Interrupted(_) => Ok(End::Interrupted),
        other => Err(unreadable(seq, other.kind())),
    }
}

fn unreadable(seq: u64, what: &str) -> LogError {
    LogError::Unreadable { seq, reason: format!("an edge doesn't begin or end with it: {what}") }
}

fn view(conn: &Connection, raw: Raw) -> Result<EdgeView, LogError> {
    let edge = Edge::read(&raw)?;
    let decision = edge.ask_id.as_ref().map(|ask_id| decision(conn, ask_id)).transpose()?.flatten();
    Ok(EdgeView {
        summary: edge.summary(),
        state_after: edge.state_after(),
        refused: match &edge.end {
            End::Refused { reason, .. } => Some(escape_text(reason)),
            End::None | End::Outcome(_) | End::Interrupted => None,
        },
        decision,
        picture: edge.outcome().and_then(|outcome| outcome.picture.clone()),
        state_before: edge.state_before,
        authorization: edge.authorization,
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
        ActionType::KeyboardInput => match (param("text").and_then(Value::as_str), param("keys")) {
            (Some(text), _) => text.to_owned(),
            (None, Some(Value::Array(items))) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            (None, _) => target.to_owned(),
        },
        ActionType::ProcessSpawn => {
            let args = param("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            std::iter::once(target).chain(args).collect::<Vec<_>>().join(" ")
        }
        ActionType::ProcessSignal => {
            format!("{} {target}", param("signal").and_then(Value::as_str).unwrap_or_default())
        }
        ActionType::FileRead
        | ActionType::FileWrite
        | ActionType::FileEdit
        | ActionType::FileDelete
        | ActionType::MouseClick
        | ActionType::MouseDrag
        | ActionType::ScreenCapture => target.to_owned(),
    };
    let mut line: String = text.chars().take(SUMMARY).collect();
    if line.len() < text.len() {
        line.push('…');
    }
    escape_line(&line)
}
