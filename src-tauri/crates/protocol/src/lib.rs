//! The words of OS-011 v0.1 `&body.os`: typed actions, observations, affordances, outcomes,
//! authorization blocks, traces and the digests over them.
//!
//! No I/O and no clock lives here. Everything an agent sends is parsed by types that refuse
//! unknown and duplicate fields; everything that is hashed or signed goes through [`canonical_bytes`].

pub mod action;
mod affordance;
mod authorization;
mod canonical;
mod clock;
mod digest;
mod escape;
mod fault;
mod ids;
mod loop_manifest;
mod observation;
mod outcome;
pub mod published;
mod query;
mod reference;
mod replay;
mod state;
mod strict_json;
mod surprise;
mod trace;
pub mod ui;

pub use action::{ActionType, Params, TypedAction};
pub use affordance::{Affordance, AffordanceSet};
pub use authorization::{Authorization, Block, BlockKind, BlockPayload, BlockSignature, Proof, SCHEMA_BLOCK_V1};
pub use canonical::{canonical_bytes, canonical_digest};
pub use clock::{Clock, Moment, Timestamp};
pub use digest::Digest;
pub use escape::{Hidden, escape_line, escape_text, hidden_characters, unescape};
pub use fault::{ErrorCode, Fault};
pub use ids::{AgentName, AskId, ReplayId, SessionId, TraceId, WorkspaceName};
pub use observation::{FileEntry, FileKind, GitState, MonitorInfo, Observation, ProcessEntry, RefInfo, WindowInfo};
pub use outcome::{ActionOutcome, Foreseen, OutcomeError, OutcomeStatus, Prediction, Provenance};
pub use query::{PerceptionQuery, QueryMode};
pub use reference::{Ref, RefKind};
pub use replay::{Difference, ForeseenEdge, ReplayOf, ReplayResult, ReplayStatus};
pub use state::{ReadmeFields, StableFields, StateHash, StateProfile};
pub use strict_json::parse_strict;
pub use surprise::{
    Actual, Forecast, PULSE_VERSION, SURPRISE_EVENT, Surprise, SurpriseKind, SurpriseSignal, SurpriseToken,
    SurpriseVersion, surprise, surprise_metric,
};
pub use trace::{InteractionTrace, TraceEdge, TraceEnvironment, TraceOutcome};

/// The capability this body provides.
pub const CAPABILITY: &str = "&body.os";
/// The provider name in every provenance record.
pub const PROVIDER: &str = "bodyguard";
/// The subtype in observations, affordance sets and traces.
pub const BODY_SUBTYPE: &str = "os";
/// The version of OS-011 that this implements.
pub const OS011_VERSION: &str = "0.1";
/// The longest content, in bytes, that a person is asked to review. Anything longer is refused as
/// `too_long_to_review` before a prompt exists, because what can't be read can't be approved.
pub const MAX_REVIEW_BYTES: usize = 64 * 1024;
