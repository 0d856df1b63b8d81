//! The policies that a person starts from.

/// Looks inside the workspace are allowed; changes, commands and the screen are asked; the outside
/// and the network are refused.
pub const CAREFUL: &str = include_str!("templates/careful.cedar");
