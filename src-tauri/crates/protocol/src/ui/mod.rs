//! What the window and the back end say to each other: one request type, one response type, one
//! event type. The window's TypeScript is generated from these.
//!
//! No request here approves anything: a yes is a native event on the decision bar. All text that an
//! agent could have written arrives already escaped (see [`crate::escape_text`]).

mod decision;
mod event;
mod request;
mod response;
mod views;

pub use decision::{
    AskDetail, Content, DecisionKind, DecisionView, DiffLine, DiffLineKind, EdgeAddress, Fact, Warning, WarningCode,
};
pub use event::{UiEvent, UiEventKind};
pub use request::{Change, UiRequest, WorkspaceDesktop};
pub use response::{UiReply, UiResponse};
pub use views::{
    AgentView, AgentsView, AskState, AskSummary, BarView, CheckStatus, ConnectView, DeviceView, EdgePage, EdgeSummary,
    EdgeView, HealthCheck, HealthView, KeyView, LiveView, Overview, PolicyView, SessionState, SessionSummary,
    SettingsView, TracePage, TraceSummary, TraceView, VerifyView, WorkspaceView,
};
