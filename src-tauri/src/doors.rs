//! The agents' doors: a Unix socket for the stdio bridge, and HTTP on loopback.

use bodyguard_mcp::{Doors, ServeConfig};
use bodyguard_supervisor::{Supervisor, agent_socket};

/// Opens both. They close when the result is dropped.
pub(crate) async fn open(supervisor: &Supervisor) -> Result<Doors, String> {
    let data_dir = supervisor.data_dir().to_owned();
    let socket = agent_socket(&data_dir);
    let config = ServeConfig { data_dir, socket, http_port: Some(0) };
    bodyguard_mcp::serve(supervisor.clone(), config).await.map_err(|error| error.to_string())
}
