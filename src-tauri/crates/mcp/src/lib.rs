//! The agent's door: an MCP server in front of the supervisor's agent handles.
//!
//! Three ways lead here. `bodyguard mcp` is a bridge ([`bridge::run`]) from a client's stdio to the
//! Unix socket of the running app; the app also serves Streamable HTTP on the loopback interface;
//! both end at one server with the seven `body_os_*` tools (OS-011 §11). Every text passes a strict
//! check before the protocol library sees it, and nothing here can approve anything.

mod agent;
pub mod bridge;
mod door;
mod handler;
mod http;
mod paths;
mod serve;
mod socket;
mod supervised;
#[cfg(test)]
mod tests;
mod tools;
mod transport;
mod waiting;

pub use door::MAX_MESSAGE_BYTES;
pub use serve::{DoorError, Doors, ServeConfig};
pub use supervised::serve;

/// What a line of a client is passed on as, if it is.
#[cfg(fuzzing)]
pub fn judge_line(line: &[u8]) -> Option<Vec<u8>> {
    let admitted = door::check(line).ok().flatten()?;
    serde_json::to_vec(&admitted.value).ok()
}
