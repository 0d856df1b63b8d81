//! Tests 7 and 12: what is on record of an act, and of one that came out otherwise than predicted.

use bodyguard_protocol::SURPRISE_EVENT;
use serde_json::{Value, json};

use super::bench::{Bench, Checked, demand, demand_fields, demand_provenance, demand_schema, is_digest, items};
use super::house::FREE;

/// OS-011 §4.3, §5.5: of what succeeded, failed and was refused.
pub(super) async fn trace_edge_complete(bench: &mut Bench<'_>) -> Checked {
    let session = bench.session(FREE).await?;
    bench.done(&session, session.read("README.md")).await?;
    bench.act(&session, json!({"type": "file_read", "target": "/etc/hostname"})).await?;
    bench.act(&session, session.run(&["false"])).await?;
    bench.done(&session, session.write("recorded", "x")).await?;
    let trace = bench.trace(&session.trace).await?;
    demand_schema("interaction_trace", &trace)?;
    let edges = items(&trace["edges"]);
    let ends: Vec<&Value> = edges.iter().map(|edge| &edge["outcome_status"]).collect();
    demand(ends == ["success", "blocked", "failure", "success"], "the edges aren't the acts", &trace)?;
    for (index, edge) in edges.iter().enumerate() {
        demand(edge["edge_id"] == index + 1, "the edges aren't numbered from 1", edge)?;
        let required = ["state_before", "state_after", "typed_action", "latency_ms", "outcome_status", "provenance"];
        demand_fields(edge, &required, "an edge")?;
        demand(is_digest(&edge["state_before"]), "the state before is no hash", edge)?;
        demand(is_digest(&edge["state_after"]), "the state after is no hash", edge)?;
        demand(edge["latency_ms"].is_u64(), "the latency is no number", edge)?;
        demand_fields(&edge["typed_action"], &["type", "target", "params"], "a typed action")?;
        demand_provenance(edge, "act")?;
    }
    let authorised = edges.iter().map(|edge| edge["authorization"].is_object()).collect::<Vec<_>>();
    demand(authorised == [false, false, true, true], "a destructive edge has no authorization", &trace)
}

/// OS-011 §8.2, PULSE 0.1.1. The acts around it show that only a surprise is one.
pub(super) async fn surprise_signal_conforms_to_pulse(bench: &mut Bench<'_>) -> Checked {
    let session = bench.session(FREE).await?;
    bench.done(&session, session.run(&["echo", "as", "expected"])).await?;
    let wrong = session.run(&["cat", "not-there"]);
    let failed = bench.act(&session, wrong.clone()).await?;
    demand(failed["outcome_status"] == "failure", "a command that can't succeed did", &failed)?;
    bench.act(&session, wrong).await?;
    let events = bench.surprises(&session.trace).await?;
    let [event] = items(&events) else {
        return demand(false, "the one surprise, and no other act, has to be signalled", &events);
    };
    demand(event["specversion"] == "1.0", "it isn't a CloudEvent", event)?;
    demand(event["type"] == SURPRISE_EVENT, "it is an event of another type", event)?;
    let signal = &event["data"];
    demand_schema("surprise_signal", signal)?;
    let size = signal["surprise_magnitude"].as_f64().filter(|size| (0.0..=1.0).contains(size));
    demand(size.is_some(), "the magnitude isn't between 0 and 1", signal)?;
    demand(signal["surprise_kind"] == "unexpected_error", "it is a surprise of another kind", signal)?;
    let of_the_act = (&signal["trace_id"], &signal["edge_id"], &signal["action_type"]);
    let act = (&json!(session.trace), &json!(2), &json!("shell_exec"));
    demand(of_the_act == act, "it names another act", signal)?;
    let trace = bench.trace(&session.trace).await?;
    demand(trace["edges"][1]["surprise"] == *signal, "the trace says something else", &trace["edges"][1])
}
