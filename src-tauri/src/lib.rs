//! The shell: window, native decision bar, tray, notifications, requests and events of the page,
//! and the command line. Thin, and the only place that names `tauri`.
//!
//! What it adds to the supervisor is presence: the module `bar` turns a native event of an enrolled device
//! into a [`bodyguard_policy::Presence`]. Nothing else here can.

mod app;
mod bar;
mod blobs;
pub mod cli;
pub mod conformance;
mod desktop_bus;
mod devices;
mod doors;
mod events;
mod guards;
mod health;
mod instance;
mod notify;
mod process;
mod rpc;
mod tray;
mod window;

pub use app::{AppOptions, StartFailure, default_data_dir, run};
pub use guards::{Guards, UnknownRequest};
pub use health::{CheckContext, checks};
