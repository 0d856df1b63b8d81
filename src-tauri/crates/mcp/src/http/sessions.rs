//! Which protocol session belongs to which agent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bodyguard_protocol::{AgentName, ErrorCode, Fault};

use crate::door::{Admitted, Order, Verdict};
use crate::transport::InFlight;

/// Protocol sessions that one agent may hold at once.
const MAX_PER_AGENT: usize = 64;

/// One `Mcp-Session-Id`.
pub(super) struct Session {
    agent: AgentName,
    client: Option<String>,
    order: Mutex<Order>,
    pub(super) in_flight: InFlight,
}

impl Session {
    /// What the client calls itself.
    pub(super) fn client(&self) -> Option<String> {
        self.client.clone()
    }

    /// Judges a message of this session.
    pub(super) fn admit(&self, message: &Admitted) -> Verdict {
        self.order.lock().unwrap_or_else(PoisonError::into_inner).admit(message)
    }
}

/// All protocol sessions.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    /// A session of this agent; another's is as unknown as one that never was.
    pub(super) fn get(&self, id: &str, agent: &AgentName) -> Option<Arc<Session>> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(id).filter(|session| session.agent == *agent).cloned()
    }

    /// Whether the agent may open another.
    ///
    /// # Errors
    /// `budget_exceeded`.
    pub(super) fn room(&self, agent: &AgentName) -> Result<(), Fault> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.values().filter(|session| session.agent == *agent).count() < MAX_PER_AGENT {
            return Ok(());
        }
        let message = format!("{MAX_PER_AGENT} protocol sessions of this agent are open");
        Err(Fault::new(ErrorCode::BudgetExceeded, message).hint("end unused ones with DELETE"))
    }

    /// Notes a session that `initialize` just opened.
    pub(super) fn open(&self, id: String, agent: AgentName, client: Option<String>) {
        let order = Mutex::new(Order::Opened);
        let session = Session { agent, client, order, in_flight: InFlight::default() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::new(session));
    }

    /// Forgets the sessions that aren't alive any more.
    pub(super) fn keep(&self, alive: impl Fn(&str) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|id, _| alive(id));
    }

    pub(super) fn forget(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}
