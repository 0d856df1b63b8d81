//! Redaction: what looks like a secret is replaced before anything is hashed or stored.
//!
//! A replaced value leaves its kind, its length and a commitment: SHA-256 over a key of this log
//! and the value, cut to 128 bits. Equal secrets leave equal commitments, so that records still
//! compare; the key never leaves the data folder, so that a commitment can't be guessed elsewhere.
//!
//! What is replaced: in evidence (`observed`, `prediction`, attempts that were refused), access keys
//! (`AKIA…`, `ghp_…`), private keys in PEM, the password in `scheme://user:password@host`, and the
//! value in `NAME=value` where the name is in capitals and ends in `PASS`, `PASSWORD`, `SECRET`,
//! `TOKEN` or `KEY`. In an action, only values of `env` and `stdin`, and typed text that the agent
//! called a secret: the rest of an action is kept
//! exactly, because it is what a person approved. Its digest is always that of the exact action.
//! Content in base64 isn't looked into.

use std::ops::Range;

use bodyguard_protocol::action::KeyboardInput;
use bodyguard_protocol::{ActionType, Params, TypedAction};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::LogError;

/// Replaces secrets, with the key of one log.
#[derive(Clone)]
pub struct Redactor {
    key: [u8; 32],
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor")
    }
}

const MARK: &str = "[redacted ";
const SUFFIXES: [&str; 5] = ["PASS", "PASSWORD", "SECRET", "TOKEN", "KEY"];
/// Shorter values, such as `MAX_KEY=1`, aren't secrets.
const SHORTEST: usize = 4;

impl Redactor {
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    fn mark(&self, kind: &str, secret: &str) -> String {
        let hash = Sha256::new().chain_update("bodyguard.redact.v1\0").chain_update(self.key).chain_update(secret);
        let commitment: String = hex::encode(hash.finalize()).chars().take(32).collect();
        format!("{MARK}{kind}, {} bytes, {commitment}]", secret.len())
    }

    /// A text with its secrets replaced.
    pub fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (range, kind) in secrets(text) {
            let (Some(before), Some(secret)) = (text.get(done..range.start), text.get(range.clone())) else { continue };
            out.push_str(before);
            out.push_str(&self.mark(kind, secret));
            done = range.end;
        }
        out.push_str(text.get(done..).unwrap_or(""));
        out
    }

    /// A JSON value with the secrets in its strings replaced.
    #[must_use]
    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                let called_secret = fields.get("secret") == Some(&Value::Bool(true));
                fields
                    .into_iter()
                    .map(|(name, field)| {
                        let field = match field {
                            Value::String(text) if called_secret && name == "text" && is_secret_text(&text) => {
                                Value::String(self.mark("typed", &text))
                            }
                            field => self.named(&name, field),
                        };
                        (name, field)
                    })
                    .collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn named(&self, name: &str, value: Value) -> Value {
        match value {
            Value::String(text) if is_secret_name(name) && is_secret_value(&text) => {
                Value::String(self.mark("named", &text))
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.value(value)
            }
        }
    }

    /// An action as it is recorded, and whether that differs from the exact one.
    ///
    /// # Errors
    /// Where the action isn't representable.
    pub fn action(&self, action: &TypedAction) -> Result<(Value, bool), LogError> {
        let exact = serde_json::to_value(action).map_err(|error| LogError::Storage(error.to_string()))?;
        let mut recorded = exact.clone();
        if matches!(action.kind, ActionType::ShellExec | ActionType::ProcessSpawn)
            && let Some(Value::Object(params)) = recorded.get_mut("params")
        {
            for name in ["env", "stdin"] {
                if let Some(field) = params.get_mut(name) {
                    *field = self.value(field.take());
                }
            }
        }
        if matches!(&action.params, Params::KeyboardInput(KeyboardInput { secret: true, .. }))
            && let Some(Value::String(text)) = recorded.pointer_mut("/params/text")
        {
            *text = self.mark("typed", text);
        }
        let differs = recorded != exact;
        Ok((recorded, differs))
    }
}

fn is_secret_name(name: &str) -> bool {
    let capitals = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    name.bytes().all(capitals) && SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// A mark stands for a secret already.
fn is_secret_text(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(MARK)
}

fn is_secret_value(text: &str) -> bool {
    text.len() >= SHORTEST && !text.starts_with(MARK)
}

/// The secrets of a text in order, without overlaps; of two that begin together, the longer.
fn secrets(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    for (prefix, shortest) in [("AKIA", 16), ("ASIA", 16)] {
        let part = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit();
        prefixed(text, prefix, shortest, part, "access_key", &mut found);
    }
    for (prefix, shortest) in [("ghp_", 36), ("gho_", 36), ("ghu_", 36), ("ghs_", 36), ("github_pat_", 36)] {
        prefixed(text, prefix, shortest, |b| b.is_ascii_alphanumeric() || b == b'_', "access_token", &mut found);
    }
    private_keys(text, &mut found);
    passwords_in_urls(text, &mut found);
    named_values(text, &mut found);
    found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut end = 0;
    found.retain(|(range, _)| {
        let keep = range.start >= end;
        if keep {
            end = range.end;
        }
        keep
    });
    found
}

type Found = Vec<(Range<usize>, &'static str)>;

/// How many bytes from `start` on fulfil a condition. Only ASCII bytes may, so that the end is a
/// character's boundary.
fn run(text: &str, start: usize, part: impl Fn(u8) -> bool) -> usize {
    text.bytes().skip(start).take_while(|b| b.is_ascii() && part(*b)).count()
}

fn prefixed(text: &str, prefix: &str, shortest: usize, part: fn(u8) -> bool, kind: &'static str, found: &mut Found) {
    for (start, _) in text.match_indices(prefix) {
        let length = run(text, start + prefix.len(), part);
        if length >= shortest {
            found.push((start..start + prefix.len() + length, kind));
        }
    }
}

fn private_keys(text: &str, found: &mut Found) {
    const END: &str = "PRIVATE KEY-----";
    for (start, _) in text.match_indices("-----BEGIN ") {
        let Some(rest) = text.get(start..) else { continue };
        let first_line = rest.lines().next().unwrap_or("");
        if !first_line.contains(END) {
            continue;
        }
        // A key that was cut off has no end; then everything after it counts.
        let end = rest.find("-----END ").and_then(|at| {
            let tail = rest.get(at..)?;
            Some(at + tail.find(END)? + END.len())
        });
        found.push((start..start + end.unwrap_or(rest.len()), "private_key"));
    }
}

fn passwords_in_urls(text: &str, found: &mut Found) {
    for (at, separator) in text.match_indices("://") {
        let start = at + separator.len();
        let authority: &str = text.get(start..).unwrap_or("");
        let end = authority.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '<' | '>' | '?' | '#'));
        let authority = authority.get(..end.unwrap_or(authority.len())).unwrap_or("");
        let Some((user, _)) = authority.rsplit_once('@') else { continue };
        let Some((name, password)) = user.split_once(':') else { continue };
        if !password.is_empty() && !password.starts_with('[') {
            let begin = start + name.len() + 1;
            found.push((begin..begin + password.len(), "url_password"));
        }
    }
}

fn named_values(text: &str, found: &mut Found) {
    for (at, _) in text.match_indices('=') {
        let name_length = text.bytes().take(at).rev().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let Some(name) = text.get(at - name_length..at) else { continue };
        let Some(rest) = text.get(at + 1..) else { continue };
        if !is_secret_name(name) {
            continue;
        }
        let (skip, end) = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => (1, rest.get(1..).and_then(|tail| tail.find(quote)).map(|end| end + 1)),
            Some(_) | None => (0, rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '&'))),
        };
        let end = end.unwrap_or(rest.len());
        let replaced = rest.get(skip..).is_some_and(|value| value.starts_with(MARK));
        if !replaced && rest.get(skip..end).is_some_and(is_secret_value) {
            found.push((at + 1 + skip..at + 1 + end, "named"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redactor() -> Redactor {
        Redactor::new([9; 32])
    }

    #[test]
    fn sto_08_each_kind_of_secret_is_replaced_and_the_rest_stays() {
        let access = format!("AKIA{}", "CANARY0123456789");
        let token = format!("ghp_{}", "canary".repeat(6));
        let cases = [
            (format!("id {access}."), access.as_str(), "id ", "."),
            (format!("x {token} y"), token.as_str(), "x ", " y"),
            ("db postgres://u:CANARY@h/db".into(), "CANARY", "db postgres://u:", "@h/db"),
            ("CANARY_PASS=hunter22 ls".into(), "hunter22", "CANARY_PASS=", " ls"),
            ("A_TOKEN=\"two words\";".into(), "two words", "A_TOKEN=\"", "\";"),
            (
                "k\n-----BEGIN RSA PRIVATE KEY-----\nCANARY\n-----END RSA PRIVATE KEY-----\nz".into(),
                "CANARY",
                "k\n",
                "\nz",
            ),
            ("-----BEGIN PRIVATE KEY-----\nCANARY".into(), "CANARY", "", ""),
        ];
        for (text, secret, before, after) in cases {
            let out = redactor().text(&text);
            assert!(!out.contains(secret), "{out}");
            assert!(out.starts_with(&format!("{before}[redacted ")), "{out}");
            assert!(out.ends_with(&format!("]{after}")), "{out}");
        }
    }

    #[test]
    fn sto_08_what_an_agent_calls_a_secret_is_replaced_wherever_the_attempt_is_recorded() {
        let attempt = |secret: bool| {
            let params = serde_json::json!({"text": "CANARY", "secret": secret});
            redactor().value(serde_json::json!({"type": "keyboard_input", "target": "window:1", "params": params}))
        };
        assert!(!attempt(true).to_string().contains("CANARY"));
        assert!(attempt(false).to_string().contains("CANARY"), "the control");
        assert_eq!(redactor().value(attempt(true)), attempt(true), "a mark stays");
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "",
            "key=value",
            "MAX_KEY=1",
            "AKIA is a prefix",
            "http://localhost:8080/@x",
            "git@host:path",
            "-----BEGIN CERTIFICATE-----\nabc",
            "ü=é; KEY=é",
        ] {
            assert_eq!(redactor().text(text), text);
        }
    }

    #[test]
    fn equal_secrets_compare_and_logs_do_not() {
        let text = "A_SECRET=correcthorse";
        assert_eq!(redactor().text(text), redactor().text(text));
        assert_ne!(redactor().text(text), redactor().text("A_SECRET=correcthorsf"));
        assert_ne!(redactor().text(text), Redactor::new([8; 32]).text(text));
    }

    #[test]
    fn an_action_keeps_all_but_secret_environment_and_input() {
        let action: TypedAction = serde_json::from_value(serde_json::json!({
            "type": "shell_exec", "target": "/w", "preconditions": [],
            "params": {"command": "X_TOKEN=visible run", "env": {"DB_PASS": "CANARY", "LANG": "C"}, "stdin": "P_KEY=CANARY"}
        }))
        .unwrap();
        let (recorded, differs) = redactor().action(&action).unwrap();
        assert!(differs);
        assert!(!recorded.to_string().contains("CANARY"));
        assert_eq!(recorded["params"]["command"], "X_TOKEN=visible run");
        assert_eq!(recorded["params"]["env"]["LANG"], "C");
        // What is recorded is still an action.
        serde_json::from_value::<TypedAction>(recorded).unwrap();
    }

    proptest! {
        #[test]
        fn any_text_is_redacted_without_losing_a_character_boundary(
            text in "(A_KEY=|://a:|@|AKIA|ghp_|-----BEGIN |PRIVATE KEY-----|-----END |[\"' =:é\u{1f600}A-Za-z0-9\n]){0,40}"
        ) {
            let once = redactor().text(&text);
            prop_assert_eq!(redactor().text(&once), once);
        }
    }
}
