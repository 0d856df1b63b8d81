//! The colours by which a person finds the native decision bar. The shell paints its buttons with
//! exactly these backgrounds.

use crate::Rgb;

/// An armed Approve button.
pub const APPROVE: Rgb = Rgb(0x1a, 0x7f, 0x37);
/// A Deny button.
pub const DENY: Rgb = Rgb(0xb3, 0x26, 0x1e);
/// An Approve button that isn't armed yet.
pub const APPROVE_UNARMED: Rgb = Rgb(0x8a, 0x8a, 0x8a);
/// The page's button that moves on to the next request, in the light theme.
pub const NEXT: Rgb = Rgb(0x12, 0x62, 0x6b);
