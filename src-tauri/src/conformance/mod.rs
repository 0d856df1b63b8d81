//! The twelve conformance tests of OS-011 §9, run against this very program.
//!
//! They go through the agents' door and read what anybody can read of a trace; nothing in them knows how
//! the supervisor is built. It is a throwaway one: a data folder, a workspace and a key of its own, no
//! display, no person. What may be done is said by the policies of its workspaces.

mod acts;
mod affordances;
mod bench;
mod door;
mod house;
mod looks;
mod replays;
mod report;
mod runner;
mod traces;
mod transport;

pub use door::Door;
pub use house::{Backend, House, HouseError};
pub use report::{Report, SignedReport};
pub use runner::{NAMES, TestResult, run, run_all};
pub use transport::{Answer, Broken, Record, Transport};
