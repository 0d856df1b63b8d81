//! What must hold of one leaf by itself and after those before it.

use std::collections::HashSet;

use bodyguard_policy::KeyList;
use bodyguard_protocol::{Block, Digest, TraceId, canonical_bytes, canonical_digest};
use rusqlite::Connection;
use serde_json::Value;

use crate::LogError;
use crate::project::project;
use crate::read::{block_of, parse};
use crate::records::{Leaf, Record};
use crate::schema;

/// Goes through leaves in order and applies each to tables of its own.
pub(crate) struct Checker<'a> {
    keys: &'a KeyList,
    /// The tables as the leaves make them.
    pub(crate) tables: Connection,
    /// Whether every leaf so far could be applied.
    pub(crate) whole: bool,
    /// Blocks whose signatures hold.
    pub(crate) good_blocks: HashSet<Digest>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(keys: &'a KeyList) -> Result<Self, LogError> {
        Ok(Self { keys, tables: schema::open_projection()?, whole: true, good_blocks: HashSet::new() })
    }

    /// What doesn't hold of the next leaf, and what it says if it can be read.
    pub(crate) fn leaf(&mut self, seq: u64, bytes: &[u8]) -> (Option<Leaf>, Vec<String>) {
        let leaf = match parse(seq, bytes) {
            Ok(leaf) => leaf,
            Err(error) => {
                self.whole = false;
                return (None, vec![error.to_string()]);
            }
        };
        let mut problems = Vec::new();
        let value: Option<Value> = serde_json::from_slice(bytes).ok();
        if value.and_then(|value| canonical_bytes(&value).ok()).as_deref() != Some(bytes) {
            problems.push(format!("leaf {seq} isn't canonical JSON"));
        }
        if let Some(block) = block_of(&leaf.record) {
            self.block(seq, block, &mut problems);
        }
        if let Record::Intent(intent) = &leaf.record
            && !intent.redacted
            && canonical_digest(&intent.action).ok().as_ref() != Some(&intent.action_digest)
        {
            problems.push(format!("leaf {seq}: the action digest isn't the digest of the action"));
        }
        if let Err(error) = project(&self.tables, seq, &leaf) {
            self.whole = false;
            problems.push(format!("leaf {seq} ({}) can't stand here: {error}", leaf.record.kind()));
        }
        (Some(leaf), problems)
    }

    fn block(&mut self, seq: u64, block: &Block, problems: &mut Vec<String>) {
        let Ok(bytes) = canonical_bytes(&block.payload) else {
            problems.push(format!("leaf {seq}: its block isn't representable"));
            return;
        };
        let before = problems.len();
        if Digest::of(&bytes) != block.authorization_token {
            problems.push(format!("leaf {seq}: the block's token isn't the digest of what is signed"));
        }
        if block.signatures.is_empty() {
            problems.push(format!("leaf {seq}: the block isn't signed"));
        }
        for signature in &block.signatures {
            if let Err(error) = self.keys.verify(&signature.key_id, &bytes, &signature.value) {
                problems.push(format!("leaf {seq}: the block's signature by {}: {error}", signature.key_id));
            }
        }
        if problems.len() == before {
            self.good_blocks.insert(block.authorization_token.clone());
        }
    }
}

/// The pictures that a record names.
pub(crate) fn picture_of(record: &Record) -> Option<&Digest> {
    match record {
        Record::Perceived(look) => look.picture.as_ref(),
        Record::Outcome(outcome) => outcome.outcome.picture.as_ref(),
        Record::Created(_)
        | Record::Started(_)
        | Record::SessionBegan(_)
        | Record::SessionEnded(_)
        | Record::AskOpened(_)
        | Record::AskMoved(_)
        | Record::BlockIssued(_)
        | Record::Intent(_)
        | Record::Refused(_)
        | Record::PresenceRefused(_)
        | Record::SettingChanged(_)
        | Record::PolicyLoaded(_)
        | Record::Stopped(_)
        | Record::Resumed(_)
        | Record::Interrupted(_) => None,
    }
}

/// Whether the columns beside a leaf say what its bytes say.
pub(crate) fn columns_agree(leaf: &Leaf, kind: &str, trace_id: Option<&str>, at: i64) -> bool {
    leaf.record.kind() == kind && leaf.record.trace_id().map(TraceId::as_str) == trace_id && leaf.at.millis() == at
}
