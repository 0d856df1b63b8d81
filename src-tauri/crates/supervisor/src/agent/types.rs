//! What goes in and out of an [`super::AgentHandle`].

use std::sync::Arc;
use std::time::Duration;

use bodyguard_body::Image;
use bodyguard_protocol::{
    ActionOutcome, AskId, ErrorCode, Fault, Observation, PerceptionQuery, Provenance, SessionId, StateHash,
    StateProfile, TraceId, WorkspaceName,
};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Asks for a session: an existing one by id, or a new one in a workspace.
#[derive(Debug, Clone, Default)]
pub struct EnsureSession {
    /// A session of this agent to go on with.
    pub session_id: Option<SessionId>,
    /// One of the agent's workspaces; may be left out where it has just one.
    pub workspace: Option<WorkspaceName>,
    /// What the agent wants to do; untrusted text, shown as the agent's own words.
    pub goal: Option<String>,
}

/// A session as its agent sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionInfo {
    /// Give this to every call.
    pub session_id: SessionId,
    /// The trace that records it.
    pub trace_id: TraceId,
    /// The workspace's name.
    pub workspace: WorkspaceName,
    /// Its root folder.
    pub root: String,
    /// Whether the session existed before.
    pub resumed: bool,
    /// The generation; 0 until the first perception.
    pub generation: u64,
    /// The workspaces this agent may choose among.
    pub workspaces: Vec<WorkspaceName>,
}

/// How a call waits for a person.
#[derive(Clone)]
pub struct Waiting {
    /// How long to wait before answering `authorization_required`.
    pub wait: Duration,
    /// Cancelled when the requester takes the call back.
    pub cancel: CancellationToken,
    /// Told now and then what is waited for.
    pub progress: ProgressSink,
}

/// Takes one sentence about what is waited for.
pub type ProgressSink = Arc<dyn Fn(String) + Send + Sync>;

/// One act.
#[derive(Clone)]
pub struct ActCall {
    /// The action as the agent sent it.
    pub action: Value,
    /// The agent's own words about it; untrusted.
    pub words: Option<String>,
    /// How it waits.
    pub waiting: Waiting,
}

/// One perception.
#[derive(Clone)]
pub struct PerceiveCall {
    /// What to look at.
    pub query: PerceptionQuery,
    /// The agent's own words about it; untrusted.
    pub words: Option<String>,
    /// How it waits.
    pub waiting: Waiting,
}

/// One replay of a recorded trace.
#[derive(Clone)]
pub struct ReplayCall {
    /// The trace.
    pub trace_id: TraceId,
    /// The first edge; the trace's first when absent.
    pub from_edge: Option<u64>,
    /// The last edge; the trace's last when absent.
    pub to_edge: Option<u64>,
    /// Whether it is only predicted.
    pub dry_run: bool,
    /// The agent's own words about it; untrusted.
    pub words: Option<String>,
    /// How it waits.
    pub waiting: Waiting,
}

/// What came of an act.
#[derive(Debug, Clone)]
pub struct ActReply {
    /// The outcome.
    pub outcome: ActionOutcome,
    /// A picture that belongs to it.
    pub image: Option<Arc<Image>>,
}

/// What came of a perception.
#[derive(Debug, Clone)]
pub struct PerceiveReply {
    /// The observation.
    pub observation: Observation,
    /// The picture, in mode `screen`.
    pub image: Option<Arc<Image>>,
}

/// A state's hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StateReply {
    /// The hash.
    pub state_hash: StateHash,
    /// Which fields it covers.
    pub state_profile: StateProfile,
    /// Who encoded it.
    pub provenance: Provenance,
}

/// A typed error, with the ask that waits or the escalation that it raised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct Refusal {
    /// What and why.
    pub fault: Fault,
    /// The ask to poll.
    pub escalation_id: Option<AskId>,
}

impl Refusal {
    /// What to switch on.
    pub fn code(&self) -> ErrorCode {
        self.fault.code
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self { fault, escalation_id: None }
    }
}
