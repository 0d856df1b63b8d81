//! The Unix socket that `bodyguard mcp` connects to: same user only, a token, then JSON lines.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bodyguard_protocol::{AgentName, ErrorCode, Fault, parse_strict};
use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Gate};
use crate::door::{Line, LineReader, MAX_MESSAGE_BYTES, to_line};
use crate::handler::{Caller, Handler};
use crate::paths;
use crate::transport::SocketTransport;

/// Connections at once, over all agents.
const MAX_CONNECTIONS: usize = 256;
/// How long a new connection may take to say who it is.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);
const MAX_HANDSHAKE_BYTES: usize = 4096;
/// The handshake's version.
pub(crate) const HANDSHAKE: u64 = 1;

/// Binds the socket, 0600 in a 0700 folder. A stale one is replaced: the caller owns the data
/// folder, so nobody else serves it.
///
/// # Errors
/// As the file system; a path too long for a socket says so.
pub(crate) fn bind(socket: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = socket.parent() {
        paths::private_folder(folder)?;
    }
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves connections until the doors close.
pub(crate) async fn serve<G: Gate>(listener: UnixListener, gate: G, closing: CancellationToken) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = closing.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, most likely; it passes.
                tracing::warn!(%error, "a connection couldn't be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            tracing::warn!("too many connections; one was turned away");
            continue;
        };
        let (gate, closing) = (gate.clone(), closing.clone());
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection(stream, gate, closing).await {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
}

async fn connection<G: Gate>(stream: UnixStream, gate: G, closing: CancellationToken) -> io::Result<()> {
    let peer = stream.peer_cred()?;
    if peer.uid() != paths::own_uid() {
        tracing::warn!(uid = peer.uid(), "another user's connection was refused");
        return Ok(());
    }
    let (read, mut write) = stream.into_split();
    let mut lines = LineReader::new(read, MAX_HANDSHAKE_BYTES);
    let greeted = match tokio::time::timeout(HANDSHAKE_WITHIN, greet(&mut lines, &gate)).await {
        Ok(greeted) => greeted?,
        Err(_) => Err(Fault::new(ErrorCode::Timeout, "no handshake came")),
    };
    let agent = match greeted {
        Ok(agent) => agent,
        Err(fault) => return write.write_all(&to_line(&json!({"ok": false, "error": fault}))).await,
    };
    write.write_all(&to_line(&json!({"ok": true}))).await?;
    lines.set_limit(MAX_MESSAGE_BYTES);
    let gone = CancellationToken::new();
    let caller = Caller::new(agent, gone.clone());
    let transport = SocketTransport::new(lines, write, gone.clone());
    let handler = Handler::new(Some(caller.clone()), closing.clone());
    let serving = async {
        match handler.serve_with_ct(transport, closing.child_token()).await {
            Ok(service) => drop(service.waiting().await),
            Err(error) => tracing::debug!(%error, "a connection ended before it was initialized"),
        }
        gone.cancel();
    };
    let leaving = async {
        gone.cancelled().await;
        caller.stand_up();
    };
    tokio::join!(serving, leaving);
    Ok(())
}

/// Reads `{bodyguard:1, agent, token}` and finds the agent.
async fn greet<G: Gate>(lines: &mut LineReader<OwnedReadHalf>, gate: &G) -> io::Result<Result<G::Agent, Fault>> {
    let line = match lines.next().await? {
        Some(Line::Whole(line)) => line,
        Some(Line::TooLong { .. }) => return Ok(Err(Fault::new(ErrorCode::TooLarge, "too long for a handshake"))),
        Some(Line::Rest(_)) | None => return Err(io::ErrorKind::UnexpectedEof.into()),
    };
    let (name, token) = match handshake(&line) {
        Ok(parts) => parts,
        Err(fault) => return Ok(Err(fault)),
    };
    Ok(gate.authenticate(&token).await.and_then(|agent| {
        if agent.name() == name {
            Ok(agent)
        } else {
            Err(Fault::new(ErrorCode::UnknownAgent, "the token belongs to no agent of this name").at("agent"))
        }
    }))
}

fn handshake(line: &[u8]) -> Result<(AgentName, String), Fault> {
    let value = parse_strict(line)?;
    let mut fields = match value {
        Value::Object(fields) => fields,
        _ => return Err(Fault::new(ErrorCode::ParseError, "a handshake is an object")),
    };
    if fields.remove("bodyguard").and_then(|version| version.as_u64()) != Some(HANDSHAKE) {
        let message = "this bridge and the running Bodyguard don't fit together";
        return Err(Fault::invalid("bodyguard", message).hint("restart Bodyguard, so that both are of one version"));
    }
    let mut text = |field: &str| match fields.remove(field) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(Fault::invalid(field, format!("`{field}` is text"))),
    };
    let (name, token) = (text("agent")?.parse::<AgentName>()?, text("token")?);
    match fields.keys().next() {
        None => Ok((name, token)),
        Some(_) => Err(Fault::new(ErrorCode::UnknownField, "a handshake has no other fields")),
    }
}
