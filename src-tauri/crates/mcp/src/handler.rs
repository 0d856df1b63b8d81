//! The MCP server: seven tools in front of one agent's handle.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use axum::http::request::Parts;
use bodyguard_protocol::{ActionType, AskId, ErrorCode, Fault, Foreseen, QueryMode, ReplayId, SessionId};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, Implementation, InitializeRequestParams,
    InitializeResult, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::tools::{self, Arguments};
use crate::waiting::Wait;
use bodyguard_supervisor::{ActCall, EnsureSession, PerceiveCall, Refusal, ReplayCall};

/// Who calls, over which connection.
pub(crate) struct Caller<A: Agent> {
    pub(crate) agent: A,
    /// Cancelled when the connection that carries the answer is gone.
    pub(crate) gone: CancellationToken,
    seat: Arc<Mutex<Option<A::Presence>>>,
    answered: Arc<AtomicBool>,
}

impl<A: Agent> Clone for Caller<A> {
    fn clone(&self) -> Self {
        Self {
            agent: self.agent.clone(),
            gone: self.gone.clone(),
            seat: Arc::clone(&self.seat),
            answered: Arc::clone(&self.answered),
        }
    }
}

impl<A: Agent> Caller<A> {
    pub(crate) fn new(agent: A, gone: CancellationToken) -> Self {
        Self { agent, gone, seat: Arc::default(), answered: Arc::default() }
    }

    /// Sets this once a call has its answer.
    pub(crate) fn telling(mut self, answered: Arc<AtomicBool>) -> Self {
        self.answered = answered;
        self
    }

    /// Counts the connection from now on.
    pub(crate) fn sit_down(&self, client: Option<String>) {
        let mut seat = self.seat.lock().unwrap_or_else(PoisonError::into_inner);
        if seat.is_none() && !self.gone.is_cancelled() {
            *seat = Some(self.agent.connected(client));
        }
    }

    /// Counts it no longer.
    pub(crate) fn stand_up(&self) {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Serves one connection, or, over HTTP, whoever each request was authenticated as.
pub(crate) struct Handler<A: Agent> {
    caller: Option<Caller<A>>,
    /// Cancelled when the doors close, so that a call cut off by that isn't taken for a cancelled one.
    closing: CancellationToken,
}

impl<A: Agent> Handler<A> {
    pub(crate) fn new(caller: Option<Caller<A>>, closing: CancellationToken) -> Self {
        Self { caller, closing }
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller<A>, ErrorData> {
        let carried = || context.extensions.get::<Parts>()?.extensions.get::<Caller<A>>().cloned();
        self.caller.clone().or_else(carried).ok_or_else(|| ErrorData::internal_error("no agent", None))
    }
}

impl<A: Agent> ServerHandler for Handler<A> {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("bodyguard", env!("CARGO_PKG_VERSION")).with_title("Bodyguard");
        info.with_instructions(tools::INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if let Some(caller) = &self.caller {
            caller.sit_down(Some(request.client_info.name.clone()));
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // All tools fit on one page, so that no cursor was ever handed out.
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("no such cursor", Some(json!({"code": "invalid_argument"}))));
        }
        Ok(ListToolsResult::with_all_items(tools::all().to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::find(name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if tools::find(&request.name).is_none() {
            let name = bodyguard_protocol::escape_line(&request.name);
            let data = json!({"code": "not_found", "field": "name"});
            return Err(ErrorData::invalid_params(format!("no tool `{name}`"), Some(data)));
        }
        let caller = self.caller(&context)?;
        if self.caller.is_some() {
            caller.sit_down(context.client_info().map(|client| client.name));
        }
        let answered = Arc::clone(&caller.answered);
        let call = Call { caller, wait: Wait::new(&context, self.closing.clone()) };
        let answer = caught(call.run(&request.name, Arguments::new(request.arguments))).await;
        answered.store(true, Ordering::Release);
        match answer {
            Some(result) => Ok(result.unwrap_or_else(tools::call_refusal).into()),
            None => Err(ErrorData::internal_error(
                "Bodyguard failed on this request; others aren't affected",
                Some(json!({"code": "internal"})),
            )),
        }
    }
}

/// Runs a future; `None` where it panicked. The panic is reported on standard error by the hook.
async fn caught<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    std::future::poll_fn(move |context| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
            Err(_) => Poll::Ready(None),
        }
    })
    .await
}

/// One call of a tool.
struct Call<A: Agent> {
    caller: Caller<A>,
    wait: Wait,
}

impl<A: Agent> Call<A> {
    async fn run(self, name: &str, arguments: Arguments) -> Result<CallToolResult, Refusal> {
        match name {
            tools::ENSURE_SESSION => self.ensure_session(arguments).await,
            tools::PERCEIVE => self.perceive(arguments).await,
            tools::AFFORDANCES => self.affordances(arguments).await,
            tools::ENCODE_STATE => self.encode_state(arguments).await,
            tools::DRY_RUN => self.dry_run(arguments).await,
            tools::ACT => self.act(arguments).await,
            tools::REPLAY => self.replay(arguments).await,
            _ => Err(Fault::new(ErrorCode::NotFound, "no such tool").at("name").into()),
        }
    }

    async fn ensure_session(self, mut arguments: Arguments) -> Result<CallToolResult, Refusal> {
        let wish = EnsureSession {
            session_id: arguments.parsed("session_id")?,
            workspace: arguments.parsed("workspace")?,
            goal: arguments.text("goal")?,
        };
        arguments.end()?;
        let session = self.caller.agent.ensure_session(wish).await?;
        let how = if session.resumed { "resumed" } else { "begun" };
        let sentence =
            format!("Session {how} in workspace {} ({}). Perceive before you act.", session.workspace, session.root);
        let mut object = serde_json::to_value(&session).map_err(|error| Fault::internal(error.to_string()))?;
        if let Some(fields) = object.as_object_mut() {
            fields.insert("action_types".into(), json!(ActionType::ALL.map(ActionType::name)));
            fields.insert("query_modes".into(), json!(QueryMode::ALL.map(QueryMode::name)));
        }
        Ok(tools::give(&sentence, &object))
    }

    async fn perceive(mut self, mut arguments: Arguments) -> Result<CallToolResult, Refusal> {
        let session: SessionId = arguments.needed("session_id")?;
        let escalation: Option<AskId> = arguments.parsed("escalation_id")?;
        let patience = arguments.wait()?;
        let waiting = self.wait.terms(patience);
        let gone = self.caller.gone.clone();
        let Some(ask) = escalation else {
            let query = arguments.query()?;
            let words = arguments.text("reason")?;
            arguments.end()?;
            let work = self.caller.agent.perceive(&session, PerceiveCall { query, words, waiting });
            return Ok(tools::give_perception(self.wait.through(&gone, work).await?));
        };
        arguments.end_beside_escalation()?;
        let work = self.caller.agent.poll_view(&session, &ask, waiting);
        Ok(tools::give_perception(self.wait.through(&gone, work).await?))
    }

    async fn affordances(self, mut arguments: Arguments) -> Result<CallToolResult, Refusal> {
        let session: SessionId = arguments.needed("session_id")?;
        let scope = arguments.text("scope")?;
        arguments.end()?;
        let set = self.caller.agent.affordances(&session, scope).await?;
        let sentence =
            format!("{} affordances; {} filtered out by policy.", set.affordances.len(), set.policy_filtered_out);
        Ok(tools::give(&sentence, &set))
    }

    async fn encode_state(self, mut arguments: Arguments) -> Result<CallToolResult, Refusal> {
        let session: SessionId = arguments.needed("session_id")?;
        let query = arguments.query()?;
        arguments.end()?;
        let state = self.caller.agent.encode_state(&session, query).await?;
        Ok(tools::give(&format!("State {}.", state.state_hash), &state))
    }

    async fn dry_run(self, mut arguments: Arguments) -> Result<CallToolResult, Refusal> {
        let session: SessionId = arguments.needed("session_id")?;
        let action = arguments.value("action").ok_or_else(|| Fault::invalid("action", "`action` is missing"))?;
        arguments.end()?;
        let prediction = self.caller.agent.dry_run(&session, &action).await?;
        let sentence = match prediction.decision {
            Foreseen::Allowed => "It would run without a question. Nothing was done.",
            Foreseen::Asked => "A person would be asked. Nothing was done.",
            Foreseen::Refused => "It would be refused. Nothing was done.",
        };
        Ok(tools::give(sentence, &prediction))
    }

    async fn act(mut self, mut arguments: Arguments) -> Result<CallToolResult, Refusal> {
        let session: SessionId = arguments.needed("session_id")?;
        let escalation: Option<AskId> = arguments.parsed("escalation_id")?;
        let patience = arguments.wait()?;
        let waiting = self.wait.terms(patience);
        let gone = self.caller.gone.clone();
        let Some(ask) = escalation else {
            if arguments.flag("dry_run")? {
                return self.dry_run(arguments.with("session_id", session.as_str())).await;
            }
            let missing = || Fault::invalid("action", "`action` or `escalation_id` is missing");
            let action = arguments.value("action").ok_or_else(missing)?;
            let words = arguments.text("reason")?;
            arguments.end()?;
            let work = self.caller.agent.act(&session, ActCall { action, words, waiting });
            return Ok(tools::give_act(self.wait.through(&gone, work).await?));
        };
        arguments.end_beside_escalation()?;
        let work = self.caller.agent.poll(&session, &ask, waiting);
        Ok(tools::give_act(self.wait.through(&gone, work).await?))
    }

    async fn replay(mut self, mut arguments: Arguments) -> Result<CallToolResult, Refusal> {
        let session: SessionId = arguments.needed("session_id")?;
        let running: Option<ReplayId> = arguments.parsed("replay_id")?;
        let patience = arguments.wait()?;
        let waiting = self.wait.terms(patience);
        let gone = self.caller.gone.clone();
        let Some(replay) = running else {
            let missing = || Fault::invalid("trace_id", "`trace_id` or `replay_id` is missing");
            let trace_id = arguments.parsed("trace_id")?.ok_or_else(missing)?;
            let (from_edge, to_edge) = (arguments.edge("from_edge")?, arguments.edge("to_edge")?);
            let dry_run = arguments.flag("dry_run")?;
            let words = arguments.text("reason")?;
            arguments.end()?;
            let call = ReplayCall { trace_id, from_edge, to_edge, dry_run, words, waiting };
            let work = self.caller.agent.replay(&session, call);
            return Ok(tools::give_replay(&self.wait.through(&gone, work).await?));
        };
        arguments.end_beside("replay_id", &["trace_id", "from_edge", "to_edge", "dry_run", "reason"])?;
        let work = self.caller.agent.poll_replay(&session, &replay, waiting);
        Ok(tools::give_replay(&self.wait.through(&gone, work).await?))
    }
}
