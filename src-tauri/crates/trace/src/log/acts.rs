//! Intents and outcomes: before anything runs, and after it.

use bodyguard_protocol::{Digest, SessionId, TraceId};
use serde_json::Value;

use super::Log;
use crate::LogError;
use crate::project::{agent_of, next_edge};
use crate::records::{Intent, IntentRecord, Outcome, OutcomeRecord, Record, Refused, RefusedEdge};

/// An intent that is durable. Only [`Log::commit_intent`] makes one; it can't be copied or read from
/// bytes. With a `policy::Authorized` it makes a permit, once.
#[derive(Debug)]
#[must_use = "an intent without an outcome is an interrupted act"]
pub struct IntentCommitted {
    action_digest: Digest,
    reference: IntentRef,
}

impl IntentCommitted {
    /// The digest of the exact action.
    pub const fn action_digest(&self) -> &Digest {
        &self.action_digest
    }

    /// The session.
    pub const fn session_id(&self) -> &SessionId {
        &self.reference.session_id
    }

    /// The trace.
    pub const fn trace_id(&self) -> &TraceId {
        &self.reference.trace_id
    }

    /// The edge in the trace.
    pub const fn edge_id(&self) -> u64 {
        self.reference.edge_id
    }

    /// What [`Log::record_outcome`] needs, to keep when this is consumed.
    pub fn reference(&self) -> IntentRef {
        self.reference.clone()
    }
}

/// Names an intent. Authorises nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentRef {
    session_id: SessionId,
    trace_id: TraceId,
    edge_id: u64,
    intent_seq: u64,
    destructive: bool,
}

impl IntentRef {
    /// The trace.
    pub const fn trace_id(&self) -> &TraceId {
        &self.trace_id
    }

    /// The session.
    pub const fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// The edge in the trace.
    pub const fn edge_id(&self) -> u64 {
        self.edge_id
    }

    /// The intent's leaf.
    pub const fn intent_seq(&self) -> u64 {
        self.intent_seq
    }
}

impl Log {
    /// Records that an act is about to happen; durable when this returns. In the same transaction the
    /// ask goes from `claimed` to `executing`, and the block is used up.
    ///
    /// # Errors
    /// [`LogError::ActionMismatch`], [`LogError::BlockMissing`], [`LogError::BlockMismatch`],
    /// [`LogError::BlockUsed`], [`LogError::AskConflict`] and session errors, each with nothing
    /// recorded; [`LogError::NoRoom`] while the disk is nearly full; storage errors.
    pub async fn commit_intent(&self, intent: IntentRecord) -> Result<IntentCommitted, LogError> {
        self.need_room()?;
        if intent.action.digest().map_err(LogError::Unrepresentable)? != intent.action_digest {
            return Err(LogError::ActionMismatch);
        }
        let destructive = intent.action.kind.is_destructive();
        let action_digest = intent.action_digest.clone();
        let (session_id, trace_id) = (intent.session_id.clone(), intent.trace_id.clone());
        let (edge_id, intent_seq) = self
            .run(move |batch| {
                let agent_id = agent_of(batch.conn, &intent.session_id)?;
                let edge_id = next_edge(batch.conn, &intent.trace_id)?;
                let (action, redacted) = batch.redactor.action(&intent.action)?;
                let leaf = Intent {
                    session_id: intent.session_id.clone(),
                    trace_id: intent.trace_id.clone(),
                    edge_id,
                    agent_id,
                    action_type: intent.action.kind,
                    action,
                    action_digest: intent.action_digest.clone(),
                    redacted,
                    state_before: intent.state_before.clone(),
                    binding: intent.binding.clone(),
                    prediction: batch.redactor.value(intent.prediction.clone()),
                    ask_id: intent.ask_id.clone(),
                    policy_id: intent.policy_id.clone(),
                    authorization: intent.authorization.clone(),
                };
                Ok((edge_id, batch.add(Record::Intent(Box::new(leaf)))?))
            })
            .await?;
        let reference = IntentRef { session_id, trace_id, edge_id, intent_seq, destructive };
        Ok(IntentCommitted { action_digest, reference })
    }

    /// Records an act that was refused, as the next edge of its trace; durable when this returns. Gives
    /// the edge. What `edge` says of its number is not looked at.
    ///
    /// # Errors
    /// Session and storage errors.
    pub async fn refuse_act(&self, refused: Refused, edge: RefusedEdge) -> Result<u64, LogError> {
        let attempted = self.redactor().value(refused.attempted);
        let reason = self.redactor().text(&refused.reason);
        let trace_id = refused.trace_id.clone().ok_or(LogError::UnknownSession)?;
        let refused = Refused { attempted, reason, ..refused };
        self.run(move |batch| {
            let edge_id = next_edge(batch.conn, &trace_id)?;
            let edge = Some(RefusedEdge { edge_id, ..edge.clone() });
            batch.add(Record::Refused(Box::new(Refused { edge, ..refused.clone() })))?;
            Ok(edge_id)
        })
        .await
    }

    /// Records how an act ended; durable when this returns. Moves its ask to `done`, and after a
    /// destructive act signs a checkpoint in the same transaction.
    ///
    /// # Errors
    /// [`LogError::EdgeEnded`] where it has an outcome already; storage errors.
    pub async fn record_outcome(&self, intent: IntentRef, outcome: OutcomeRecord) -> Result<u64, LogError> {
        let mut outcome = outcome;
        outcome.observed = outcome.observed.map(|observed| self.redactor().value(observed));
        if let Some(error) = &mut outcome.error {
            error.message = self.redactor().text(&error.message);
        }
        if let Some(surprise) = &mut outcome.surprise {
            let evidence = self.redactor().value(Value::Object(std::mem::take(&mut surprise.evidence)));
            surprise.evidence = evidence.as_object().cloned().unwrap_or_default();
        }
        self.run(move |batch| {
            if intent.destructive {
                batch.want_checkpoint();
            }
            batch.add(Record::Outcome(Box::new(Outcome {
                session_id: intent.session_id.clone(),
                trace_id: intent.trace_id.clone(),
                edge_id: intent.edge_id,
                intent_seq: intent.intent_seq,
                outcome: outcome.clone(),
            })))
        })
        .await
    }
}
