//! What the forward model learns from, and where it was wrong.

use bodyguard_protocol::{ActionType, Digest, StateHash, SurpriseSignal, TraceId, WorkspaceName};

use super::{LogReader, MAX_PAGE, read_leaf};
use crate::LogError;
use crate::records::{OutcomeRecord, Record};

/// How many of a workspace's latest acts of a type are looked through.
const LOOKED_THROUGH: u32 = 500;

/// An act that was carried out before.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierRun {
    /// The state it started from.
    pub state_before: StateHash,
    /// What came of it.
    pub outcome: OutcomeRecord,
}

impl LogReader {
    /// Earlier runs of the very same action in a workspace, by any agent, newest first; from its latest
    /// 500 acts of this type.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn earlier_runs(
        &self,
        workspace: &WorkspaceName,
        kind: ActionType,
        action_digest: &Digest,
        limit: u32,
    ) -> Result<Vec<EarlierRun>, LogError> {
        let (workspace, action_digest) = (workspace.clone(), action_digest.clone());
        self.read(move |conn| {
            let sql = "SELECT latest.intent_seq, latest.outcome_seq FROM (
                    SELECT e.intent_seq, e.outcome_seq FROM edges e JOIN sessions s ON s.trace_id = e.trace_id
                    WHERE e.action_type = ?1 AND e.state = 'ended'
                    AND substr(s.agent_id, instr(s.agent_id, '@') + 1) = ?2
                    ORDER BY e.intent_seq DESC LIMIT ?3
                ) latest JOIN leaves i ON i.seq = latest.intent_seq
                WHERE json_extract(CAST(i.bytes AS TEXT), '$.action_digest') = ?4
                ORDER BY latest.intent_seq DESC LIMIT ?5";
            let mut statement = conn.prepare_cached(sql)?;
            let limit = limit.min(MAX_PAGE);
            let values = (kind.name(), workspace.as_str(), LOOKED_THROUGH, action_digest.as_str(), limit);
            let rows = statement.query_map(values, |row| Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?)))?;
            let mut runs = Vec::new();
            for row in rows {
                let (intent_seq, outcome_seq) = row?;
                let (intent, outcome) = (read_leaf(conn, intent_seq)?.record, read_leaf(conn, outcome_seq)?.record);
                if let (Record::Intent(intent), Record::Outcome(outcome)) = (intent, outcome) {
                    runs.push(EarlierRun { state_before: intent.state_before, outcome: outcome.outcome });
                }
            }
            Ok(runs)
        })
        .await
    }

    /// The signals of a trace, in order; at most 1000.
    ///
    /// # Errors
    /// [`LogError::UnknownTrace`]; storage errors.
    pub async fn surprises(&self, trace_id: &TraceId) -> Result<Vec<SurpriseSignal>, LogError> {
        if self.recorded_trace(trace_id).await?.is_none() {
            return Err(LogError::UnknownTrace);
        }
        let trace_id = trace_id.clone();
        self.read(move |conn| {
            let sql = "SELECT o.seq FROM edges e JOIN leaves o ON o.seq = e.outcome_seq WHERE e.trace_id = ?1
                AND json_extract(CAST(o.bytes AS TEXT), '$.surprise') IS NOT NULL ORDER BY e.edge_id LIMIT ?2";
            let mut statement = conn.prepare_cached(sql)?;
            let rows = statement.query_map((trace_id.as_str(), MAX_PAGE), |row| row.get::<_, u64>(0))?;
            let mut signals = Vec::new();
            for seq in rows {
                if let Record::Outcome(outcome) = read_leaf(conn, seq?)?.record {
                    signals.extend(outcome.outcome.surprise);
                }
            }
            Ok(signals)
        })
        .await
    }
}
