//! One HTTP exchange, and what its end tells about the client.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use bodyguard_protocol::AgentName;
use http_body::{Frame, SizeHint};
use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

use super::sessions::Session;
use crate::agent::Agent;
use crate::door::{Admitted, Verdict};

/// How long an agent counts as connected after an answer it took: HTTP clients hold no connection
/// while their model thinks. One whose connection broke counts no longer.
const LINGER: Duration = Duration::from_secs(120);

/// The agents that are connected over HTTP.
pub(super) struct Presences<A: Agent>(Mutex<HashMap<AgentName, Arc<Here<A>>>>);

struct Here<A: Agent> {
    _presence: A::Presence,
    broke: CancellationToken,
}

impl<A: Agent> Default for Presences<A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<A: Agent> Presences<A> {
    fn arrive(&self, agent: &A, client: Option<String>) -> Arc<Here<A>> {
        let mut here = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Arc::new(Here { _presence: agent.connected(client), broke: CancellationToken::new() });
        let entry = match here.remove(&agent.name()) {
            Some(entry) if !entry.broke.is_cancelled() => entry,
            Some(_) | None => fresh(),
        };
        here.insert(agent.name(), Arc::clone(&entry));
        entry
    }

    /// Lets go of one stay, and forgets the agent with the last.
    fn leave(&self, agent: &AgentName, stay: Arc<Here<A>>) {
        let mut here = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One in the map and one in hand. Stays end under the lock, so that two can't miss each other.
        if here.get(agent).is_some_and(|entry| Arc::ptr_eq(entry, &stay)) && Arc::strong_count(&stay) <= 2 {
            here.remove(agent);
        }
        drop(stay);
    }
}

/// One request and its answer.
pub(super) struct Exchange<A: Agent> {
    agent: A,
    here: Option<Arc<Here<A>>>,
    presences: Arc<Presences<A>>,
    gone: CancellationToken,
    request: Option<(Arc<Session>, RequestId)>,
    /// Whether someone waits for the answer of a call, so that a broken connection means something.
    is_call: bool,
    answered: Arc<AtomicBool>,
    finished: bool,
}

impl<A: Agent> Exchange<A> {
    pub(super) fn begin(presences: &Arc<Presences<A>>, agent: A, client: Option<String>, is_call: bool) -> Self {
        let here = Some(presences.arrive(&agent, client));
        let (presences, gone) = (Arc::clone(presences), CancellationToken::new());
        Self { agent, here, presences, gone, request: None, is_call, answered: Arc::default(), finished: false }
    }

    /// Cancelled when the client went away before the answer's end.
    pub(super) fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }

    /// Set once the call has its answer: a client may hang up on reading it.
    pub(super) fn answered(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.answered)
    }

    /// Judges a message of a protocol session. Whatever the client does after a refusal says nothing.
    pub(super) fn admit(&mut self, session: Arc<Session>, message: &Admitted) -> Verdict {
        if let Some(id) = message.request_id() {
            if let Err(refusal) = session.in_flight.begin(id) {
                self.finished = true;
                return Verdict::Refuse(refusal);
            }
            self.request = Some((Arc::clone(&session), id.clone()));
        }
        let verdict = session.admit(message);
        self.finished = !matches!(verdict, Verdict::Pass);
        verdict
    }
}

impl<A: Agent> Drop for Exchange<A> {
    fn drop(&mut self) {
        if let Some((session, id)) = self.request.take() {
            session.in_flight.end(&id);
        }
        let broke = self.is_call && !self.finished && !self.answered.load(Ordering::Acquire);
        if broke {
            self.gone.cancel();
        }
        let Some(here) = self.here.take() else { return };
        let (presences, agent) = (Arc::clone(&self.presences), self.agent.name());
        if broke {
            here.broke.cancel();
        }
        let linger = async move {
            tokio::select! {
                () = tokio::time::sleep(LINGER) => {}
                () = here.broke.cancelled() => {}
            }
            presences.leave(&agent, here);
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(linger);
        }
    }
}

/// An answer's body that knows whether it was taken to its end.
pub(super) struct Watched<A: Agent> {
    inner: Body,
    exchange: Exchange<A>,
}

impl<A: Agent> Watched<A> {
    pub(super) fn wrap(inner: Body, mut exchange: Exchange<A>) -> Body {
        exchange.finished = inner.is_end_stream();
        Body::new(Self { inner, exchange })
    }
}

// Nothing in it is ever pinned in place.
impl<A: Agent> Unpin for Watched<A> {}

impl<A: Agent> HttpBody for Watched<A> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.inner.is_end_stream() {
            self.exchange.finished = true;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
