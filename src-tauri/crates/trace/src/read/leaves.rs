//! Leaves as they are stored, and what is found through them.

use bodyguard_protocol::{Block, Digest, TraceId};
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::LogReader;
use crate::LogError;
use crate::records::{Leaf, Perceived, Record};

/// One leaf.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredLeaf {
    /// From 1.
    pub seq: u64,
    /// The bytes that are hashed, verbatim.
    pub bytes: Vec<u8>,
    /// What they say.
    pub leaf: Leaf,
}

impl LogReader {
    /// One leaf.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn leaf(&self, seq: u64) -> Result<Option<StoredLeaf>, LogError> {
        self.read(move |conn| {
            let sql = "SELECT seq, bytes FROM leaves WHERE seq = ?1";
            conn.prepare_cached(sql)?.query_row([seq], stored).optional()?.map(read).transpose()
        })
        .await
    }

    /// The leaves from one number on, in order.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn leaves(&self, from: u64, limit: u32) -> Result<Vec<StoredLeaf>, LogError> {
        self.read(move |conn| {
            let sql = "SELECT seq, bytes FROM leaves WHERE seq >= ?1 ORDER BY seq LIMIT ?2";
            let mut statement = conn.prepare_cached(sql)?;
            let rows = statement.query_map((from, limit.min(super::MAX_PAGE)), stored)?;
            rows.map(|row| read(row?)).collect()
        })
        .await
    }

    /// A block that was issued here, looked up by its token, and whether it was used.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn block(&self, token: &Digest) -> Result<Option<(Block, bool)>, LogError> {
        let token = token.clone();
        self.read(move |conn| {
            let sql = "SELECT seq, token IN (SELECT token FROM used_blocks) FROM blocks WHERE token = ?1";
            let found: Option<(u64, bool)> = conn
                .prepare_cached(sql)?
                .query_row([token.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((seq, used)) = found else { return Ok(None) };
            Ok(block_of(&read_leaf(conn, seq)?.record).cloned().map(|block| (block, used)))
        })
        .await
    }

    /// The last look of a trace, with its leaf.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn last_perceived(&self, trace_id: &TraceId) -> Result<Option<(Leaf, Perceived)>, LogError> {
        self.last_look(trace_id, "").await
    }

    /// The last look of a trace that gave a picture, with its leaf.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn last_picture(&self, trace_id: &TraceId) -> Result<Option<(Leaf, Perceived)>, LogError> {
        self.last_look(trace_id, "AND json_extract(CAST(bytes AS TEXT), '$.picture') IS NOT NULL").await
    }

    async fn last_look(
        &self,
        trace_id: &TraceId,
        condition: &'static str,
    ) -> Result<Option<(Leaf, Perceived)>, LogError> {
        let trace_id = trace_id.clone();
        self.read(move |conn| {
            let sql = format!(
                "SELECT seq, bytes FROM leaves WHERE trace_id = ?1 AND kind = 'perceived' {condition}
                 ORDER BY seq DESC LIMIT 1"
            );
            let found = conn.prepare_cached(&sql)?.query_row([trace_id.as_str()], stored).optional()?;
            let Some(found) = found.map(read).transpose()? else { return Ok(None) };
            let Record::Perceived(look) = &found.leaf.record else { return Ok(None) };
            let look = look.as_ref().clone();
            Ok(Some((found.leaf, look)))
        })
        .await
    }
}

/// The block that a record carries.
pub(crate) const fn block_of(record: &Record) -> Option<&Block> {
    match record {
        Record::BlockIssued(r) => Some(&r.block),
        Record::AskMoved(r) => r.note.block.as_ref(),
        Record::Intent(r) => r.authorization.as_ref(),
        Record::Perceived(r) => r.authorization.as_ref(),
        Record::Created(_)
        | Record::Started(_)
        | Record::SessionBegan(_)
        | Record::SessionEnded(_)
        | Record::AskOpened(_)
        | Record::Outcome(_)
        | Record::Refused(_)
        | Record::PresenceRefused(_)
        | Record::SettingChanged(_)
        | Record::PolicyLoaded(_)
        | Record::Stopped(_)
        | Record::Resumed(_)
        | Record::Interrupted(_) => None,
    }
}

type Raw = (u64, Vec<u8>);

fn stored(row: &Row<'_>) -> rusqlite::Result<Raw> {
    Ok((row.get(0)?, row.get(1)?))
}

fn read((seq, bytes): Raw) -> Result<StoredLeaf, LogError> {
    let leaf = parse(seq, &bytes)?;
    Ok(StoredLeaf { seq, bytes, leaf })
}

/// What a leaf's bytes say.
pub(crate) fn parse(seq: u64, bytes: &[u8]) -> Result<Leaf, LogError> {
    serde_json::from_slice(bytes).map_err(|error| LogError::Unreadable { seq, reason: error.to_string() })
}

/// What a leaf says that must be there.
pub(crate) fn read_leaf(conn: &Connection, seq: u64) -> Result<Leaf, LogError> {
    let sql = "SELECT seq, bytes FROM leaves WHERE seq = ?1";
    let found = conn.prepare_cached(sql)?.query_row([seq], stored).optional()?;
    let (seq, bytes) = found.ok_or_else(|| LogError::Unreadable { seq, reason: "it is missing".into() })?;
    parse(seq, &bytes)
}
