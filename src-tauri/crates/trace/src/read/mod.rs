//! The reading side: a few connections that can't write, each used on a blocking thread.

mod asks;
mod earlier;
mod edges;
mod leaves;
mod replay;
mod settings;
mod traces;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bodyguard_protocol::Digest;
use rusqlite::Connection;
use tokio::sync::Semaphore;

pub use asks::StoredAsk;
pub use earlier::EarlierRun;
pub use leaves::StoredLeaf;
pub(crate) use leaves::{block_of, parse, read_leaf};
pub use replay::{RecordedAct, RecordedEdge, RecordedEnd, RecordedTrace};
pub(crate) use settings::keys;
pub use traces::StoredSession;

use crate::LogError;
use crate::blob::Blobs;
use crate::schema;

/// Reads at the same time at most.
const READERS: usize = 4;
/// The longest page.
const MAX_PAGE: u32 = 1000;

/// Reads a log. Every call sees one state of it, even while others write.
#[derive(Clone)]
pub struct LogReader {
    pool: Arc<Pool>,
}

struct Pool {
    dir: PathBuf,
    blobs: Blobs,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl std::fmt::Debug for LogReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogReader").field("dir", &self.pool.dir).finish_non_exhaustive()
    }
}

/// Counts for the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Leaves in the log.
    pub leaves: u64,
    /// Asks that wait for the person.
    pub open_asks: u32,
    /// Sessions that run.
    pub running_sessions: u32,
    /// Whether a person stopped everything.
    pub stopped: bool,
}

impl LogReader {
    pub(crate) fn open(dir: &Path) -> Result<Self, LogError> {
        let first = schema::open_reader(dir)?;
        let pool = Pool {
            dir: dir.to_owned(),
            blobs: Blobs::at(dir),
            idle: Mutex::new(vec![first]),
            permits: Semaphore::new(READERS),
        };
        Ok(Self { pool: Arc::new(pool) })
    }

    /// Where the log is.
    pub fn dir(&self) -> &Path {
        &self.pool.dir
    }

    /// Counts for the frame.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn counts(&self) -> Result<Counts, LogError> {
        self.read(|conn| {
            let number = |sql| conn.query_row(sql, [], |row| row.get(0));
            Ok(Counts {
                leaves: conn.query_row("SELECT coalesce(max(seq), 0) FROM leaves", [], |row| row.get(0))?,
                open_asks: number("SELECT count(*) FROM asks WHERE state = 'open'")?,
                running_sessions: number("SELECT count(*) FROM sessions WHERE state = 'running'")?,
                stopped: settings::stopped(conn)?,
            })
        })
        .await
    }

    /// Reads bytes stored beside the log, and hashes them again.
    ///
    /// # Errors
    /// [`LogError::BlobMissing`], [`LogError::BlobChanged`], storage errors.
    pub async fn blob(&self, digest: &Digest) -> Result<Vec<u8>, LogError> {
        let (blobs, digest) = (self.pool.blobs.clone(), digest.clone());
        blocking(move || blobs.get(&digest)).await
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        &self.pool.blobs
    }

    /// Reads on a blocking thread, in one transaction.
    pub(crate) async fn read<T, F>(&self, f: F) -> Result<T, LogError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, LogError> + Send + 'static,
    {
        let _permit = self.pool.permits.acquire().await.map_err(|_| LogError::Closed)?;
        let reader = self.clone();
        blocking(move || reader.read_here(f)).await
    }

    /// Reads on this thread, in one transaction.
    pub(crate) fn read_here<T>(&self, f: impl FnOnce(&Connection) -> Result<T, LogError>) -> Result<T, LogError> {
        let idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let conn = match idle {
            Some(conn) => conn,
            None => schema::open_reader(&self.pool.dir)?,
        };
        let tx = conn.unchecked_transaction()?;
        let value = f(&tx)?;
        tx.commit()?;
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS {
            idle.push(conn);
        }
        Ok(value)
    }
}

/// Runs what blocks where it may.
pub(crate) async fn blocking<T, F>(f: F) -> Result<T, LogError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, LogError> + Send + 'static,
{
    tokio::task::spawn_blocking(f).await.map_err(|error| LogError::Storage(format!("a read ended early: {error}")))?
}

/// An id or digest from a column.
pub(crate) fn parsed<T: std::str::FromStr<Err = bodyguard_protocol::Fault>>(text: &str) -> Result<T, LogError> {
    text.parse().map_err(LogError::Unrepresentable)
}
