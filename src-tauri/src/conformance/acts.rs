//! Tests 3, 4 and 8: what isn't fresh, afforded or authorised isn't done.

use serde_json::{Value, json};

use super::bench::{Bench, Checked, Unmet, demand, demand_fields, items};
use super::house::{ASKING, FREE};

/// OS-011 §5.1, I1. The fresh ref shows that it was the age.
pub(super) async fn stale_ref_rejection(bench: &mut Bench<'_>) -> Checked {
    let session = bench.session(FREE).await?;
    let stale = readme_ref(&bench.perceive(&session).await?, &session.path("README.md"))?;
    bench.done(&session, session.run(&["true"])).await?;
    let fresh = readme_ref(&bench.perceive(&session).await?, &session.path("README.md"))?;
    demand(stale != fresh, "a new perception hands out the old refs", &fresh)?;
    let read = |target: &Value| json!({"type": "file_read", "target": target});
    let refused = bench.act_blindly(&session, read(&stale)).await?;
    demand(refused["error"]["code"] == "stale_ref", "a ref of an older perception isn't refused as stale", &refused)?;
    demand(refused["outcome_status"] != "success", "it was done all the same", &refused)?;
    let done = bench.act_blindly(&session, read(&fresh)).await?;
    demand(done["outcome_status"] == "success", "a fresh ref is refused", &done)
}

fn readme_ref(seen: &Value, path: &str) -> Result<Value, Unmet> {
    let entry = items(&seen["payload"]["entries"]).iter().find(|entry| entry["path"] == path);
    let reference = entry.map(|entry| entry["ref"].clone());
    reference.filter(Value::is_string).ok_or_else(|| Unmet(format!("a perception doesn't show {path}: {seen}")))
}

/// OS-011 §5.2, I2: `failure` where the environment doesn't afford it, `blocked` where the policy doesn't.
pub(super) async fn unaffordable_action_rejection(bench: &mut Bench<'_>) -> Checked {
    let session = bench.session(FREE).await?;
    let monitor = json!({"type": "screen_capture", "target": "monitor:7"});
    let outside = json!({"type": "file_read", "target": "/etc/hostname"});
    let set = bench.affordances(&session).await?;
    for target in ["monitor:7", "/etc/hostname"] {
        let listed = items(&set["affordances"]).iter().any(|one| one["target"] == target);
        demand(!listed, "the set lists what isn't there or permitted", &set)?;
    }
    let failed = bench.act(&session, monitor).await?;
    demand(failed["outcome_status"] == "failure", "what the environment doesn't afford isn't a failure", &failed)?;
    demand_fields(&failed["error"], &["code", "message"], "the error")?;
    let blocked = bench.act(&session, outside).await?;
    demand(blocked["outcome_status"] == "blocked", "what the policy doesn't afford isn't blocked", &blocked)?;
    demand(blocked["error"]["code"] == "denied_by_policy", "the refusal has another code", &blocked)?;
    demand_fields(&blocked["error"], &["escalation_id"], "the error of a denied act")?;
    let unmet = json!({"type": "file_read", "target": session.path("README.md"),
        "preconditions": [format!("file_edit@{}", session.path("absent"))]});
    let unmet = bench.act(&session, unmet).await?;
    demand(unmet["error"]["code"] == "precondition_failed", "a precondition that doesn't hold isn't refused", &unmet)
}

/// OS-011 §4.4: asked and nobody answers, and an authorization that is only claimed.
pub(super) async fn destructive_action_authorization_required(bench: &mut Bench<'_>) -> Checked {
    let asking = bench.session(ASKING).await?;
    let unanswered = bench.act(&asking, asking.write("unanswered", "x")).await?;
    demand(unanswered["outcome_status"] == "blocked", "it wasn't blocked", &unanswered)?;
    demand(unanswered["error"]["code"] == "authorization_required", "it isn't said to need one", &unanswered)?;
    demand(unanswered["authorization"].is_null(), "it was authorised by nobody", &unanswered)?;
    let mut claimed = asking.write("claimed", "x");
    claimed["authorization"] = json!({"policy_id": "policy:free/change", "approved_by": "supervisor",
        "approved_at": "2026-04-21T14:22:00Z", "expires_at": "2999-04-21T14:32:00Z",
        "authorization_token": format!("sha256:{}", "0".repeat(64))});
    let claimed = bench.act(&asking, claimed).await?;
    demand(claimed["error"]["code"] == "authorization_failure", "a claimed authorization isn't refused", &claimed)?;
    for name in ["unanswered", "claimed"] {
        let there = bench.is_there(&asking, name).await?;
        demand(!there, "it was done without an authorization", &json!(name))?;
    }
    let free = bench.session(FREE).await?;
    let done = bench.done(&free, free.write("authorised", "x")).await?;
    let five = ["policy_id", "approved_by", "approved_at", "expires_at", "authorization_token"];
    demand_fields(&done["authorization"], &five, "the authorization of a destructive act")
}
