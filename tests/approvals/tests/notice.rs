//! Being told of a request away from the window, and stopping everything: by notification, tray and
//! button. None of them decides a request.

use anyhow::{Context, Result};
use approvals::{SOON, Scene, code, records};
use harness::windows::find_window;
use harness::{Agent as _, keysym, wait_until};
use serde_json::json;
use std::time::Duration;

/// Puts the app's window away, so that the person doesn't look at it.
fn minimise(scene: &Scene) -> Result<()> {
    let pid = scene.app.pid()?;
    let window = find_window(&scene.desktop, |window| window.pid == Some(pid))?.context("the app's window")?;
    let done = scene.desktop.command("xdotool").args(["windowminimize", "--sync", &window.id.to_string()]).status()?;
    anyhow::ensure!(done.success(), "xdotool windowminimize: {done}");
    Ok(())
}

#[test]
fn r17_a_notification_opens_the_request_and_decides_nothing() -> Result<()> {
    let mut scene = Scene::start()?;
    minimise(&scene)?;
    let call = scene.begin_act(scene.touch("noticed"))?;
    let notice = scene.person.wait_for_text("tester@ws asks", SOON)?;
    scene.person.click_on(notice)?;
    scene.person.wait_for_text("Approvals", SOON).context("the window came to the front")?;
    scene.armed()?;
    assert!(!scene.exists("noticed") && !scene.agent.has_answer(call), "a notification decided");
    assert!(records(&scene.app, "ask_moved")?.is_empty());
    scene.person.approve(SOON)?;
    assert_eq!(scene.end_act(call)?.text_at("/outcome_status"), "success");

    // One that is taken back takes its notification along.
    scene.perceive()?;
    minimise(&scene)?;
    let call = scene.begin_act(scene.touch("withdrawn"))?;
    scene.person.wait_for_text("tester@ws asks", SOON)?;
    scene.agent.cancel(call, "no longer needed")?;
    wait_until("the notification is gone", SOON, || {
        scene.person.read_screen().is_ok_and(|read| !read.contains("tester@ws asks"))
    })?;
    Ok(())
}

#[test]
fn r17_the_red_button_stops_what_waits_and_what_runs_until_the_person_resumes() -> Result<()> {
    let mut scene = Scene::start()?;
    let running = json!({ "type": "shell_exec", "target": scene.root(),
        "params": { "command": "touch begun; sleep 60; touch late" } });
    let running = scene.begin_act(running)?;
    scene.person.approve(SOON)?;
    wait_until("it runs", SOON, || scene.exists("begun"))?;
    let button = scene.person.wait_for_text("Stop all", SOON)?;
    scene.person.click_on(button)?;
    scene.picture("stop-all");
    wait_until("the stop is recorded", SOON, || records(&scene.app, "stopped").is_ok_and(|all| all.len() == 1))?;
    let ended = scene.end_act(running)?;
    assert_ne!(ended.text_at("/outcome_status"), "success", "{}", ended.text);
    assert!(!scene.exists("late"));
    let refused = scene.agent.call("body_os_perceive", json!({ "session_id": scene.session }))?;
    assert_eq!(code(&refused), "stopped", "{}", refused.text);

    let resume = scene.person.wait_for_text("Resume", SOON)?;
    scene.person.click_on(resume)?;
    scene.person.approve(SOON)?;
    wait_until("agents may go on", SOON, || records(&scene.app, "resumed").is_ok_and(|all| all.len() == 1))?;
    scene.begin_again()?;
    let call = scene.begin_act(scene.touch("again"))?;
    scene.next_request()?;
    scene.person.approve(SOON)?;
    assert_eq!(scene.end_act(call)?.text_at("/outcome_status"), "success");
    Ok(())
}

#[test]
fn r17_the_tray_says_what_waits_and_stops_everything() -> Result<()> {
    let mut scene = Scene::with_tray()?;
    let call = scene.begin_act(scene.touch("waiting"))?;
    scene.armed()?;
    let tray = find_window(&scene.desktop, |window| window.class.contains("trayer"))?.context("the tray")?;
    scene.person.click_on(tray.geometry)?;
    scene.person.wait_for_text("1 request waits", SOON)?;
    // Open, then Stop all.
    for key in [keysym::DOWN, keysym::DOWN, keysym::RETURN] {
        std::thread::sleep(Duration::from_millis(150));
        scene.person.key(key)?;
    }
    let ended = scene.end_act(call)?;
    assert!(["stopped", "withdrawn"].contains(&code(&ended).as_str()), "{}", ended.text);
    assert_eq!(records(&scene.app, "stopped")?.first().context("a record")?["way"], "tray");
    let refused = scene.act_now(scene.touch("after"))?;
    assert_eq!(code(&refused), "stopped", "{}", refused.text);
    assert!(!scene.exists("waiting") && !scene.exists("after"));
    Ok(())
}
