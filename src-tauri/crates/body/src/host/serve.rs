//! The host's loop: one thread reads, each request runs on a thread of its own.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bodyguard_protocol::{ErrorCode, Fault};

use super::cancel::Cancel;
use super::harden::harden;
use super::work::{Host, Reply};
use crate::frame::{self, Answer, Envelope, Request};

/// More requests than this at once are refused.
const MAX_AT_ONCE: usize = 32;

struct Server {
    host: Host,
    socket: OwnedFd,
    sending: Mutex<()>,
    running: Mutex<HashMap<u64, Arc<Cancel>>>,
    count: AtomicUsize,
}

pub(super) fn serve() -> ExitCode {
    let Ok(socket) = harden() else { return ExitCode::from(3) };
    let Ok(Some((Envelope { id, body: Request::Start(config) }, _))) = frame::receive::<Request>(socket.as_fd()) else {
        return ExitCode::from(4);
    };
    let host = match Host::start(config) {
        Ok(host) => host,
        Err(fault) => {
            let _ = frame::send(socket.as_fd(), &Envelope { id, body: Answer::Fault(fault) }, None, true);
            return ExitCode::from(5);
        }
    };
    let started = Answer::Started(host.sandbox().clone());
    let server = Arc::new(Server {
        host,
        socket,
        sending: Mutex::default(),
        running: Mutex::default(),
        count: AtomicUsize::new(0),
    });
    server.answer(id, (started, None));
    while let Ok(Some((envelope, _))) = frame::receive::<Request>(server.socket.as_fd()) {
        server.take(envelope);
    }
    server.host.let_go();
    // The supervisor has gone. With this process end the thread that started the sandboxes, and they.
    ExitCode::SUCCESS
}

impl Server {
    fn take(self: &Arc<Self>, envelope: Envelope<Request>) {
        let Envelope { id, body } = envelope;
        if let Request::Cancel { id } = body {
            if let Some(cancel) = self.running().get(&id) {
                cancel.now();
            }
            return;
        }
        if self.count.fetch_add(1, Ordering::AcqRel) >= MAX_AT_ONCE {
            self.count.fetch_sub(1, Ordering::AcqRel);
            let fault = Fault::new(ErrorCode::BudgetExceeded, "the body has too many requests at once");
            self.answer(id, (Answer::Fault(fault), None));
            return;
        }
        let cancel = Arc::new(Cancel::default());
        self.running().insert(id, Arc::clone(&cancel));
        let server = Arc::clone(self);
        let work = move || {
            // Whoever asked gets an answer even where the code for it panics.
            let answered = catch_unwind(AssertUnwindSafe(|| server.host.answer(body, &cancel)));
            let answered = answered.unwrap_or_else(|_| Err(Fault::internal("the body failed on this request")));
            let reply = answered.unwrap_or_else(|fault| (Answer::Fault(fault), None));
            server.finish(id, reply);
        };
        if std::thread::Builder::new().name("request".to_owned()).spawn(work).is_err() {
            self.finish(id, (Answer::Fault(Fault::internal("no thread for the request")), None));
        }
    }

    fn finish(&self, id: u64, reply: Reply) {
        self.running().remove(&id);
        self.count.fetch_sub(1, Ordering::AcqRel);
        self.answer(id, reply);
    }

    fn answer(&self, id: u64, (body, image): Reply) {
        let _one = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = frame::send(self.socket.as_fd(), &Envelope { id, body }, image.as_deref(), true);
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u64, Arc<Cancel>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
