//! Tests 1 and 2: what a perception is, and that equal states have equal hashes.

use serde_json::Value;

use super::bench::{Bench, Checked, demand, demand_fields, demand_provenance, demand_schema, is_digest, items};
use super::house::FREE;

/// OS-011 §3.2, §6.2.
pub(super) async fn perceive_returns_typed_observation(bench: &mut Bench<'_>) -> Checked {
    let session = bench.session(FREE).await?;
    let seen = bench.perceive(&session).await?;
    demand_schema("os_observation", &seen)?;
    demand_fields(&seen, &["body_subtype", "state_hash", "observed_at", "payload", "refs"], "an observation")?;
    demand(seen["body_subtype"] == "os", "it is of another subtype", &seen["body_subtype"])?;
    demand(is_digest(&seen["state_hash"]), "the state hash is none", &seen["state_hash"])?;
    demand_provenance(&seen, "perceive")?;
    let payload = &seen["payload"];
    demand_fields(payload, &["cwd", "git", "key_processes", "env_fingerprint"], "the payload")?;
    demand(payload.get("focused_window").is_some(), "the payload doesn't speak of the focused window", payload)?;
    let entries = items(&payload["entries"]);
    demand(!entries.is_empty(), "nothing is in the workspace", payload)?;
    let named = |entry: &Value| {
        let info = entry["ref"].as_str().and_then(|reference| seen["refs"].get(reference));
        info.is_some_and(|info| info["kind"] == "file" && info["path"] == entry["path"])
    };
    let unnamed = entries.iter().find(|entry| !named(entry));
    demand(unnamed.is_none(), "an entry's ref doesn't name it", unnamed.unwrap_or(&Value::Null))
}

/// OS-011 §5.3, I4. That another state has another hash is what makes equal ones mean anything.
pub(super) async fn state_hash_is_deterministic(bench: &mut Bench<'_>) -> Checked {
    let (one, other) = (bench.session(FREE).await?, bench.session(FREE).await?);
    let first = bench.perceive(&one).await?["state_hash"].take();
    demand(is_digest(&first), "the state hash is none", &first)?;
    let second = bench.perceive(&one).await?["state_hash"].take();
    demand(first == second, "two perceptions of one state differ", &second)?;
    let encoded = bench.encode_state(&one).await?["state_hash"].take();
    demand(first == encoded, "encode_state differs from perceive", &encoded)?;
    let elsewhere = bench.perceive(&other).await?["state_hash"].take();
    demand(first == elsewhere, "another session hashes the same state otherwise", &elsewhere)?;
    bench.set_head("other").await?;
    let changed = bench.encode_state(&one).await;
    bench.set_head("main").await?;
    let changed = changed?["state_hash"].take();
    demand(first != changed, "another state has the same hash", &changed)?;
    let back = bench.perceive(&one).await?["state_hash"].take();
    demand(first == back, "the same state again has another hash", &back)
}
