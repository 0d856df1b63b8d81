//! What the bridge remembers: who still waits for an answer, and how the client opened.

use std::collections::HashSet;

use bodyguard_protocol::Fault;
use rmcp::model::{ErrorCode as RpcCode, RequestId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::door::{Admitted, Refusal, request_id, to_line};

/// The id of an `initialize` that the bridge repeats. Its answer isn't the client's.
const REPEATED: &str = "bodyguard-bridge/initialize";

/// What the bridge has to know of a conversation.
#[derive(Default)]
pub(super) struct Memory {
    /// Requests without an answer yet, `initialize` apart.
    in_flight: HashSet<RequestId>,
    initialize: Option<Initialize>,
    /// The client's `notifications/initialized`.
    initialized: Option<Vec<u8>>,
}

struct Initialize {
    id: RequestId,
    line: Vec<u8>,
    message: Value,
    answered: bool,
}

/// What to do with a line of the app.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FromServer {
    /// It is the client's.
    Pass,
    /// It is the bridge's own.
    Keep,
    /// The app didn't take the repeated `initialize`.
    Refused,
}

#[derive(Deserialize)]
struct Envelope {
    id: Option<Value>,
    method: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

impl Memory {
    /// Notes a message of the client and gives the line to send.
    pub(super) fn note_client(&mut self, message: &Admitted) -> Vec<u8> {
        let line = to_line(&message.value);
        if let Some(id) = message.cancels() {
            self.in_flight.remove(id);
        }
        let open = self.initialize.as_ref().is_some_and(|one| one.answered);
        match (message.method(), message.request_id()) {
            (Some("initialize"), Some(id)) if !open => {
                let value = Value::Object(message.value.clone());
                self.initialize =
                    Some(Initialize { id: id.clone(), line: line.clone(), message: value, answered: false });
            }
            (Some("notifications/initialized"), None) => self.initialized = Some(line.clone()),
            (_, Some(id)) => {
                self.in_flight.insert(id.clone());
            }
            (_, None) => {}
        }
        line
    }

    /// Notes a line of the app.
    pub(super) fn note_server(&mut self, line: &[u8]) -> FromServer {
        let Ok(envelope) = serde_json::from_slice::<Envelope>(line) else {
            tracing::error!("a line that isn't JSON-RPC was dropped");
            return FromServer::Keep;
        };
        let Some(id) = envelope.id.as_ref().and_then(request_id).filter(|_| envelope.method.is_none()) else {
            return FromServer::Pass;
        };
        if id == RequestId::String(REPEATED.into()) {
            return if envelope.error.is_some() { FromServer::Refused } else { FromServer::Keep };
        }
        if let Some(initialize) = self.initialize.as_mut().filter(|one| !one.answered && one.id == id) {
            if envelope.error.is_some() {
                self.initialize = None;
            } else {
                initialize.answered = true;
            }
        }
        self.answered(&id);
        FromServer::Pass
    }

    pub(super) fn answered(&mut self, id: &RequestId) {
        self.in_flight.remove(id);
    }

    /// The `initialize` that got no answer. Sending it again repeats nothing.
    pub(super) fn unanswered_initialize(&self) -> Option<Vec<u8>> {
        self.initialize.as_ref().filter(|one| !one.answered).map(|one| one.line.clone())
    }

    /// What opens a new connection for a client that is open already.
    pub(super) fn opening(&self) -> Vec<Vec<u8>> {
        let Some(initialize) = self.initialize.as_ref().filter(|one| one.answered) else { return Vec::new() };
        let mut message = initialize.message.clone();
        if let Some(id) = message.get_mut("id") {
            *id = REPEATED.into();
        }
        let mut lines = vec![to_line(&message)];
        lines.extend(self.initialized.clone());
        lines
    }

    /// The answers to requests that the app took and will never answer.
    pub(super) fn cut_off(&mut self) -> Vec<Refusal> {
        let message = "Bodyguard went away while this was asked; it may have been done, and isn't repeated by itself";
        let data = json!({
            "code": "interrupted", "message": message,
            "hint": "call again; if the session is gone, begin one, and perceive to see what is there"
        });
        self.take(message, &data)
    }

    /// The answers to requests that couldn't be passed on.
    pub(super) fn unreachable(&mut self, why: &Fault) -> Vec<Refusal> {
        let data = serde_json::to_value(why).unwrap_or_default();
        let text = match &why.hint {
            Some(hint) => format!("{}: {hint}", why.message),
            None => why.message.clone(),
        };
        if let Some(initialize) = self.initialize.take_if(|one| !one.answered) {
            self.in_flight.insert(initialize.id);
        }
        self.take(&text, &data)
    }

    fn take(&mut self, text: &str, data: &Value) -> Vec<Refusal> {
        let answer = |id| {
            let mut refusal = Refusal::new(Some(id), RpcCode(-32000), text.to_owned());
            refusal.error.data = Some(data.clone());
            refusal
        };
        self.in_flight.drain().map(answer).collect()
    }
}
