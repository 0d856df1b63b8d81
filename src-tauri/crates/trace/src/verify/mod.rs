//! Verifying a log: everything is computed again from the leaves' bytes.

mod check;
mod tables;

use std::collections::BTreeMap;

use bodyguard_policy::KeyList;
use bodyguard_protocol::Digest;
use bodyguard_protocol::ui::VerifyView;
use rusqlite::Connection;

pub(crate) use check::{Checker, picture_of};

use crate::LogError;
use crate::checkpoint::Checkpoint;
use crate::merkle::{Frontier, leaf_hash};
use crate::project::log_id;
use crate::read::{LogReader, blocking};
use crate::records::{Leaf, Record};

/// Something that doesn't hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The first leaf that it concerns; absent for what stands beside the leaves.
    pub seq: Option<u64>,
    /// One sentence.
    pub text: String,
}

/// What verifying found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyReport {
    /// Whether everything holds.
    pub ok: bool,
    /// Leaves checked.
    pub leaves: u64,
    /// The tree's root.
    pub root: Digest,
    /// Checkpoints whose signature and root hold.
    pub checkpoints: u32,
    /// Blocks whose signatures hold.
    pub blocks: u32,
    /// What doesn't hold, the first bad leaf first.
    pub problems: Vec<Problem>,
}

/// The longest list of problems; one bad leaf may make many others bad.
const MAX_PROBLEMS: usize = 100;

/// What a signature proves here, and what it doesn't.
pub const PROVES: &str = "A signature proves that this computer's key signed exactly these bytes and that they weren't \
    changed since. It doesn't prove who sat there: any program of the same user that can use the key could have signed.";

impl VerifyReport {
    /// The report for the window.
    pub fn view(self) -> VerifyView {
        VerifyView {
            ok: self.ok,
            leaves: self.leaves,
            root: self.root,
            checkpoints: self.checkpoints,
            blocks: self.blocks,
            problems: self.problems.into_iter().map(|problem| problem.text).collect(),
            proves: PROVES.to_owned(),
        }
    }
}

/// Computes the log again and compares: each leaf's hash, the leaves' order, every checkpoint's
/// signature and root, every block's signature, that each destructive act has a block of its own and
/// each outcome an intent, that no ask went where the machine has no arrow, that pictures are what
/// the leaves say, and that the tables beside the leaves say what the leaves say. Takes as long as
/// reading everything does.
///
/// # Errors
/// Only where the log can't be read at all; everything else is a [`Problem`].
pub async fn verify(reader: &LogReader, keys: &KeyList) -> Result<VerifyReport, LogError> {
    let (reader, keys) = (reader.clone(), keys.clone());
    blocking(move || verify_blocking(&reader, &keys)).await
}

/// [`verify`] on this thread.
///
/// # Errors
/// As [`verify`].
pub fn verify_blocking(reader: &LogReader, keys: &KeyList) -> Result<VerifyReport, LogError> {
    reader.read_here(|conn| Walk::new(reader, conn, keys)?.finish())
}

struct Walk<'a> {
    reader: &'a LogReader,
    conn: &'a Connection,
    keys: &'a KeyList,
    checker: Checker<'a>,
    frontier: Frontier,
    notes: BTreeMap<u64, String>,
    origin: String,
    /// Leaves up to here are what a checkpoint signed.
    covered: u64,
    checkpoints: u32,
    /// Whether a checkpoint had another root.
    diverged: bool,
    /// The last outcome that must be covered.
    must_cover: Option<u64>,
    problems: Vec<Problem>,
}

struct Row {
    seq: u64,
    kind: String,
    trace_id: Option<String>,
    at: i64,
    bytes: Vec<u8>,
    hash: Vec<u8>,
}

impl<'a> Walk<'a> {
    fn new(reader: &'a LogReader, conn: &'a Connection, keys: &'a KeyList) -> Result<Self, LogError> {
        let mut statement = conn.prepare("SELECT size, note FROM checkpoints")?;
        let notes = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        Ok(Self {
            reader,
            conn,
            keys,
            checker: Checker::new(keys)?,
            frontier: Frontier::default(),
            notes,
            origin: String::new(),
            covered: 0,
            checkpoints: 0,
            diverged: false,
            must_cover: None,
            problems: Vec::new(),
        })
    }

    fn note(&mut self, seq: impl Into<Option<u64>>, text: impl Into<String>) {
        self.problems.push(Problem { seq: seq.into(), text: text.into() });
    }

    fn finish(mut self) -> Result<VerifyReport, LogError> {
        let mut statement =
            self.conn.prepare("SELECT seq, kind, trace_id, at, bytes, hash FROM leaves ORDER BY seq")?;
        let mut rows = statement.query([])?;
        let mut expected = 1;
        while let Some(row) = rows.next()? {
            let row = Row {
                seq: row.get(0)?,
                kind: row.get(1)?,
                trace_id: row.get(2)?,
                at: row.get(3)?,
                bytes: row.get(4)?,
                hash: row.get(5)?,
            };
            if row.seq != expected {
                self.checker.whole = false;
                let last = row.seq.saturating_sub(1);
                let which = if last <= expected {
                    format!("leaf {expected} is")
                } else {
                    format!("leaves {expected} to {last} are")
                };
                self.note(expected, format!("{which} missing"));
            }
            expected = row.seq + 1;
            self.leaf(&row);
        }
        if self.frontier.size() == 0 {
            self.note(1, "leaf 1 is missing");
        }
        self.beyond(expected);
        if self.checker.whole {
            for difference in tables::differences(self.conn, &self.checker.tables)? {
                self.note(None, difference);
            }
        }
        self.problems.sort_by_key(|problem| problem.seq.unwrap_or(u64::MAX));
        self.problems.truncate(MAX_PROBLEMS);
        Ok(VerifyReport {
            ok: self.problems.is_empty(),
            leaves: self.frontier.size(),
            root: Digest::from_raw(self.frontier.root()),
            checkpoints: self.checkpoints,
            blocks: u32::try_from(self.checker.good_blocks.len()).unwrap_or(u32::MAX),
            problems: self.problems,
        })
    }

    fn leaf(&mut self, row: &Row) {
        let seq = row.seq;
        let hash = leaf_hash(&row.bytes);
        // The tree goes on with the hash that stands there: where only bytes were changed, that is
        // what was signed, and the leaves after it aren't blamed.
        self.frontier.push(row.hash.as_slice().try_into().unwrap_or(hash));
        if hash.as_slice() != row.hash {
            self.note(seq, format!("leaf {seq} was changed: its bytes don't have its hash"));
        }
        let (leaf, problems) = self.checker.leaf(seq, &row.bytes);
        for problem in problems {
            self.note(seq, problem);
        }
        if let Some(leaf) = leaf {
            if !check::columns_agree(&leaf, &row.kind, row.trace_id.as_deref(), row.at) {
                self.note(seq, format!("leaf {seq}: the columns beside it say something else"));
            }
            self.record(seq, &leaf);
        }
        if let Some(note) = self.notes.remove(&seq) {
            self.checkpoint(seq, &note);
        }
    }

    fn record(&mut self, seq: u64, leaf: &Leaf) {
        match (&leaf.record, seq) {
            (Record::Created(created), 1) => self.origin = Checkpoint::origin_of(&created.log_id),
            (Record::Created(_), _) => self.note(seq, format!("leaf {seq} begins a log again")),
            (_, 1) => self.note(1, "leaf 1 doesn't begin a log"),
            (_, _) => {}
        }
        if let Record::Outcome(outcome) = &leaf.record
            && self.is_destructive(outcome.intent_seq)
        {
            self.must_cover = Some(seq);
        }
        if let Some(picture) = picture_of(&leaf.record)
            && let Err(error) = self.reader.blobs().get(picture)
        {
            self.note(seq, format!("leaf {seq}: its picture: {error}"));
        }
    }

    fn is_destructive(&self, intent_seq: u64) -> bool {
        let sql = "SELECT destructive FROM edges WHERE intent_seq = ?1";
        self.checker.tables.query_row(sql, [intent_seq], |row| row.get(0)).unwrap_or(false)
    }

    fn checkpoint(&mut self, size: u64, note: &str) {
        let problem = match Checkpoint::parse(note) {
            Err(error) => error.to_string(),
            Ok(read) if read.origin != self.origin => "it is of another log".into(),
            Ok(read) if read.size != size => format!("it says {} leaves", read.size),
            Ok(read) => match read.verify(self.keys) {
                Err(error) => error.to_string(),
                Ok(()) if read.root != self.frontier.root() => return self.other_root(size),
                Ok(()) => {
                    self.checkpoints += 1;
                    self.covered = size;
                    return;
                }
            },
        };
        self.note(size, format!("the checkpoint at {size} doesn't hold: {problem}"));
    }

    /// The first checkpoint with another root bounds where the change is; those after it add nothing.
    fn other_root(&mut self, size: u64) {
        if std::mem::replace(&mut self.diverged, true) {
            return;
        }
        let from = self.covered + 1;
        let named = self.problems.iter().any(|p| p.seq.is_some_and(|seq| (from..=size).contains(&seq)));
        let text =
            format!("leaves {from} to {size} aren't those that were signed: the checkpoint at {size} has another root");
        // A leaf among them that is known to be bad comes first.
        self.note(if named { size } else { from }, text);
    }

    /// Checkpoints over more leaves than there are, the log's name, and outcomes without a checkpoint.
    fn beyond(&mut self, next: u64) {
        for (size, note) in std::mem::take(&mut self.notes) {
            let signed = Checkpoint::parse(&note).is_ok_and(|read| read.verify(self.keys).is_ok());
            let text = if signed {
                format!("the log's end is missing: a checkpoint was signed over {size} leaves")
            } else {
                format!("the checkpoint at {size} doesn't hold, and there aren't as many leaves")
            };
            self.note(next.min(size), text);
        }
        if let Some(seq) = self.must_cover.filter(|seq| *seq > self.covered) {
            self.note(seq, format!("leaf {seq}: a destructive act's outcome without a checkpoint that holds"));
        }
        if self.checker.whole
            && log_id(self.conn).ok().map(|id| Checkpoint::origin_of(&id)) != Some(self.origin.clone())
        {
            self.note(1, "the log goes by another name than its first leaf says");
        }
    }
}
