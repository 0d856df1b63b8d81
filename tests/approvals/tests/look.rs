//! Looking: every query mode shows what the policy allows, and nothing comes back by another way.

use anyhow::Result;
use approvals::{SOON, Scene, code};
use harness::{Agent as _, ToolResult, wait_until};
use serde_json::{Value, json};

fn look(scene: &mut Scene, mode: &str) -> Result<ToolResult> {
    scene.agent.call("body_os_perceive", json!({ "session_id": scene.session, "mode": mode, "wait_ms": 0 }))
}

fn commands(seen: &ToolResult) -> Vec<String> {
    let listed = seen.at("/payload/processes").as_array().cloned().unwrap_or_default();
    listed.iter().map(|process| process["command"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn r4_r23_the_shell_and_process_views_show_the_session_s_own_and_nothing_else() -> Result<()> {
    let mut scene = Scene::start()?;
    assert_eq!(look(&mut scene, "shell")?.at("/payload/history"), json!([]));
    let running = json!({ "type": "shell_exec", "target": scene.root(),
        "params": { "command": "touch begun; sleep 8.25; exit 3" } });
    let call = scene.begin_act(running)?;
    scene.person.approve(SOON)?;
    wait_until("it runs", SOON, || scene.exists("begun"))?;
    let seen = look(&mut scene, "process")?;
    assert!(commands(&seen).iter().any(|command| command == "sleep 8.25"), "{}", seen.text);
    let foreign =
        commands(&seen).into_iter().find(|command| command.contains("bodyguard") || command.contains("Xtigervnc"));
    assert_eq!(foreign, None, "only what the session started");
    let done = scene.end_act(call)?;
    assert_eq!(done.text_at("/outcome_status"), "failure", "{}", done.text);

    assert_eq!(commands(&look(&mut scene, "process")?), Vec::<String>::new(), "what ended is gone");
    let history = look(&mut scene, "shell")?.at("/payload/history");
    assert_eq!(history[0]["command"], "touch begun; sleep 8.25; exit 3");
    assert_eq!((&history[0]["outcome_status"], history[1].is_null()), (&json!("failure"), true));
    Ok(())
}

#[test]
fn r4_r5_full_shows_what_is_allowed_unasked_and_names_the_rest() -> Result<()> {
    let mut scene = Scene::start()?;
    scene.workspace.write("notes.md", "one\n")?;
    assert_eq!(code(&look(&mut scene, "screen")?), "authorization_required", "the screen is asked about");
    let full = look(&mut scene, "full")?;
    assert!(!full.is_error, "{}", full.text);
    let payload = full.at("/payload");
    assert!(
        payload["entries"]
            .as_array()
            .is_some_and(|all| all.iter().any(|e| e["path"].as_str().is_some_and(|p| p.ends_with("notes.md"))))
    );
    assert!(payload["history"].is_array() && payload["env"].is_object(), "{payload}");
    assert_eq!(payload["left_out"], json!(["screen"]));
    for part in ["monitors", "windows"] {
        assert_eq!(payload.get(part), None, "a screen that is asked about doesn't come back through `full`");
    }
    assert_eq!(payload["focused_window"], Value::Null);
    Ok(())
}

#[test]
fn a_session_that_was_left_alone_makes_room_for_another_and_ends_its_body() -> Result<()> {
    let mut scene = Scene::start()?;
    let more = |scene: &mut Scene| scene.agent.call("body_os_ensure_session", json!({ "goal": "another" }));
    scene.workspace.write("notes.md", "one\n")?;
    for number in 1..16 {
        let begun = more(&mut scene)?;
        assert!(!begun.is_error);
        if number == 1 {
            // The one that is going to end has done something, whose outcome can still be asked for.
            let (session, note) = (begun.at("/session_id"), scene.workspace.path().join("notes.md"));
            scene.agent.call("body_os_perceive", json!({ "session_id": session }))?;
            let read = json!({ "session_id": session, "action": { "type": "file_read", "target": note } });
            assert_eq!(scene.agent.call("body_os_act", read)?.text_at("/outcome_status"), "success");
        }
    }
    assert_eq!(code(&more(&mut scene)?), "budget_exceeded", "none was left alone yet");
    std::thread::sleep(std::time::Duration::from_secs(61));
    // The first one is used again, so another is the oldest.
    assert!(!scene.perceive()?.is_error);
    assert!(!more(&mut scene)?.is_error);
    assert!(!scene.perceive()?.is_error, "the one in use stays");
    wait_until("its body ended", SOON, || scene.app.body_host_pids().len() == 16)?;
    Ok(())
}

#[test]
fn r27_r28_a_state_has_a_hash_in_each_profile_and_only_one_of_them_sees_uncommitted_edits() -> Result<()> {
    let mut scene = Scene::start()?;
    scene.workspace.write("notes.md", "one\n")?;
    let mut hashes = || -> Result<(String, String)> {
        let mut hash = |profile: &str| -> Result<String> {
            let arguments = json!({ "session_id": scene.session, "profile": profile });
            let state = scene.agent.call("body_os_encode_state", arguments)?;
            assert_eq!(state.text_at("/state_profile"), profile, "{}", state.text);
            Ok(state.text_at("/state_hash"))
        };
        Ok((hash("os011.registry.v0")?, hash("bodyos.readme.v0")?))
    };
    let before = hashes()?;
    assert_eq!(before, hashes()?, "it changes nothing itself");
    assert_ne!(before.0, before.1);
    std::fs::write(scene.workspace.path().join("notes.md"), "two\n")?;
    let after = hashes()?;
    assert_eq!((&before.0, before.1 == after.1), (&after.0, false));
    Ok(())
}
