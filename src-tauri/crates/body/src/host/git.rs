//! The repository's state, read by `gix` alone: `git` itself would run what the repository's
//! configuration names (`core.fsmonitor`, filters, hooks), and the agent writes that.

use std::path::{Path, PathBuf};

use bodyguard_protocol::{ErrorCode, Fault, GitState};
use gix::bstr::ByteSlice as _;
use gix::config::File as ConfigFile;
use gix::config::Source;

use super::files::{Place, Root};

const NONE: &str = "none";

/// The state of the repository that a folder lies in, as long as the repository lies in the workspace.
pub(crate) fn state(root: &Root, folder: &Place) -> Result<GitState, Fault> {
    let Some(git) = find(root, folder) else { return Ok(none()) };
    refuse_reftable(&git)?;
    let repository = open(&git)?;
    let head = repository.head().map_err(|e| unreadable(&e))?;
    let branch = head.referent_name().map(|name| name.shorten().to_str_lossy().into_owned());
    let head = if head.is_unborn() {
        format!("unborn:{}", branch.as_deref().unwrap_or_default())
    } else {
        let id = repository.head_id().map_err(|e| unreadable(&e))?;
        format!("{}:{}", id.kind(), id.to_hex())
    };
    Ok(GitState { head, branch, dirty: Some(dirty(&repository).map_err(|e| unreadable(&e))?) })
}

pub(crate) fn none() -> GitState {
    GitState { head: NONE.to_owned(), branch: None, dirty: None }
}

/// Where `core.hooksPath` points, if into the workspace: relative to the root.
pub(crate) fn hooks_folder(root: &Root, repository: &str) -> Option<String> {
    let config =
        root.place(&if repository.is_empty() { ".git/config".to_owned() } else { format!("{repository}/.git/config") });
    let (file, _) = root.regular(&config).ok()?;
    let bytes = super::files::read_whole(&file, 1024 * 1024, &config.absolute).ok()?;
    let hooks = parse_config(&bytes)?.string("core.hooksPath")?.to_str().ok()?.to_owned();
    let target = if hooks.starts_with('/') { hooks } else { format!("{}/{hooks}", root.place(repository).absolute) };
    root.resolve(&target).ok().map(|place| place.relative).filter(|relative| !relative.is_empty())
}

fn parse_config(bytes: &[u8]) -> Option<ConfigFile> {
    let meta = gix::config::file::Metadata::from(Source::Local);
    ConfigFile::from_bytes_no_includes(bytes, meta, Default::default()).ok()
}

/// The `.git` folder of the nearest repository at or above a folder, not above the root.
fn find(root: &Root, folder: &Place) -> Option<PathBuf> {
    let mut relative = folder.relative.as_str();
    loop {
        let folder = root.place(relative);
        let git = Path::new(&folder.absolute).join(".git");
        if git.is_file() || is_repository(&git) {
            return inside(root, &git);
        }
        if relative.is_empty() {
            return None;
        }
        relative = relative.rsplit_once('/').map_or("", |(above, _)| above);
    }
}

/// What `git` itself takes for a repository; anything else that is called `.git` it passes over.
fn is_repository(git: &Path) -> bool {
    git.join("HEAD").symlink_metadata().is_ok() && git.join("objects").is_dir() && git.join("refs").is_dir()
}

/// The real folder behind a `.git`, if it is the workspace's own. A work tree's lies elsewhere; it
/// counts when it names the workspace in turn, which only its owner could write there. Anything else
/// would let an agent look at any repository by writing a `.git` file.
fn inside(root: &Root, git: &Path) -> Option<PathBuf> {
    let workspace = std::fs::canonicalize(root.path()).ok()?;
    let target = if git.is_file() {
        let text = std::fs::read_to_string(git).ok()?;
        let target = Path::new(text.strip_prefix("gitdir:")?.trim());
        std::fs::canonicalize(git.parent()?.join(target)).ok()?
    } else {
        std::fs::canonicalize(git).ok()?
    };
    if target.starts_with(&workspace) {
        return Some(target);
    }
    let back = std::fs::read_to_string(target.join("gitdir")).ok()?;
    let named = std::fs::canonicalize(back.trim()).ok()?;
    (git.is_file() && named == std::fs::canonicalize(git).ok()?).then_some(target)
}

fn refuse_reftable(git: &Path) -> Result<(), Fault> {
    let common = std::fs::read_to_string(git.join("commondir")).ok().map(|text| git.join(text.trim()));
    let config = common.as_deref().unwrap_or(git).join("config");
    let Some(config) = std::fs::read(config).ok().and_then(|bytes| parse_config(&bytes)) else { return Ok(()) };
    let storage = config.string("extensions.refStorage").map(|value| value.to_str_lossy().into_owned());
    match storage.as_deref() {
        None | Some("files") => Ok(()),
        Some(other) => Err(unsupported(&format!("its references are kept as `{other}` (unsupported_ref_storage)"))),
    }
}

fn open(git: &Path) -> Result<gix::Repository, Fault> {
    // Reduced trust: values of the repository's own configuration that name programs are not read.
    gix::open::Options::isolated()
        .with(gix::sec::Trust::Reduced)
        .bail_if_untrusted(false)
        .open(git)
        .map(|repository| repository.to_thread_local())
        .map_err(|e| unsupported(&e.to_string()))
}

/// Whether tracked files differ from the index, or the index from HEAD. Submodules count as they are
/// recorded; they have a configuration of their own, which is not obeyed. Writes nothing.
fn dirty(repository: &gix::Repository) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    if repository.workdir().is_none() {
        return Ok(false);
    }
    let options = repository
        .status(gix::progress::Discard)?
        .untracked_files(gix::status::UntrackedFiles::None)
        .index_worktree_rewrites(None)
        .tree_index_track_renames(gix::status::tree_index::TrackRenames::Disabled)
        .index_worktree_submodules(gix::status::Submodule::Given {
            ignore: gix::submodule::config::Ignore::All,
            check_dirty: false,
        });
    match options.into_iter(None)?.next() {
        None => Ok(false),
        Some(Ok(_)) => Ok(true),
        Some(Err(error)) => Err(error.into()),
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> Fault {
    unsupported(&error.to_string())
}

fn unsupported(why: &str) -> Fault {
    let why = bodyguard_protocol::escape_line(why);
    Fault::new(ErrorCode::NotYetSupported, format!("the workspace's repository can't be read truthfully: {why}"))
        .at("git_head")
}
