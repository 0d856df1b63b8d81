//! A decision as it is shown. Its digest is signed as `shown_digest`.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::AskState;
use crate::{AskId, Digest, Fault, SessionId, Timestamp, TraceId, canonical_digest};

/// Everything a person sees of one ask, escaped, top-down. Nothing is shown that isn't here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct DecisionView {
    /// Which ask.
    pub ask_id: AskId,
    /// What is decided.
    pub kind: DecisionKind,
    /// A plain sentence: who wants what, where.
    pub headline: String,
    /// Who asks, `name@workspace`; for a change of settings, `you`.
    pub requester: String,
    /// The session; absent for a change of settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub session_id: Option<SessionId>,
    /// The recorded edge that this repeats, where it is part of a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub replays: Option<EdgeAddress>,
    /// What will change, exactly.
    pub contents: Vec<Content>,
    /// Where and under what: program, folder, environment, network, containment.
    pub facts: Vec<Fact>,
    /// What is unusual.
    pub warnings: Vec<Warning>,
    /// What the agent says about it; untrusted, stands in a box that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub agent_words: Option<String>,
    /// Why a person is asked: the rule's sentence.
    pub why: String,
    /// The rule that asks, `policy:<workspace>/<rule>`.
    pub policy_id: String,
    /// What a yes is bound to.
    pub action_digest: Digest,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it lapses; nobody's silence is a yes.
    pub expires_at: Timestamp,
}

impl DecisionView {
    /// The digest of what is shown.
    ///
    /// # Errors
    /// As [`canonical_digest`].
    pub fn digest(&self) -> Result<Digest, Fault> {
        canonical_digest(self)
    }
}

/// One ask with what is shown of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct AskDetail {
    /// What is shown.
    pub view: DecisionView,
    /// The digest of `view`, which a yes signs.
    pub shown_digest: Digest,
    /// How the ask stands.
    pub state: AskState,
    /// Whether the requester is still there.
    pub requester_present: bool,
    /// The person's reason, or what ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub reason: Option<String>,
    /// The edge that came of it, once it was carried out or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub edge: Option<EdgeAddress>,
}

/// Where an edge is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct EdgeAddress {
    /// The trace.
    pub trace_id: TraceId,
    /// The edge in it, from 1.
    pub edge_id: u32,
}

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// An agent's act.
    Act,
    /// An agent's look at something the policy asks about.
    View,
    /// A change the person asked for in the window.
    Change,
}

/// Exact content under review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text that runs or is passed on.
    Text {
        /// What it is, such as `Command`.
        label: String,
        /// The text, escaped.
        text: String,
        /// Bytes of the exact text.
        bytes: u32,
        /// Lines of the exact text.
        lines: u32,
    },
    /// Arguments, each one escaped.
    Arguments {
        /// What they are.
        label: String,
        /// The arguments in order.
        items: Vec<String>,
    },
    /// A change of a file.
    Diff {
        /// The file's path, escaped.
        path: String,
        /// The lines, with some context.
        lines: Vec<DiffLine>,
        /// Lines added.
        added: u32,
        /// Lines removed.
        removed: u32,
        /// Bytes before.
        #[ts(type = "number")]
        bytes_before: u64,
        /// Bytes after.
        #[ts(type = "number")]
        bytes_after: u64,
    },
}

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct DiffLine {
    /// Which side it is on.
    pub kind: DiffLineKind,
    /// Its number before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub old: Option<u32>,
    /// Its number after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub new: Option<u32>,
    /// The line, escaped, without its newline; a missing final newline is said in the text.
    pub text: String,
}

/// Which side a line is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum DiffLineKind {
    Same,
    Added,
    Removed,
    /// Unchanged lines left out; `text` says how many.
    Gap,
}

/// One row of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Fact {
    /// What it is, such as `Folder`.
    pub label: String,
    /// The value, escaped.
    pub value: String,
}

/// Something unusual.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Warning {
    /// What to switch on.
    pub code: WarningCode,
    /// One plain sentence.
    pub text: String,
}

/// What is unusual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// Invisible or direction-changing characters, shown as escapes.
    HiddenCharacters,
    /// Letters of several scripts in one word.
    MixedScripts,
    /// A place whose content runs later, such as `.git/hooks`.
    RunsLater,
    /// Containment is less than full.
    WeakContainment,
    /// Words such as `sudo`, `rm -rf`, `curl … | sh`.
    Dangerous,
    /// A script in the workspace runs; its content isn't pinned.
    ScriptNotPinned,
}
