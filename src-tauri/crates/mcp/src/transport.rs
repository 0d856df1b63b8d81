//! JSON lines between a socket and the protocol library, with the strict door in between.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode as RpcCode, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::door::{Admitted, Line, LineReader, Order, Refusal, Verdict, check, to_line};

/// Requests of one connection that may be unanswered at once.
pub(crate) const MAX_IN_FLIGHT: usize = 64;
/// Lines waiting to be written.
const OUTBOX: usize = 64;
/// How long one line may take to be written; a client that doesn't read is gone.
const WRITE_WITHIN: Duration = Duration::from_secs(60);

/// The ids of requests that aren't answered yet.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<HashSet<RequestId>>);

impl InFlight {
    /// Notes a request, or says why it can't be taken.
    pub(crate) fn begin(&self, id: &RequestId) -> Result<(), Refusal> {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.contains(id) {
            let message = "this id names a request that isn't answered yet";
            return Err(Refusal::new(Some(id.clone()), RpcCode::INVALID_REQUEST, message).coded("duplicate_field"));
        }
        if ids.len() >= MAX_IN_FLIGHT {
            let message = format!("{MAX_IN_FLIGHT} requests wait for an answer already");
            return Err(Refusal::new(Some(id.clone()), RpcCode::INTERNAL_ERROR, message).coded("budget_exceeded"));
        }
        ids.insert(id.clone());
        Ok(())
    }

    pub(crate) fn end(&self, id: &RequestId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// One connection's messages.
pub(crate) struct SocketTransport {
    lines: LineReader<OwnedReadHalf>,
    order: Order,
    in_flight: Arc<InFlight>,
    /// A refusal that isn't handed to the writer yet: kept here because receiving can be cancelled.
    refusal: Option<Vec<u8>>,
    outbox: Option<mpsc::Sender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    gone: CancellationToken,
}

impl SocketTransport {
    /// `gone` is cancelled when the other side is.
    pub(crate) fn new(lines: LineReader<OwnedReadHalf>, sink: OwnedWriteHalf, gone: CancellationToken) -> Self {
        let (outbox, inbox) = mpsc::channel(OUTBOX);
        let writer = tokio::spawn(write_all(inbox, sink, gone.clone()));
        Self {
            lines,
            order: Order::default(),
            in_flight: Arc::default(),
            refusal: None,
            outbox: Some(outbox),
            writer: Some(writer),
            gone,
        }
    }

    /// The next message worth passing on; refusals are answered on the way.
    async fn next(&mut self) -> io::Result<Option<ClientJsonRpcMessage>> {
        loop {
            if self.refusal.is_some() {
                let outbox = self.outbox.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
                let place = outbox.reserve().await.map_err(|_| io::ErrorKind::BrokenPipe)?;
                if let Some(line) = self.refusal.take() {
                    place.send(line);
                }
            }
            let judged = match self.lines.next().await? {
                None => return Ok(None),
                Some(Line::TooLong { bytes, id }) => Err(Refusal::too_large(id, bytes)),
                Some(Line::Whole(line) | Line::Rest(line)) => check(&line),
            };
            match judged.and_then(|admitted| admitted.map_or(Ok(None), |admitted| self.judge(admitted))) {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => {}
                Err(refusal) => self.refusal = Some(refusal.to_line()),
            }
        }
    }

    fn judge(&mut self, admitted: Admitted) -> Result<Option<ClientJsonRpcMessage>, Refusal> {
        // Asked first, so that a refused request doesn't move the order on.
        if let Some(id) = admitted.request_id() {
            self.in_flight.begin(id)?;
        }
        let verdict = self.order.admit(&admitted);
        if !matches!(verdict, Verdict::Pass)
            && let Some(id) = admitted.request_id()
        {
            self.in_flight.end(id);
        }
        if let Some(id) = admitted.cancels() {
            // The library answers a cancelled request no more.
            self.in_flight.end(id);
        }
        match verdict {
            Verdict::Pass => Ok(Some(admitted.message)),
            Verdict::Drop => Ok(None),
            Verdict::Refuse(refusal) => Err(refusal),
        }
    }
}

async fn write_all(mut inbox: mpsc::Receiver<Vec<u8>>, mut sink: OwnedWriteHalf, gone: CancellationToken) {
    while let Some(line) = inbox.recv().await {
        let written = tokio::time::timeout(WRITE_WITHIN, sink.write_all(&line)).await;
        if !matches!(written, Ok(Ok(()))) {
            gone.cancel();
            return;
        }
    }
    let _ = sink.shutdown().await;
}

impl Transport<RoleServer> for SocketTransport {
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = answered {
            self.in_flight.end(&id);
        }
        let outbox = self.outbox.clone();
        async move {
            let outbox = outbox.ok_or(io::ErrorKind::BrokenPipe)?;
            outbox.send(to_line(&item)).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let gone = self.gone.clone();
        let next = tokio::select! {
            next = self.next() => next,
            () = gone.cancelled() => Ok(None),
        };
        match next {
            Ok(Some(message)) => Some(message),
            Ok(None) => {
                self.gone.cancel();
                None
            }
            Err(error) => {
                tracing::debug!(%error, "a connection broke");
                self.gone.cancel();
                None
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.outbox = None;
        self.gone.cancel();
        if let Some(writer) = self.writer.take() {
            let _ = tokio::time::timeout(Duration::from_secs(2), writer).await;
        }
        Ok(())
    }
}
