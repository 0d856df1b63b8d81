//! The body: everything that touches the world an agent acts on, and nothing that decides.
//!
//! [`Body`] is what the supervisor sees. [`HostBody`] drives a `bodyguard-body` process over one
//! inherited socket; [`SimulatorBody`] is the same contract in memory. Acting consumes a [`Permit`],
//! which exists only where an authorization and a durable intent name the same action.

mod body;
mod client;
mod config;
mod edit;
mod frame;
#[doc(hidden)]
pub mod host;
mod lines;
mod permit;
mod places;
mod simulator;

pub use body::{
    Body, BodyFuture, DeletedEntry, Effect, Image, Inspection, Perception, Program, Review, SandboxInfo, SandboxLevel,
    Script, StableState,
};
pub use client::HostBody;
pub use config::{BodyConfig, Limits};
pub use edit::apply_edits;
pub use lines::LineEnding;
pub use permit::Permit;
pub use places::{changes_what_runs_later, runs_later};
pub use simulator::{SimulatedWorld, SimulatorBody, SimulatorConfig};
