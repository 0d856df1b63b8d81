//! The data folder: only its owner may look into it, and only one process at a time writes there.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use crate::LogError;

/// Makes a folder `0700`, whatever the umask, or tightens the one that is there.
pub(crate) fn private_dir(path: &Path) -> Result<(), LogError> {
    let io = |error: std::io::Error| LogError::io(&format!("making {}", path.display()), &error);
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
    let found = std::fs::metadata(path).map_err(io)?;
    if found.uid() != geteuid().as_raw() {
        return Err(LogError::Exposed(path.to_owned()));
    }
    if found.mode() & 0o777 != 0o700 {
        std::fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(io)?;
    }
    Ok(())
}

/// Opens a file for reading and writing, `0600` from its first moment.
pub(crate) fn private_file(path: &Path) -> Result<File, LogError> {
    let io = |error: std::io::Error| LogError::io(&format!("opening {}", path.display()), &error);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(io)?;
    let found = file.metadata().map_err(io)?;
    if found.uid() != geteuid().as_raw() {
        return Err(LogError::Exposed(path.to_owned()));
    }
    if found.mode() & 0o777 != 0o600 {
        file.set_permissions(Permissions::from_mode(0o600)).map_err(io)?;
    }
    Ok(file)
}

/// Being the one writer. Ends with the value, or with the process however that ends.
#[derive(Debug)]
pub(crate) struct Ownership {
    _file: File,
}

impl Ownership {
    /// Takes the folder, or says who has it. The lock is on the file itself, so another path to
    /// the same folder finds it too.
    pub(crate) fn take(dir: &Path) -> Result<Self, LogError> {
        let path = dir.join("owner");
        let mut file = private_file(&path)?;
        let io = |error: std::io::Error| LogError::io("locking the data folder", &error);
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(LogError::Owned { pid: owner(&mut file) }),
            Err(error) => return Err(io(error.into())),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
        writeln!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }
}

/// The number in the file. The owner writes it just after it took the lock, so it may be a moment late.
fn owner(file: &mut File) -> u32 {
    for _ in 0..20 {
        let mut text = String::new();
        if file.rewind().and_then(|()| file.read_to_string(&mut text)).is_ok()
            && let Ok(pid) = text.trim().parse()
        {
            return pid;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    0
}

/// Bytes free for this user on the folder's disk.
pub(crate) fn free_bytes(dir: &Path) -> Result<u64, LogError> {
    let found = rustix::fs::statvfs(dir).map_err(|error| LogError::io("looking for free space", &error.into()))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Refuses when so little is free that the outcome of what begins now might not fit.
pub(crate) fn need_room(dir: &Path, reserve: u64) -> Result<(), LogError> {
    let free = free_bytes(dir)?;
    if free < reserve {
        return Err(LogError::NoRoom(format!("{free} bytes are free, {reserve} are kept for outcomes")));
    }
    Ok(())
}

/// Which boot of the machine this is; empty where the system doesn't say.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// Random bytes of the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], LogError> {
    let mut bytes = [0; N];
    let mut file = File::open("/dev/urandom").map_err(|error| LogError::io("opening /dev/urandom", &error))?;
    file.read_exact(&mut bytes).map_err(|error| LogError::io("reading /dev/urandom", &error))?;
    Ok(bytes)
}
