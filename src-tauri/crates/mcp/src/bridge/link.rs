//! One connection to the running app.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bodyguard_protocol::{ErrorCode, Fault};
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::BridgeOptions;
use crate::door::{Line, LineReader, to_line};
use crate::{paths, socket};

/// The longest answer that is passed on. A file's 16 MiB, as base64 and twice, with room.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(3);

pub(super) type Lines = LineReader<OwnedReadHalf>;
pub(super) type Sink = OwnedWriteHalf;

/// A connection whose handshake was taken.
pub(super) struct Link {
    pub(super) lines: Lines,
    pub(super) write: Sink,
    /// Whether this side was closed.
    pub(super) ended: bool,
}

/// Why there is no connection when nobody listens.
pub(super) fn not_running() -> Fault {
    Fault::new(ErrorCode::NotRunning, "Bodyguard isn't running")
        .hint("start Bodyguard on this computer, then try again")
}

#[derive(Deserialize)]
struct Greeting {
    ok: bool,
    error: Option<Fault>,
}

impl Link {
    /// Connects and says who this is. The token is read each time: it may have been renewed.
    pub(super) async fn open(options: &BridgeOptions) -> Result<Self, Fault> {
        let token = paths::read_private(&options.token_file).map_err(|error| no_token(options, &error))?;
        let stream = UnixStream::connect(find(options)).await.map_err(|_| not_running())?;
        match stream.peer_cred() {
            Ok(peer) if peer.uid() == paths::own_uid() => {}
            Ok(_) | Err(_) => {
                return Err(Fault::new(ErrorCode::PermissionDenied, "the socket is served by another user"));
            }
        }
        let greeted = tokio::time::timeout(HANDSHAKE_WITHIN, greet(stream, options, &token)).await;
        greeted.map_err(|_| Fault::new(ErrorCode::Timeout, "Bodyguard runs but doesn't answer"))?
    }
}

async fn greet(stream: UnixStream, options: &BridgeOptions, token: &str) -> Result<Link, Fault> {
    let (read, mut write) = stream.into_split();
    let mut lines = LineReader::new(read, MAX_ANSWER_BYTES);
    let hello = json!({"bodyguard": socket::HANDSHAKE, "agent": options.agent, "token": token});
    write.write_all(&to_line(&hello)).await.map_err(|_| not_running())?;
    let Ok(Some(Line::Whole(line))) = lines.next().await else { return Err(not_running()) };
    match serde_json::from_slice(&line) {
        Ok(Greeting { ok: true, .. }) => Ok(Link { lines, write, ended: false }),
        Ok(Greeting { error: Some(fault), .. }) => Err(fault),
        Ok(_) | Err(_) => Err(Fault::internal("Bodyguard answered in a way this bridge doesn't know")),
    }
}

/// Where the app listens: as the data folder says, else where it would by this environment.
fn find(options: &BridgeOptions) -> PathBuf {
    let written = paths::read_private(&paths::socket_pointer(&options.data_dir)).map(PathBuf::from);
    match written {
        Ok(path) if is_own(&path) => path,
        Ok(_) | Err(_) => options.socket.clone(),
    }
}

fn is_own(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.uid() == paths::own_uid())
}

fn no_token(options: &BridgeOptions, error: &io::Error) -> Fault {
    let message = match error.kind() {
        io::ErrorKind::NotFound => format!("Bodyguard knows no agent called `{}` here", options.agent),
        _ => format!("the token of `{}` can't be read: {error}", options.agent),
    };
    Fault::new(ErrorCode::UnknownAgent, message).hint("connect the agent on Bodyguard's Agents page")
}
