//! A trace is carried out again only as recorded, and only as far as a person permits it now.

use anyhow::Result;
use approvals::{SOON, Scene, code, verify};
use harness::Agent as _;
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(300);

fn begin_replay(scene: &mut Scene, trace: &str) -> Result<i64> {
    let arguments = json!({ "session_id": scene.session, "trace_id": trace, "wait_ms": 300_000 });
    scene.agent.begin_call("body_os_replay", arguments)
}

/// Records `touch one` and `touch two`, undoes them from outside, and gives the trace.
fn recorded(scene: &mut Scene) -> Result<String> {
    let mut trace = String::new();
    for name in ["one", "two"] {
        scene.perceive()?;
        let id = scene.begin_act(scene.touch(name))?;
        if name == "one" {
            scene.armed().map(drop)?
        } else {
            scene.next_request()?
        }
        scene.person.approve(SOON)?;
        let done = scene.end_act(id)?;
        assert_eq!(done.text_at("/outcome_status"), "success", "{}", done.text);
        trace = done.text_at("/trace_id");
        std::fs::remove_file(scene.workspace.path().join(name))?;
    }
    Ok(trace)
}

#[test]
fn r36_r46_r47_a_replay_is_asked_edge_by_edge_and_leaves_a_trace_of_its_own() -> Result<()> {
    let mut scene = Scene::start()?;
    let trace = recorded(&mut scene)?;
    let id = begin_replay(&mut scene, &trace)?;
    scene.next_request()?;
    scene.wait_to_read("This repeats act 1")?;
    assert!(!scene.exists("one"), "the yes of back then permits nothing");
    scene.person.approve(SOON)?;
    scene.next_request()?;
    scene.person.approve(SOON)?;
    let replayed = scene.agent.wait_call(id, PATIENCE)?;
    assert_eq!(replayed.text_at("/status"), "success", "{}", replayed.text);
    assert_eq!(replayed.at("/edges_replayed"), json!([1, 2]));
    assert!(!replayed.is_error && scene.exists("one") && scene.exists("two"));

    let exported = scene.app.cli(&["trace", "export", &replayed.text_at("/trace_id")]).output()?;
    let exported: Value = serde_json::from_slice(&exported.stdout)?;
    let new = &exported["trace"];
    assert_eq!(new["metadata"]["replay_of"], json!({ "trace_id": trace, "from_edge": 1, "to_edge": 2 }));
    assert_eq!((&new["outcome"], new["edges"].as_array().map(Vec::len)), (&json!("success"), Some(2)));
    assert_eq!(new["edges"][0]["authorization"]["kind"], "replay");
    let (holds, report) = verify(&scene.app)?;
    assert!(holds, "{report}");
    Ok(())
}

#[test]
fn r36_r45_a_no_ends_a_replay_and_another_start_begins_none() -> Result<()> {
    let mut scene = Scene::start()?;
    let trace = recorded(&mut scene)?;
    let id = begin_replay(&mut scene, &trace)?;
    scene.next_request()?;
    scene.person.deny(SOON)?;
    let denied = scene.agent.wait_call(id, PATIENCE)?;
    assert_eq!((denied.text_at("/status").as_str(), code(&denied).as_str()), ("failure", "denied_by_person"));
    assert_eq!(denied.at("/failed_at_edge"), json!(1), "{}", denied.text);
    assert!(!scene.exists("one") && !scene.exists("two"), "edge N+1 never ran");

    for (file, text) in [("objects/.keep", ""), ("refs/.keep", ""), ("config", ""), ("HEAD", "ref: refs/heads/main\n")]
    {
        scene.workspace.write(format!(".git/{file}"), text)?;
    }
    let arguments = json!({ "session_id": scene.session, "trace_id": trace });
    let elsewhere = scene.agent.call("body_os_replay", arguments)?;
    assert_eq!(elsewhere.text_at("/reason"), "state_hash_mismatch", "{}", elsewhere.text);
    assert_ne!(elsewhere.at("/expected_hash"), elsewhere.at("/actual_hash"));
    let details = json!([{ "field": "git_head", "expected": "none", "actual": "unborn:main" }]);
    assert_eq!(elsewhere.at("/divergence_details"), details);
    assert!(!scene.exists("one"));
    Ok(())
}
