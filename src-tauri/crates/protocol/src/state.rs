//! The deterministic state hash (OS-011 §3.4, §5.3; `REQUIREMENTS` resolutions 1 and 2).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{Digest, Fault, canonical_digest};

/// A state hash with its algorithm prefix.
pub type StateHash = Digest;

/// Which stable fields a state hash covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
pub enum StateProfile {
    /// `{cwd, focused_window_title, git_head, key_process_names, env_fingerprint}`.
    #[default]
    #[serde(rename = "os011.registry.v0")]
    RegistryV0,
    /// `{cwd, env_summary, fs_snapshot_hash, process_list_hash}`: also what is in the files.
    #[serde(rename = "bodyos.readme.v0")]
    ReadmeV0,
}

/// The fields of `bodyos.readme.v0`. As little as the others do they name a machine, a home or a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadmeFields {
    /// Relative to the workspace's root: `workspace:/sub/dir`.
    pub cwd: String,
    /// The workspace's allow-listed variables.
    pub env_summary: BTreeMap<String, String>,
    /// Digest over path, kind, permissions and content of all that is in the workspace, but for `.git`.
    pub fs_snapshot_hash: Digest,
    /// Digest over the sorted commands of the session's own processes that run.
    pub process_list_hash: Digest,
}

impl ReadmeFields {
    /// The state hash over these fields.
    ///
    /// # Errors
    /// As [`canonical_digest`].
    pub fn hash(&self) -> Result<StateHash, Fault> {
        canonical_digest(self)
    }
}

/// The fields of `os011.registry.v0`. None of them names a machine, a home or a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
pub struct StableFields {
    /// Relative to the workspace's root: `workspace:/sub/dir`.
    pub cwd: String,
    /// The last focused window that isn't the supervisor's own; empty when there is none.
    pub focused_window_title: String,
    /// `sha1:…` or `sha256:…`, `unborn:<branch>`, or `none` without a repository.
    pub git_head: String,
    /// The workspace's declared names that run, sorted, each once.
    pub key_process_names: Vec<String>,
    /// Digest over the workspace's allow-listed variables.
    pub env_fingerprint: Digest,
}

impl StableFields {
    /// The state hash over these fields.
    ///
    /// # Errors
    /// As [`canonical_digest`].
    pub fn hash(&self) -> Result<StateHash, Fault> {
        canonical_digest(self)
    }

    /// The names of the fields in which two states differ, for messages.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let mut names = Vec::new();
        let mut note = |differs: bool, name| {
            if differs {
                names.push(name);
            }
        };
        note(self.cwd != other.cwd, "cwd");
        note(self.focused_window_title != other.focused_window_title, "focused_window_title");
        note(self.git_head != other.git_head, "git_head");
        note(self.key_process_names != other.key_process_names, "key_process_names");
        note(self.env_fingerprint != other.env_fingerprint, "env_fingerprint");
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> StableFields {
        StableFields {
            cwd: "workspace:/".into(),
            focused_window_title: "Editor".into(),
            git_head: "sha1:00".into(),
            key_process_names: vec!["bash".into()],
            env_fingerprint: Digest::of(b""),
        }
    }

    #[test]
    fn r28_equal_states_hash_equal_and_each_field_counts() {
        let base = fields();
        assert_eq!(base.hash().unwrap(), fields().hash().unwrap());
        let changes: [fn(&mut StableFields); 5] = [
            |s| s.cwd.push('x'),
            |s| s.focused_window_title.push('x'),
            |s| s.git_head.push('1'),
            |s| s.key_process_names.push("node".into()),
            |s| s.env_fingerprint = Digest::of(b"x"),
        ];
        for change in changes {
            let mut other = fields();
            change(&mut other);
            assert_ne!(base.hash().unwrap(), other.hash().unwrap());
            assert_eq!(base.differences(&other).len(), 1);
        }
    }
}
