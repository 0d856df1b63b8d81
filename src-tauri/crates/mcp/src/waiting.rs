//! How a call waits for a person: it tells the client now and then that it does, it can be taken
//! back, and it ends when nobody is there any more to hear the answer.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bodyguard_protocol::{ErrorCode, Fault};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use bodyguard_supervisor::{Refusal, Waiting};

/// How long a call that was taken back may need to say what became of it.
const CANCEL_GRACE: Duration = Duration::from_secs(8);
/// How long a client may take to accept a progress note.
const TELL_WITHIN: Duration = Duration::from_secs(1);

/// The waiting side of one call.
pub(crate) struct Wait {
    /// Where progress goes, if the client asked for it.
    progress: Option<(ProgressToken, Peer<RoleServer>)>,
    /// Cancelled by `notifications/cancelled`, and when serving ends.
    taken_back: CancellationToken,
    closing: CancellationToken,
    /// Takes the act back; reaches the supervisor.
    cancel: CancellationToken,
    /// Sentences about what is waited for. One that finds no room is followed by another soon.
    sentences: (mpsc::Sender<String>, mpsc::Receiver<String>),
}

impl Wait {
    pub(crate) fn new(context: &RequestContext<RoleServer>, closing: CancellationToken) -> Self {
        let token = context.meta.get_progress_token();
        Self {
            progress: token.map(|token| (token, context.peer.clone())),
            taken_back: context.ct.clone(),
            closing,
            cancel: CancellationToken::new(),
            sentences: mpsc::channel(4),
        }
    }

    /// What the supervisor is told about it.
    pub(crate) fn terms(&self, wait: Duration) -> Waiting {
        let sentences = self.sentences.0.clone();
        let progress = Arc::new(move |sentence: String| drop(sentences.try_send(sentence)));
        Waiting { wait, cancel: self.cancel.clone(), progress }
    }

    /// Sees the work through. If the requester is gone, the work is dropped: nobody waits any more,
    /// which the supervisor sees, but nobody took the request back either.
    pub(crate) async fn through<T>(
        &mut self,
        gone: &CancellationToken,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let mut work = pin!(work);
        let started = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = gone.cancelled() => return Err(nobody_there()),
                () = self.closing.cancelled() => return Err(nobody_there()),
                () = self.taken_back.cancelled() => {
                    self.cancel.cancel();
                    return match tokio::time::timeout(CANCEL_GRACE, work).await {
                        Ok(result) => result,
                        Err(_) => Err(Fault::new(ErrorCode::Cancelled, "the request was cancelled").into()),
                    };
                }
                result = &mut work => return result,
                Some(sentence) = self.sentences.1.recv() => self.tell(sentence, started.elapsed()).await,
            }
        }
    }

    async fn tell(&self, sentence: String, elapsed: Duration) {
        let Some((token, peer)) = &self.progress else { return };
        let note = ProgressNotificationParam::new(token.clone(), elapsed.as_secs_f64()).with_message(sentence);
        // A client that doesn't read must not hold up the wait itself.
        let sent = tokio::time::timeout(TELL_WITHIN, peer.notify_progress(note)).await;
        if !matches!(sent, Ok(Ok(()))) {
            tracing::debug!("a progress note wasn't taken");
        }
    }
}

fn nobody_there() -> Refusal {
    let message = "the connection ended while this was waited for";
    Fault::new(ErrorCode::Interrupted, message)
        .hint("resume the session and ask again with the escalation_id, or perceive and see what is there")
        .into()
}
