//! The database file: its tables, its format number, and how connections to it are opened.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::LogError;
use crate::dir::private_file;

/// The newest format this version knows (`user_version`).
pub(crate) const FORMAT: u32 = 1;
/// `BGLG`: says that a database is a log of this program (`application_id`).
const APPLICATION: u32 = 0x4247_4C47;

/// Where a database file says its format (SQLite file format §1.3.19).
const FORMAT_OFFSET: usize = 60;
/// The length of a database file's header.
const HEADER: usize = 100;

/// The leaves, and what isn't projected from them.
const BASE: &str = "
CREATE TABLE leaves(
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    trace_id TEXT,
    at INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE INDEX leaves_of_trace ON leaves(trace_id, seq) WHERE trace_id IS NOT NULL;
CREATE TABLE checkpoints(size INTEGER PRIMARY KEY, note TEXT NOT NULL) STRICT;
CREATE TABLE local(key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
";

/// What is projected from the leaves. `verify` makes these tables again from the leaves alone.
pub(crate) const PROJECTED: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE sessions(
    session_id TEXT PRIMARY KEY,
    trace_id TEXT NOT NULL UNIQUE,
    agent_id TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT,
    started_at INTEGER NOT NULL,
    last_active_at INTEGER NOT NULL,
    ended_at INTEGER,
    began_seq INTEGER NOT NULL,
    ended_seq INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_start ON sessions(began_seq);
CREATE TABLE edges(
    trace_id TEXT NOT NULL REFERENCES sessions(trace_id),
    edge_id INTEGER NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions(session_id),
    action_type TEXT NOT NULL,
    destructive INTEGER NOT NULL,
    ask_id TEXT REFERENCES asks(ask_id),
    state TEXT NOT NULL,
    status TEXT,
    intent_seq INTEGER NOT NULL,
    outcome_seq INTEGER,
    PRIMARY KEY(trace_id, edge_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_unended ON edges(state) WHERE state = 'executing';
CREATE INDEX edges_of_ask ON edges(ask_id) WHERE ask_id IS NOT NULL;
CREATE TABLE asks(
    ask_id TEXT PRIMARY KEY,
    session_id TEXT REFERENCES sessions(session_id),
    trace_id TEXT,
    agent_id TEXT NOT NULL,
    action_digest TEXT NOT NULL,
    shown_digest TEXT NOT NULL,
    state TEXT NOT NULL,
    opened_seq INTEGER NOT NULL,
    moved_seq INTEGER NOT NULL,
    decided_at INTEGER,
    reason TEXT,
    device TEXT,
    token TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX asks_by_state ON asks(state, opened_seq);
CREATE INDEX asks_by_session ON asks(session_id, state);
CREATE TABLE blocks(token TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE used_blocks(token TEXT PRIMARY KEY, nonce TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE agents(
    name TEXT PRIMARY KEY,
    token_sha256 TEXT NOT NULL UNIQUE,
    workspaces TEXT NOT NULL,
    added_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE workspaces(
    name TEXT PRIMARY KEY,
    root TEXT NOT NULL,
    body TEXT NOT NULL,
    template TEXT NOT NULL,
    key_processes TEXT NOT NULL,
    env_allow TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE devices(name TEXT PRIMARY KEY, kind TEXT NOT NULL, enrolled INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE keys(
    key_id TEXT PRIMARY KEY,
    public_key TEXT NOT NULL,
    kept_in TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    current INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE policies(workspace TEXT PRIMARY KEY, digest TEXT NOT NULL, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE settings(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
";

/// The projected tables, each with the columns that order its rows.
pub(crate) const PROJECTED_TABLES: [(&str, &str); 12] = [
    ("meta", "key"),
    ("sessions", "began_seq"),
    ("asks", "opened_seq"),
    ("edges", "intent_seq"),
    ("blocks", "seq, token"),
    ("used_blocks", "seq"),
    ("agents", "name"),
    ("workspaces", "name"),
    ("devices", "name"),
    ("keys", "key_id"),
    ("policies", "workspace"),
    ("settings", "key"),
];

/// The database file of a data folder.
pub(crate) fn file(dir: &Path) -> PathBuf {
    dir.join("log.db")
}

/// Opens the one writing connection, and makes the tables in a new file.
pub(crate) fn open_writer(dir: &Path) -> Result<Connection, LogError> {
    let path = file(dir);
    refuse_newer_header(&path)?;
    drop(private_file(&path)?);
    let mut conn =
        Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    if format(&conn, &path)?.is_none() {
        conn.pragma_update(None, "journal_mode", "WAL")?;
        let tx = conn.transaction()?;
        tx.execute_batch(BASE)?;
        tx.execute_batch(PROJECTED)?;
        tx.pragma_update(None, "application_id", APPLICATION)?;
        tx.pragma_update(None, "user_version", FORMAT)?;
        tx.commit()?;
    }
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// Opens a connection that can't write.
pub(crate) fn open_reader(dir: &Path) -> Result<Connection, LogError> {
    let path = file(dir);
    if !path.exists() {
        return Err(LogError::NoLog(dir.to_owned()));
    }
    refuse_newer_header(&path)?;
    let conn = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    if format(&conn, &path)?.is_none() {
        return Err(LogError::NoLog(dir.to_owned()));
    }
    conn.pragma_update(None, "query_only", true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// A database in memory with the projected tables only.
pub(crate) fn open_projection() -> Result<Connection, LogError> {
    let conn = Connection::open_in_memory()?;
    conn.execute_batch(PROJECTED)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// The format of an open database; `None` where it is empty.
fn format(conn: &Connection, path: &Path) -> Result<Option<u32>, LogError> {
    let number = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    let foreign = |_| LogError::Foreign(path.to_owned());
    let (found, application) = (number("user_version").map_err(foreign)?, number("application_id").map_err(foreign)?);
    let tables: u32 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (found, application, tables) {
        (0, 0, 0) => Ok(None),
        (FORMAT, APPLICATION, _) => Ok(Some(found)),
        (found, APPLICATION, _) if found > FORMAT => Err(LogError::Newer { found, known: FORMAT }),
        _ => Err(LogError::Foreign(path.to_owned())),
    }
}

/// Refuses a newer format before SQLite touches the file. It may still be hidden in the write-ahead
/// log, which [`format`] sees.
fn refuse_newer_header(path: &Path) -> Result<(), LogError> {
    let io = |error: std::io::Error| LogError::io(&format!("reading {}", path.display()), &error);
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
    };
    let mut header = Vec::with_capacity(HEADER);
    file.take(HEADER as u64).read_to_end(&mut header).map_err(io)?;
    if header.is_empty() {
        return Ok(());
    }
    if header.len() < HEADER || !header.starts_with(b"SQLite format 3\0") {
        return Err(LogError::Foreign(path.to_owned()));
    }
    let field = header.get(FORMAT_OFFSET..FORMAT_OFFSET + 4).and_then(|bytes| bytes.try_into().ok());
    match field.map(u32::from_be_bytes) {
        Some(found) if found > FORMAT => Err(LogError::Newer { found, known: FORMAT }),
        Some(_) | None => Ok(()),
    }
}
