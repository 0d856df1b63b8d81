//! What the doors need of an agent's handle. The supervisor's [`AgentHandle`] is the one that
//! ships; the tests of this crate bring one that panics, stalls and answers at will, which the
//! real one can't be made to do.

use std::future::Future;

use bodyguard_protocol::{
    AffordanceSet, AgentName, AskId, Fault, PerceptionQuery, Prediction, ReplayId, ReplayResult, SessionId,
};

use serde_json::Value;

use bodyguard_supervisor::{
    ActCall, ActReply, EnsureSession, PerceiveCall, PerceiveReply, Refusal, ReplayCall, SessionInfo, StateReply,
    Waiting,
};

/// One authenticated agent. Its futures may be dropped at any await: that is how a requester that
/// went away stops waiting. It doesn't take the request back; the call's cancel token does.
pub(crate) trait Agent: Clone + Send + Sync + 'static {
    /// Counts a connection for as long as it lives.
    type Presence: Send + Sync + 'static;

    /// Whose handle this is.
    fn name(&self) -> AgentName;
    /// Says that a client is connected; what it calls itself is untrusted.
    fn connected(&self, client: Option<String>) -> Self::Presence;
    /// Begins a session or goes on with one.
    fn ensure_session(&self, wish: EnsureSession) -> impl Future<Output = Result<SessionInfo, Fault>> + Send;
    /// Looks.
    fn perceive(
        &self,
        session: &SessionId,
        call: PerceiveCall,
    ) -> impl Future<Output = Result<PerceiveReply, Refusal>> + Send;
    /// Asks what became of a perception that waited.
    fn poll_view(
        &self,
        session: &SessionId,
        ask: &AskId,
        waiting: Waiting,
    ) -> impl Future<Output = Result<PerceiveReply, Refusal>> + Send;
    /// Lists what may be done.
    fn affordances(
        &self,
        session: &SessionId,
        scope: Option<String>,
    ) -> impl Future<Output = Result<AffordanceSet, Fault>> + Send;
    /// Hashes the state.
    fn encode_state(
        &self,
        session: &SessionId,
        query: PerceptionQuery,
    ) -> impl Future<Output = Result<StateReply, Fault>> + Send;
    /// Predicts what an act would come to.
    fn dry_run(&self, session: &SessionId, action: &Value) -> impl Future<Output = Result<Prediction, Fault>> + Send;
    /// Acts.
    fn act(&self, session: &SessionId, call: ActCall) -> impl Future<Output = Result<ActReply, Refusal>> + Send;
    /// Asks what became of an act that waited.
    fn poll(
        &self,
        session: &SessionId,
        ask: &AskId,
        waiting: Waiting,
    ) -> impl Future<Output = Result<ActReply, Refusal>> + Send;
    /// Replays a trace, or predicts that.
    fn replay(
        &self,
        session: &SessionId,
        call: ReplayCall,
    ) -> impl Future<Output = Result<ReplayResult, Refusal>> + Send;
    /// Asks what became of a replay.
    fn poll_replay(
        &self,
        session: &SessionId,
        replay: &ReplayId,
        waiting: Waiting,
    ) -> impl Future<Output = Result<ReplayResult, Refusal>> + Send;
}

/// Who knows the agents by their tokens.
pub(crate) trait Gate: Clone + Send + Sync + 'static {
    /// The agents.
    type Agent: Agent;

    /// The agent that a token belongs to.
    ///
    /// # Errors
    /// `unknown_agent`.
    fn authenticate(&self, token: &str) -> impl Future<Output = Result<Self::Agent, Fault>> + Send;
}
