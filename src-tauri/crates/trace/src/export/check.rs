//! Verifying an exported trace, on any machine.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bodyguard_policy::KeyList;
use bodyguard_protocol::{Digest, Fault, InteractionTrace, canonical_bytes, parse_strict};

use super::{EXPORT_FORMAT, ExportFile, ExportedRecord, signers, trace};
use crate::LogError;
use crate::checkpoint::Checkpoint;
use crate::merkle::{Hash, leaf_hash, verify_inclusion};
use crate::records::Leaf;
use crate::verify::{Checker, picture_of};

/// What verifying an exported trace found.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportReport {
    /// Whether everything holds.
    pub ok: bool,
    /// The trace as the records say it, if they can be read.
    pub trace: Option<InteractionTrace>,
    /// The log it comes from, `bodyguard/<log id>`.
    pub origin: String,
    /// The key that signed the checkpoint.
    pub key_id: String,
    /// Records whose proofs hold.
    pub records: u32,
    /// Blocks whose signatures hold.
    pub blocks: u32,
    /// What doesn't hold, in the order of the file.
    pub problems: Vec<String>,
}

/// Checks a file that [`super::export`] wrote: every byte of it. Signatures count only by keys that
/// the caller pinned; a key that the file brings along proves nothing.
///
/// What it can't see: whether records of the trace are missing that nothing else in it depends on.
/// That needs the log.
///
/// # Errors
/// Where the file isn't an export of a format that this version knows; everything else is a problem
/// in the report.
pub fn verify_export(bytes: &[u8], pinned: &KeyList) -> Result<ExportReport, Fault> {
    let value = parse_strict(bytes)?;
    match value.get("format").and_then(serde_json::Value::as_str) {
        Some(EXPORT_FORMAT) => {}
        Some(other) => {
            let other = bodyguard_protocol::escape_line(other);
            return Err(Fault::invalid(
                "format",
                format!("the file has format `{other}`; this version knows `{EXPORT_FORMAT}`"),
            ));
        }
        None => return Err(Fault::invalid("format", "not an exported trace")),
    }
    let file: ExportFile = serde_json::from_value(value)
        .map_err(|error| Fault::invalid("file", format!("not an exported trace: {error}")))?;
    let mut problems = Vec::new();
    if canonical_bytes(&file)? != bytes {
        problems.push("the file isn't written as it was exported".to_owned());
    }
    let internal = |error: LogError| Fault::internal(error.to_string());
    let mut checker = Checker::new(pinned).map_err(internal)?;
    let note = Checkpoint::parse(&file.checkpoint);
    match &note {
        Err(error) => problems.push(format!("the checkpoint: {error}")),
        Ok(note) => problems.extend(note.verify(pinned).err().map(|error| format!("the checkpoint: {error}"))),
    }
    let mut leaves = Vec::new();
    let mut proved = 0;
    for record in &file.records {
        let holds = note.as_ref().is_ok_and(|note| is_proved(record, note));
        proved += u32::from(holds);
        if !holds {
            problems.push(format!("leaf {} isn't in the log that was signed", record.seq));
        }
        let (leaf, found) = checker.leaf(record.seq, record.leaf.as_bytes());
        problems.extend(found);
        leaves.extend(leaf.map(|leaf| (record.seq, leaf)));
    }
    order(&file, &leaves, &mut problems);
    let made = trace::of(&leaves);
    if made.as_ref() != Some(&file.trace) {
        problems.push("the trace isn't what its records say".to_owned());
    }
    check_keys(&file, &leaves, &mut problems);
    check_blobs(&file, &leaves, &mut problems);
    let (origin, key_id) = note.map(|note| (note.origin, note.key_id)).unwrap_or_default();
    let blocks = u32::try_from(checker.good_blocks.len()).unwrap_or(u32::MAX);
    Ok(ExportReport { ok: problems.is_empty(), trace: made, origin, key_id, records: proved, blocks, problems })
}

fn is_proved(record: &ExportedRecord, note: &Checkpoint) -> bool {
    let path: Option<Vec<Hash>> = record
        .proof
        .iter()
        .map(|step| {
            let mut hash = [0; 32];
            // A hash has one written form.
            hex::decode_to_slice(step, &mut hash).ok().filter(|()| hex::encode(hash) == *step).map(|()| hash)
        })
        .collect();
    let (Some(path), Some(index)) = (path, record.seq.checked_sub(1)) else { return false };
    verify_inclusion(&leaf_hash(record.leaf.as_bytes()), index, note.size, &path, &note.root)
}

fn order(file: &ExportFile, leaves: &[(u64, Leaf)], problems: &mut Vec<String>) {
    for pair in file.records.windows(2) {
        if let [a, b] = pair
            && a.seq >= b.seq
        {
            problems.push(format!("leaf {} stands after leaf {}", b.seq, a.seq));
        }
    }
    for (seq, leaf) in leaves {
        if leaf.record.trace_id() != Some(&file.trace.trace_id) {
            problems.push(format!("leaf {seq} is of another trace"));
        }
    }
}

fn check_keys(file: &ExportFile, leaves: &[(u64, Leaf)], problems: &mut Vec<String>) {
    let used = signers(leaves, &file.checkpoint);
    let mut list = KeyList::new();
    for key in &file.keys {
        let written = !key.public_key.contains(|c: char| c.is_ascii_uppercase());
        if !written || list.add(&key.public_key).ok().as_ref() != Some(&key.key_id) || !used.contains(&key.key_id) {
            problems
                .push(format!("the key {} isn't one that signed here", bodyguard_protocol::escape_line(&key.key_id)));
        }
    }
}

fn check_blobs(file: &ExportFile, leaves: &[(u64, Leaf)], problems: &mut Vec<String>) {
    let named: BTreeSet<&Digest> = leaves.iter().filter_map(|(_, leaf)| picture_of(&leaf.record)).collect();
    let mut there = BTreeSet::new();
    for blob in &file.blobs {
        let holds = STANDARD.decode(&blob.base64).is_ok_and(|bytes| Digest::of(&bytes) == blob.digest);
        if !holds {
            problems.push(format!("the picture {} was changed", blob.digest));
        }
        if !named.contains(&blob.digest) || !there.insert(&blob.digest) {
            problems.push(format!("no record names the picture {}", blob.digest));
        }
    }
    for digest in named.difference(&there) {
        problems.push(format!("the picture {digest} is missing"));
    }
}
