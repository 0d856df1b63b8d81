//! The doors in front of the real supervisor.

use bodyguard_protocol::{
    AffordanceSet, AgentName, AskId, Fault, PerceptionQuery, Prediction, ReplayId, ReplayResult, SessionId,
};
use bodyguard_supervisor::{
    ActCall, ActReply, AgentHandle, ConnectionGuard, EnsureSession, PerceiveCall, PerceiveReply, Refusal, ReplayCall,
    SessionInfo, StateReply, Supervisor, Waiting,
};
use serde_json::Value;

use crate::agent::{Agent, Gate};
use crate::serve::{DoorError, Doors, ServeConfig, open};

/// Opens the doors to a supervisor's agents.
///
/// # Errors
/// Where the socket, the port or an address file can't be had.
pub async fn serve(supervisor: Supervisor, config: ServeConfig) -> Result<Doors, DoorError> {
    open(supervisor, config).await
}

impl Gate for Supervisor {
    type Agent = AgentHandle;

    async fn authenticate(&self, token: &str) -> Result<AgentHandle, Fault> {
        Self::authenticate(self, token).await
    }
}

impl Agent for AgentHandle {
    type Presence = ConnectionGuard;

    fn name(&self) -> AgentName {
        Self::name(self).clone()
    }

    fn connected(&self, client: Option<String>) -> ConnectionGuard {
        Self::connected(self, client)
    }

    async fn ensure_session(&self, wish: EnsureSession) -> Result<SessionInfo, Fault> {
        Self::ensure_session(self, wish).await
    }

    async fn perceive(&self, session: &SessionId, call: PerceiveCall) -> Result<PerceiveReply, Refusal> {
        Self::perceive(self, session, call).await
    }

    async fn poll_view(&self, session: &SessionId, ask: &AskId, waiting: Waiting) -> Result<PerceiveReply, Refusal> {
        Self::poll_view(self, session, ask, waiting).await
    }

    async fn affordances(&self, session: &SessionId, scope: Option<String>) -> Result<AffordanceSet, Fault> {
        Self::affordances(self, session, scope).await
    }

    async fn encode_state(&self, session: &SessionId, query: PerceptionQuery) -> Result<StateReply, Fault> {
        Self::encode_state(self, session, query).await
    }

    async fn dry_run(&self, session: &SessionId, action: &Value) -> Result<Prediction, Fault> {
        Self::dry_run(self, session, action).await
    }

    async fn act(&self, session: &SessionId, call: ActCall) -> Result<ActReply, Refusal> {
        Self::act(self, session, call).await
    }

    async fn poll(&self, session: &SessionId, ask: &AskId, waiting: Waiting) -> Result<ActReply, Refusal> {
        Self::poll(self, session, ask, waiting).await
    }

    async fn replay(&self, session: &SessionId, call: ReplayCall) -> Result<ReplayResult, Refusal> {
        Self::replay(self, session, call).await
    }

    async fn poll_replay(
        &self,
        session: &SessionId,
        replay: &ReplayId,
        waiting: Waiting,
    ) -> Result<ReplayResult, Refusal> {
        Self::poll_replay(self, session, replay, waiting).await
    }
}
