//! An exported trace proves itself, and no byte of it can be changed.

use bodyguard_protocol::{Digest, OutcomeStatus, QueryMode, TraceOutcome, canonical_bytes};
use bodyguard_trace::{KeyList, LogError, Perceived, Record, SessionEnded, verify_export};
use serde_json::{Value, json};

use crate::world::*;

async fn exported() -> (World, Session, Vec<u8>) {
    let world = world().await;
    let log = &world.log;
    let (session, other) = (session(log).await, session(log).await);
    let picture = log.put_blob(b"pixels".to_vec()).await.unwrap();
    let look = Perceived {
        session_id: session.session_id.clone(),
        trace_id: session.trace_id.clone(),
        mode: QueryMode::Screen,
        generation: 1,
        state_hash: Digest::of(b"before"),
        policy_id: "policy:main/look".into(),
        authorization: None,
        picture: Some(picture),
        seen: None,
    };
    log.append(Record::Perceived(Box::new(look))).await.unwrap();
    act(log, &session, "one").await;
    act(log, &other, "elsewhere").await;
    let committed = log.commit_intent(intent(&session, read("/w/a"), None)).await.unwrap();
    log.record_outcome(committed.reference(), success(json!({"content": "a"}))).await.unwrap();
    let ended = SessionEnded {
        session_id: session.session_id.clone(),
        trace_id: session.trace_id.clone(),
        outcome: TraceOutcome::Success,
        reason: "done".into(),
    };
    log.append(Record::SessionEnded(ended)).await.unwrap();
    let export = bodyguard_trace::export(log.reader(), &session.trace_id).await.unwrap();
    assert_eq!(export.left_out, 0);
    (world, session, export.bytes)
}

#[tokio::test]
async fn an_export_holds_and_is_an_interaction_trace() {
    let (_world, session, bytes) = exported().await;
    let report = verify_export(&bytes, &keys()).unwrap();
    assert!(report.ok, "{:#?}", report.problems);
    assert_eq!((report.records, report.blocks), (10, 1));
    let trace = report.trace.unwrap();
    assert_eq!(trace.trace_id, session.trace_id);
    assert_eq!((trace.outcome, trace.environment.os_family.as_str()), (Some(TraceOutcome::Success), "linux"));
    assert_eq!(trace.metadata["os_family"], "linux");
    assert_eq!(trace.edges.iter().map(|edge| edge.edge_id).collect::<Vec<_>>(), [1, 2]);
    assert!(trace.edges[0].authorization.is_some() && trace.edges[1].authorization.is_none());
    assert_eq!(trace.edges[0].provenance.agent_id, AGENT);
    assert_eq!(trace.edges[0].typed_action, shell("one"));
    assert_eq!(trace.edges[0].outcome_status, OutcomeStatus::Success);
    // A key that the file brings along proves nothing.
    let report = verify_export(&bytes, &KeyList::new()).unwrap();
    assert!(!report.ok && report.blocks == 0);
}

#[tokio::test]
async fn any_changed_byte_of_an_export_is_found() {
    let (_world, _session, bytes) = exported().await;
    let (mut tried, step) = (0, (bytes.len() / 240).max(1));
    for at in (0..bytes.len()).step_by(step) {
        // The first turns letters into capitals, which some decoders read alike.
        let flip = if tried % 2 == 0 { 0x20 } else { 0x01 };
        let mut bent = bytes.clone();
        bent[at] ^= flip;
        let holds = verify_export(&bent, &keys()).is_ok_and(|report| report.ok);
        let around = String::from_utf8_lossy(&bytes[at.saturating_sub(20)..(at + 20).min(bytes.len())]).into_owned();
        assert!(!holds, "byte {at} in {around}");
        tried += 1;
    }
    assert!(tried >= 240);
    for bent in [bytes[..bytes.len() - 1].to_vec(), [&bytes[..], b" "].concat(), [b" ", &bytes[..]].concat()] {
        assert!(!verify_export(&bent, &keys()).is_ok_and(|report| report.ok));
    }
}

#[tokio::test]
async fn each_part_of_an_export_is_bound() {
    let (world, _session, bytes) = exported().await;
    let file: Value = serde_json::from_slice(&bytes).unwrap();
    type Bend = fn(&mut Value);
    let bends: [(&str, Bend, &str); 13] = [
        ("a goal", |f| f["trace"]["goal"] = json!("another"), "what its records say"),
        ("an edge", |f| f["trace"]["edges"][0]["latency_ms"] = json!(6), "what its records say"),
        ("an edge less", |f| drop(f["trace"]["edges"].as_array_mut().unwrap().pop()), "what its records say"),
        ("a record less", |f| drop(f["records"].as_array_mut().unwrap().remove(5)), "can't stand here"),
        ("the beginning", |f| drop(f["records"].as_array_mut().unwrap().remove(0)), "what its records say"),
        ("the order", |f| f["records"].as_array_mut().unwrap().swap(1, 2), "stands after"),
        ("a number", |f| f["records"][3]["seq"] = json!(3), "isn't in the log that was signed"),
        ("a leaf", |f| bend_leaf(f), "isn't in the log that was signed"),
        ("a proof", |f| f["records"][3]["proof"][0] = json!("00".repeat(32)), "isn't in the log that was signed"),
        ("a key", |f| f["keys"][0]["public_key"] = json!("00".repeat(32)), "isn't one that signed"),
        ("a picture", |f| f["blobs"][0]["base64"] = json!("cGl4ZWx6"), "was changed"),
        ("no picture", |f| f["blobs"] = json!([]), "is missing"),
        ("the checkpoint", |f| f["checkpoint"] = json!("bodyguard/00\n1\n00\n\n— x y\n"), "the checkpoint"),
    ];
    for (what, bend, words) in bends {
        let mut bent = file.clone();
        bend(&mut bent);
        assert_ne!(bent, file, "{what}");
        let report = verify_export(&canonical_bytes(&bent).unwrap(), &keys()).unwrap();
        assert!(!report.ok, "{what}");
        assert!(report.problems.iter().any(|problem| problem.contains(words)), "{what}: {:#?}", report.problems);
    }
    let mut newer = file.clone();
    newer["format"] = json!("bodyguard.trace.v2");
    let fault = verify_export(&canonical_bytes(&newer).unwrap(), &keys()).unwrap_err();
    assert!(fault.message.contains("v2") && fault.message.contains("v1"));
    let mut more = file;
    more["extra"] = json!(1);
    assert!(verify_export(&canonical_bytes(&more).unwrap(), &keys()).is_err());
    drop(world);
}

fn bend_leaf(file: &mut Value) {
    let leaf = file["records"][1]["leaf"].as_str().unwrap().replace("\"generation\":1", "\"generation\":2");
    file["records"][1]["leaf"] = json!(leaf);
}

#[tokio::test]
async fn only_what_a_checkpoint_covers_is_exported() {
    let dir = tempfile::tempdir().unwrap();
    let log = bodyguard_trace::Log::open(dir.path(), TickingClock::new()).unwrap();
    let session = session(&log).await;
    let reader = log.reader();
    assert_eq!(bodyguard_trace::export(reader, &session.trace_id).await, Err(LogError::NoCheckpoint));
    assert_eq!(bodyguard_trace::export(reader, &trace_id()).await, Err(LogError::UnknownTrace));
    log.set_signer(signer());
    log.checkpoint().await.unwrap();
    log.commit_intent(intent(&session, read("/w/a"), None)).await.unwrap().edge_id();
    assert_eq!(bodyguard_trace::export(reader, &session.trace_id).await.unwrap().left_out, 1);
    log.checkpoint().await.unwrap();
    let export = bodyguard_trace::export(reader, &session.trace_id).await.unwrap();
    assert_eq!(export.left_out, 0);
    let report = verify_export(&export.bytes, &keys()).unwrap();
    let trace = report.trace.unwrap();
    // An act without an outcome shows as cut off.
    assert_eq!(trace.metadata["interrupted_edges"], json!([1]));
    assert_eq!(trace.edges[0].outcome_status, OutcomeStatus::Failure);
}
