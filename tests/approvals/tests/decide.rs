//! A yes runs exactly what was shown, once; a no, silence and absence run nothing.

use anyhow::Result;
use approvals::{SOON, Scene, code, content, verify};
use harness::{Agent as _, keysym};
use serde_json::json;
use std::time::Duration;

#[test]
fn r17_r33_a_click_on_approve_runs_it_once_and_a_denial_runs_nothing() -> Result<()> {
    let mut scene = Scene::start()?;
    let act = scene.touch("approved");
    let id = scene.begin_act(act.clone())?;
    scene.person.approve(SOON)?;
    let done = scene.end_act(id)?;
    assert_eq!(done.text_at("/outcome_status"), "success", "{}", done.text);
    assert!(scene.exists("approved"), "the approved command had its effect");
    assert_eq!(done.text_at("/authorization/proof/device"), "TigerVNC pointer");
    for field in ["policy_id", "approved_by", "approved_at", "expires_at", "authorization_token"] {
        assert!(!done.text_at(&format!("/authorization/{field}")).is_empty(), "R33 asks for {field}");
    }

    std::fs::remove_file(scene.workspace.path().join("approved"))?;
    scene.perceive()?;
    let token = done.text_at("/authorization/authorization_token");
    let mut reused = act;
    reused["authorization"] = json!({ "authorization_token": token });
    let refused = scene.act_now(reused)?;
    assert_eq!(code(&refused), "authorization_failure", "a used block authorises nothing: {}", refused.text);
    assert!(!scene.exists("approved"), "nothing is repeated");

    scene.perceive()?;
    let id = scene.begin_act(scene.touch("denied"))?;
    scene.next_request()?;
    scene.person.deny(SOON)?;
    let denied = scene.end_act(id)?;
    assert_eq!(denied.text_at("/outcome_status"), "blocked");
    assert_eq!(code(&denied), "denied_by_person", "{}", denied.text);
    assert!(!scene.exists("denied"), "the denied twin has no effect");

    let (holds, report) = verify(&scene.app)?;
    assert!(holds, "{report}");
    Ok(())
}

#[test]
fn r17_a_key_on_approve_counts_and_enter_alone_does_not() -> Result<()> {
    let mut scene = Scene::start()?;
    let id = scene.begin_act(scene.touch("by-key"))?;
    let approve = scene.armed()?;
    // Focus starts on Deny; neither Enter there nor Enter on Approve is a yes.
    scene.person.key(keysym::TAB)?;
    scene.person.key(keysym::RETURN)?;
    std::thread::sleep(Duration::from_millis(700));
    assert!(!scene.exists("by-key"), "Enter alone approved; Approve at {approve:?}");
    scene.person.chord(&[keysym::ALT, keysym::of('a')])?;
    let done = scene.end_act(id)?;
    assert_eq!(done.text_at("/outcome_status"), "success", "{}", done.text);
    assert_eq!(done.text_at("/authorization/proof/device"), "TigerVNC keyboard");
    assert!(scene.exists("by-key"));
    Ok(())
}

#[test]
fn dsp_01_the_bytes_that_run_are_the_bytes_that_were_shown() -> Result<()> {
    let mut scene = Scene::start()?;
    let command = "echo o\u{200b}k\u{2060}; : > r\u{2063}an";
    let action = json!({ "type": "shell_exec", "target": scene.root(), "params": { "command": command } });
    let id = scene.begin_act(action)?;
    scene.wait_to_read("2063")?;
    scene.person.approve(SOON)?;
    let done = scene.end_act(id)?;
    assert_eq!(done.text_at("/outcome_status"), "success", "{}", done.text);
    assert!(scene.exists("r\u{2063}an") && !scene.exists("ran"));
    Ok(())
}

#[test]
fn r17_an_edit_is_shown_as_a_diff_and_applied_exactly() -> Result<()> {
    let mut scene = Scene::start()?;
    let file = scene.workspace.path().join("notes.md");
    scene.workspace.write("notes.md", "bread\nmilk\n")?;
    scene.perceive()?;
    let edit =
        json!({ "type": "file_edit", "target": file, "params": { "edits": [{ "old": "milk", "new": "marmalade" }] } });
    let id = scene.begin_act(edit.clone())?;
    scene.person.wait_for_text("marmalade", SOON)?;
    scene.person.deny(SOON)?;
    assert_eq!(code(&scene.end_act(id)?), "denied_by_person");
    assert_eq!(content(&file).as_deref(), Some("bread\nmilk\n"));
    scene.perceive()?;
    let id = scene.begin_act(edit)?;
    scene.next_request()?;
    scene.person.approve(SOON)?;
    let done = scene.end_act(id)?;
    assert_eq!(done.text_at("/outcome_status"), "success", "{}", done.text);
    assert_eq!(content(&file).as_deref(), Some("bread\nmarmalade\n"));
    Ok(())
}

#[test]
fn inv_5_what_changed_during_the_wait_is_not_run() -> Result<()> {
    let mut scene = Scene::start()?;
    let file = scene.workspace.path().join("notes.md");
    scene.workspace.write("notes.md", "one\n")?;
    scene.perceive()?;
    let edit = json!({ "type": "file_edit", "target": file, "params": { "edits": [{ "old": "one", "new": "two" }] } });
    let id = scene.begin_act(edit)?;
    scene.armed()?;
    std::fs::write(&file, "one, and more\n")?;
    scene.person.approve(SOON)?;
    let refused = scene.end_act(id)?;
    assert_eq!(code(&refused), "state_changed", "{}", refused.text);
    assert_eq!(content(&file).as_deref(), Some("one, and more\n"));
    Ok(())
}

#[test]
fn apr_03_apr_08_silence_is_expired_not_denied_and_runs_nothing() -> Result<()> {
    let mut scene = Scene::with(|mut options| {
        options.init_arguments = vec!["--ask-seconds".into(), "6".into()];
        options
    })?;
    let ids = [0, 1, 2, 3].map(|n| format!("parallel-{n}"));
    let mut calls = Vec::new();
    for name in &ids {
        let act = scene.touch(name);
        calls.push(scene.begin_act(act)?);
    }
    for call in calls {
        let ended = scene.end_act(call)?;
        assert_eq!(code(&ended), "expired", "{}", ended.text);
    }
    assert!(ids.iter().all(|name| !scene.exists(name)));
    let late = scene.act_now(scene.touch("late"))?;
    let escalation = late.text_at("/error/escalation_id");
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(code(&scene.poll(&escalation, 200)?), "expired");
    assert!(!scene.exists("late"));
    Ok(())
}

#[test]
fn mcp_04_a_requester_that_is_gone_gets_nothing_run() -> Result<()> {
    let mut scene = Scene::start()?;
    scene.begin_act(scene.touch("orphan"))?;
    scene.armed()?;
    scene.agent.close();
    std::thread::sleep(Duration::from_secs(2));
    // A person may still press Approve; with nobody there to take it, nothing runs.
    let _ = scene.person.approve(Duration::from_secs(5));
    std::thread::sleep(Duration::from_secs(3));
    assert!(!scene.exists("orphan"));
    Ok(())
}

#[test]
fn r9_r17_a_new_file_is_shown_whole_and_a_deletion_with_all_that_goes() -> Result<()> {
    let mut scene = Scene::start()?;
    let root = scene.workspace.path().to_owned();
    let file = root.join("plan.md");
    let make = json!({ "type": "file_write", "target": file, "params": { "content": "first quince\nthen pears\n" } });
    let id = scene.begin_act(make.clone())?;
    scene.person.wait_for_text("quince", SOON)?;
    scene.person.deny(SOON)?;
    assert_eq!(code(&scene.end_act(id)?), "denied_by_person");
    assert!(!file.exists(), "the denied twin made nothing");
    let id = scene.begin_act(make)?;
    scene.next_request()?;
    scene.person.approve(SOON)?;
    let done = scene.end_act(id)?;
    assert_eq!(done.text_at("/outcome_status"), "success", "{}", done.text);
    assert_eq!(content(&file).as_deref(), Some("first quince\nthen pears\n"));

    scene.workspace.write("old/turnip.txt", "x")?;
    scene.perceive()?;
    let delete = json!({ "type": "file_delete", "target": root.join("old"), "params": { "recursive": true } });
    let id = scene.begin_act(delete.clone())?;
    scene.next_request()?;
    scene.person.wait_for_text("Everything that is deleted", SOON)?;
    scene.wait_to_read("turnip")?;
    scene.person.deny(SOON)?;
    assert_eq!(code(&scene.end_act(id)?), "denied_by_person");
    assert!(root.join("old/turnip.txt").exists(), "the denied twin deleted nothing");
    let id = scene.begin_act(delete)?;
    scene.next_request()?;
    scene.person.approve(SOON)?;
    let done = scene.end_act(id)?;
    assert_eq!(done.text_at("/outcome_status"), "success", "{}", done.text);
    assert!(!root.join("old").exists() && file.exists());
    Ok(())
}

#[test]
fn r16_r41_what_was_refused_stands_in_the_trace_as_blocked_and_changed_nothing() -> Result<()> {
    let mut scene = Scene::start()?;
    let forbidden = scene.act_now(json!({ "type": "file_read", "target": "/etc/shadow" }))?;
    assert_eq!(code(&forbidden), "denied_by_policy", "{}", forbidden.text);
    assert_eq!(forbidden.at("/edge_id"), json!(1));
    let id = scene.begin_act(scene.touch("denied"))?;
    scene.person.deny(SOON)?;
    let denied = scene.end_act(id)?;
    assert_eq!((code(&denied).as_str(), denied.at("/edge_id")), ("denied_by_person", json!(2)));
    let id = scene.begin_act(scene.touch("done"))?;
    scene.next_request()?;
    scene.person.approve(SOON)?;
    let done = scene.end_act(id)?;
    assert_eq!(done.at("/edge_id"), json!(3), "{}", done.text);

    let exported = scene.app.cli(&["trace", "export", &done.text_at("/trace_id")]).output()?;
    let exported: serde_json::Value = serde_json::from_slice(&exported.stdout)?;
    let edges = exported["trace"]["edges"].as_array().cloned().unwrap_or_default();
    let told: Vec<_> = edges.iter().map(|edge| (edge["edge_id"].clone(), edge["outcome_status"].clone())).collect();
    let expected = [(json!(1), json!("blocked")), (json!(2), json!("blocked")), (json!(3), json!("success"))];
    assert_eq!(told, expected);
    assert!(
        edges[..2].iter().all(|edge| edge["state_before"] == edge["state_after"] && edge["authorization"].is_null())
    );
    let (holds, report) = verify(&scene.app)?;
    assert!(holds, "{report}");
    Ok(())
}

#[test]
fn r8_r52_a_dry_run_foresees_an_act_exactly_and_does_asks_and_records_nothing() -> Result<()> {
    let mut scene = Scene::start()?;
    scene.workspace.write("notes.md", "one\n")?;
    let file = scene.workspace.path().join("notes.md");
    scene.perceive()?;
    let edit = json!({ "type": "file_edit", "target": file, "params": { "edits": [{ "old": "one", "new": "two" }] } });
    let leaves = scene.leaves()?;
    let foreseen = |scene: &mut Scene, tool: &str, action: &serde_json::Value, more: serde_json::Value| {
        let mut arguments = json!({ "session_id": scene.session, "action": action });
        arguments.as_object_mut().into_iter().for_each(|all| all.extend(more.as_object().cloned().unwrap_or_default()));
        scene.agent.call(tool, arguments)
    };
    let first = foreseen(&mut scene, "body_os_dry_run", &edit, json!({}))?;
    let second = foreseen(&mut scene, "body_os_act", &edit, json!({ "dry_run": true }))?;
    for told in [&first, &second] {
        assert_eq!(told.text_at("/decision"), "asked", "{}", told.text);
        assert_eq!(told.at("/state_before"), told.at("/state_after"));
    }
    assert_eq!(first.at("/predicted_outcome"), second.at("/predicted_outcome"), "R8: it is deterministic");
    let forbidden = json!({ "type": "file_read", "target": "/etc/shadow" });
    let refused = foreseen(&mut scene, "body_os_dry_run", &forbidden, json!({}))?;
    assert_eq!((refused.text_at("/decision").as_str(), code(&refused).as_str()), ("refused", "denied_by_policy"));
    assert!(!refused.is_error, "a refusal that is foreseen is an answer");
    assert_eq!(scene.leaves()?, leaves, "nothing was recorded");
    assert_eq!(content(&file).as_deref(), Some("one\n"));

    // The same act, done: what was foreseen is what came of it, and no ref went stale by looking ahead.
    let id = scene.begin_act(edit)?;
    scene.person.approve(SOON)?;
    let done = scene.end_act(id)?;
    assert_eq!(done.at("/observed_outcome/after_sha256"), first.at("/predicted_outcome/after_sha256"), "{}", done.text);
    assert_eq!(done.at("/state_after"), first.at("/state_after"));
    Ok(())
}
