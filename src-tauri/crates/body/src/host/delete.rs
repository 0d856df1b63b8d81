//! `file_delete`: what goes is taken out whole, compared with what was approved, and only then removed.

use std::os::fd::OwnedFd;

use bodyguard_protocol::action::FileDelete;
use bodyguard_protocol::{Digest, ErrorCode, Fault, FileKind, canonical_digest, escape_line};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use serde::Serialize;

use super::draft::{Draft, NEW};
use super::files::{Place, Root, fault_of, not_regular, read_whole, regular_stat, reopen};
use super::read::{kind_of, writable};
use crate::{DeletedEntry, Limits};

/// What would be deleted.
#[derive(Debug)]
pub(crate) struct Doomed {
    pub(crate) place: Place,
    /// Itself first.
    items: Vec<Item>,
    /// The content of a single file, if it isn't large.
    content: Option<Digest>,
}

impl Doomed {
    /// What the act is bound to.
    pub(crate) fn digest(&self) -> Result<Digest, Fault> {
        canonical_digest(&(&self.items, &self.content))
    }

    /// What a person is shown of it.
    pub(crate) fn entries(&self) -> Vec<DeletedEntry> {
        let shown = |item: &Item| DeletedEntry { path: item.path.clone(), kind: item.kind, size: item.size };
        self.items.iter().map(shown).collect()
    }
}

/// One thing of a tree, as it is bound.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Item {
    /// Relative to what is deleted; empty for that itself.
    path: String,
    kind: FileKind,
    size: u64,
    /// Inode and time of the last change as text: they may go beyond 2^53.
    inode: String,
    modified: String,
}

/// Looks at what would be deleted.
pub(crate) fn plan(root: &Root, target: &str, delete: &FileDelete, limits: &Limits) -> Result<Doomed, Fault> {
    let (place, found) = root.entry(target)?;
    let path = &place.absolute;
    let fd = found.ok_or_else(|| fault_of(Errno::NOENT, path))?;
    let stat = rustix::fs::fstat(&fd).map_err(|e| fault_of(e, path))?;
    let (folder, name) = root.parent(&place)?;
    removable(root, &place)?;
    let mut content = None;
    match kind_of(&stat) {
        FileKind::File => {
            regular_stat(&fd, path)?;
            if u64::try_from(stat.st_size).is_ok_and(|size| size <= limits.hash_bytes) {
                let file = reopen(&fd).map_err(|e| fault_of(e, path))?;
                content = Some(Digest::of(&read_whole(&file, limits.hash_bytes, path)?));
            }
        }
        FileKind::Folder => {}
        FileKind::Link => return Err(not_regular(path, "is a link, and what it leads to isn't what is named")),
        FileKind::Other => return Err(not_regular(path, "is no regular file and no folder")),
    }
    let items = tree(&folder, &name, limits.entries, path)?;
    if items.len() > 1 && !delete.recursive {
        return Err(not_regular(path, "is a folder that isn't empty").hint("say `recursive: true` to delete all of it"));
    }
    Ok(Doomed { place, items, content })
}

/// Whether its folder lets something be taken out.
fn removable(root: &Root, place: &Place) -> Result<(), Fault> {
    let folder = root.place(place.relative.rsplit_once('/').map_or("", |(folder, _)| folder));
    let stat = rustix::fs::fstat(root.folder(&folder)?).map_err(|e| fault_of(e, &folder.absolute))?;
    if writable(root, &folder, &stat) {
        return Ok(());
    }
    let message = format!("{} is read-only", escape_line(&folder.absolute));
    Err(Fault::new(ErrorCode::PermissionDenied, message).at("action.target"))
}

/// Everything in a tree, the top first, then by name; no link is followed.
fn tree(folder: &OwnedFd, name: &str, limit: usize, path: &str) -> Result<Vec<Item>, Fault> {
    let mut items = Vec::new();
    walk(folder, name, String::new(), limit, path, &mut items)?;
    Ok(items)
}

fn walk(
    folder: &OwnedFd,
    name: &str,
    relative: String,
    limit: usize,
    top: &str,
    items: &mut Vec<Item>,
) -> Result<(), Fault> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| fault_of(e, top))?;
    items.push(item(relative.clone(), &stat));
    if items.len() > limit {
        let message = format!("{} holds more than {limit} files and folders", escape_line(top));
        return Err(Fault::new(ErrorCode::TooLongToReview, message)
            .at("action.target")
            .hint("delete it in smaller parts"));
    }
    if kind_of(&stat) != FileKind::Folder {
        return Ok(());
    }
    let inner = open_folder(folder, name).map_err(|e| fault_of(e, top))?;
    for child in names(&inner, top)? {
        let below = if relative.is_empty() { child.clone() } else { format!("{relative}/{child}") };
        walk(&inner, &child, below, limit, top, items)?;
    }
    Ok(())
}

fn item(path: String, stat: &Stat) -> Item {
    let kind = kind_of(stat);
    // A folder's size and time say nothing of what is in it, and some systems change them on a move.
    let own = kind != FileKind::Folder;
    Item {
        path,
        kind,
        size: if own { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 },
        inode: stat.st_ino.to_string(),
        modified: if own { format!("{}.{:09}", stat.st_mtime, stat.st_mtime_nsec) } else { String::new() },
    }
}

fn open_folder(folder: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

/// The names in a folder, in order.
fn names(folder: &OwnedFd, top: &str) -> Result<Vec<String>, Fault> {
    let mut names = Vec::new();
    for item in Dir::read_from(folder).map_err(|e| fault_of(e, top))? {
        let item = item.map_err(|e| fault_of(e, top))?;
        let name = item.file_name().to_str().map_err(|_| {
            let message = format!("{} holds a name that isn't UTF-8, so it can't be shown", escape_line(top));
            Fault::invalid("action.target", message)
        })?;
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Deletes what was planned, and nothing else. If something was left over, says so.
pub(crate) fn delete(root: &Root, doomed: &Doomed, limits: &Limits) -> Result<Option<Fault>, Fault> {
    let path = &doomed.place.absolute;
    let (folder, name) = root.parent(&doomed.place)?;
    let mut draft = Draft::make(&folder).map_err(|e| fault_of(e, path))?;
    rustix::fs::renameat_with(&folder, &name, &draft.inner, NEW, RenameFlags::NOREPLACE)
        .map_err(|e| fault_of(e, path))?;
    let same_tree = tree(&draft.inner, NEW, limits.entries, path).is_ok_and(|items| items == doomed.items);
    let content = || draft.content(limits.hash_bytes).map(|bytes| Digest::of(&bytes));
    if same_tree && (doomed.content.is_none() || content() == doomed.content) {
        let removed = remove(&draft.inner, NEW);
        draft.keep = removed.is_err();
        let left = removed.err().map(|errno| {
            let message = format!("not all of it could be deleted ({errno}); the rest is in {}", draft.name);
            Fault::new(ErrorCode::PermissionDenied, message).at("action.target")
        });
        drop(draft);
        rustix::fs::fsync(&folder).map_err(|e| fault_of(e, path))?;
        return Ok(left);
    }
    let back = rustix::fs::renameat_with(&draft.inner, NEW, &folder, &name, RenameFlags::NOREPLACE);
    let message = match back {
        Ok(()) => format!("{} was changed by someone else; nothing was deleted", escape_line(path)),
        Err(_) => {
            draft.keep = true;
            format!("{} was changed meanwhile and could not be put back; it is in {}", escape_line(path), draft.name)
        }
    };
    Err(Fault::new(ErrorCode::StateChanged, message).at("action.target"))
}

/// Removes a tree, following no link.
fn remove(folder: &OwnedFd, name: &str) -> Result<(), Errno> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        other => return other,
    }
    let inner = open_folder(folder, name)?;
    for item in Dir::read_from(&inner)? {
        let item = item?;
        let name = item.file_name();
        if name != c"." && name != c".." {
            let name = name.to_str().map_err(|_| Errno::INVAL)?;
            remove(&inner, name)?;
        }
    }
    rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
}
