//! Arguments of a call: each field once, known, of its type, or a typed refusal that names it.

use std::time::Duration;

use bodyguard_protocol::{ErrorCode, Fault, PerceptionQuery, QueryMode, StateProfile, escape_line};
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::schema::{DEFAULT_WAIT_MS, MAX_WAIT_MS};

const MAX_DEPTH: u8 = 8;

/// What is left of a call's arguments.
pub(crate) struct Arguments(JsonObject);

impl Arguments {
    pub(crate) fn new(arguments: Option<JsonObject>) -> Self {
        Self(arguments.unwrap_or_default())
    }

    /// Takes a field as it is. `null` counts as absent.
    pub(crate) fn value(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field).filter(|value| !value.is_null())
    }

    /// Takes a text without NUL.
    pub(crate) fn text(&mut self, field: &str) -> Result<Option<String>, Fault> {
        match self.value(field) {
            None => Ok(None),
            Some(Value::String(text)) if text.contains('\0') => {
                Err(Fault::new(ErrorCode::NulByte, "a NUL byte can't be part of it").at(field))
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Fault::invalid(field, format!("`{field}` is text"))),
        }
    }

    /// Takes something written as text.
    pub(crate) fn parsed<T: std::str::FromStr<Err = Fault>>(&mut self, field: &str) -> Result<Option<T>, Fault> {
        self.text(field)?.map(|text| text.parse::<T>().map_err(|fault| fault.at(field))).transpose()
    }

    /// Takes something that has to be there.
    pub(crate) fn needed<T: std::str::FromStr<Err = Fault>>(&mut self, field: &str) -> Result<T, Fault> {
        self.parsed(field)?.ok_or_else(|| Fault::invalid(field, format!("`{field}` is missing")))
    }

    fn of<T: DeserializeOwned>(&mut self, field: &str, what: &str) -> Result<Option<T>, Fault> {
        self.value(field)
            .map(|value| serde_json::from_value(value).map_err(|_| Fault::invalid(field, what)))
            .transpose()
    }

    /// Takes a yes or no; absent is no.
    pub(crate) fn flag(&mut self, field: &str) -> Result<bool, Fault> {
        Ok(self.of(field, &format!("`{field}` is true or false"))?.unwrap_or(false))
    }

    /// Takes the number of an edge.
    pub(crate) fn edge(&mut self, field: &str) -> Result<Option<u64>, Fault> {
        let what = format!("`{field}` is an edge's number, from 1");
        match self.of::<u64>(field, &what)? {
            Some(0) => Err(Fault::invalid(field, what)),
            edge => Ok(edge),
        }
    }

    /// The same with a text put back.
    pub(crate) fn with(mut self, field: &str, text: &str) -> Self {
        self.0.insert(field.to_owned(), text.into());
        self
    }

    /// Takes `wait_ms`.
    pub(crate) fn wait(&mut self) -> Result<Duration, Fault> {
        let what = format!("`wait_ms` is a whole number from 0 to {MAX_WAIT_MS}");
        match self.of::<u64>("wait_ms", &what)? {
            Some(wait) if wait > MAX_WAIT_MS => Err(Fault::invalid("wait_ms", what)),
            wait => Ok(Duration::from_millis(wait.unwrap_or(DEFAULT_WAIT_MS))),
        }
    }

    /// Takes `mode`, `scope`, `depth` and `profile`.
    pub(crate) fn query(&mut self) -> Result<PerceptionQuery, Fault> {
        let plain = PerceptionQuery::default();
        let names = QueryMode::ALL.map(QueryMode::name).join(", ");
        let mode = self.of("mode", &format!("`mode` is one of {names}"))?.unwrap_or(plain.mode);
        let depth = self.of("depth", "`depth` is a whole number from 1 to 8")?.unwrap_or(plain.depth);
        if !(1..=MAX_DEPTH).contains(&depth) {
            return Err(Fault::invalid("depth", "`depth` is a whole number from 1 to 8"));
        }
        let profile: StateProfile =
            self.of("profile", "`profile` is `os011.registry.v0` or `bodyos.readme.v0`")?.unwrap_or_default();
        let scope = self.text("scope")?;
        if scope.as_deref() == Some("") {
            return Err(Fault::invalid("scope", "`scope` is empty"));
        }
        Ok(PerceptionQuery { mode, scope, depth, profile })
    }

    /// Refuses what is left beside an `escalation_id`.
    pub(crate) fn end_beside_escalation(self) -> Result<(), Fault> {
        self.end_beside("escalation_id", &["action", "dry_run", "reason", "mode", "scope", "depth", "profile"])
    }

    /// Refuses what is left beside the id by which a request is asked after.
    pub(crate) fn end_beside(self, id: &str, others: &[&str]) -> Result<(), Fault> {
        match self.0.keys().find(|field| others.contains(&field.as_str())) {
            None => self.end(),
            Some(_) => {
                let message = format!("`{id}` stands alone, beside session_id and wait_ms");
                let hint = format!("to ask what became of a request, send its {id} and not the request again");
                Err(Fault::invalid(id, message).hint(hint))
            }
        }
    }

    /// Refuses what is left.
    pub(crate) fn end(self) -> Result<(), Fault> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(unknown) => {
                let name = escape_line(unknown);
                Err(Fault::new(ErrorCode::UnknownField, format!("unknown field `{name}`")).at(name))
            }
        }
    }
}
