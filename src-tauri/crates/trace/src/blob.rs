//! Large bytes, in files named by their SHA-256.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bodyguard_protocol::Digest;

use crate::LogError;
use crate::dir::private_dir;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The folder of blobs. A blob is either there whole or not at all.
#[derive(Debug, Clone)]
pub(crate) struct Blobs {
    root: PathBuf,
}

impl Blobs {
    pub(crate) fn at(dir: &Path) -> Self {
        Self { root: dir.join("blobs") }
    }

    /// Makes the folder and removes what a killed process left half-written.
    pub(crate) fn prepare(&self) -> Result<(), LogError> {
        private_dir(&self.root)?;
        let io = |error: std::io::Error| LogError::io("looking through the blobs", &error);
        for entry in std::fs::read_dir(&self.root).map_err(io)? {
            let entry = entry.map_err(io)?;
            if entry.file_name().to_string_lossy().starts_with("tmp-") {
                std::fs::remove_file(entry.path()).map_err(io)?;
            }
        }
        Ok(())
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let (folder, name) = digest.hex().split_at(2);
        self.root.join(folder).join(name)
    }

    /// Stores bytes; durable when it returns.
    pub(crate) fn put(&self, bytes: &[u8]) -> Result<Digest, LogError> {
        let digest = Digest::of(bytes);
        if self.get(&digest).is_ok() {
            return Ok(digest);
        }
        let path = self.path(&digest);
        let folder = path.parent().unwrap_or(&self.root);
        private_dir(folder)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = self.root.join(format!("tmp-{}-{number}", std::process::id()));
        let written = write_and_move(&temporary, &path, bytes);
        if let Err(error) = written {
            let _ = std::fs::remove_file(&temporary);
            return Err(LogError::io("writing a blob", &error));
        }
        sync_dir(folder).and_then(|()| sync_dir(&self.root)).map_err(|error| LogError::io("writing a blob", &error))?;
        Ok(digest)
    }

    /// Reads bytes and hashes them again.
    pub(crate) fn get(&self, digest: &Digest) -> Result<Vec<u8>, LogError> {
        let bytes = std::fs::read(self.path(digest)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => LogError::BlobMissing(digest.clone()),
            _ => LogError::io("reading a blob", &error),
        })?;
        if Digest::of(&bytes) == *digest { Ok(bytes) } else { Err(LogError::BlobChanged(digest.clone())) }
    }
}

fn write_and_move(temporary: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(temporary)?;
    // The umask may have taken rights away that the owner needs.
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(temporary, path)
}

fn sync_dir(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blobs() -> (tempfile::TempDir, Blobs) {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::at(dir.path());
        blobs.prepare().unwrap();
        (dir, blobs)
    }

    #[test]
    fn a_blob_comes_back_and_a_changed_one_does_not() {
        let (_dir, blobs) = blobs();
        let digest = blobs.put(b"pixels").unwrap();
        assert_eq!(blobs.get(&digest).unwrap(), b"pixels");
        std::fs::write(blobs.path(&digest), b"pixelz").unwrap();
        assert_eq!(blobs.get(&digest), Err(LogError::BlobChanged(digest.clone())));
        // Storing the same bytes again repairs it.
        blobs.put(b"pixels").unwrap();
        assert_eq!(blobs.get(&digest).unwrap(), b"pixels");
        std::fs::remove_file(blobs.path(&digest)).unwrap();
        assert_eq!(blobs.get(&digest), Err(LogError::BlobMissing(digest)));
    }

    #[test]
    fn half_written_blobs_are_removed_and_never_seen() {
        let (_dir, blobs) = blobs();
        let torn = blobs.root.join("tmp-1-1");
        std::fs::write(&torn, b"pix").unwrap();
        blobs.prepare().unwrap();
        assert!(!torn.exists());
        assert!(matches!(blobs.get(&Digest::of(b"pix")), Err(LogError::BlobMissing(_))));
    }
}
