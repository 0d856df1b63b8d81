//! Which places of a workspace a command may see but not change.

use std::collections::VecDeque;

use rustix::fs::{AtFlags, Dir, FileType, OFlags};

use super::files::{Place, Root};
use super::git;
use super::sandbox::Held;
use crate::places::HELD;

/// Folders that are looked through for repositories.
const MAX_FOLDERS: usize = 4_000;
const MAX_DEPTH: usize = 6;
const MAX_HELD: usize = 400;
/// Large, full of other people's packages, and without repositories of their own.
const SKIPPED: [&str; 4] = ["node_modules", "target", ".venv", "__pycache__"];

/// The places that exist now.
pub(crate) fn held(root: &Root) -> Held {
    let mut held = Held::default();
    hold_below(root, "", &HELD, &mut held);
    for repository in repositories(root) {
        let git = join(&repository, ".git");
        if is_folder(root, &git) {
            // A mount of its own, because a folder that is one can't be renamed out of the way.
            held.places.push((git.clone(), false));
            if let Some(hooks) = git::hooks_folder(root, &repository) {
                hold(root, &hooks, &mut held);
            }
        } else {
            hold(root, &git, &mut held);
        }
        let inside: Vec<&str> = HELD.iter().copied().filter(|place| place.starts_with(".git/")).collect();
        hold_below(root, &repository, &inside, &mut held);
    }
    // Outer mounts first, or they would cover the inner ones.
    held.places.sort_by_key(|(path, read_only)| (path.matches('/').count(), path.clone(), *read_only));
    held.places.dedup_by(|a, b| a.0 == b.0);
    held.places.truncate(MAX_HELD);
    held
}

fn hold_below(root: &Root, folder: &str, places: &[&str], held: &mut Held) {
    for place in places {
        hold(root, &join(folder, place), held);
    }
}

fn hold(root: &Root, relative: &str, held: &mut Held) {
    if exists(root, relative) {
        held.places.push((relative.to_owned(), true));
    }
}

fn exists(root: &Root, relative: &str) -> bool {
    let Ok(fd) = root.open_at(relative, OFlags::PATH | OFlags::NOFOLLOW) else { return false };
    let kind = rustix::fs::fstat(&fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::RegularFile | FileType::Directory))
}

fn is_folder(root: &Root, relative: &str) -> bool {
    root.open_at(relative, OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY).is_ok()
}

/// Folders with a `.git`, nearest first.
fn repositories(root: &Root) -> Vec<String> {
    let mut found = Vec::new();
    let mut ahead = VecDeque::from([root.place("")]);
    let mut looked = 0;
    while let Some(place) = ahead.pop_front() {
        looked += 1;
        if looked > MAX_FOLDERS {
            break;
        }
        let depth = if place.relative.is_empty() { 0 } else { place.relative.matches('/').count() + 1 };
        for (name, folder) in names(root, &place) {
            if name == ".git" {
                found.push(place.relative.clone());
            } else if folder && depth < MAX_DEPTH && !SKIPPED.contains(&name.as_str()) {
                ahead.push_back(root.place(&join(&place.relative, &name)));
            }
        }
    }
    found
}

fn names(root: &Root, place: &Place) -> Vec<(String, bool)> {
    let Ok(folder) = root.folder(place) else { return Vec::new() };
    let Ok(listing) = Dir::read_from(&folder) else { return Vec::new() };
    let mut names: Vec<(String, bool)> = listing
        .flatten()
        .filter_map(|item| {
            let name = item.file_name().to_str().ok()?.to_owned();
            let kind = match item.file_type() {
                FileType::Unknown => {
                    let stat = rustix::fs::statat(&folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                known => known,
            };
            (!matches!(name.as_str(), "." | "..")).then_some((name, kind == FileType::Directory))
        })
        .collect();
    names.sort();
    names
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
