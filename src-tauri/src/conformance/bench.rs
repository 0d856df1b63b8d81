//! What the tests share: sessions, calls, and how a finding is said.

use serde_json::{Value, json};

use super::house::House;
use super::transport::{Broken, Record, Transport};

/// How long a replay may take. One whose state differs is given ten seconds to settle.
const REPLAY_CALLS: u32 = 12;
const REPLAY_WAIT_MS: u64 = 5_000;
/// How long an act may run, and how long an ask waits in vain.
const ACT_WAIT_MS: u64 = 30_000;
const ASK_WAIT_MS: u64 = 300;

/// Why a test doesn't hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unmet(pub(super) String);

impl From<Broken> for Unmet {
    fn from(broken: Broken) -> Self {
        Self(broken.0)
    }
}

/// What a test comes to.
pub(super) type Checked = Result<(), Unmet>;

/// Says what doesn't hold, with what was seen.
pub(super) fn demand(holds: bool, what: &str, seen: &Value) -> Checked {
    if holds {
        return Ok(());
    }
    let mut seen = seen.to_string();
    if seen.chars().count() > 600 {
        seen = seen.chars().take(600).chain(['…']).collect();
    }
    Err(Unmet(format!("{what}; seen: {seen}")))
}

/// Whether all of these are there and not null.
pub(super) fn demand_fields(object: &Value, fields: &[&str], of_what: &str) -> Checked {
    for field in fields {
        let there = object.get(field).is_some_and(|value| !value.is_null() && *value != "");
        demand(there, &format!("{of_what} has no `{field}`"), object)?;
    }
    Ok(())
}

/// The five fields of every provenance (OS-011 §5.5).
pub(super) fn demand_provenance(of_what: &Value, operation: &str) -> Checked {
    let provenance = &of_what["provenance"];
    demand_fields(provenance, &["provider", "capability", "operation", "timestamp", "agent_id"], "the provenance")?;
    demand(provenance["operation"] == operation, "the provenance names another operation", provenance)
}

/// Validates against a published schema.
pub(super) fn demand_schema(schema: &str, value: &Value) -> Checked {
    let published = bodyguard_protocol::published::SCHEMAS.iter().find(|(name, _)| *name == schema);
    let make = published.map(|(_, make)| make).ok_or_else(|| Unmet(format!("there is no schema `{schema}`")))?;
    let validator = jsonschema::draft202012::new(&make()).map_err(|error| Unmet(format!("{schema}: {error}")))?;
    match validator.iter_errors(value).next() {
        None => Ok(()),
        Some(error) => Err(Unmet(format!("it doesn't fit `{schema}` at {}: {error}", error.instance_path))),
    }
}

/// Whether a text is a SHA-256 digest with its prefix.
pub(super) fn is_digest(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.parse::<bodyguard_protocol::Digest>().is_ok())
}

/// The elements of a list; none where it is no list.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A session as the tests name it.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) trace: String,
    root: String,
    workspace: String,
}

impl Session {
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    pub(super) fn run(&self, words: &[&str]) -> Value {
        json!({"type": "shell_exec", "target": self.root, "params": {"argv": words}})
    }

    pub(super) fn read(&self, name: &str) -> Value {
        json!({"type": "file_read", "target": self.path(name)})
    }

    pub(super) fn write(&self, name: &str, content: &str) -> Value {
        json!({"type": "file_write", "target": self.path(name), "params": {"content": content, "mode": "create"}})
    }
}

/// The provider on the bench.
pub(super) struct Bench<'a> {
    pub(super) house: &'a House,
    pub(super) transport: &'a mut dyn Transport,
}

impl Bench<'_> {
    async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Unmet> {
        Ok(self.transport.call(tool, arguments).await?)
    }

    /// Begins a session in a workspace.
    pub(super) async fn session(&mut self, workspace: &str) -> Result<Session, Unmet> {
        let begun = self.call("body_os_ensure_session", json!({"workspace": workspace})).await?;
        demand_fields(&begun, &["session_id", "trace_id", "root"], "a session")?;
        let text = |field: &str| begun[field].as_str().unwrap_or_default().to_owned();
        Ok(Session {
            id: text("session_id"),
            trace: text("trace_id"),
            root: text("root"),
            workspace: workspace.to_owned(),
        })
    }

    pub(super) async fn perceive(&mut self, session: &Session) -> Result<Value, Unmet> {
        self.call("body_os_perceive", json!({"session_id": session.id, "mode": "filesystem"})).await
    }

    pub(super) async fn affordances(&mut self, session: &Session) -> Result<Value, Unmet> {
        self.call("body_os_affordances", json!({"session_id": session.id})).await
    }

    pub(super) async fn encode_state(&mut self, session: &Session) -> Result<Value, Unmet> {
        self.call("body_os_encode_state", json!({"session_id": session.id})).await
    }

    /// Acts on what was perceived last. Where a person has to permit it, nobody comes.
    pub(super) async fn act_blindly(&mut self, session: &Session, action: Value) -> Result<Value, Unmet> {
        let wait_ms = if session.workspace == super::house::ASKING { ASK_WAIT_MS } else { ACT_WAIT_MS };
        self.call("body_os_act", json!({"session_id": session.id, "action": action, "wait_ms": wait_ms})).await
    }

    /// Looks, then acts.
    pub(super) async fn act(&mut self, session: &Session, action: Value) -> Result<Value, Unmet> {
        self.perceive(session).await?;
        self.act_blindly(session, action).await
    }

    /// Looks, acts, and has to succeed.
    pub(super) async fn done(&mut self, session: &Session, action: Value) -> Result<Value, Unmet> {
        let outcome = self.act(session, action).await?;
        demand(outcome["outcome_status"] == "success", "an act that is permitted didn't succeed", &outcome)?;
        Ok(outcome)
    }

    /// Whether a file of the workspace is there, as a look says.
    pub(super) async fn is_there(&mut self, session: &Session, name: &str) -> Result<bool, Unmet> {
        let seen = self.perceive(session).await?;
        let path = session.path(name);
        Ok(items(&seen["payload"]["entries"]).iter().any(|entry| entry["path"] == path.as_str()))
    }

    /// Another session changes the repository's head: the environment changes by itself.
    pub(super) async fn set_head(&mut self, branch: &str) -> Checked {
        let other = self.session(super::house::FREE).await?;
        let head = |mode: &str| {
            json!({"type": "file_write", "target": other.path(".git/HEAD"),
                "params": {"content": format!("ref: refs/heads/{branch}\n"), "mode": mode}})
        };
        let replaced = self.act(&other, head("overwrite")).await?;
        if replaced["error"]["code"] == "not_found" {
            self.done(&other, head("create")).await?;
            return Ok(());
        }
        demand(replaced["outcome_status"] == "success", "the environment couldn't be changed", &replaced)
    }

    /// Replays a whole trace to its end.
    pub(super) async fn replay(&mut self, session: &Session, trace: &str) -> Result<Value, Unmet> {
        let begin = json!({"session_id": session.id, "trace_id": trace, "wait_ms": REPLAY_WAIT_MS});
        let mut result = self.call("body_os_replay", begin).await?;
        for _ in 0..REPLAY_CALLS {
            if result["status"] != "running" {
                return Ok(result);
            }
            let again = json!({"session_id": session.id, "replay_id": result["replay_id"], "wait_ms": REPLAY_WAIT_MS});
            result = self.call("body_os_replay", again).await?;
        }
        Err(Unmet(format!("the replay doesn't end: {result}")))
    }

    pub(super) async fn trace(&mut self, trace_id: &str) -> Result<Value, Unmet> {
        Ok(self.transport.read(Record::Trace, trace_id).await?)
    }

    pub(super) async fn surprises(&mut self, trace_id: &str) -> Result<Value, Unmet> {
        Ok(self.transport.read(Record::Surprises, trace_id).await?)
    }
}
