//! One trace as one file that proves itself: the leaves verbatim with their proofs, the signed
//! checkpoint they are proved against, the pictures, and the trace in the shape of OS-011 §4.

mod check;
mod trace;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bodyguard_protocol::{Digest, InteractionTrace, TraceId, canonical_bytes};
use rusqlite::{Connection, OptionalExtension as _};
use serde::{Deserialize, Serialize};

pub use check::{ExportReport, verify_export};

use crate::LogError;
use crate::checkpoint::Checkpoint;
use crate::merkle::{Hash, Tree};
use crate::read::{LogReader, block_of, blocking, keys, parse};
use crate::records::Leaf;
use crate::verify::picture_of;

/// The format of the file.
pub const EXPORT_FORMAT: &str = "bodyguard.trace.v1";

/// The file, as RFC 8785 bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportFile {
    /// [`EXPORT_FORMAT`].
    pub format: String,
    /// The trace (OS-011 §4.1), made from `records` alone.
    pub trace: InteractionTrace,
    /// Its leaves in order.
    pub records: Vec<ExportedRecord>,
    /// The signed note that `records` are proved against.
    pub checkpoint: String,
    /// The keys that signed, for comparing. Nothing is believed because it stands here.
    pub keys: Vec<ExportedKey>,
    /// The pictures.
    pub blobs: Vec<ExportedBlob>,
}

/// One leaf with its proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedRecord {
    /// Its number in the log, from 1.
    pub seq: u64,
    /// Its bytes, verbatim.
    pub leaf: String,
    /// The inclusion proof (RFC 6962 §2.1.1) in hexadecimal, from the leaf up.
    pub proof: Vec<String>,
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedKey {
    /// `ed25519:…`.
    pub key_id: String,
    /// The public key in hexadecimal.
    pub public_key: String,
}

/// A blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedBlob {
    /// The digest of the bytes.
    pub digest: Digest,
    /// The bytes in base64.
    pub base64: String,
}

/// An exported trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The file.
    pub bytes: Vec<u8>,
    /// Records of the trace that no checkpoint covers yet, and that therefore aren't in the file.
    pub left_out: u32,
}

/// Exports a trace as far as a signed checkpoint covers it. Call [`crate::Log::checkpoint`] before, to
/// cover all of it.
///
/// # Errors
/// [`LogError::UnknownTrace`]; [`LogError::NoCheckpoint`]; where a picture is missing or changed;
/// storage errors.
pub async fn export(reader: &LogReader, trace_id: &TraceId) -> Result<Export, LogError> {
    let (reader, trace_id) = (reader.clone(), trace_id.clone());
    blocking(move || export_blocking(&reader, &trace_id)).await
}

/// [`export`] on this thread.
///
/// # Errors
/// As [`export`].
pub fn export_blocking(reader: &LogReader, trace_id: &TraceId) -> Result<Export, LogError> {
    reader.read_here(|conn| collect(reader, conn, trace_id))
}

fn collect(reader: &LogReader, conn: &Connection, trace_id: &TraceId) -> Result<Export, LogError> {
    let all = leaves(conn, trace_id)?;
    if all.is_empty() {
        return Err(LogError::UnknownTrace);
    }
    let sql = "SELECT size, note FROM checkpoints ORDER BY size DESC LIMIT 1";
    let newest = conn.query_row(sql, [], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?))).optional()?;
    let (size, checkpoint) = newest.ok_or(LogError::NoCheckpoint)?;
    let (covered, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|(seq, _)| *seq <= size);
    let read: Vec<(u64, Leaf)> =
        covered.iter().map(|(seq, text)| Ok((*seq, parse(*seq, text.as_bytes())?))).collect::<Result<_, LogError>>()?;
    let trace = trace::of(&read).ok_or(LogError::NoCheckpoint)?;
    let tree = tree(conn, size)?;
    let records = covered.into_iter().map(|(seq, leaf)| {
        let proof = tree.inclusion(seq.saturating_sub(1), size).unwrap_or_default();
        ExportedRecord { seq, leaf, proof: proof.iter().map(hex::encode).collect() }
    });
    let file = ExportFile {
        format: EXPORT_FORMAT.into(),
        trace,
        records: records.collect(),
        keys: exported_keys(conn, &read, &checkpoint)?,
        checkpoint,
        blobs: pictures(reader, &read)?,
    };
    let bytes = canonical_bytes(&file).map_err(LogError::Unrepresentable)?;
    Ok(Export { bytes, left_out: u32::try_from(rest.len()).unwrap_or(u32::MAX) })
}

fn leaves(conn: &Connection, trace_id: &TraceId) -> Result<Vec<(u64, String)>, LogError> {
    let mut statement = conn.prepare("SELECT seq, bytes FROM leaves WHERE trace_id = ?1 ORDER BY seq")?;
    let mut rows = statement.query([trace_id.as_str()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = row.get(0)?;
        let text =
            String::from_utf8(row.get(1)?).map_err(|error| LogError::Unreadable { seq, reason: error.to_string() })?;
        found.push((seq, text));
    }
    Ok(found)
}

fn tree(conn: &Connection, size: u64) -> Result<Tree, LogError> {
    let mut statement = conn.prepare("SELECT hash FROM leaves WHERE seq <= ?1 ORDER BY seq")?;
    let mut rows = statement.query([size])?;
    let mut tree = Tree::default();
    while let Some(row) = rows.next()? {
        tree.push(row.get::<_, Hash>(0)?);
    }
    Ok(tree)
}

/// The ids of the keys that signed the checkpoint or a block, in order.
fn signers(leaves: &[(u64, Leaf)], checkpoint: &str) -> std::collections::BTreeSet<String> {
    let blocks = leaves.iter().filter_map(|(_, leaf)| block_of(&leaf.record));
    let of_blocks = blocks.flat_map(|block| block.signatures.iter().map(|signature| signature.key_id.clone()));
    of_blocks.chain(Checkpoint::parse(checkpoint).ok().map(|read| read.key_id)).collect()
}

fn exported_keys(conn: &Connection, leaves: &[(u64, Leaf)], note: &str) -> Result<Vec<ExportedKey>, LogError> {
    let used = signers(leaves, note);
    let mut found: Vec<ExportedKey> = keys(conn)?
        .into_iter()
        .filter(|key| used.contains(&key.key_id))
        .map(|key| ExportedKey { key_id: key.key_id, public_key: key.public_key })
        .collect();
    found.sort_by(|a, b| a.key_id.cmp(&b.key_id));
    Ok(found)
}

fn pictures(reader: &LogReader, leaves: &[(u64, Leaf)]) -> Result<Vec<ExportedBlob>, LogError> {
    let digests: std::collections::BTreeSet<&Digest> =
        leaves.iter().filter_map(|(_, leaf)| picture_of(&leaf.record)).collect();
    digests
        .into_iter()
        .map(|digest| {
            let bytes = reader.blobs().get(digest)?;
            Ok(ExportedBlob { digest: digest.clone(), base64: STANDARD.encode(bytes) })
        })
        .collect()
}
