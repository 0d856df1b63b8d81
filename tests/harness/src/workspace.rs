//! A folder for an agent to work in.

use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

/// `nobody`: as whom commands run when the tests run as root.
const NOBODY: u32 = 65534;

/// A temporary workspace folder, removed on drop. When root runs the tests it belongs to
/// `nobody`, since nothing of an agent ever runs as root.
#[derive(Debug)]
pub struct Workspace {
    folder: tempfile::TempDir,
}

impl Workspace {
    /// Makes `/tmp/bg-ws-…`.
    ///
    /// # Errors
    /// If the folder can't be made.
    pub fn temp() -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("bg-ws-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in("/tmp")?;
        give_away(folder.path())?;
        Ok(Self { folder })
    }

    /// Its root folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The absolute path of something in it.
    #[must_use]
    pub fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.path().join(relative)
    }

    /// Writes a file, with the folders to it, owned as the workspace is.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn write(&self, relative: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.join(&relative);
        let mut missing = Vec::new();
        for parent in path.ancestors().skip(1) {
            if parent.exists() {
                break;
            }
            missing.push(parent.to_owned());
        }
        for folder in missing.iter().rev() {
            fs::create_dir(folder)?;
            give_away(folder)?;
        }
        fs::write(&path, content).with_context(|| format!("write {path:?}"))?;
        give_away(&path)?;
        Ok(path)
    }

    /// Reads a text file.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn read(&self, relative: impl AsRef<Path>) -> Result<String> {
        let path = self.join(relative);
        fs::read_to_string(&path).with_context(|| format!("read {path:?}"))
    }

    /// True if something of that name is there.
    #[must_use]
    pub fn exists(&self, relative: impl AsRef<Path>) -> bool {
        self.join(relative).symlink_metadata().is_ok()
    }
}

fn give_away(path: &Path) -> Result<()> {
    if rustix::process::geteuid().is_root() && path.symlink_metadata()?.uid() == 0 {
        lchown(path, Some(NOBODY), Some(NOBODY))?;
    }
    Ok(())
}
