//! Opening and closing the doors.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::agent::Gate;
use crate::{http, paths, socket};

/// Which doors to open.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// The data folder; the addresses are written into it.
    pub data_dir: PathBuf,
    /// The socket for `bodyguard mcp`.
    pub socket: PathBuf,
    /// The loopback port for HTTP; 0 takes any free one, `None` opens no HTTP door.
    pub http_port: Option<u16>,
}

/// Why a door didn't open.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The Unix socket.
    #[error("the socket {path} can't be opened: {source}")]
    Socket {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The HTTP port.
    #[error("port {port} on 127.0.0.1 can't be opened: {source}")]
    Http {
        /// Which.
        port: u16,
        /// Why.
        source: std::io::Error,
    },
    /// A file that says where a door is.
    #[error("{path} can't be written: {source}")]
    Address {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The open doors. Dropping them closes them, without waiting.
#[derive(Debug)]
pub struct Doors {
    /// The socket for `bodyguard mcp`.
    pub socket_path: PathBuf,
    /// The address of the HTTP door, also in `<data>/http.url`.
    pub http_url: Option<String>,
    closing: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    written: Vec<PathBuf>,
}

impl Doors {
    /// Closes the doors: no new connections, and calls that wait end without an answer being taken
    /// back. Their asks stay.
    pub async fn shutdown(mut self) {
        self.closing.cancel();
        for task in std::mem::take(&mut self.tasks) {
            let _ = tokio::time::timeout(Duration::from_secs(3), task).await;
        }
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        self.closing.cancel();
        for file in &self.written {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Opens the doors for whoever the gate knows.
pub(crate) async fn open<G: Gate>(gate: G, config: ServeConfig) -> Result<Doors, DoorError> {
    let closing = CancellationToken::new();
    let socket_error = |source| DoorError::Socket { path: config.socket.clone(), source };
    let listener = socket::bind(&config.socket).map_err(socket_error)?;
    let mut doors = Doors {
        socket_path: config.socket.clone(),
        http_url: None,
        closing: closing.clone(),
        tasks: Vec::new(),
        written: vec![config.socket.clone()],
    };
    doors.write(paths::socket_pointer(&config.data_dir), &config.socket.to_string_lossy())?;
    if let Some(port) = config.http_port {
        let http_error = |source| DoorError::Http { port, source };
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.map_err(http_error)?;
        let port = listener.local_addr().map_err(http_error)?.port();
        let url = format!("http://127.0.0.1:{port}{}", http::PATH);
        doors.write(config.data_dir.join("http.url"), &url)?;
        doors.http_url = Some(url);
        doors.tasks.push(tokio::spawn(http::serve(listener, port, gate.clone(), closing.clone())));
    }
    doors.tasks.push(tokio::spawn(socket::serve(listener, gate, closing)));
    Ok(doors)
}

impl Doors {
    fn write(&mut self, path: PathBuf, text: &str) -> Result<(), DoorError> {
        paths::write_private(&path, text).map_err(|source| DoorError::Address { path: path.clone(), source })?;
        self.written.push(path);
        Ok(())
    }
}
