//! Who may do what, where, now: policies, presence, and the signed blocks that authorise.
//!
//! Pure: no I/O and no clock. A [`Policy`] turns a [`Request`] into a [`Decision`]. What it allows
//! becomes an [`Authorized`] or a [`ViewScope`]; what it asks needs a person's [`Presence`], from
//! which [`issue_by_person`] signs a block that [`accept`] checks again before anything runs. None
//! of these can be made in any other way, copied, or read from bytes.

#![forbid(unsafe_code)]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::arithmetic_side_effects
)]

mod accept;
mod authorized;
mod budget;
mod decision;
mod error;
mod issue;
mod key;
mod policy;
mod presence;
#[cfg(doctest)]
mod proofs;
mod request;
mod source;
pub mod template;

pub use accept::{BlockRefusal, Expectation, accept};
pub use authorized::{Authorized, ViewScope};
pub use budget::Budgets;
pub use decision::{Decision, Verdict};
pub use error::PolicyError;
pub use issue::{Draft, MAX_BLOCK_MS, issue_by_person, issue_by_policy};
pub use key::{KeyList, SignatureRefused, Signer};
pub use policy::Policy;
pub use presence::{EnrolledDevices, EventKind, NativeEvent, Presence, PresenceRefused, PresenceRule};
pub use request::{Containment, Operation, Request, Resource};
pub use source::MAX_POLICY_BYTES;
