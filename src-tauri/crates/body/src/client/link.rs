//! The socket to a host, its process, and the calls in flight.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bodyguard_protocol::{ErrorCode, Fault};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::BodyConfig;
use crate::frame::{self, Answer, Envelope, Request};

/// The self-test of the containment is part of the start.
const START_LIMIT: Duration = Duration::from_secs(20);
/// A host that takes no request for this long counts as lost.
const SEND_LIMIT: Duration = Duration::from_secs(5);
/// How long a cancelled act may take to report what it had done.
const CANCEL_LIMIT: Duration = Duration::from_secs(10);

/// How long a host may take to end by itself.
const ENDING: Duration = Duration::from_millis(400);
const ENDING_LOOK: Duration = Duration::from_millis(4);

type Reply = (Answer, Option<Vec<u8>>);
type Waiting = HashMap<u64, oneshot::Sender<Reply>>;

#[derive(Debug)]
struct Shared {
    socket: OwnedFd,
    next: AtomicU64,
    lost: AtomicBool,
    waiting: Mutex<Waiting>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // The map is whole at every point where a thread could stop.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, envelope: &Envelope<Request>) -> std::io::Result<()> {
        frame::send(self.socket.as_fd(), envelope, None, false)
    }

    /// Sends, waiting a while for room: the host reads at once, unless it hangs.
    async fn send_patiently(&self, envelope: &Envelope<Request>) -> Result<(), Fault> {
        let deadline = tokio::time::Instant::now() + SEND_LIMIT;
        loop {
            match self.send(envelope) {
                Ok(()) => return Ok(()),
                Err(error)
                    if error.kind() == std::io::ErrorKind::WouldBlock && deadline > tokio::time::Instant::now() =>
                {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                Err(error) => return Err(no_taker(&error)),
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Link {
    shared: Arc<Shared>,
    pid: u32,
    reader: Option<JoinHandle<()>>,
}

impl Link {
    pub(super) fn start(program: &Path, config: BodyConfig) -> Result<(Self, Answer), Fault> {
        let fail = |error: &dyn std::fmt::Display| lost(&format!("the body host can't be started: {error}"));
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|error| fail(&error))?;
        let shared = Arc::new(Shared {
            socket: ours,
            next: AtomicU64::new(1),
            lost: AtomicBool::new(false),
            waiting: Mutex::default(),
        });
        let (hello, first) = oneshot::channel();
        shared.waiting().insert(0, hello);
        let (started, outcome) = sync_channel(1);
        let command = command(program, &config, theirs);
        let reader = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("body-link".to_owned())
                .spawn(move || serve(&shared, command, &started))
                .map_err(|error| fail(&error))?
        };
        let pid = match outcome.recv() {
            Ok(Ok(pid)) => pid,
            Ok(Err(error)) => return Err(fail(&error)),
            Err(error) => return Err(fail(&error)),
        };
        let link = Self { shared, pid, reader: Some(reader) };
        link.shared.send(&Envelope { id: 0, body: Request::Start(config) }).map_err(|error| no_taker(&error))?;
        let answer = wait_blocking(first, START_LIMIT)?;
        Ok((link, answer))
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn is_lost(&self) -> bool {
        self.shared.lost.load(Ordering::Acquire)
    }

    pub(super) async fn look(&self, request: Request, limit: Duration) -> Result<Reply, Fault> {
        let mut call = Call::place(&self.shared, request).await?;
        let reply = tokio::time::timeout(limit, &mut call.reply).await;
        call.settle(reply.ok())
    }

    pub(super) async fn act(
        &self,
        request: Request,
        limit: Duration,
        cancel: CancellationToken,
    ) -> Result<Reply, Fault> {
        if cancel.is_cancelled() {
            return Err(Fault::new(ErrorCode::Cancelled, "cancelled before anything was done"));
        }
        let mut call = Call::place(&self.shared, request).await?;
        let reply = tokio::select! {
            reply = tokio::time::timeout(limit, &mut call.reply) => reply.ok(),
            () = cancel.cancelled() => {
                self.shared.send_patiently(&Envelope { id: 0, body: Request::Cancel { id: call.id } }).await?;
                tokio::time::timeout(CANCEL_LIMIT, &mut call.reply).await.ok()
            }
        };
        call.settle(reply)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The host ends when its socket does, and the reader ends it by force if it doesn't.
        let _ = rustix::net::shutdown(&self.shared.socket, Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// A call in flight. One that is dropped unanswered cancels what the host does for it.
struct Call<'a> {
    shared: &'a Shared,
    id: u64,
    reply: oneshot::Receiver<Reply>,
    settled: bool,
}

impl<'a> Call<'a> {
    async fn place(shared: &'a Shared, request: Request) -> Result<Self, Fault> {
        let id = shared.next.fetch_add(1, Ordering::Relaxed);
        let (sender, reply) = oneshot::channel();
        shared.waiting().insert(id, sender);
        let call = Self { shared, id, reply, settled: false };
        // Asked after the insertion: whoever loses the host empties the map after setting the flag.
        if shared.lost.load(Ordering::Acquire) {
            return Err(lost("the body host has ended"));
        }
        shared.send_patiently(&Envelope { id, body: request }).await?;
        Ok(call)
    }

    fn settle(mut self, reply: Option<Result<Reply, oneshot::error::RecvError>>) -> Result<Reply, Fault> {
        match reply {
            Some(Ok(reply)) => {
                self.settled = true;
                Ok(reply)
            }
            Some(Err(_)) => Err(lost("the body host ended before it answered")),
            None => Err(Fault::new(ErrorCode::Timeout, "the body host did not answer in time")),
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.shared.waiting().remove(&self.id);
        if !self.settled && !self.shared.lost.load(Ordering::Acquire) {
            let _ = self.shared.send(&Envelope { id: 0, body: Request::Cancel { id: self.id } });
        }
    }
}

/// Runs on the thread that starts the host, and lives as long as it: the host asks to be ended when
/// the *thread* that started it ends.
fn serve(shared: &Shared, command: Command, started: &SyncSender<std::io::Result<u32>>) {
    let mut child = match spawn(command) {
        Ok(child) => child,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let _ = started.send(Ok(child.id()));
    // An error counts as an end: a host that sends nonsense is not trusted any further.
    while let Ok(Some((envelope, image))) = frame::receive::<Answer>(shared.socket.as_fd()) {
        let waiting = shared.waiting().remove(&envelope.id);
        if let Some(waiting) = waiting {
            let _ = waiting.send((envelope.body, image));
        }
    }
    shared.lost.store(true, Ordering::Release);
    end(&mut child);
    let _ = child.wait();
    shared.waiting().clear();
}

/// The host lets go of keys and buttons and ends by itself, because its socket has; or by force.
fn end(child: &mut Child) {
    let begun = Instant::now();
    while begun.elapsed() < ENDING {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            return;
        }
        std::thread::sleep(ENDING_LOOK);
    }
    let _ = child.kill();
}

// The command holds the host's end of the socket; it is dropped here, so that the host's end is the
// only one and its death is seen.
fn spawn(mut command: Command) -> std::io::Result<Child> {
    command.spawn()
}

fn command(program: &Path, config: &BodyConfig, socket: OwnedFd) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(socket).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LANG", "C.UTF-8").current_dir("/");
    let optional =
        [("DISPLAY", &config.display), ("XAUTHORITY", &config.xauthority), ("AT_SPI_BUS_ADDRESS", &config.at_spi_bus)];
    for (name, value) in optional {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command
}

fn wait_blocking(mut first: oneshot::Receiver<Reply>, limit: Duration) -> Result<Answer, Fault> {
    let deadline = Instant::now() + limit;
    loop {
        match first.try_recv() {
            Ok((answer, _)) => return Ok(answer),
            Err(oneshot::error::TryRecvError::Closed) => return Err(lost("the body host ended at its start")),
            Err(oneshot::error::TryRecvError::Empty) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(oneshot::error::TryRecvError::Empty) => {
                return Err(Fault::new(ErrorCode::Timeout, "the body host did not start in time"));
            }
        }
    }
}

fn no_taker(error: &std::io::Error) -> Fault {
    lost(&format!("the body host takes no request: {error}"))
}

fn lost(message: &str) -> Fault {
    Fault::new(ErrorCode::BodyLost, message).hint("what was in flight may have happened; look before you do it again")
}
