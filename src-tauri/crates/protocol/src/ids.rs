//! Names and identifiers, each a type of its own.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{ErrorCode, Fault};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $check:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, TS)]
        #[serde(try_from = "String", into = "String")]
        #[ts(type = "string")]
        #[schemars(with = "String")]
        pub struct $name(String);

        impl $name {
            /// The written form.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Fault;

            fn from_str(text: &str) -> Result<Self, Fault> {
                if $check(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(Fault::new(ErrorCode::InvalidArgument, $what))
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = Fault;

            fn try_from(text: String) -> Result<Self, Fault> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// An agent as the person named it: 1–64 of `A–Z a–z 0–9 . _ -`, first a letter or digit.
    AgentName, is_name, "an agent name is 1 to 64 letters, digits, `.`, `_` or `-`, and starts with a letter or digit"
);
text_id!(
    /// A workspace as the person named it, with the alphabet of [`AgentName`].
    WorkspaceName, is_name, "a workspace name is 1 to 64 letters, digits, `.`, `_` or `-`, and starts with a letter or digit"
);
text_id!(
    /// A session: `s_` and 32 hexadecimal digits from the system's random source; can't be guessed.
    SessionId, is_session, "a session id is `s_` and 32 hexadecimal digits"
);
text_id!(
    /// A trace: a ULID (OS-011 §4.1).
    TraceId, is_ulid, "a trace id is a ULID"
);
text_id!(
    /// An ask, the `escalation_id` of the agent's side: `a_` and a ULID.
    AskId, is_ask, "an escalation id is `a_` and a ULID"
);

text_id!(
    /// A replay: `r_` and a ULID.
    ReplayId, is_replay, "a replay id is `r_` and a ULID"
);

impl ReplayId {
    /// A replay id from a ULID.
    pub fn from_ulid(ulid: ulid::Ulid) -> Self {
        Self(format!("r_{ulid}"))
    }
}

impl SessionId {
    /// A session id from 16 random bytes.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(format!("s_{}", hex::encode(bytes)))
    }
}

impl TraceId {
    /// A trace id from a ULID.
    pub fn from_ulid(ulid: ulid::Ulid) -> Self {
        Self(ulid.to_string())
    }
}

impl AskId {
    /// An ask id from a ULID.
    pub fn from_ulid(ulid: ulid::Ulid) -> Self {
        Self(format!("a_{ulid}"))
    }
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=64).contains(&text.len()) && text.chars().all(allowed) && text.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn is_session(text: &str) -> bool {
    text.strip_prefix("s_").is_some_and(|hex| hex.len() == 32 && hex.chars().all(|c| c.is_ascii_hexdigit()))
}

fn is_ulid(text: &str) -> bool {
    text.len() == 26 && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_ask(text: &str) -> bool {
    text.strip_prefix("a_").is_some_and(is_ulid)
}

fn is_replay(text: &str) -> bool {
    text.strip_prefix("r_").is_some_and(is_ulid)
}
