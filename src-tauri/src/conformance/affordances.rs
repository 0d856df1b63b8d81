//! Tests 5 and 6: what the policy denies isn't listed, and counted truly.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::bench::{Bench, Checked, demand, demand_schema, items};
use super::house::{FREE, READING};

/// OS-011 §3.5, I3. The other policy over the same folder shows what there would be to deny.
pub(super) async fn policy_filtered_affordances(bench: &mut Bench<'_>) -> Checked {
    let (free, reading) = (bench.session(FREE).await?, bench.session(READING).await?);
    let (all, allowed) = (bench.affordances(&free).await?, bench.affordances(&reading).await?);
    demand_schema("affordance_set", &allowed)?;
    for kind in ["shell_exec", "file_write", "file_edit", "file_delete", "process_spawn"] {
        demand(has(&all, kind), &format!("the environment doesn't afford {kind}"), &all)?;
        demand(!has(&allowed, kind), &format!("{kind} is listed, which the policy denies"), &allowed)?;
    }
    demand(has(&allowed, "file_read"), "what the policy permits isn't listed", &allowed)?;
    let denied = items(&allowed["affordances"]).iter().find(|one| one["policy_allowed"] != true);
    demand(denied.is_none(), "something listed isn't permitted", denied.unwrap_or(&Value::Null))?;
    let blocked = bench.act(&reading, reading.write("denied", "x")).await?;
    demand(blocked["error"]["code"] == "denied_by_policy", "what isn't listed isn't refused", &blocked)
}

fn has(set: &Value, kind: &str) -> bool {
    items(&set["affordances"]).iter().any(|one| one["action_type"] == kind)
}

/// OS-011 §6.4. Where nothing is denied the set is the environment's own, so that the difference of the
/// two sets is the count, whatever the provider counts by.
pub(super) async fn policy_filter_out_count_is_truthful(bench: &mut Bench<'_>) -> Checked {
    let (free, reading) = (bench.session(FREE).await?, bench.session(READING).await?);
    let (all, allowed) = (bench.affordances(&free).await?, bench.affordances(&reading).await?);
    demand(all["policy_filtered_out"] == 0, "something is filtered where nothing is denied", &all)?;
    let (all_ids, allowed_ids) = (ids(&all), ids(&allowed));
    demand(allowed_ids.is_subset(&all_ids), "a policy adds affordances", &allowed)?;
    let denied = all_ids.len() - allowed_ids.len();
    demand(denied > 0, "nothing is denied, so that the count shows nothing", &allowed)?;
    let counts = json!({"counted": allowed["policy_filtered_out"], "denied": denied});
    demand(allowed["policy_filtered_out"] == denied, "the count isn't that of what is denied", &counts)
}

fn ids(set: &Value) -> BTreeSet<&str> {
    items(&set["affordances"]).iter().filter_map(|one| one["affordance_id"].as_str()).collect()
}
