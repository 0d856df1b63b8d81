//! The stable fields of the state.

use std::collections::{BTreeMap, BTreeSet};

use bodyguard_protocol::{Digest, Fault, StableFields, canonical_digest};

use super::files::{Place, Root};
use super::git;
use crate::StableState;

/// The kernel keeps this much of a process's name.
const NAME_BYTES: usize = 15;

/// The window that counts as focused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Focused {
    pub(crate) title: String,
    pub(crate) app: String,
}

pub(crate) fn stable(
    root: &Root,
    cwd: &Place,
    focused: Focused,
    key_processes: &[String],
    env_allow: &BTreeMap<String, String>,
) -> Result<StableState, Fault> {
    let git = git::state(root, cwd)?;
    let fields = StableFields {
        cwd: format!("workspace:/{}", cwd.relative),
        focused_window_title: focused.title,
        git_head: git.head.clone(),
        key_process_names: running(key_processes),
        env_fingerprint: fingerprint(env_allow)?,
    };
    Ok(StableState { fields, focused_app: focused.app, git })
}

/// Digest over the allow-listed variables, by name.
pub(crate) fn fingerprint(env_allow: &BTreeMap<String, String>) -> Result<Digest, Fault> {
    canonical_digest(env_allow)
}

/// Those of the declared names that run. Nothing else of the process list leaves this function.
fn running(declared: &[String]) -> Vec<String> {
    if declared.is_empty() {
        return Vec::new();
    }
    let names = names();
    let runs = |name: &&String| names.contains(name.as_bytes().get(..NAME_BYTES).unwrap_or(name.as_bytes()));
    let found: BTreeSet<&String> = declared.iter().filter(runs).collect();
    found.into_iter().cloned().collect()
}

fn names() -> BTreeSet<Vec<u8>> {
    let Ok(listing) = std::fs::read_dir("/proc") else { return BTreeSet::new() };
    listing
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit))
        .filter_map(|entry| std::fs::read(entry.path().join("comm")).ok())
        .map(|name| name.strip_suffix(b"\n").map_or_else(|| name.clone(), <[u8]>::to_vec))
        .collect()
}
