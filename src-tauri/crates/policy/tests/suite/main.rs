//! What the crate promises, seen from outside.

mod accepting;
mod careful;
mod common;
mod deciding;
mod errors;
mod issuing;
mod keys;
mod narrowing;
mod presence;
