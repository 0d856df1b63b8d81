//! Replays by an agent's handle, with a real body host, and a person who decides by the window's
//! handle. Whether something ran is looked at in the file system.

mod divergence;
mod house;
mod permission;
mod refusal;
mod repeat;
