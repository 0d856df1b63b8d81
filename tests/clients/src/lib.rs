//! Real agents that connect to Bodyguard as their users would, with a model that follows a script
//! instead of one that thinks: what a client makes of the tools is real, what it wants is not.

pub mod claude_code;
mod http;
pub mod model;

pub use claude_code::ClaudeCode;
pub use model::{Call, ScriptedModel, Seen, Turn};
