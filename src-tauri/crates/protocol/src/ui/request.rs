//! Requests of the window.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{AgentName, AskId, Digest, SessionId, TraceId, WorkspaceName};

/// A request of the window. Answered by the [`super::UiResponse`] variant of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "method", content = "params", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub enum UiRequest {
    /// Counts for the frame.
    Overview,
    /// Open asks, oldest first, and the latest decided ones.
    Asks,
    /// One ask as it is decided.
    Ask { ask_id: AskId },
    /// The page shows this ask; raises the bar for it. `end_shown` once the end of the content has
    /// been in view; until then the bar doesn't arm.
    AskShown { ask_id: AskId, shown_digest: Digest, end_shown: bool },
    /// The page shows no ask; lowers the bar.
    AskHidden,
    /// Running and recent sessions.
    Sessions,
    /// What an agent last saw, and where it is.
    Live { session_id: SessionId },
    /// Traces, newest first.
    Traces { offset: u32, limit: u32 },
    /// One trace without its edges.
    Trace { trace_id: TraceId },
    /// Some edges of a trace.
    Edges { trace_id: TraceId, offset: u32, limit: u32 },
    /// One edge, whole.
    Edge { trace_id: TraceId, edge_id: u32 },
    /// Recomputes the log's tree and checks every signature.
    Verify,
    /// Agents and workspaces.
    Agents,
    /// How to connect an agent; holds no secret.
    Connect { agent: AgentName },
    /// Puts an agent's token on the clipboard, without it passing through the page.
    CopyToken { agent: AgentName },
    /// Asks for a change that needs the person's presence; decided on the bar like any ask.
    Propose { change: Change },
    /// A change that only narrows; takes effect at once.
    Narrow { change: Change },
    /// What works on this machine and what to do where it doesn't.
    Health,
    /// Keys, devices, policies.
    Settings,
    /// Ends what runs, refuses what waits, and refuses everything new.
    StopAll,
    /// The person has read what a crash or restart cut off.
    AcknowledgeInterrupted,
}

/// Whose desktop the agents of a workspace see and use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceDesktop {
    /// The person's own.
    #[default]
    Shared,
    /// One of each session's own.
    Private,
}

/// A change to what agents may do or to who counts as present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "change", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub enum Change {
    /// A new agent with its workspaces.
    AddAgent { name: AgentName, workspaces: Vec<WorkspaceName> },
    /// Other workspaces for an agent.
    AssignWorkspaces { agent: AgentName, workspaces: Vec<WorkspaceName> },
    /// An agent's end: its token stops working and its sessions end. Narrows.
    RemoveAgent { agent: AgentName },
    /// A new workspace with the template *careful*.
    AddWorkspace {
        name: WorkspaceName,
        root: String,
        #[serde(default)]
        #[ts(optional, as = "Option<WorkspaceDesktop>")]
        desktop: WorkspaceDesktop,
    },
    /// Counts an input device as the person's.
    EnrolDevice { device: String },
    /// No longer counts it. Narrows.
    RemoveDevice { device: String },
    /// Puts the present text of a workspace's policy file in force, if it still has this digest.
    UsePolicy { workspace: WorkspaceName, digest: Digest },
    /// Lets agents go on after a stop.
    Resume,
    /// Another phrase on the decision bar.
    SetPhrase { phrase: String },
}

impl Change {
    /// Whether the change only takes something away, so that it needs no presence.
    pub const fn narrows(&self) -> bool {
        matches!(self, Self::RemoveAgent { .. } | Self::RemoveDevice { .. })
    }
}
