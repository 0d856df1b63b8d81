//! One transaction of the writer.

use bodyguard_protocol::{AskId, Clock, TraceId, canonical_bytes};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::LogError;
use crate::merkle::{Frontier, leaf_hash};
use crate::project::project;
use crate::records::{Leaf, RECORD_VERSION, Record};
use crate::redact::Redactor;

/// What a command works on.
pub(crate) struct Batch<'a> {
    pub(super) conn: &'a Connection,
    pub(super) clock: &'a dyn Clock,
    pub(super) frontier: &'a mut Frontier,
    pub(super) redactor: &'a Redactor,
    pub(super) checkpoint: &'a mut bool,
}

impl Batch<'_> {
    /// How many leaves.
    pub(crate) fn size(&self) -> u64 {
        self.frontier.size()
    }

    /// Signs a checkpoint with this transaction.
    pub(crate) fn want_checkpoint(&mut self) {
        *self.checkpoint = true;
    }

    /// Adds a leaf and what is projected from it. Gives its number.
    pub(crate) fn add(&mut self, record: Record) -> Result<u64, LogError> {
        if matches!(record, Record::SessionEnded(_) | Record::Stopped(_) | Record::Resumed(_)) {
            self.want_checkpoint();
        }
        let now = self.clock.now();
        let leaf = Leaf { v: RECORD_VERSION, at: now.wall, boot_ms: now.boot_ms, record };
        let bytes = canonical_bytes(&leaf).map_err(LogError::Unrepresentable)?;
        let (seq, hash) = (self.frontier.size() + 1, leaf_hash(&bytes));
        project(self.conn, seq, &leaf)?;
        let sql = "INSERT INTO leaves(seq, kind, trace_id, at, bytes, hash) VALUES(?1, ?2, ?3, ?4, ?5, ?6)";
        let trace_id = leaf.record.trace_id().map(TraceId::as_str);
        self.conn.prepare_cached(sql)?.execute(params![
            seq,
            leaf.record.kind(),
            trace_id,
            leaf.at.millis(),
            bytes,
            hash.as_slice()
        ])?;
        self.frontier.push(hash);
        Ok(seq)
    }

    /// The trace that an ask belongs to.
    pub(crate) fn trace_of_ask(&self, ask_id: &AskId) -> Result<Option<TraceId>, LogError> {
        let sql = "SELECT trace_id FROM asks WHERE ask_id = ?1";
        let found: Option<Option<String>> =
            self.conn.prepare_cached(sql)?.query_row([ask_id.as_str()], |row| row.get(0)).optional()?;
        let text = found.ok_or_else(|| LogError::UnknownAsk(ask_id.clone()))?;
        text.map(|text| text.parse().map_err(LogError::Unrepresentable)).transpose()
    }
}
