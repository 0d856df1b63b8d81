//! Time as a value that is passed in: a wall clock for people, a boot clock for expiry.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use ts_rs::TS;

use crate::Fault;

/// A wall-clock instant in UTC with milliseconds, written as RFC 3339.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(try_from = "String", into = "String")]
#[ts(type = "string")]
#[schemars(with = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// This instant moved by some milliseconds.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
        let nanos = i128::from(self.0).saturating_mul(1_000_000);
        let text = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok().and_then(|t| t.format(format).ok());
        f.write_str(text.as_deref().unwrap_or("invalid-time"))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Timestamp {
    type Error = Fault;

    fn try_from(text: String) -> Result<Self, Fault> {
        let parsed = OffsetDateTime::parse(&text, &Rfc3339)
            .map_err(|e| Fault::invalid("timestamp", format!("not an RFC 3339 time: {e}")))?;
        let millis = parsed.unix_timestamp_nanos().checked_div(1_000_000).and_then(|ms| i64::try_from(ms).ok());
        millis.map(Self).ok_or_else(|| Fault::invalid("timestamp", "a time out of range"))
    }
}

impl From<Timestamp> for String {
    fn from(timestamp: Timestamp) -> Self {
        timestamp.to_string()
    }
}

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock, which a person or a time server may set.
    pub wall: Timestamp,
    /// Milliseconds since boot including suspend (`CLOCK_BOOTTIME`), which nobody can set.
    pub boot_ms: u64,
}

/// Where time comes from; passed in so that nothing reads a clock behind one's back.
pub trait Clock: Send + Sync {
    /// Both clocks now.
    fn now(&self) -> Moment;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_keeps_its_milliseconds() {
        assert_eq!(Timestamp::from_millis(1_700_000_000_123).millis(), 1_700_000_000_123);
        assert_eq!(Timestamp::from_millis(-7).plus_millis(10).millis(), 3);
    }

    proptest::proptest! {
        #[test]
        fn a_timestamp_reads_back_what_it_wrote(millis in 0_i64..253_402_300_799_000) {
            let timestamp = Timestamp::from_millis(millis);
            proptest::prop_assert_eq!(Timestamp::try_from(timestamp.to_string()).unwrap(), timestamp);
        }
    }
}
