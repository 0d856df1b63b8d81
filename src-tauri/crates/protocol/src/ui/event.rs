//! Events to the window.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{BarView, EdgeSummary};
use crate::{AskId, SessionId, TraceId};

/// One event. Sequence numbers have no gaps; the window refetches when it sees one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct UiEvent {
    /// From 1 in each run of the app.
    #[ts(type = "number")]
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: UiEventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum UiEventKind {
    /// An ask opened, moved on or ended.
    AskChanged {
        /// Which.
        ask_id: AskId,
    },
    /// A session began, acted or ended.
    SessionChanged {
        /// Which.
        session_id: SessionId,
    },
    /// An edge was recorded.
    EdgeAdded {
        /// In which trace.
        trace_id: TraceId,
        /// The edge.
        edge: EdgeSummary,
    },
    /// Agents, workspaces or connections changed.
    AgentsChanged,
    /// Health, keys, devices or policies changed.
    HealthChanged,
    /// A person asked to see this ask, by the tray or a notification.
    ShowAsk {
        /// Which.
        ask_id: AskId,
    },
    /// The decision bar changed.
    BarChanged {
        /// How it stands; absent when lowered.
        bar: Option<BarView>,
    },
    /// Everything was stopped, or goes on.
    StoppedChanged {
        /// Whether everything is stopped.
        stopped: bool,
    },
}
