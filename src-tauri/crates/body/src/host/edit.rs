//! `file_edit`: compare and exchange, so that a change by another hand is never lost.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;

use bodyguard_protocol::action::FileEdit;
use bodyguard_protocol::{Digest, ErrorCode, Fault, escape_line};
use rustix::fs::{Gid, Mode, RenameFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;

use super::draft::{Draft, NEW};
use super::files::{Place, Root, fault_of, io_fault, read_whole};
use super::read::writable;
use crate::apply_edits;

/// A file before and after its edits.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
    pub(crate) before_sha256: Digest,
}

/// Reads a file and applies the edits in memory.
pub(crate) fn plan(root: &Root, place: &Place, edit: &FileEdit, max_bytes: u64) -> Result<Planned, Fault> {
    change(root, place, edit.before_sha256.as_ref(), max_bytes, |before| apply_edits(before, &edit.edits, max_bytes))
}

/// Reads a file that may be changed and works out its new content.
pub(super) fn change(
    root: &Root,
    place: &Place,
    expected: Option<&Digest>,
    max_bytes: u64,
    new_content: impl FnOnce(&[u8]) -> Result<Vec<u8>, Fault>,
) -> Result<Planned, Fault> {
    let (file, stat) = root.regular(place)?;
    if !writable(root, place, &stat) {
        let message = format!("{} is read-only", escape_line(&place.absolute));
        return Err(Fault::new(ErrorCode::PermissionDenied, message).at("action.target"));
    }
    let before = read_whole(&file, max_bytes, &place.absolute)?;
    let before_sha256 = Digest::of(&before);
    if expected.is_some_and(|expected| *expected != before_sha256) {
        let message = format!("{} has {before_sha256}", escape_line(&place.absolute));
        return Err(Fault::new(ErrorCode::BeforeHashMismatch, message)
            .at("action.params.before_sha256")
            .hint("read the file again and base the edit on what is there now"));
    }
    let after = new_content(&before)?;
    Ok(Planned { before, after, before_sha256 })
}

/// Puts `planned.after` in the place of exactly `planned.before`, keeping owner, mode, extended
/// attributes and ACL. The new content is durable when this returns.
pub(crate) fn replace(root: &Root, place: &Place, planned: &Planned) -> Result<(), Fault> {
    let path = &place.absolute;
    let (folder, name) = root.parent(place)?;
    let (source, stat) = root.regular(place)?;
    let draft = Draft::make(&folder).map_err(|e| fault_of(e, path))?;
    let file = draft.file().map_err(|e| fault_of(e, path))?;
    write_draft(&file, &planned.after, &source, &stat, path)?;
    exchange(&draft, &folder, &name).map_err(|e| exchange_fault(e, path))?;
    let out = draft.content(planned.before.len() as u64);
    if out.as_ref().is_some_and(|out| *out == planned.before) {
        drop(draft);
        return rustix::fs::fsync(&folder).map_err(|e| fault_of(e, path));
    }
    put_back(draft, &folder, &name, planned, path)
}

/// What came out isn't what was approved: put it back where it was.
fn put_back(mut draft: Draft<'_>, folder: &OwnedFd, name: &str, planned: &Planned, path: &str) -> Result<(), Fault> {
    let changed = || {
        let message = format!("{} was changed by someone else; nothing was written", escape_line(path));
        Fault::new(ErrorCode::StateChanged, message).at("action.target")
    };
    if let Err(error) = exchange(&draft, folder, name) {
        draft.keep = true;
        return Err(Fault::new(
            ErrorCode::StateChanged,
            format!(
                "{} was changed meanwhile and could not be put back ({error}); it is kept beside it in {}",
                escape_line(path),
                draft.name
            ),
        ));
    }
    let ours = draft.content(planned.after.len() as u64).is_some_and(|out| out == planned.after);
    if !ours && exchange(&draft, folder, name).is_err() {
        // Someone wrote into our version in between; it is the newest, so it is not thrown away.
        draft.keep = true;
    }
    drop(draft);
    let _ = rustix::fs::fsync(folder);
    Err(changed())
}

fn exchange(draft: &Draft<'_>, folder: &OwnedFd, name: &str) -> Result<(), Errno> {
    rustix::fs::renameat_with(&draft.inner, NEW, folder, name, RenameFlags::EXCHANGE)
}

fn exchange_fault(errno: Errno, path: &str) -> Fault {
    match errno {
        Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP => {
            let message = "this file system can't exchange files atomically, so a change by another hand could be lost";
            Fault::new(ErrorCode::NotYetSupported, message).at("action.target")
        }
        Errno::NOENT => {
            let message = format!("{} was removed meanwhile; nothing was written", escape_line(path));
            Fault::new(ErrorCode::StateChanged, message).at("action.target")
        }
        other => fault_of(other, path),
    }
}

fn write_draft(mut file: &File, bytes: &[u8], source: &File, stat: &Stat, path: &str) -> Result<(), Fault> {
    file.write_all(bytes).map_err(|e| io_fault(&e, path))?;
    let fresh = rustix::fs::fstat(file).map_err(|e| fault_of(e, path))?;
    if (fresh.st_uid, fresh.st_gid) != (stat.st_uid, stat.st_gid) {
        let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        rustix::fs::fchown(file, Some(uid), Some(gid)).map_err(|_| {
            let message = format!("{} belongs to someone else, and its owner could not be kept", escape_line(path));
            Fault::new(ErrorCode::PermissionDenied, message).at("action.target")
        })?;
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(stat.st_mode & 0o7777)).map_err(|e| fault_of(e, path))?;
    copy_attributes(source, file).map_err(|e| fault_of(e, path))?;
    rustix::fs::fsync(file).map_err(|e| fault_of(e, path))
}

/// Extended attributes, POSIX ACLs among them.
fn copy_attributes(from: &File, to: &File) -> Result<(), Errno> {
    let mut names = vec![0_u8; 64 * 1024];
    let length = match rustix::fs::flistxattr(from, &mut names[..]) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(error) => return Err(error),
    };
    let names = names.get(..length).unwrap_or_default();
    let mut value = vec![0_u8; 64 * 1024];
    for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let length = rustix::fs::fgetxattr(from, name, &mut value[..])?;
        let bytes = value.get(..length).unwrap_or_default();
        match rustix::fs::fsetxattr(to, name, bytes, XattrFlags::empty()) {
            Ok(()) => {}
            // Labels of security modules are set by the system, and often may not be set by hand.
            Err(Errno::PERM | Errno::OPNOTSUPP) if name.starts_with(b"security.") => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
