//! A place beside a file that nobody else can enter, to prepare what takes the file's place, or to take
//! out what goes.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::files::{read_whole, regular_stat, reopen};

/// The name of what lies in it.
pub(super) const NEW: &str = "new";

/// A folder of its own, mode 0700, in the same folder as the file: the draft in it is out of reach
/// for everyone else even after it has got the mode of the file that it replaces.
pub(super) struct Draft<'a> {
    folder: &'a OwnedFd,
    pub(super) name: String,
    pub(super) inner: OwnedFd,
    pub(super) keep: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn make(folder: &'a OwnedFd) -> Result<Self, Errno> {
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())?;
        let name = format!(".bodyguard-{}", hex::encode(random));
        rustix::fs::mkdirat(folder, &name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(folder, &name, flags, Mode::empty()) {
            Ok(inner) => Ok(Self { folder, name, inner, keep: false }),
            Err(error) => {
                let _ = rustix::fs::unlinkat(folder, &name, AtFlags::REMOVEDIR);
                Err(error)
            }
        }
    }

    pub(super) fn file(&self) -> Result<File, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.inner, NEW, flags, Mode::RUSR | Mode::WUSR).map(File::from)
    }

    /// The bytes that lie in it now, if it is a regular file not larger than `limit`.
    pub(super) fn content(&self, limit: u64) -> Option<Vec<u8>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.inner, NEW, flags, Mode::empty()).ok()?;
        regular_stat(&fd, NEW).ok()?;
        read_whole(&reopen(&fd).ok()?, limit, NEW).ok()
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.keep {
            let _ = rustix::fs::unlinkat(&self.inner, NEW, AtFlags::empty());
            let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::REMOVEDIR);
        }
    }
}
