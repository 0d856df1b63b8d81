//! The agents' doors: a Unix socket for the stdio bridge, and HTTP on loopback.

use std::path::Path;

use bodyguard_mcp::{DoorError, Doors, ServeConfig};
use bodyguard_supervisor::{Supervisor, agent_socket};

/// Holds the HTTP port, in the data folder, so that the address in a client's configuration stays
/// right from start to start.
const PORT_FILE: &str = "http.port";

/// Opens both. They close when the result is dropped.
pub(crate) async fn open(supervisor: &Supervisor) -> Result<Doors, String> {
    let data_dir = supervisor.data_dir().to_owned();
    let socket = agent_socket(&data_dir);
    let config = |port| ServeConfig { data_dir: data_dir.clone(), socket: socket.clone(), http_port: Some(port) };
    let open = |port| bodyguard_mcp::serve(supervisor.clone(), config(port));
    let known = read_port(&data_dir);
    let opened = match open(known.unwrap_or(0)).await {
        Err(DoorError::Http { port, source }) if port != 0 => {
            tracing::warn!(port, %source, "another program has the HTTP port; clients over HTTP need the new address");
            open(0).await
        }
        other => other,
    };
    let doors = opened.map_err(|error| error.to_string())?;
    let port = doors.http_url.as_deref().and_then(port_of);
    if let Some(port) = port.filter(|port| known != Some(*port)) {
        write_port(&data_dir, port);
    }
    Ok(doors)
}

fn read_port(data_dir: &Path) -> Option<u16> {
    std::fs::read_to_string(data_dir.join(PORT_FILE)).ok()?.trim().parse().ok()
}

fn write_port(data_dir: &Path, port: u16) {
    if let Err(error) = std::fs::write(data_dir.join(PORT_FILE), format!("{port}\n")) {
        tracing::warn!(%error, "the HTTP port can't be remembered; it may be another at the next start");
    }
}

fn port_of(url: &str) -> Option<u16> {
    url.strip_prefix("http://127.0.0.1:")?.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_remembered_and_nonsense_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_port(dir.path()), None);
        write_port(dir.path(), port_of("http://127.0.0.1:40123/mcp").unwrap());
        assert_eq!(read_port(dir.path()), Some(40123));
        std::fs::write(dir.path().join(PORT_FILE), "70000").unwrap();
        assert_eq!(read_port(dir.path()), None);
    }
}
