//! The way to the provider that is tested.

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

/// What comes back, in time.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Value, Broken>> + Send + 'a>>;

/// The way itself doesn't work, so that nothing can be said about the provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

impl Broken {
    pub(super) fn because(what: &str, error: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {error}"))
    }
}

/// What can be read of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The `InteractionTrace` (OS-011 §4).
    Trace,
    /// Its signals as a list of CloudEvents (OS-011 §8.2).
    Surprises,
}

/// Calls the provider's tools and reads its traces.
pub trait Transport: Send {
    /// Calls a tool; gives the object that it answered with.
    fn call<'a>(&'a mut self, tool: &'a str, arguments: Value) -> Answer<'a>;

    /// Reads what is on record of a trace.
    fn read<'a>(&'a mut self, record: Record, trace_id: &'a str) -> Answer<'a>;
}
