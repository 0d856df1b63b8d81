//! Private folders and files: made for this user alone, and refused where others could have a hand in.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The file in the data folder that says where the socket is. A bridge may run with another
/// `XDG_RUNTIME_DIR` than the app, or with none.
pub(crate) fn socket_pointer(data_dir: &Path) -> PathBuf {
    data_dir.join("agent.path")
}

/// Makes a folder that only this user can enter, or checks that it is one.
///
/// # Errors
/// Where it belongs to someone else, or isn't a folder.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let meta = std::fs::symlink_metadata(folder)?;
    if !meta.is_dir() || meta.uid() != own_uid() {
        let message = format!("{} isn't a folder of this user", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    if meta.mode() & 0o077 != 0 {
        std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Writes a file that only this user can read, at once or not at all.
///
/// # Errors
/// As the file system.
pub(crate) fn write_private(file: &Path, text: &str) -> io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let temporary = PathBuf::from(name);
    let _ = std::fs::remove_file(&temporary);
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    out.write_all(text.as_bytes())?;
    std::fs::rename(&temporary, file)
}

/// Reads a short private file.
///
/// # Errors
/// `PermissionDenied` where it belongs to another user or others can read or write it.
pub(crate) fn read_private(file: &Path) -> io::Result<String> {
    let nofollow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let opened = OpenOptions::new().read(true).custom_flags(nofollow).open(file)?;
    let meta = opened.metadata()?;
    if !meta.is_file() || meta.uid() != own_uid() || meta.mode() & 0o077 != 0 {
        let message = format!("{} has to be a file of this user that others can't read (mode 0600)", file.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let mut text = String::new();
    opened.take(4096).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

/// The user this process acts as.
pub(crate) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}
