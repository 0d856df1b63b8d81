//! The simulated files and screen.

use std::collections::{BTreeMap, BTreeSet};

use bodyguard_protocol::action::ScreenCapture;
use bodyguard_protocol::{Digest, ErrorCode, Fault, FileEntry, FileKind, GitState, MonitorInfo, escape_line};
use serde_json::{Value, json};

use super::entry;
use super::input::Typed;
use crate::host::{Picture, region_of};
use crate::{DeletedEntry, Image};

const WIDTH: u32 = 640;
const HEIGHT: u32 = 400;

#[derive(Debug)]
pub(super) struct World {
    pub(super) root: String,
    /// By path relative to the root; folders are what lies above.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) dirty: Option<bool>,
    pub(super) typed: Typed,
}

impl World {
    /// A target relative to the root, without `.` and `..`.
    fn relative(&self, target: &str) -> Result<String, Fault> {
        let outside = || {
            let message = format!("{} isn't in the workspace", escape_line(target));
            Fault::new(ErrorCode::OutsideWorkspace, message).at("action.target")
        };
        let below = if target.starts_with('/') {
            let rest = target.strip_prefix(self.root.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'));
            rest.ok_or_else(outside)?
        } else {
            target
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in below.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or_else(outside)?;
                }
                part => parts.push(part),
            }
        }
        Ok(parts.join("/"))
    }

    fn is_folder(&self, relative: &str) -> bool {
        let repository = self.dirty.is_some() && relative == ".git";
        relative.is_empty() || repository || self.files.keys().any(|path| below(path, relative).is_some())
    }

    /// A folder, relative to the root.
    pub(super) fn folder(&self, target: &str) -> Result<String, Fault> {
        let relative = self.relative(target)?;
        if self.is_folder(&relative) { Ok(relative) } else { Err(missing(target)) }
    }

    pub(super) fn absolute_folder(&self, target: &str) -> Result<String, Fault> {
        self.folder(target).map(|relative| self.join(&relative))
    }

    /// The absolute path of something that exists.
    pub(super) fn absolute(&self, target: &str) -> Result<String, Fault> {
        let relative = self.relative(target)?;
        let there = self.files.contains_key(&relative) || self.is_folder(&relative);
        if there { Ok(self.join(&relative)) } else { Err(missing(target)) }
    }

    /// The repository's head: as it was configured, until `.git/HEAD` is written and says otherwise.
    pub(super) fn head(&self, configured: &GitState) -> GitState {
        let text = |path: &str| Some(std::str::from_utf8(self.files.get(path)?).ok()?.trim().to_owned());
        let Some(head) = text(".git/HEAD") else { return configured.clone() };
        let Some(branch) = head.strip_prefix("ref: refs/heads/").map(str::to_owned) else {
            return GitState { head: format!("sha1:{head}"), branch: None, dirty: None };
        };
        if configured.branch.as_ref() == Some(&branch) {
            return configured.clone();
        }
        let commit = text(&format!(".git/refs/heads/{branch}"));
        let head = commit.map_or_else(|| format!("unborn:{branch}"), |commit| format!("sha1:{commit}"));
        GitState { head, branch: Some(branch), dirty: None }
    }

    fn join(&self, relative: &str) -> String {
        if relative.is_empty() { self.root.clone() } else { format!("{}/{relative}", self.root) }
    }

    pub(super) fn file(&self, target: &str) -> Result<&Vec<u8>, Fault> {
        let relative = self.relative(target)?;
        if let Some(bytes) = self.files.get(&relative) {
            return Ok(bytes);
        }
        if self.is_folder(&relative) {
            let message = format!("{} is a folder", escape_line(target));
            return Err(Fault::new(ErrorCode::NotRegularFile, message).at("action.target"));
        }
        Err(missing(target))
    }

    /// Puts content in a place; what is reported of it.
    pub(super) fn replace(&mut self, target: &str, before: Option<&Digest>, bytes: Vec<u8>) -> Result<Value, Fault> {
        let relative = self.relative(target)?;
        let after = Digest::of(&bytes);
        let observed = json!({ "path": target, "before_sha256": before, "after_sha256": after, "bytes": bytes.len() });
        let old = self.files.insert(relative, bytes.clone());
        if old.as_ref() != Some(&bytes) && self.dirty.is_some() {
            self.dirty = Some(true);
        }
        Ok(observed)
    }

    /// The absolute path of something that isn't there, in a folder that is.
    pub(super) fn absent(&self, target: &str) -> Result<String, Fault> {
        let relative = self.relative(target)?;
        if self.files.contains_key(&relative) || self.is_folder(&relative) {
            let message = format!("{} is there already", escape_line(target));
            return Err(Fault::new(ErrorCode::AlreadyExists, message).at("action.target"));
        }
        let folder = relative.rsplit_once('/').map_or("", |(folder, _)| folder);
        if self.is_folder(folder) { Ok(self.join(&relative)) } else { Err(missing(target)) }
    }

    /// What lies at a place and below it, itself first with an empty path.
    pub(super) fn tree(&self, target: &str) -> Result<Vec<DeletedEntry>, Fault> {
        let top = self.relative(target)?;
        let file = |path: &str, bytes: &[u8]| DeletedEntry {
            path: path.to_owned(),
            kind: FileKind::File,
            size: bytes.len() as u64,
        };
        if top.is_empty() {
            return Err(Fault::invalid("action.target", "the workspace itself isn't deleted"));
        }
        if let Some(bytes) = self.files.get(&top) {
            return Ok(vec![file("", bytes)]);
        }
        let mut found = BTreeMap::new();
        for (path, bytes) in &self.files {
            let Some(rest) = below(path, &top) else { continue };
            for (at, _) in rest.match_indices('/') {
                let folder = rest.get(..at).unwrap_or_default().to_owned();
                found.insert(folder.clone(), DeletedEntry { path: folder, kind: FileKind::Folder, size: 0 });
            }
            found.insert(rest.to_owned(), file(rest, bytes));
        }
        if found.is_empty() {
            return Err(missing(target));
        }
        let itself = DeletedEntry { path: String::new(), kind: FileKind::Folder, size: 0 };
        Ok(std::iter::once(itself).chain(found.into_values()).collect())
    }

    /// Takes away what lies at a place and below it.
    pub(super) fn remove(&mut self, target: &str) -> Result<(), Fault> {
        let top = self.relative(target)?;
        self.files.retain(|path, _| *path != top && below(path, &top).is_none());
        self.dirty = self.dirty.map(|_| true);
        Ok(())
    }

    /// Names directly in a folder.
    pub(super) fn names(&self, target: &str) -> Result<BTreeSet<String>, Fault> {
        let folder = self.folder(target)?;
        let names = self.files.keys().filter_map(|path| below(path, &folder));
        Ok(names.filter_map(|rest| rest.split('/').next().map(str::to_owned)).collect())
    }

    pub(super) fn entries(&self, scope: &str, depth: u8, hash_bytes: u64) -> Result<Vec<FileEntry>, Fault> {
        if !(1..=8).contains(&depth) {
            return Err(Fault::invalid("query.depth", "1 to 8 levels"));
        }
        let folder = self.folder(scope)?;
        let mut found = BTreeMap::new();
        for (path, bytes) in &self.files {
            let Some(rest) = below(path, &folder) else { continue };
            let parts: Vec<&str> = rest.split('/').collect();
            for level in 1..=parts.len().min(usize::from(depth)) {
                let Some(shown) = parts.get(..level) else { continue };
                let relative =
                    if folder.is_empty() { shown.join("/") } else { format!("{folder}/{}", shown.join("/")) };
                let absolute = self.join(&relative);
                let whole = level == parts.len();
                let hash = (whole && bytes.len() as u64 <= hash_bytes).then(|| Digest::of(bytes));
                let (kind, size) = if whole { (FileKind::File, bytes.len() as u64) } else { (FileKind::Folder, 0) };
                found.insert(absolute.clone(), entry(absolute, kind, size, hash));
            }
        }
        Ok(found.into_values().collect())
    }
}

/// What of a path lies below a folder.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

fn missing(target: &str) -> Fault {
    Fault::new(ErrorCode::NotFound, format!("{} isn't there", escape_line(target))).at("action.target")
}

pub(super) fn monitor() -> MonitorInfo {
    let scale = "1".to_owned();
    MonitorInfo { index: 0, name: "simulated".to_owned(), x: 0, y: 0, width: WIDTH, height: HEIGHT, scale }
}

/// A gradient, so that each region looks like itself and like no other.
pub(super) fn picture(
    monitor: &MonitorInfo,
    region: Option<[u32; 4]>,
    capture: &ScreenCapture,
) -> Result<Image, Fault> {
    let region = region_of(monitor, region)?;
    let (left, top) = (u32::try_from(region.x).unwrap_or(0), u32::try_from(region.y).unwrap_or(0));
    let mut rgb = Vec::new();
    for y in top..top + region.height {
        for x in left..left + region.width {
            let shade = |value: u32| u8::try_from(value % 256).unwrap_or(0);
            rgb.extend([shade(x), shade(y), shade(x / 256 * 64 + y / 256 * 16)]);
        }
    }
    let (picture, scale) = Picture { width: region.width, height: region.height, rgb }.shrink(capture.max_width);
    Ok(Image {
        media_type: capture.format.media_type().to_owned(),
        bytes: picture.encode(capture.format)?,
        width: picture.width,
        height: picture.height,
        scale,
    })
}
