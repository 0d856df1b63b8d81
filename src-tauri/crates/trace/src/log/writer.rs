//! The writer: takes waiting commands together into one transaction, and answers after the commit.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use bodyguard_policy::Signer;
use bodyguard_protocol::Clock;
use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::{Batch, Shared};
use crate::LogError;
use crate::checkpoint::Checkpoint;
use crate::dir::{Ownership, random};
use crate::merkle::Frontier;
use crate::project::log_id;
use crate::records::{Created, Record};
use crate::redact::Redactor;

/// Commands that share one transaction at most.
const GROUP: usize = 64;
/// Leaves after which a checkpoint is signed in any case.
const CHECKPOINT_EVERY: u64 = 256;

/// What the writer is sent.
pub(super) enum Message {
    Work(Box<dyn Job>),
    Checkpoint,
    Close(oneshot::Sender<()>),
}

/// A command without its types.
pub(super) trait Job: Send {
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), LogError>;
    fn finish(self: Box<Self>, result: Result<(), LogError>);
}

/// A command and who waits for it.
pub(super) struct Work<T, F> {
    command: F,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, LogError>>,
}

impl<T, F> Work<T, F> {
    pub(super) const fn new(command: F, reply: oneshot::Sender<Result<T, LogError>>) -> Self {
        Self { command, value: None, reply }
    }
}

impl<T: Send, F: FnMut(&mut Batch<'_>) -> Result<T, LogError> + Send> Job for Work<T, F> {
    fn run(&mut self, batch: &mut Batch<'_>) -> Result<(), LogError> {
        self.value = Some((self.command)(batch)?);
        Ok(())
    }

    fn finish(self: Box<Self>, result: Result<(), LogError>) {
        let Self { value, reply, .. } = *self;
        // Who asked may have gone; what was committed stays committed.
        let _ = reply.send(result.and_then(|()| value.ok_or(LogError::Closed)));
    }
}

pub(super) struct Writer {
    conn: Connection,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    frontier: Frontier,
    redactor: Redactor,
    origin: String,
    checkpointed: u64,
    // Last, so that the folder is given free after the connection was closed.
    _owner: Ownership,
}

impl Writer {
    pub(super) fn start(
        conn: Connection,
        clock: Arc<dyn Clock>,
        shared: Arc<Shared>,
        owner: Ownership,
    ) -> Result<Self, LogError> {
        let redactor = redactor(&conn)?;
        let frontier = load_frontier(&conn)?;
        let checkpointed = conn.query_row("SELECT coalesce(max(size), 0) FROM checkpoints", [], |row| row.get(0))?;
        let origin = String::new();
        let mut writer = Self { conn, clock, shared, frontier, redactor, origin, checkpointed, _owner: owner };
        if writer.frontier.size() == 0 {
            let log_id = hex::encode(random::<16>()?);
            let (reply, _) = oneshot::channel();
            let command = move |batch: &mut Batch<'_>| batch.add(Record::Created(Created { log_id: log_id.clone() }));
            let mut job: Box<dyn Job> = Box::new(Work::new(command, reply));
            let result = writer.transaction(std::slice::from_mut(&mut job))?;
            result.into_iter().collect::<Result<(), _>>()?;
        }
        writer.origin = Checkpoint::origin_of(&log_id(&writer.conn)?);
        Ok(writer)
    }

    pub(super) fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Message>) {
        let mut next = queue.blocking_recv();
        while let Some(message) = next.take() {
            match message {
                Message::Work(first) => {
                    let mut jobs = vec![first];
                    while jobs.len() < GROUP {
                        match queue.try_recv() {
                            Ok(Message::Work(job)) => jobs.push(job),
                            Ok(other) => {
                                next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.group(jobs);
                }
                Message::Checkpoint => self.checkpoint_now(),
                Message::Close(reply) => {
                    queue.close();
                    self.finish();
                    let _ = reply.send(());
                    return;
                }
            }
            if next.is_none() {
                next = queue.blocking_recv();
            }
        }
        self.finish();
    }

    /// Ends the log; the folder is free when this returns.
    fn finish(mut self) {
        self.checkpoint_now();
        // Leaves one whole file behind, as far as readers let it.
        if let Err(error) = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
            tracing::warn!(%error, "the write-ahead log stays");
        }
    }

    /// Runs commands together; where the storage fails, each again alone, so that one that doesn't
    /// fit takes no other with it.
    fn group(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        let results = match self.transaction(&mut jobs) {
            Ok(results) => results,
            Err(error) if jobs.len() == 1 => vec![Err(error)],
            Err(_) => jobs.iter_mut().map(|job| self.alone(job)).collect(),
        };
        for (job, result) in jobs.into_iter().zip(results) {
            job.finish(result);
        }
    }

    fn alone(&mut self, job: &mut Box<dyn Job>) -> Result<(), LogError> {
        let results = self.transaction(std::slice::from_mut(job))?;
        results.into_iter().collect()
    }

    /// One transaction. An error is the storage's: then nothing of it holds.
    fn transaction(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<Vec<Result<(), LogError>>, LogError> {
        let (before, checkpointed) = (self.frontier.clone(), self.checkpointed);
        let result = self.attempt(jobs);
        if let Err(error) = &result {
            self.frontier = before;
            self.checkpointed = checkpointed;
            if !self.conn.is_autocommit()
                && let Err(second) = self.conn.execute_batch("ROLLBACK")
            {
                tracing::error!(%error, %second, "rolling back failed");
            }
        }
        result
    }

    fn attempt(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<Vec<Result<(), LogError>>, LogError> {
        self.conn.execute_batch("BEGIN IMMEDIATE")?;
        // After a commit that failed halfway only the file knows what holds.
        let size: u64 = self.conn.query_row("SELECT coalesce(max(seq), 0) FROM leaves", [], |row| row.get(0))?;
        if size != self.frontier.size() {
            self.frontier = load_frontier(&self.conn)?;
        }
        let mut checkpoint = false;
        let mut results = Vec::with_capacity(jobs.len());
        for job in jobs {
            results.push(self.one(job, &mut checkpoint)?);
        }
        let due = self.frontier.size().saturating_sub(self.checkpointed) >= CHECKPOINT_EVERY;
        if checkpoint || due {
            self.sign()?;
        }
        self.conn.execute_batch("COMMIT")?;
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        Ok(results)
    }

    /// One command in a savepoint of its own. The outer error is the storage's.
    #[allow(clippy::borrowed_box, reason = "a job is called through its box")]
    fn one(&mut self, job: &mut Box<dyn Job>, checkpoint: &mut bool) -> Result<Result<(), LogError>, LogError> {
        self.conn.execute_batch("SAVEPOINT command")?;
        let before = self.frontier.clone();
        let mut batch = Batch {
            conn: &self.conn,
            clock: self.clock.as_ref(),
            frontier: &mut self.frontier,
            redactor: &self.redactor,
            checkpoint,
        };
        let result = job.run(&mut batch);
        match &result {
            Ok(()) => self.conn.execute_batch("RELEASE command")?,
            Err(error) if error.is_storage() => return Err(error.clone()),
            Err(_) => {
                self.frontier = before;
                self.conn.execute_batch("ROLLBACK TO command; RELEASE command")?;
            }
        }
        Ok(result)
    }

    fn signer(&self) -> Option<Signer> {
        self.shared.signer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Signs the tree as it stands, if there is a signer and no checkpoint of it yet.
    fn sign(&mut self) -> Result<(), LogError> {
        let Some(signer) = self.signer() else { return Ok(()) };
        let size = self.frontier.size();
        if size == self.checkpointed {
            return Ok(());
        }
        let note = Checkpoint::sign(&self.origin, size, &self.frontier.root(), &signer).note();
        let sql = "INSERT INTO checkpoints(size, note) VALUES(?1, ?2)";
        self.conn.prepare_cached(sql)?.execute(params![size, note])?;
        self.checkpointed = size;
        Ok(())
    }

    fn checkpoint_now(&mut self) {
        if self.signer().is_none() || self.frontier.size() == self.checkpointed {
            return;
        }
        let (reply, _) = oneshot::channel();
        let command = |batch: &mut Batch<'_>| {
            batch.want_checkpoint();
            Ok(())
        };
        let mut job: Box<dyn Job> = Box::new(Work::new(command, reply));
        if let Err(error) = self.transaction(std::slice::from_mut(&mut job)) {
            tracing::error!(%error, "signing a checkpoint failed");
        }
    }
}

fn load_frontier(conn: &Connection) -> Result<Frontier, LogError> {
    let mut frontier = Frontier::default();
    let mut statement = conn.prepare("SELECT hash FROM leaves ORDER BY seq")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        frontier.push(row.get(0)?);
    }
    Ok(frontier)
}

/// The redactor with the log's own key, which is made once.
fn redactor(conn: &Connection) -> Result<Redactor, LogError> {
    let sql = "INSERT INTO local(key, value) VALUES('redaction', ?1) ON CONFLICT DO NOTHING";
    conn.execute(sql, [random::<32>()?.as_slice()])?;
    let key = conn.query_row("SELECT value FROM local WHERE key = 'redaction'", [], |row| row.get::<_, [u8; 32]>(0))?;
    Ok(Redactor::new(key))
}
