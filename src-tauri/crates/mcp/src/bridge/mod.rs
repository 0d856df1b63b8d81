//! `bodyguard mcp`: a client's stdio on one side, the running app's socket on the other.
//!
//! Standard output carries JSON-RPC and nothing else; what there is to say goes to standard error.
//! If the app restarts, the bridge connects again and repeats the client's `initialize`, so that
//! the client needn't. It never repeats anything else: a call that was cut off may have been done.

mod link;
mod memory;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bodyguard_protocol::{AgentName, Fault};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until};

use self::link::Link;
use self::memory::{FromServer, Memory};
use crate::door::{Line, LineReader, MAX_MESSAGE_BYTES, Refusal, check};

/// How long after the client's end the last answers are waited for.
const LAST_ANSWERS_WITHIN: Duration = Duration::from_secs(8);
const RETRY_EVERY: Duration = Duration::from_millis(250);
/// Lines that may wait for a connection, and for being written to it.
const MAX_WAITING: usize = 256;

/// What the bridge is started with.
#[derive(Debug, Clone)]
pub struct BridgeOptions {
    /// The app's data folder.
    pub data_dir: PathBuf,
    /// The socket where the app is expected, if the data folder doesn't say.
    pub socket: PathBuf,
    /// The file with the agent's token.
    pub token_file: PathBuf,
    /// Which agent the client is.
    pub agent: AgentName,
    /// How long requests wait for the app to be there before they are answered with an error.
    pub patience: Duration,
}

impl BridgeOptions {
    /// How long requests wait unless said otherwise.
    pub const PATIENCE: Duration = Duration::from_secs(5);
}

/// Bridges this process's standard input and output until the input ends. Success is a client that
/// closed its side; failure is one that couldn't be written to.
pub fn run(options: BridgeOptions) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the bridge can't start");
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(bridge(options, tokio::io::stdin(), tokio::io::stdout()));
    // A thread may still be reading standard input; it ends with the process.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::warn!(%error, "the client can't be written to");
            ExitCode::FAILURE
        }
    }
}

/// Bridges two streams.
pub(crate) async fn bridge(
    options: BridgeOptions,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut bridge = Bridge {
        input: LineReader::new(input, MAX_MESSAGE_BYTES),
        output,
        link: None,
        memory: Memory::default(),
        waiting: VecDeque::new(),
        outgoing: VecDeque::new(),
        written: 0,
        down: Down::now(),
        options,
    };
    bridge.connect().await?;
    bridge.run().await
}

struct Bridge<I, O> {
    options: BridgeOptions,
    input: LineReader<I>,
    output: O,
    link: Option<Link>,
    memory: Memory,
    /// Lines that wait for a connection.
    waiting: VecDeque<Vec<u8>>,
    /// Lines to be written to it, and how much of the first is.
    outgoing: VecDeque<Vec<u8>>,
    written: usize,
    down: Down,
}

/// Since when there is no connection, and why.
struct Down {
    patience_from: Instant,
    next_try: Instant,
    why: Fault,
}

impl Down {
    fn now() -> Self {
        Self { patience_from: Instant::now(), next_try: Instant::now(), why: link::not_running() }
    }
}

impl<I: AsyncRead + Unpin, O: AsyncWrite + Unpin> Bridge<I, O> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            let room = self.waiting.len() < MAX_WAITING && self.outgoing.len() < MAX_WAITING;
            let patience_ends = self.down.patience_from + self.options.patience;
            let (reader, writer) = match &mut self.link {
                Some(link) => (Some(&mut link.lines), Some(&mut link.write)),
                None => (None, None),
            };
            let up = reader.is_some();
            tokio::select! {
                line = self.input.next(), if room => match line {
                    Ok(Some(line)) => self.take_client_line(line).await?,
                    Ok(None) => return self.last_answers().await,
                    Err(error) => {
                        tracing::warn!(%error, "standard input broke");
                        return self.last_answers().await;
                    }
                },
                line = next_line(reader) => self.take_server_line(line).await?,
                wrote = write_some(writer, self.outgoing.front(), self.written), if up && !self.outgoing.is_empty() => {
                    self.wrote(wrote).await?;
                },
                () = sleep_until(self.down.next_try), if !up => self.connect().await?,
                () = sleep_until(patience_ends), if !up && !self.waiting.is_empty() => self.give_up().await?,
            }
        }
    }

    async fn take_client_line(&mut self, line: Line) -> io::Result<()> {
        let (judged, line) = match line {
            Line::TooLong { bytes, id } => (Err(Refusal::too_large(id, bytes)), Vec::new()),
            Line::Whole(line) | Line::Rest(line) => (check(&line), line),
        };
        match judged {
            Ok(None) => Ok(()),
            Err(refusal) => self.say(&refusal.to_line()).await,
            Ok(Some(message)) => {
                // What was admitted is written anew: one line, without mark or carriage return.
                drop(line);
                let line = self.memory.note_client(&message);
                if self.link.is_some() {
                    self.outgoing.push_back(line);
                } else {
                    self.waiting.push_back(line);
                    if self.down.patience_from + self.options.patience <= Instant::now() {
                        self.give_up().await?;
                    }
                }
                Ok(())
            }
        }
    }

    async fn take_server_line(&mut self, line: io::Result<Option<Line>>) -> io::Result<()> {
        match line {
            Ok(Some(Line::Whole(line))) => match self.memory.note_server(&line) {
                FromServer::Pass => self.say(&[&line[..], b"\n"].concat()).await,
                FromServer::Keep => Ok(()),
                FromServer::Refused => self.lost().await,
            },
            Ok(Some(Line::TooLong { bytes, id })) => {
                tracing::error!(bytes, "an answer was too long");
                let refusal = Refusal::too_large(id, bytes);
                if let Some(id) = &refusal.id {
                    self.memory.answered(id);
                }
                self.say(&refusal.to_line()).await
            }
            // A part of a line isn't JSON-RPC, so it goes nowhere.
            Ok(Some(Line::Rest(_)) | None) | Err(_) => self.lost().await,
        }
    }

    async fn wrote(&mut self, wrote: io::Result<usize>) -> io::Result<()> {
        match wrote {
            Ok(count) if count > 0 => {
                self.written += count;
                if self.outgoing.front().is_some_and(|line| self.written >= line.len()) {
                    self.outgoing.pop_front();
                    self.written = 0;
                }
                Ok(())
            }
            Ok(_) | Err(_) => self.lost().await,
        }
    }

    /// The app is gone: what it was asked is answered with an error and never asked again.
    async fn lost(&mut self) -> io::Result<()> {
        tracing::warn!("the connection to Bodyguard ended; trying to reach it again");
        self.link = None;
        self.outgoing.clear();
        self.written = 0;
        self.down = Down::now();
        if let Some(initialize) = self.memory.unanswered_initialize() {
            self.waiting.push_front(initialize);
        }
        for refusal in self.memory.cut_off() {
            self.say(&refusal.to_line()).await?;
        }
        Ok(())
    }

    async fn connect(&mut self) -> io::Result<()> {
        match Link::open(&self.options).await {
            Ok(link) => {
                self.link = Some(link);
                self.written = 0;
                self.outgoing = self.memory.opening().into();
                self.outgoing.append(&mut self.waiting);
            }
            Err(why) => {
                self.down.next_try = Instant::now() + RETRY_EVERY;
                if self.down.why != why {
                    tracing::warn!("{why}");
                    self.down.why = why;
                }
            }
        }
        Ok(())
    }

    /// Answers what waits with the reason why there is no connection.
    async fn give_up(&mut self) -> io::Result<()> {
        self.waiting.clear();
        for refusal in self.memory.unreachable(&self.down.why) {
            self.say(&refusal.to_line()).await?;
        }
        Ok(())
    }

    async fn say(&mut self, line: &[u8]) -> io::Result<()> {
        self.output.write_all(line).await?;
        self.output.flush().await
    }

    /// The client closed its side: the rest is written, the app is told, and its last answers pass.
    async fn last_answers(&mut self) -> io::Result<()> {
        if self.link.is_none() {
            return self.give_up().await;
        }
        let deadline = Instant::now() + LAST_ANSWERS_WITHIN;
        while let Some(link) = &mut self.link {
            if self.outgoing.is_empty() && !link.ended {
                link.ended = true;
                let _ = link.write.shutdown().await;
            }
            let writes = !self.outgoing.is_empty();
            tokio::select! {
                line = link.lines.next() => self.take_server_line(line).await?,
                wrote = write_some(Some(&mut link.write), self.outgoing.front(), self.written), if writes => {
                    self.wrote(wrote).await?;
                }
                () = sleep_until(deadline) => return Ok(()),
            }
        }
        Ok(())
    }
}

async fn next_line(reader: Option<&mut link::Lines>) -> io::Result<Option<Line>> {
    match reader {
        Some(reader) => reader.next().await,
        None => std::future::pending().await,
    }
}

/// Writes what is left of a line, as far as the socket takes it. Safe to cancel.
async fn write_some(writer: Option<&mut link::Sink>, line: Option<&Vec<u8>>, written: usize) -> io::Result<usize> {
    match (writer, line.and_then(|line| line.get(written..))) {
        (Some(writer), Some(rest)) => writer.write(rest).await,
        _ => std::future::pending().await,
    }
}
