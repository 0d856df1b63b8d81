//! The policy file of a workspace: what narrows takes effect at once, what could permit more waits for
//! the person, and what has an error changes nothing.

use anyhow::{Context, Result};
use approvals::{SOON, Scene, code, records};
use harness::{ToolResult, wait_until};
use serde_json::json;
use std::path::PathBuf;

fn file(scene: &Scene) -> PathBuf {
    scene.app.data_dir().join("policies/ws.cedar")
}

/// Reading needs no question in the policy that a workspace starts with.
fn read(scene: &mut Scene) -> Result<ToolResult> {
    scene.perceive()?;
    let path = scene.workspace.path().join("notes.md");
    scene.act_now(json!({ "type": "file_read", "target": path }))
}

#[test]
fn r32_a_policy_with_an_error_is_named_by_line_and_the_one_before_stays_in_force() -> Result<()> {
    let mut scene = Scene::start()?;
    scene.workspace.write("notes.md", "one\n")?;
    let good = std::fs::read_to_string(file(&scene))?;
    assert!(!read(&mut scene)?.is_error);
    std::fs::write(file(&scene), format!("{good}\npermitt (principal, action, resource);\n"))?;
    let still = read(&mut scene)?;
    assert!(!still.is_error, "{}", still.text);
    assert_eq!(code(&scene.act_now(scene.touch("unasked"))?), "authorization_required");
    let line = good.lines().count() + 2;
    let settings = scene.person.wait_for_text("Settings", SOON)?;
    scene.person.click_on(settings)?;
    let policies = scene.person.wait_for_text("Your devices", SOON)?;
    scene.person.wheel(policies.x, policies.y, 40)?;
    scene.wait_to_read(&format!("ws.cedar:{line}:"))?;
    Ok(())
}

#[test]
fn r32_a_policy_that_narrows_takes_effect_at_once() -> Result<()> {
    let mut scene = Scene::start()?;
    scene.workspace.write("notes.md", "one\n")?;
    assert!(!read(&mut scene)?.is_error);
    let good = std::fs::read_to_string(file(&scene))?;
    let narrower =
        format!("{good}\n@id(\"no-reading\") forbid (principal, action == Action::\"file_read\", resource);\n");
    std::fs::write(file(&scene), narrower)?;
    assert_eq!(code(&read(&mut scene)?), "denied_by_policy");
    Ok(())
}

#[test]
fn r32_inv_2_a_policy_that_permits_more_waits_for_the_person() -> Result<()> {
    let mut scene = Scene::start()?;
    assert_eq!(code(&scene.act_now(scene.touch("asked"))?), "authorization_required");
    let loaded = records(&scene.app, "policy_loaded")?.len();
    let wider = "@id(\"all\") permit (principal, action, resource);\n";
    std::fs::write(file(&scene), wider)?;
    scene.perceive()?;
    assert_eq!(code(&scene.act_now(scene.touch("by-file"))?), "authorization_required", "a file alone widens nothing");
    assert_eq!(records(&scene.app, "policy_loaded")?.len(), loaded);
    assert!(!scene.exists("by-file"));

    // The person reads the difference and says yes on the bar.
    let settings = scene.person.wait_for_text("Settings", SOON)?;
    scene.person.click_on(settings)?;
    let devices = scene.person.wait_for_text("Your devices", SOON)?;
    scene.person.wheel(devices.x, devices.y, 40)?;
    let review = scene.person.wait_for_text("Review the change", SOON)?;
    scene.person.click_on(review)?;
    scene.person.wait_for_text("Use the changed policy of ws", SOON)?;
    scene.person.approve(SOON)?;
    wait_until("it is in force", SOON, || records(&scene.app, "policy_loaded").is_ok_and(|all| all.len() > loaded))?;
    let last = records(&scene.app, "policy_loaded")?.pop().context("a record")?;
    assert_eq!(last["text"], wider);
    scene.perceive()?;
    let done = scene.act_now(scene.touch("by-policy"))?;
    assert_eq!(done.text_at("/outcome_status"), "success", "{}", done.text);
    assert_eq!(done.text_at("/authorization/proof/by"), "policy");
    assert!(scene.exists("by-policy"));
    Ok(())
}
