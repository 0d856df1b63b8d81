//! The person's side: what the window may ask, and the one way to say yes.

mod handle;
mod reads;
mod types;

pub use handle::HumanHandle;
pub(crate) use reads::interrupted_sentences;
pub use types::{BarContent, Counts, DeviceSeen};
