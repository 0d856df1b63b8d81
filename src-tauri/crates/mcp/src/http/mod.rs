//! Streamable HTTP on the loopback interface.

mod exchange;
mod guard;
mod sessions;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bodyguard_protocol::{ErrorCode, Fault};
use rmcp::model::{ErrorCode as RpcCode, RequestId};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::exchange::{Exchange, Presences, Watched};
use self::sessions::{Session, Sessions};
use crate::agent::{Agent, Gate};
use crate::door::{Admitted, MAX_MESSAGE_BYTES, Refusal, Verdict, check};
use crate::handler::{Caller, Handler};

/// The path of the door.
pub(crate) const PATH: &str = "/mcp";
const SESSION_HEADER: &str = "mcp-session-id";
/// How much of a body beyond the limit is read and thrown away, so that its sender can read why.
const MAX_DRAINED: usize = 64 * 1024 * 1024;
/// How long a body may take.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// How long an unused protocol session is kept. Models think for long.
const KEEP_ALIVE: Duration = Duration::from_secs(3600);

type Service<G> = StreamableHttpService<Handler<<G as Gate>::Agent>, LocalSessionManager>;

struct HttpDoor<G: Gate> {
    gate: G,
    port: u16,
    service: Service<G>,
    manager: Arc<LocalSessionManager>,
    sessions: Sessions,
    presences: Arc<Presences<G::Agent>>,
}

/// Serves until the doors close.
pub(crate) async fn serve<G: Gate>(listener: TcpListener, port: u16, gate: G, closing: CancellationToken) {
    let mut session_config = SessionConfig::default();
    session_config.keep_alive = Some(KEEP_ALIVE);
    let mut manager = LocalSessionManager::default();
    manager.session_config = session_config;
    let manager = Arc::new(manager);
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(closing.child_token())
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES);
    let told = closing.clone();
    let factory = move || Ok(Handler::new(None, told.clone()));
    let service = StreamableHttpService::new(factory, Arc::clone(&manager), config);
    let door = HttpDoor { gate, port, service, manager, sessions: Sessions::default(), presences: Arc::default() };
    let app = Router::new().fallback(answer::<G>).with_state(Arc::new(door));
    let closed = closing.clone();
    let serving = axum::serve(listener, app).with_graceful_shutdown(async move { closed.cancelled().await });
    tokio::select! {
        served = serving.into_future() => {
            if let Err(error) = served {
                tracing::error!(%error, "the HTTP door failed");
            }
        }
        () = async { closing.cancelled().await; tokio::time::sleep(Duration::from_secs(2)).await } => {}
    }
}

async fn answer<G: Gate>(State(door): State<Arc<HttpDoor<G>>>, request: Request) -> Response {
    match door.answer(request).await {
        Ok(response) => response,
        Err(refused) => *refused,
    }
}

/// A refusal on its way out.
type Refused = Box<Response>;

/// Who asks, in which protocol session.
struct Asker<A> {
    agent: A,
    session: Option<(String, Arc<Session>)>,
}

impl<G: Gate> HttpDoor<G> {
    /// Everything that can refuse comes before the body is read.
    async fn answer(&self, request: Request) -> Result<Response, Refused> {
        let (parts, body) = request.into_parts();
        let asker = self.identify(&parts).await?;
        let request = Request::from_parts(parts, body);
        if request.method() == Method::POST {
            return self.post(asker, request).await;
        }
        let client = asker.session.as_ref().and_then(|(_, session)| session.client());
        let ends = request.method() == Method::DELETE;
        let exchange = Exchange::begin(&self.presences, asker.agent, client, false);
        let response = self.pass(request, exchange).await;
        if let Some((id, _)) = asker.session.filter(|_| ends && response.status().is_success()) {
            self.sessions.forget(&id);
        }
        Ok(response)
    }

    async fn identify(&self, request: &Parts) -> Result<Asker<G::Agent>, Refused> {
        let headers = &request.headers;
        guard::check_source(&request.uri, headers, self.port).map_err(|fault| refuse(StatusCode::FORBIDDEN, &fault))?;
        let agent = self.authenticate(headers).await?;
        if request.uri.path() != PATH {
            let fault = Fault::new(ErrorCode::NotFound, "the door is at /mcp");
            return Err(refuse(StatusCode::NOT_FOUND, &fault));
        }
        let session = match headers.get(SESSION_HEADER) {
            None => None,
            Some(id) => {
                let id = id.to_str().map_err(|_| unknown_session())?;
                let session = self.sessions.get(id, &agent.name()).ok_or_else(unknown_session)?;
                Some((id.to_owned(), session))
            }
        };
        Ok(Asker { agent, session })
    }

    async fn post(&self, asker: Asker<G::Agent>, request: Request) -> Result<Response, Refused> {
        let Asker { agent, session } = asker;
        let (mut parts, body) = request.into_parts();
        let body = read(body, &parts.headers).await?;
        let empty = || Refusal::new(None, RpcCode::INVALID_REQUEST, "the body is empty");
        let admitted = check(&body).and_then(|admitted| admitted.ok_or_else(empty));
        let admitted = admitted.map_err(|refusal| say(StatusCode::BAD_REQUEST, &refusal))?;
        let client = session.as_ref().and_then(|(_, session)| session.client()).or_else(|| client_name(&admitted));
        let is_call = admitted.method() == Some("tools/call");
        let opens = session.is_none() && admitted.method() == Some("initialize");
        let mut exchange = Exchange::begin(&self.presences, agent.clone(), client.clone(), is_call);
        if let Some((_, session)) = session {
            match exchange.admit(session, &admitted) {
                Verdict::Pass => {}
                Verdict::Drop => return Ok(StatusCode::ACCEPTED.into_response()),
                Verdict::Refuse(refusal) => return Err(say(StatusCode::OK, &refusal)),
            }
        }
        if opens {
            self.prune().await;
            self.sessions.room(&agent.name()).map_err(|fault| refuse(StatusCode::TOO_MANY_REQUESTS, &fault))?;
        }
        parts.extensions.insert(Caller::new(agent.clone(), exchange.gone()).telling(exchange.answered()));
        let response = self.pass(Request::from_parts(parts, Body::from(body)), exchange).await;
        if opens && let Some(Ok(id)) = response.headers().get(SESSION_HEADER).map(HeaderValue::to_str) {
            self.sessions.open(id.to_owned(), agent.name(), client);
        }
        Ok(response)
    }

    async fn authenticate(&self, headers: &HeaderMap) -> Result<G::Agent, Refused> {
        let found = match guard::token(headers) {
            Ok(token) => self.gate.authenticate(token).await,
            Err(fault) => Err(fault),
        };
        found.map_err(|fault| {
            let status = match fault.code {
                ErrorCode::UnknownAgent => StatusCode::UNAUTHORIZED,
                _ => StatusCode::SERVICE_UNAVAILABLE,
            };
            let mut response = refuse(status, &fault);
            if status == StatusCode::UNAUTHORIZED {
                let challenge = HeaderValue::from_static("Bearer realm=\"bodyguard\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            response
        })
    }

    async fn pass(&self, mut request: Request, exchange: Exchange<G::Agent>) -> Response {
        // The library keeps the head of a request beside its message, where logs could show it.
        request.headers_mut().remove(AUTHORIZATION);
        let response = self.service.handle(request).await;
        let (parts, body) = response.into_parts();
        Response::from_parts(parts, Watched::wrap(Body::new(body), exchange))
    }

    /// Forgets the sessions that the library let go.
    async fn prune(&self) {
        let alive = self.manager.sessions.read().await;
        self.sessions.keep(|id| alive.contains_key(id));
    }
}

fn client_name(message: &Admitted) -> Option<String> {
    let info = message.params()?.get("clientInfo")?;
    info.get("name").and_then(Value::as_str).map(str::to_owned)
}

/// Reads a body up to the limit. A longer one is read on for a while and thrown away: a client that
/// still writes couldn't read the answer.
async fn read(mut body: Body, headers: &HeaderMap) -> Result<Bytes, Refused> {
    let reading = async {
        let mut kept = Vec::new();
        let mut total = 0_usize;
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let Ok(frame) = frame else { return Err(StatusCode::BAD_REQUEST) };
            let Ok(data) = frame.into_data() else { continue };
            total = total.saturating_add(data.len());
            if total <= MAX_MESSAGE_BYTES {
                kept.extend_from_slice(&data);
            } else if total <= MAX_DRAINED {
                kept = Vec::new();
            } else {
                break;
            }
        }
        if total <= MAX_MESSAGE_BYTES { Ok(kept) } else { Err(StatusCode::PAYLOAD_TOO_LARGE) }
    };
    let length = headers.get(axum::http::header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let outcome = match tokio::time::timeout(BODY_WITHIN, reading).await {
        Ok(outcome) => outcome,
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    };
    match outcome {
        Ok(kept) => Ok(kept.into()),
        Err(StatusCode::PAYLOAD_TOO_LARGE) => {
            let bytes = length.unwrap_or(u64::try_from(MAX_MESSAGE_BYTES).unwrap_or(u64::MAX).saturating_add(1));
            Err(say(StatusCode::PAYLOAD_TOO_LARGE, &Refusal::too_large(None, bytes)))
        }
        Err(status) => Err(say(status, &Refusal::new(None, RpcCode::INVALID_REQUEST, "the body couldn't be read"))),
    }
}

fn unknown_session() -> Refused {
    let fault = Fault::new(ErrorCode::UnknownSession, "no such Mcp-Session-Id").hint("send `initialize` again");
    refuse(StatusCode::NOT_FOUND, &fault)
}

fn refuse(status: StatusCode, fault: &Fault) -> Refused {
    say(status, &Refusal::of(None::<RequestId>, RpcCode::INVALID_REQUEST, fault))
}

fn say(status: StatusCode, refusal: &Refusal) -> Refused {
    let mut response = (status, refusal.to_line()).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Box::new(response)
}
