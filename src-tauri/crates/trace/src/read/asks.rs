//! Asks with what was shown.

use bodyguard_protocol::ui::{AskDetail, AskState, AskSummary, EdgeAddress};
use bodyguard_protocol::{ActionType, AskId, Block, Digest, Timestamp};
use rusqlite::{Connection, Row};

use super::leaves::block_of;
use super::{LogReader, MAX_PAGE, parsed, read_leaf};
use crate::LogError;
use crate::project::variant;
use crate::records::{AskRecord, Record};

/// An ask as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAsk {
    /// What was asked, verbatim.
    pub record: AskRecord,
    /// How it stands.
    pub state: AskState,
    /// The leaf that opened it.
    pub opened_seq: u64,
    /// When it was decided or ended.
    pub decided_at: Option<Timestamp>,
    /// The person's reason, or what ended it.
    pub reason: Option<String>,
    /// The input device that decided.
    pub device: Option<String>,
    /// The block that a yes signed.
    pub block: Option<Block>,
    /// The edge that came of it.
    pub edge: Option<EdgeAddress>,
}

impl StoredAsk {
    /// The line in the queue.
    pub fn summary(&self, requester_present: bool) -> AskSummary {
        let view = &self.record.view;
        let action_type: Option<ActionType> =
            self.record.subject.get("type").and_then(|name| variant(name.as_str()?).ok());
        AskSummary {
            ask_id: view.ask_id.clone(),
            kind: view.kind,
            headline: view.headline.clone(),
            requester: view.requester.clone(),
            action_type,
            state: self.state,
            requester_present,
            asked_at: view.asked_at,
            expires_at: view.expires_at,
            decided_at: self.decided_at,
            reason: self.reason.clone(),
        }
    }

    /// What is shown of it.
    pub fn detail(&self, requester_present: bool) -> AskDetail {
        AskDetail {
            view: self.record.view.clone(),
            shown_digest: self.record.shown_digest.clone(),
            state: self.state,
            requester_present,
            reason: self.reason.clone(),
            edge: self.edge.clone(),
        }
    }
}

const COLUMNS: &str = "ask_id, state, opened_seq, decided_at, reason, device, token, trace_id,
    (SELECT e.edge_id FROM edges e WHERE e.ask_id = asks.ask_id)";

impl LogReader {
    /// One ask.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn ask(&self, ask_id: &AskId) -> Result<Option<StoredAsk>, LogError> {
        let ask_id = ask_id.clone();
        self.read(move |conn| {
            let sql = format!("SELECT {COLUMNS} FROM asks WHERE ask_id = ?1");
            Ok(select(conn, &sql, [ask_id.as_str()])?.pop())
        })
        .await
    }

    /// Every ask that isn't over (`open`, `approved`, `claimed`, `executing`), oldest first, then the
    /// latest `ended` of those that are, newest first.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn asks(&self, ended: u32) -> Result<Vec<StoredAsk>, LogError> {
        self.read(move |conn| {
            let live = "state IN ('open', 'approved', 'claimed', 'executing')";
            let sql = format!("SELECT {COLUMNS} FROM asks WHERE {live} ORDER BY opened_seq");
            let mut asks = select(conn, &sql, [])?;
            let sql = format!("SELECT {COLUMNS} FROM asks WHERE NOT {live} ORDER BY moved_seq DESC LIMIT ?1");
            asks.extend(select(conn, &sql, [ended.min(MAX_PAGE)])?);
            Ok(asks)
        })
        .await
    }

    /// How many open asks an agent has, and how many there are in all.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn open_asks(&self, agent_id: &str) -> Result<(u32, u32), LogError> {
        let agent_id = agent_id.to_owned();
        self.read(move |conn| {
            let sql = "SELECT count(*) FILTER (WHERE agent_id = ?1), count(*) FROM asks WHERE state = 'open'";
            Ok(conn.prepare_cached(sql)?.query_row([agent_id], |row| Ok((row.get(0)?, row.get(1)?)))?)
        })
        .await
    }
}

struct Raw {
    state: String,
    opened_seq: u64,
    decided_at: Option<i64>,
    reason: Option<String>,
    device: Option<String>,
    token: Option<String>,
    trace_id: Option<String>,
    edge_id: Option<u32>,
}

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    Ok(Raw {
        state: row.get(1)?,
        opened_seq: row.get(2)?,
        decided_at: row.get(3)?,
        reason: row.get(4)?,
        device: row.get(5)?,
        token: row.get(6)?,
        trace_id: row.get(7)?,
        edge_id: row.get(8)?,
    })
}

fn select<P: rusqlite::Params>(conn: &Connection, sql: &str, params: P) -> Result<Vec<StoredAsk>, LogError> {
    let mut statement = conn.prepare_cached(sql)?;
    let rows: Vec<Raw> = statement.query_map(params, raw)?.collect::<Result<_, _>>()?;
    rows.into_iter().map(|row| whole(conn, row)).collect()
}

fn whole(conn: &Connection, row: Raw) -> Result<StoredAsk, LogError> {
    let seq = row.opened_seq;
    let Record::AskOpened(record) = read_leaf(conn, seq)?.record else {
        return Err(LogError::Unreadable { seq, reason: "it doesn't open a request".into() });
    };
    let block = row.token.map(|token| block_by_token(conn, &parsed(&token)?)).transpose()?.flatten();
    let edge = match (row.trace_id, row.edge_id) {
        (Some(trace_id), Some(edge_id)) => Some(EdgeAddress { trace_id: parsed(&trace_id)?, edge_id }),
        _ => None,
    };
    Ok(StoredAsk {
        record: *record,
        state: variant(&row.state)?,
        opened_seq: row.opened_seq,
        decided_at: row.decided_at.map(Timestamp::from_millis),
        reason: row.reason,
        device: row.device,
        block,
        edge,
    })
}

fn block_by_token(conn: &Connection, token: &Digest) -> Result<Option<Block>, LogError> {
    let sql = "SELECT seq FROM blocks WHERE token = ?1";
    let seq: u64 = conn.prepare_cached(sql)?.query_row([token.as_str()], |row| row.get(0))?;
    Ok(block_of(&read_leaf(conn, seq)?.record).cloned())
}
