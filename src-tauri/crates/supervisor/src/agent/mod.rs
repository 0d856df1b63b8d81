//! The agent's side. Nothing here approves anything.

mod admission;
mod affordances;
mod dispatch;
mod dry_run;
mod ended;
mod forward;
mod handle;
mod perceive;
mod pipeline;
mod replay;
mod resource;
mod review;
mod types;

pub use handle::{AgentHandle, ConnectionGuard};
pub(crate) use replay::Replays;
pub(crate) use review::reviewable_diff;
pub use types::{
    ActCall, ActReply, EnsureSession, PerceiveCall, PerceiveReply, ProgressSink, Refusal, ReplayCall, SessionInfo,
    StateReply, Waiting,
};
