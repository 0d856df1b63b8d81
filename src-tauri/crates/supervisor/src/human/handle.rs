//! The window's handle.

use std::sync::{Arc, PoisonError};

use bodyguard_policy::{EventKind, NativeEvent, Presence, PresenceRefused, PresenceRule};
use bodyguard_protocol::ui::{AskState, BarView, Change, UiEvent, UiEventKind, UiReply, UiRequest, UiResponse};
use bodyguard_protocol::{AgentName, AskId, Digest, ErrorCode, Fault};
use bodyguard_trace::Record;
use tokio::sync::{broadcast, watch};

use super::reads;
use super::{BarContent, Counts, DeviceSeen};
use crate::core::Core;
use crate::init::PHRASE;
use crate::{ask, changes};

/// What the person's window can do. Approving needs a [`Presence`].
#[derive(Clone)]
pub struct HumanHandle {
    core: Arc<Core>,
}

impl HumanHandle {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Answers a request of the page. None of them approves.
    pub async fn request(&self, request: UiRequest) -> UiReply {
        match self.answer(request).await {
            Ok(response) => UiReply::Ok(response),
            Err(fault) => UiReply::Err(fault),
        }
    }

    async fn answer(&self, request: UiRequest) -> Result<UiResponse, Fault> {
        let core = &self.core;
        Ok(match request {
            UiRequest::Overview => UiResponse::Overview(reads::overview(core).await?),
            UiRequest::Asks => UiResponse::Asks(reads::asks(core).await?),
            UiRequest::Ask { ask_id } => UiResponse::Ask(Box::new(reads::ask(core, &ask_id).await?)),
            UiRequest::AskShown { ask_id, shown_digest, end_shown } => {
                self.raise_bar(&ask_id, &shown_digest, end_shown).await?;
                UiResponse::AskShown
            }
            UiRequest::AskHidden => {
                self.core.bar.send_replace(None);
                self.core.events.send(UiEventKind::BarChanged { bar: None });
                UiResponse::AskHidden
            }
            UiRequest::Sessions => UiResponse::Sessions(reads::sessions(core).await?),
            UiRequest::Live { session_id } => UiResponse::Live(Box::new(reads::live(core, &session_id).await?)),
            UiRequest::Traces { offset, limit } => {
                UiResponse::Traces(core.log.reader().traces(offset, limit.min(reads::MAX_PAGE)).await?)
            }
            UiRequest::Trace { trace_id } => {
                let trace = core.log.reader().trace(&trace_id).await?;
                UiResponse::Trace(Box::new(trace.ok_or_else(|| not_found("no such trace"))?))
            }
            UiRequest::Edges { trace_id, offset, limit } => {
                UiResponse::Edges(core.log.reader().edges(&trace_id, offset, limit.min(reads::MAX_PAGE)).await?)
            }
            UiRequest::Edge { trace_id, edge_id } => {
                let edge = core.log.reader().edge(&trace_id, u64::from(edge_id)).await?;
                UiResponse::Edge(Box::new(edge.ok_or_else(|| not_found("no such edge"))?))
            }
            UiRequest::Verify => UiResponse::Verify(reads::verify(core).await?),
            UiRequest::Agents => UiResponse::Agents(reads::agents(core).await?),
            UiRequest::Connect { agent } => UiResponse::Connect(reads::connect(core, &agent).await?),
            UiRequest::CopyToken { .. } => return Err(Fault::internal("the shell answers this")),
            UiRequest::Propose { change } => UiResponse::Propose(ask::open_change(core, change).await?),
            UiRequest::Narrow { change } => {
                self.narrow(&change).await?;
                UiResponse::Narrow
            }
            UiRequest::Health => UiResponse::Health(reads::health(core)),
            UiRequest::Settings => UiResponse::Settings(reads::settings(core).await?),
            UiRequest::StopAll => {
                self.stop_all("window");
                UiResponse::StopAll
            }
            UiRequest::AcknowledgeInterrupted => {
                core.interrupted.lock().unwrap_or_else(PoisonError::into_inner).clear();
                core.events.send(UiEventKind::StoppedChanged { stopped: core.is_stopped() });
                UiResponse::AcknowledgeInterrupted
            }
        })
    }

    async fn narrow(&self, change: &Change) -> Result<(), Fault> {
        if !change.narrows() {
            return Err(Fault::new(ErrorCode::AuthorizationFailure, "this change needs the person's presence"));
        }
        changes::apply(&self.core, change, None, None).await
    }

    /// Raises the bar for the ask that the page shows, if it shows what would be signed.
    async fn raise_bar(&self, id: &AskId, shown: &Digest, end_shown: bool) -> Result<(), Fault> {
        let ask = self.core.pendings.get(id).filter(|ask| ask.asked);
        let ask = ask.ok_or_else(|| Fault::new(ErrorCode::UnknownEscalation, "no such request waits"))?;
        if ask.shown_digest != *shown {
            return Err(Fault::new(ErrorCode::AuthorizationFailure, "the page shows something else than was asked"));
        }
        let stored = self.core.log.reader().ask(id).await?.ok_or_else(|| not_found("no such request"))?;
        let phrase = self.core.log.reader().value(PHRASE).await?.unwrap_or_default();
        let state = ask.state();
        let content = BarContent {
            ask_id: id.clone(),
            kind: stored.record.view.kind,
            headline: stored.record.view.headline,
            short_digest: shown.short().to_owned(),
            shown_digest: shown.clone(),
            phrase,
            end_shown,
            ended: (state != AskState::Open).then(|| ask::ended_sentence(state, ask.reason().as_deref())),
        };
        self.core.bar.send_if_modified(|bar| {
            // Once the end has been in view it stays so for this ask, however the page scrolls.
            let seen = bar.as_ref().is_some_and(|old| old.ask_id == content.ask_id && old.end_shown);
            let content = BarContent { end_shown: end_shown || seen, ..content.clone() };
            let changed = bar.as_ref() != Some(&content);
            *bar = Some(content);
            changed
        });
        Ok(())
    }

    /// Events for the page.
    pub fn events(&self) -> broadcast::Receiver<UiEvent> {
        self.core.events.subscribe()
    }

    /// What the native bar shows.
    pub fn bar(&self) -> watch::Receiver<Option<BarContent>> {
        self.core.bar.subscribe()
    }

    /// Counts for the tray.
    pub fn counts(&self) -> watch::Receiver<Counts> {
        self.core.counts.subscribe()
    }

    /// The presence rule over the devices that are enrolled now.
    ///
    /// # Errors
    /// Where the log can't be read.
    pub async fn rule(&self) -> Result<Arc<dyn PresenceRule>, Fault> {
        self.core.presence_rule().await
    }

    /// A person's yes to what the bar shows.
    ///
    /// # Errors
    /// As [`Fault::code`] says: too late, for something else, stopped, or no signing key.
    pub async fn approve(&self, id: &AskId, presence: Presence) -> Result<(), Fault> {
        ask::approve(&self.core, id, presence).await
    }

    /// A person's no, with a reason that the agent is told.
    ///
    /// # Errors
    /// Where it came too late, or the reason is too long.
    pub async fn deny(&self, id: &AskId, reason: Option<String>, event: Option<NativeEvent>) -> Result<(), Fault> {
        ask::deny(&self.core, id, reason, event).await
    }

    /// Records an event on the bar that didn't count as a person's.
    pub async fn presence_refused(&self, id: &AskId, event: &NativeEvent, why: &PresenceRefused) {
        let kind = match event.kind {
            EventKind::Pointer => "pointer",
            EventKind::Key => "key",
        };
        let record = bodyguard_trace::PresenceRefused {
            ask_id: id.clone(),
            device: event.device.clone(),
            event: kind.to_owned(),
            sent: event.sent,
            reason: why.code().to_owned(),
        };
        if let Err(error) = self.core.log.append(Record::PresenceRefused(record)).await {
            tracing::error!(%error, "a refused event could not be recorded");
        }
        self.send_bar(id, false, None, Some(why.to_string()));
    }

    /// Tells the page how the bar stands.
    pub fn set_bar_state(&self, armed: bool, waiting_for: Option<String>) {
        let id = self.core.bar.borrow().as_ref().map(|content| content.ask_id.clone());
        if let Some(id) = id {
            self.send_bar(&id, armed, waiting_for, None);
        }
    }

    fn send_bar(&self, id: &AskId, armed: bool, waiting_for: Option<String>, refused: Option<String>) {
        let bar = BarView { ask_id: id.clone(), armed, waiting_for, refused };
        self.core.events.send(UiEventKind::BarChanged { bar: Some(bar) });
    }

    /// Asks the window to show an ask, because a person chose it in the tray or a notification.
    pub fn show_ask(&self, id: &AskId) {
        self.core.events.send(UiEventKind::ShowAsk { ask_id: id.clone() });
    }

    /// The input devices that are attached now.
    ///
    /// # Errors
    /// Where the log can't be written.
    pub async fn devices_seen(&self, devices: Vec<DeviceSeen>) -> Result<(), Fault> {
        changes::devices_seen(&self.core, devices).await
    }

    /// A picture of the log, with its media type.
    ///
    /// # Errors
    /// `not_found`, or `storage_failure` where it isn't what its digest says.
    pub async fn blob(&self, digest: &Digest) -> Result<(String, Vec<u8>), Fault> {
        let bytes = self.core.log.blob(digest).await?;
        let media_type = if bytes.starts_with(b"\x89PNG") { "image/png" } else { "image/jpeg" };
        Ok((media_type.to_owned(), bytes))
    }

    /// An agent's token, for the clipboard only: it never goes to the page, a log or a record.
    ///
    /// # Errors
    /// `not_found`.
    pub fn agent_token(&self, agent: &AgentName) -> Result<String, Fault> {
        let file = crate::init::token_file(&self.core.config.data_dir, agent);
        std::fs::read_to_string(file).map_err(|_| not_found("there is no token of this agent"))
    }

    /// Stops everything: what waits is refused, what runs is ended, nothing new begins.
    pub fn stop_all(&self, way: &str) {
        self.core.stop_all(way);
    }

    /// Looks at the machine's health again.
    pub fn probe_health(&self) {
        self.core.probe_health();
    }

    /// The data folder.
    pub fn data_dir(&self) -> std::path::PathBuf {
        self.core.config.data_dir.clone()
    }

    /// The open asks, oldest first, for notifications and the tray: id and headline.
    pub async fn open_asks(&self) -> Result<Vec<(AskId, String)>, Fault> {
        let asks = reads::asks(&self.core).await?;
        let open = asks.into_iter().filter(|ask| ask.state == AskState::Open);
        Ok(open.map(|ask| (ask.ask_id, ask.headline)).collect())
    }
}

fn not_found(message: &str) -> Fault {
    Fault::new(ErrorCode::NotFound, message)
}
