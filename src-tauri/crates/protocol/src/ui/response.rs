//! Responses to the window.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{
    AgentsView, AskDetail, AskSummary, ConnectView, EdgePage, EdgeView, HealthView, LiveView, Overview, SessionSummary,
    SettingsView, TracePage, TraceView, VerifyView,
};
use crate::{AskId, Fault};

/// The response to the [`super::UiRequest`] variant of the same name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "method", content = "result", rename_all = "snake_case")]
#[allow(missing_docs, reason = "described with the requests")]
pub enum UiResponse {
    Overview(Overview),
    Asks(Vec<AskSummary>),
    Ask(Box<AskDetail>),
    AskShown,
    AskHidden,
    Sessions(Vec<SessionSummary>),
    Live(Box<LiveView>),
    Traces(TracePage),
    Trace(Box<TraceView>),
    Edges(EdgePage),
    Edge(Box<EdgeView>),
    Verify(VerifyView),
    Agents(AgentsView),
    Connect(ConnectView),
    CopyToken,
    /// The ask that decides the change.
    Propose(AskId),
    Narrow,
    Health(HealthView),
    Settings(SettingsView),
    StopAll,
    AcknowledgeInterrupted,
}

/// A response or a typed error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum UiReply {
    /// It went well.
    Ok(UiResponse),
    /// It did not.
    Err(Fault),
}
