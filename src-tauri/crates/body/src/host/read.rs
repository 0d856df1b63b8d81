//! `file_read`, and listings.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bodyguard_protocol::action::{FileRead, TextEncoding};
use bodyguard_protocol::{Digest, ErrorCode, Fault, FileEntry, FileKind, escape_line};
use rustix::fs::{Access, AtFlags, Dir, FileType, Stat};
use serde_json::{Value, json};

use super::files::{Place, Root, fault_of, io_fault, read_at_most};
use crate::{Limits, LineEnding};

/// A listing hashes no more than this in total, so that it stays quick.
const HASH_TOTAL: u64 = 16 * 1024 * 1024;
const MAX_DEPTH: u8 = 8;

/// Reads a part of a regular file.
pub(crate) fn read(root: &Root, place: &Place, read: &FileRead) -> Result<Value, Fault> {
    let (file, stat) = root.regular(place)?;
    let more =
        read_at_most(&file, read.offset, read.limit.saturating_add(1)).map_err(|e| io_fault(&e, &place.absolute))?;
    let limit = usize::try_from(read.limit).unwrap_or(usize::MAX);
    let truncated = more.len() > limit;
    let bytes = more.get(..limit.min(more.len())).unwrap_or_default();
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    observed(&place.absolute, bytes, read, truncated, size)
}

/// What a read shows, from its bytes. `size` is the whole file's.
pub(crate) fn observed(path: &str, bytes: &[u8], read: &FileRead, truncated: bool, size: u64) -> Result<Value, Fault> {
    let (content, taken) = match read.encoding {
        TextEncoding::Base64 => (BASE64.encode(bytes), bytes),
        TextEncoding::Utf8 => {
            let taken = whole_characters(bytes, truncated);
            (text(taken, read.offset, path)?, taken)
        }
    };
    let whole = read.offset == 0 && !truncated && taken.len() == bytes.len();
    Ok(json!({
        "path": path,
        "content": content,
        "encoding": read.encoding,
        "offset": read.offset,
        "bytes": taken.len(),
        "size": size,
        "truncated": truncated,
        "line_ending": LineEnding::of(taken),
        // Only of the whole file, so that it can serve as an edit's `before_sha256`.
        "sha256": whole.then(|| Digest::of(taken)),
    }))
}

/// Leaves out a character that only the limit cut in two.
fn whole_characters(bytes: &[u8], truncated: bool) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if truncated && error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or_default(),
        Ok(_) | Err(_) => bytes,
    }
}

fn text(bytes: &[u8], offset: u64, path: &str) -> Result<String, Fault> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
        let at = offset.saturating_add(error.valid_up_to() as u64);
        Fault::new(ErrorCode::NotUtf8, format!("{} isn't UTF-8: the first such byte is at {at}", escape_line(path)))
            .at("action.params.encoding")
            .hint("read it with `encoding: base64`")
    })
}

/// A listing, and whether it was cut off.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<FileEntry>,
    pub(crate) truncated: bool,
}

/// Lists a folder down to `depth` levels, nearest first when it has to be cut, then by path.
pub(crate) fn list(root: &Root, place: &Place, depth: u8, limits: &Limits) -> Result<Listing, Fault> {
    if !(1..=MAX_DEPTH).contains(&depth) {
        return Err(Fault::invalid("query.depth", "1 to 8 levels"));
    }
    let mut entries = Vec::new();
    let mut truncated = false;
    let mut to_hash = HASH_TOTAL;
    let mut ahead = VecDeque::from([(root.folder(place)?, place.clone(), depth)]);
    while let Some((folder, place, depth)) = ahead.pop_front() {
        for (name, exact, stat) in children(&folder, &place)? {
            if entries.len() >= limits.entries {
                truncated = true;
                break;
            }
            let relative = if place.relative.is_empty() { name } else { format!("{}/{name}", place.relative) };
            let child = root.place(&relative);
            let kind = kind_of(&stat);
            let descend = kind == FileKind::Folder && exact && depth > 1 && !relative.ends_with(".git");
            // A folder that can't be read is listed and not entered.
            if descend && let Ok(fd) = root.folder(&child) {
                ahead.push_back((fd, child.clone(), depth - 1));
            }
            entries.push(entry(root, &child, exact, kind, &stat, limits, &mut to_hash));
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Listing { entries, truncated })
}

fn entry(
    root: &Root,
    place: &Place,
    exact: bool,
    kind: FileKind,
    stat: &Stat,
    limits: &Limits,
    to_hash: &mut u64,
) -> FileEntry {
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let hash = exact && kind == FileKind::File && size <= limits.hash_bytes && size <= *to_hash;
    let content_hash = if hash { content_hash(root, place, limits.hash_bytes) } else { None };
    if content_hash.is_some() {
        *to_hash = to_hash.saturating_sub(size);
    }
    FileEntry {
        reference: String::new(),
        path: place.absolute.clone(),
        path_exact: exact,
        kind,
        size,
        permissions: format!("{:04o}", stat.st_mode & 0o7777),
        writable: exact && writable(root, place, stat),
        content_hash,
    }
}

fn content_hash(root: &Root, place: &Place, limit: u64) -> Option<Digest> {
    let (file, _) = root.regular(place).ok()?;
    let bytes = read_at_most(&file, 0, limit.saturating_add(1)).ok()?;
    (bytes.len() as u64 <= limit).then(|| Digest::of(&bytes))
}

/// Whether it may be written. Root may write what nobody is meant to; the bits still count.
pub(crate) fn writable(root: &Root, place: &Place, stat: &Stat) -> bool {
    let relative = if place.relative.is_empty() { "." } else { &place.relative };
    let link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    !link
        && stat.st_mode & 0o222 != 0
        && rustix::fs::accessat(root.fd(), relative, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

pub(super) fn kind_of(stat: &Stat) -> FileKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Folder,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Other,
    }
}

/// Name, whether the name is exact, and state of each child, by name.
pub(super) fn children(folder: &OwnedFd, place: &Place) -> Result<Vec<(String, bool, Stat)>, Fault> {
    let mut found = Vec::new();
    for item in Dir::read_from(folder).map_err(|e| fault_of(e, &place.absolute))? {
        let item = item.map_err(|e| fault_of(e, &place.absolute))?;
        let name = item.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        // What vanished since is left out.
        if let Ok(stat) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            let exact = name.to_str().is_ok();
            found.push((name.to_string_lossy().into_owned(), exact, stat));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}
