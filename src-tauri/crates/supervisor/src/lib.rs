//! The supervisor: perceive, afford, decide, ask, act, record.
//!
//! It hands out two kinds of handles. An [`AgentHandle`] belongs to one authenticated agent and has
//! no way to approve anything. The [`HumanHandle`] belongs to the window; a yes through it needs a
//! [`bodyguard_policy::Presence`], which only a native event of an enrolled device gives.

mod agent;
mod ask;
mod bodies;
mod changes;
mod clock;
mod config;
mod core;
mod desktop;
mod events;
mod human;
mod init;
mod keys;
mod phrase;
mod policies;
mod session;

pub use agent::{
    ActCall, ActReply, AgentHandle, ConnectionGuard, EnsureSession, PerceiveCall, PerceiveReply, ProgressSink, Refusal,
    ReplayCall, SessionInfo, StateReply, Waiting,
};
pub use clock::SystemClock;
pub use config::{Config, HealthProbe, PresenceFactory, StartError, Surroundings};
pub use core::Supervisor;
pub use human::{BarContent, Counts, DeviceSeen, HumanHandle};
pub use init::{InitError, InitOptions, InitReport, agent_socket, http_url_file, init, runtime_dir, token_file};
