//! Tests 9, 10 and 11: a replay stops at the first difference, and takes no authorization along.

use serde_json::Value;

use super::bench::{Bench, Checked, Session, Unmet, demand, is_digest, items};
use super::house::{FREE, NARROWED};

/// OS-011 §5.4, I5.
pub(super) async fn replay_fails_on_state_divergence(bench: &mut Bench<'_>) -> Checked {
    let session = bench.session(FREE).await?;
    let recorded = bench.done(&session, session.run(&["echo", "once"])).await?;
    bench.set_head("elsewhere").await?;
    let result = bench.replay(&session, &session.trace).await;
    let here = bench.encode_state(&session).await;
    bench.set_head("main").await?;
    let (result, here) = (result?, here?);
    demand(result["status"] == "failure", "it didn't fail before anything was done", &result)?;
    demand_divergence(&result, 1)?;
    demand(result["expected_hash"] == recorded["state_before"], "it expected another state", &result)?;
    demand(result["actual_hash"] == here["state_hash"], "it found another state than there is", &result)?;
    demand(items(&result["edges_replayed"]).is_empty(), "something was carried out", &result)?;
    demand(result["trace_id"].is_null(), "something was recorded as carried out", &result)
}

fn demand_divergence(result: &Value, edge: u64) -> Checked {
    demand(result["failed_at_edge"] == edge, &format!("it didn't stop at edge {edge}"), result)?;
    demand(result["reason"] == "state_hash_mismatch", "it stopped for another reason", result)?;
    let told = is_digest(&result["expected_hash"]) && is_digest(&result["actual_hash"]);
    demand(told, "it doesn't tell both states", result)?;
    demand(!items(&result["divergence_details"]).is_empty(), "it doesn't tell what differs", result)
}

/// OS-011 §5.4. Between the recorded acts the environment changed by itself; at replay it doesn't.
pub(super) async fn replay_fails_on_mid_trace_divergence(bench: &mut Bench<'_>) -> Checked {
    let session = bench.session(FREE).await?;
    bench.done(&session, session.run(&["echo", "one"])).await?;
    bench.set_head("elsewhere").await?;
    let second = bench.done(&session, session.run(&["echo", "two"])).await;
    bench.set_head("main").await?;
    let second = second?;
    let result = bench.replay(&session, &session.trace).await?;
    demand(result["status"] == "partial", "it isn't a replay in part", &result)?;
    demand_divergence(&result, 2)?;
    demand(result["expected_hash"] == second["state_before"], "it expected another state", &result)?;
    demand(items(&result["edges_replayed"]) == [1], "it carried out other edges", &result)?;
    let prefix = new_trace(bench, &result).await?;
    let done: Vec<&Value> = items(&prefix["edges"]).iter().filter(|edge| edge["outcome_status"] == "success").collect();
    demand(done.len() == 1, "the new trace isn't the part that was carried out", &prefix)?;
    let words = done.first().map(|edge| &edge["typed_action"]["params"]["argv"][1]);
    demand(words.is_some_and(|word| word == "one"), "the new trace is of another act", &prefix)
}

async fn new_trace(bench: &mut Bench<'_>, result: &Value) -> Result<Value, Unmet> {
    let Some(trace_id) = result["trace_id"].as_str() else {
        return Err(Unmet(format!("the replay names no trace of what it carried out: {result}")));
    };
    bench.trace(trace_id).await
}

/// OS-011 §4.4, §7.5.
pub(super) async fn replay_re_authorizes_destructive_edges(bench: &mut Bench<'_>) -> Checked {
    let session = bench.session(NARROWED).await?;
    let recorded = bench.done(&session, session.run(&["echo", "again"])).await?["authorization"].take();
    demand(is_digest(&recorded["authorization_token"]), "the recorded act has no authorization", &recorded)?;
    let result = bench.replay(&session, &session.trace).await?;
    demand(result["status"] == "success", "a permitted replay doesn't succeed", &result)?;
    let trace = new_trace(bench, &result).await?;
    let anew = &trace["edges"][0]["authorization"];
    demand(is_digest(&anew["authorization_token"]), "the replayed act has no authorization", &trace)?;
    for field in ["authorization_token", "nonce"] {
        demand(!anew[field].is_null() && anew[field] != recorded[field], "the authorization isn't a new one", anew)?;
    }
    carried_along(bench, &session, &recorded).await?;
    bench.house.forbid_commands().map_err(|error| Unmet(format!("the policy can't be narrowed: {error}")))?;
    let result = bench.replay(&session, &session.trace).await?;
    demand(result["status"] == "failure", "a replay that is forbidden by now isn't refused", &result)?;
    demand(result["reason"] == "denied_by_policy", "it was refused for another reason", &result)?;
    demand(items(&result["edges_replayed"]).is_empty(), "something was carried out", &result)
}

/// The recorded authorization, brought along for the same act.
async fn carried_along(bench: &mut Bench<'_>, session: &Session, recorded: &Value) -> Checked {
    let mut action = session.run(&["echo", "again"]);
    action["authorization"] = recorded.clone();
    let refused = bench.act(session, action).await?;
    demand(refused["error"]["code"] == "authorization_failure", "a used authorization counts again", &refused)
}
