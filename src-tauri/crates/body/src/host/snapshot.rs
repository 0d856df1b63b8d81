//! One digest over all that is in a workspace (`fs_snapshot_hash` of the profile `bodyos.readme.v0`).

use std::io::Read;

use bodyguard_protocol::{Digest, ErrorCode, Fault, FileKind, canonical_digest};
use rustix::fs::Stat;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::files::{Place, Root, io_fault};
use super::read::{children, kind_of};
use crate::Limits;

/// What counts of one thing: nothing that differs between equal workspaces, such as times and owners.
#[derive(Serialize)]
struct Thing {
    path: String,
    kind: FileKind,
    permissions: String,
    content: Option<Digest>,
}

/// The digest over everything below the root but repositories' own folders, which `git_head` stands for.
///
/// # Errors
/// `too_large` beyond the limits, because a part would look like the whole.
pub(super) fn digest(root: &Root, limits: &Limits) -> Result<Digest, Fault> {
    let mut things = Vec::new();
    let mut bytes_left = limits.snapshot_bytes;
    let mut ahead = vec![root.place("")];
    while let Some(place) = ahead.pop() {
        for (name, _, stat) in children(&root.folder(&place)?, &place)? {
            let relative = if place.relative.is_empty() { name } else { format!("{}/{name}", place.relative) };
            if relative.rsplit('/').next() == Some(".git") {
                continue;
            }
            if things.len() >= limits.snapshot_entries {
                return Err(too_large(&format!("more than {} files and folders", limits.snapshot_entries)));
            }
            let child = root.place(&relative);
            let kind = kind_of(&stat);
            // What can't be entered is in it, as what it is.
            if kind == FileKind::Folder && root.folder(&child).is_ok() {
                ahead.push(child.clone());
            }
            things.push(thing(root, &child, kind, &stat, &mut bytes_left)?);
        }
    }
    things.sort_by(|a, b| a.path.cmp(&b.path));
    canonical_digest(&things)
}

fn thing(root: &Root, place: &Place, kind: FileKind, stat: &Stat, bytes_left: &mut u64) -> Result<Thing, Fault> {
    let content = match kind {
        FileKind::File => content(root, place, bytes_left)?,
        FileKind::Folder | FileKind::Link | FileKind::Other => None,
    };
    let permissions = format!("{:04o}", stat.st_mode & 0o7777);
    Ok(Thing { path: place.relative.clone(), kind, permissions, content })
}

/// A file that can't be read counts without its content.
fn content(root: &Root, place: &Place, bytes_left: &mut u64) -> Result<Option<Digest>, Fault> {
    let Ok((file, stat)) = root.regular(place) else { return Ok(None) };
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    *bytes_left = bytes_left.checked_sub(size).ok_or_else(|| too_large("more bytes than a snapshot takes"))?;
    let digest = digest_of(file.take(size)).map_err(|error| io_fault(&error, &place.absolute))?;
    format!("sha256:{digest}").parse().map(Some)
}

fn digest_of(mut from: impl Read) -> std::io::Result<String> {
    let (mut hash, mut part) = (Sha256::new(), vec![0; 64 * 1024]);
    loop {
        match from.read(&mut part)? {
            0 => return Ok(hex::encode(hash.finalize())),
            length => hash.update(part.get(..length).unwrap_or_default()),
        }
    }
}

fn too_large(what: &str) -> Fault {
    Fault::new(ErrorCode::TooLarge, format!("the workspace is too large for a snapshot: {what}"))
        .at("profile")
        .hint("use the profile os011.registry.v0")
}
