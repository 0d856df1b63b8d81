//! The log: every record is one leaf of an append-only Merkle tree (RFC 6962) with signed
//! checkpoints, kept in SQLite beside the tables that are projected from it.
//!
//! [`Log`] writes, [`LogReader`] reads, [`verify`] recomputes everything that must hold, and
//! [`export`] writes one trace as a file that proves itself. Nothing here changes a record.

mod blob;
mod checkpoint;
mod dir;
mod error;
mod export;
mod log;
mod merkle;
mod project;
mod read;
mod records;
pub mod redact;
mod schema;
mod settings;
mod verify;

pub use bodyguard_policy::{KeyList, Signer};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use error::LogError;
pub use export::{
    EXPORT_FORMAT, Export, ExportFile, ExportReport, ExportedBlob, ExportedKey, ExportedRecord, export,
    export_blocking, verify_export,
};
pub use log::{IntentCommitted, IntentRef, InterruptedEdge, Log, Options, Recovery};
pub use merkle::{Frontier, Hash, Tree, leaf_hash, verify_consistency, verify_inclusion};
pub use read::{
    Counts, EarlierRun, LogReader, RecordedAct, RecordedEdge, RecordedEnd, RecordedTrace, StoredAsk, StoredLeaf,
    StoredSession,
};
pub use records::*;
pub use settings::{AgentRow, ChangeNote, DeviceRow, KeyRow, SettingChange, WorkspaceBody, WorkspaceRow};
pub use verify::{PROVES, Problem, VerifyReport, verify, verify_blocking};
