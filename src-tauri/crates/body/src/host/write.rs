//! `file_write`: a new file, or other content for one that is there.

use std::io::Write as _;

use bodyguard_protocol::action::{FileWrite, WriteMode};
use bodyguard_protocol::{ErrorCode, Fault, escape_line};
use rustix::fs::{Gid, Mode, RenameFlags, Uid};
use rustix::io::Errno;

use super::draft::{Draft, NEW};
use super::edit::{self, Planned};
use super::files::{Place, Root, fault_of, io_fault};
use super::read::writable;

/// What a write comes to.
#[derive(Debug)]
pub(crate) enum Plan {
    /// A new file with these permission bits.
    New { bytes: Vec<u8>, bits: u32 },
    /// Other content for a file.
    Change(Planned),
}

/// Where and what to write, in memory.
pub(crate) fn plan(root: &Root, target: &str, write: &FileWrite, max_bytes: u64) -> Result<(Place, Plan), Fault> {
    let bytes = write.bytes()?;
    match write.mode {
        WriteMode::Create => {
            let place = absent(root, target)?;
            Ok((place, Plan::New { bytes, bits: write.permission_bits()? }))
        }
        WriteMode::Overwrite | WriteMode::Append => {
            let place = root.resolve(target)?;
            let planned = edit::change(root, &place, write.before_sha256.as_ref(), max_bytes, |before| {
                let after = if write.mode == WriteMode::Append { [before, &bytes].concat() } else { bytes };
                let limit = usize::try_from(max_bytes).unwrap_or(usize::MAX);
                if after.len() > limit {
                    let message = format!("the result would have {} bytes; at most {max_bytes}", after.len());
                    return Err(Fault::new(ErrorCode::TooLarge, message).at("action.params.content"));
                }
                Ok(after)
            })?;
            Ok((place, Plan::Change(planned)))
        }
    }
}

/// A place where nothing is yet, in a folder that can be written.
fn absent(root: &Root, target: &str) -> Result<Place, Fault> {
    let (place, found) = root.entry(target)?;
    if found.is_some() {
        let message = format!("{} is there already", escape_line(&place.absolute));
        return Err(Fault::new(ErrorCode::AlreadyExists, message)
            .at("action.target")
            .hint("read it, then say `mode: overwrite` or `append`, or edit it"));
    }
    let folder = root.place(place.relative.rsplit_once('/').map_or("", |(folder, _)| folder));
    let stat = rustix::fs::fstat(root.folder(&folder)?).map_err(|e| fault_of(e, &folder.absolute))?;
    if !writable(root, &folder, &stat) {
        let message = format!("{} is read-only", escape_line(&folder.absolute));
        return Err(Fault::new(ErrorCode::PermissionDenied, message).at("action.target"));
    }
    Ok(place)
}

/// Makes a file with all of its content at once, where nothing is. It is durable when this returns.
pub(crate) fn create(root: &Root, place: &Place, bytes: &[u8], bits: u32) -> Result<(), Fault> {
    let path = &place.absolute;
    let (folder, name) = root.parent(place)?;
    let draft = Draft::make(&folder).map_err(|e| fault_of(e, path))?;
    let mut file = draft.file().map_err(|e| fault_of(e, path))?;
    file.write_all(bytes).map_err(|e| io_fault(&e, path))?;
    if rustix::process::geteuid().is_root() {
        // What agents make belongs to whom the folder belongs to, so that their commands can use it.
        let owner = rustix::fs::fstat(&folder).map_err(|e| fault_of(e, path))?;
        let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
        rustix::fs::fchown(&file, Some(uid), Some(gid)).map_err(|e| fault_of(e, path))?;
    }
    rustix::fs::fchmod(&file, Mode::from_raw_mode(bits)).map_err(|e| fault_of(e, path))?;
    rustix::fs::fsync(&file).map_err(|e| fault_of(e, path))?;
    let placed = rustix::fs::renameat_with(&draft.inner, NEW, &folder, &name, RenameFlags::NOREPLACE);
    placed.map_err(|errno| match errno {
        Errno::EXIST => {
            let message = format!("{} appeared meanwhile; nothing was written", escape_line(path));
            Fault::new(ErrorCode::StateChanged, message).at("action.target")
        }
        other => fault_of(other, path),
    })?;
    drop(draft);
    rustix::fs::fsync(&folder).map_err(|e| fault_of(e, path))
}
