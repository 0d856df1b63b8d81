//! The writing side: one writer thread, and handles to it.

mod acts;
mod batch;
mod recover;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use bodyguard_policy::Signer;
use bodyguard_protocol::ui::AskState;
use bodyguard_protocol::{AskId, Clock, Digest};
use tokio::sync::{mpsc, oneshot};

pub use acts::{IntentCommitted, IntentRef};
pub use recover::{InterruptedEdge, Recovery};

use crate::LogError;
use crate::blob::Blobs;
use crate::dir::{self, Ownership};
use crate::read::LogReader;
use crate::records::{AskMoved, AskRecord, MoveNote, Record, SettingChanged};
use crate::redact::Redactor;
use crate::schema;
use crate::settings::{ChangeNote, SettingChange};
use batch::Batch;
use writer::{Message, Work, Writer};

/// How a log is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Bytes that must stay free on the disk before something new may begin, so that its outcome
    /// can still be recorded.
    pub reserve_bytes: u64,
    /// Commands that may wait for the writer; more wait in their callers.
    pub queue: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { reserve_bytes: 32 * 1024 * 1024, queue: 256 }
    }
}

/// The log. Handles are cheap to copy; when the last one is dropped, the writer finishes what waits,
/// signs a last checkpoint and gives the data folder free.
#[derive(Clone)]
pub struct Log {
    inner: Arc<Inner>,
}

struct Inner {
    // Taken before the thread is joined, because its queue ends with the last sender.
    sender: Option<mpsc::Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    reader: LogReader,
    shared: Arc<Shared>,
    boot_id: String,
    redactor: Redactor,
}

/// What the handles and the writer share.
pub(crate) struct Shared {
    pub(crate) dir: PathBuf,
    pub(crate) blobs: Blobs,
    pub(crate) options: Options,
    pub(crate) signer: Mutex<Option<Signer>>,
    /// Transactions committed.
    pub(crate) commits: AtomicU64,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.sender.take();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the log's writer ended by a panic");
        }
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("dir", &self.inner.shared.dir).finish_non_exhaustive()
    }
}

impl Log {
    /// Opens the log of a data folder, or makes one. Blocks for some milliseconds.
    ///
    /// # Errors
    /// [`LogError::Owned`] where another handle, here or in another process, has the folder;
    /// [`LogError::Newer`] where a newer version wrote it; storage errors.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, LogError> {
        Self::open_with(dir, clock, Options::default())
    }

    /// As [`Log::open`], with other limits.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_with(dir: &Path, clock: Arc<dyn Clock>, options: Options) -> Result<Self, LogError> {
        dir::private_dir(dir)?;
        let owner = Ownership::take(dir)?;
        let conn = schema::open_writer(dir)?;
        let blobs = Blobs::at(dir);
        blobs.prepare()?;
        let (signer, commits) = (Mutex::new(None), AtomicU64::new(0));
        let shared = Arc::new(Shared { dir: dir.to_owned(), blobs, options, signer, commits });
        let writer = Writer::start(conn, clock, Arc::clone(&shared), owner)?;
        let redactor = writer.redactor();
        let reader = LogReader::open(dir)?;
        let (sender, queue) = mpsc::channel(options.queue.max(1));
        let thread = std::thread::Builder::new()
            .name("log-writer".into())
            .spawn(move || writer.run(queue))
            .map_err(|error| LogError::io("starting the log's writer", &error))?;
        let boot_id = dir::boot_id();
        let inner = Inner { sender: Some(sender), thread: Some(thread), reader, shared, boot_id, redactor };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Opens a log for reading only, whether or not somebody owns it.
    ///
    /// # Errors
    /// [`LogError::NoLog`], [`LogError::Newer`], [`LogError::Foreign`], storage errors.
    pub fn open_readonly(dir: &Path) -> Result<LogReader, LogError> {
        LogReader::open(dir)
    }

    /// The reading side.
    pub fn reader(&self) -> &LogReader {
        &self.inner.reader
    }

    /// Which boot of the machine this is; goes into [`AskRecord::boot_id`].
    pub fn boot_id(&self) -> &str {
        &self.inner.boot_id
    }

    /// What replaces secrets in this log.
    pub fn redactor(&self) -> &Redactor {
        &self.inner.redactor
    }

    /// Bytes free on the log's disk.
    ///
    /// # Errors
    /// Where the system doesn't say.
    pub fn free_bytes(&self) -> Result<u64, LogError> {
        dir::free_bytes(&self.inner.shared.dir)
    }

    /// Transactions committed since the log was opened; several commands may share one.
    pub fn commits(&self) -> u64 {
        self.inner.shared.commits.load(Ordering::Relaxed)
    }

    /// Signs checkpoints from now on, and one at once if there are leaves without one.
    pub fn set_signer(&self, signer: Signer) {
        *self.inner.shared.signer.lock().unwrap_or_else(PoisonError::into_inner) = Some(signer);
        // Where the queue is full the writer is about to commit, and signs when a checkpoint is due.
        let _ = self.sender().map(|sender| sender.try_send(Message::Checkpoint));
    }

    /// Appends a record; durable when this returns. Gives its leaf's number.
    ///
    /// # Errors
    /// [`LogError::NotAppendable`] for records that have a function of their own; what the record
    /// contradicts, such as [`LogError::SessionEnded`] or [`LogError::BlockUsed`]; storage errors.
    pub async fn append(&self, record: Record) -> Result<u64, LogError> {
        let record = match record {
            Record::Created(_)
            | Record::AskOpened(_)
            | Record::AskMoved(_)
            | Record::Intent(_)
            | Record::Outcome(_)
            | Record::SettingChanged(_)
            | Record::Interrupted(_) => return Err(LogError::NotAppendable(record.kind())),
            Record::SessionBegan(_) => {
                self.need_room()?;
                record
            }
            Record::Refused(mut refused) => {
                if refused.edge.is_some() {
                    return Err(LogError::NotAppendable("refused"));
                }
                refused.attempted = self.redactor().value(refused.attempted);
                Record::Refused(refused)
            }
            Record::Started(_)
            | Record::SessionEnded(_)
            | Record::Perceived(_)
            | Record::BlockIssued(_)
            | Record::PresenceRefused(_)
            | Record::PolicyLoaded(_)
            | Record::Stopped(_)
            | Record::Resumed(_) => record,
        };
        self.run(move |batch| batch.add(record.clone())).await
    }

    /// Opens an ask; durable when this returns.
    ///
    /// # Errors
    /// [`LogError::ShownMismatch`] where the record contradicts its own view; [`LogError::AskExists`];
    /// session and storage errors.
    pub async fn open_ask(&self, ask: AskRecord) -> Result<u64, LogError> {
        self.need_room()?;
        let record = Record::AskOpened(Box::new(ask));
        self.run(move |batch| batch.add(record.clone())).await
    }

    /// Moves an ask, if it stands where the move starts: of any number of callers one wins.
    ///
    /// # Errors
    /// [`LogError::AskConflict`] with where it stands; [`LogError::IllegalMove`] for an arrow that the
    /// machine doesn't have; [`LogError::UnknownAsk`]; storage errors.
    pub async fn move_ask(
        &self,
        ask_id: &AskId,
        from: AskState,
        to: AskState,
        note: MoveNote,
    ) -> Result<u64, LogError> {
        let ask_id = ask_id.clone();
        self.run(move |batch| {
            let trace_id = batch.trace_of_ask(&ask_id)?;
            let moved = AskMoved { ask_id: ask_id.clone(), trace_id, from, to, note: note.clone() };
            batch.add(Record::AskMoved(Box::new(moved)))
        })
        .await
    }

    /// Changes a setting.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn change(&self, change: SettingChange, note: ChangeNote) -> Result<u64, LogError> {
        self.change_all(vec![change], note).await
    }

    /// Changes several settings together or none. Gives the last leaf's number.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn change_all(&self, changes: Vec<SettingChange>, note: ChangeNote) -> Result<u64, LogError> {
        self.run(move |batch| {
            let mut last = batch.size();
            for change in &changes {
                let changed = SettingChanged { change: change.clone(), note: note.clone() };
                last = batch.add(Record::SettingChanged(changed))?;
            }
            Ok(last)
        })
        .await
    }

    /// Signs a checkpoint over everything so far, if there is a signer. Gives the leaves it covers.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn checkpoint(&self) -> Result<u64, LogError> {
        self.run(|batch| {
            batch.want_checkpoint();
            Ok(batch.size())
        })
        .await
    }

    /// Stores bytes beside the log; durable when this returns.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn put_blob(&self, bytes: Vec<u8>) -> Result<Digest, LogError> {
        self.need_room()?;
        let blobs = self.inner.shared.blobs.clone();
        crate::read::blocking(move || blobs.put(&bytes)).await
    }

    /// Reads bytes stored beside the log, and hashes them again.
    ///
    /// # Errors
    /// [`LogError::BlobMissing`], [`LogError::BlobChanged`], storage errors.
    pub async fn blob(&self, digest: &Digest) -> Result<Vec<u8>, LogError> {
        self.inner.reader.blob(digest).await
    }

    /// Finishes what waits, signs a last checkpoint and gives the data folder free. Every later
    /// command, through any handle, fails with [`LogError::Closed`].
    ///
    /// # Errors
    /// [`LogError::Closed`] where it was closed before.
    pub async fn close(&self) -> Result<(), LogError> {
        let (reply, done) = oneshot::channel();
        self.sender()?.send(Message::Close(reply)).await.map_err(|_| LogError::Closed)?;
        done.await.map_err(|_| LogError::Closed)
    }

    fn need_room(&self) -> Result<(), LogError> {
        dir::need_room(&self.inner.shared.dir, self.inner.shared.options.reserve_bytes)
    }

    fn sender(&self) -> Result<&mpsc::Sender<Message>, LogError> {
        self.inner.sender.as_ref().ok_or(LogError::Closed)
    }

    /// Runs a command in the writer; what it did is durable when this returns. The command may run
    /// twice, the first time without effect.
    pub(crate) async fn run<T, F>(&self, command: F) -> Result<T, LogError>
    where
        T: Send + 'static,
        F: FnMut(&mut Batch<'_>) -> Result<T, LogError> + Send + 'static,
    {
        let (reply, done) = oneshot::channel();
        let work = Message::Work(Box::new(Work::new(command, reply)));
        self.sender()?.send(work).await.map_err(|_| LogError::Closed)?;
        done.await.map_err(|_| LogError::Closed)?
    }
}
