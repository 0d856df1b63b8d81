//! The app or its body host dies at once, while something waits or runs: nothing runs that
//! shouldn't, nothing is repeated, and both sides are told so.

use anyhow::{Context, Result};
use approvals::{SOON, Scene, ask_as_page, code, records, verify, wait_records};
use harness::{App, poll, processes, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

/// Seconds that no other test sleeps, so that its processes are told apart.
fn seconds(name: &str) -> String {
    format!("30.{}{}", name.len(), std::process::id())
}

/// Runs long enough to be cut off, then would leave a trace of having gone on.
fn long_act(scene: &Scene, name: &str) -> Value {
    let command = format!("touch begun-{name}; sleep {}; touch late-{name}", seconds(name));
    json!({ "type": "shell_exec", "target": scene.root(), "params": { "command": command } })
}

/// Living processes that work on a command of [`long_act`], wherever they are contained.
fn sleepers(name: &str) -> Vec<i32> {
    let seconds = seconds(name);
    let at_work = processes::all().into_iter().filter(|process| {
        let arguments = std::fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(&seconds)
    });
    at_work.map(|process| process.pid).collect()
}

/// The states of the one ask, in order.
fn states(app: &App, ask: &str) -> Result<Vec<String>> {
    let moves = records(app, "ask_moved")?.into_iter().filter(|record| record["ask_id"] == ask);
    Ok(moves.map(|record| record["to"].as_str().unwrap_or_default().to_owned()).collect())
}

fn last_ask(app: &App) -> Result<String> {
    let asked = records(app, "ask_opened")?.pop().context("an ask")?;
    Ok(asked["ask_id"].as_str().context("its id")?.to_owned())
}

/// What the window says it was that the last run left behind.
fn said_at_start(app: &App) -> Result<String> {
    let answer = ask_as_page(app, "rpc", &json!({ "request": { "method": "overview" } }))?;
    let said = answer.pointer("/value/ok/result/interrupted").with_context(|| answer.to_string())?;
    app.page()?.wait_for("/request was|was running|cut off/.test(document.body.innerText)", SOON)?;
    Ok(said.to_string())
}

/// The log holds, a new session works, and what is asked in it is answered by the person once.
fn goes_on(scene: &mut Scene, name: &str) -> Result<()> {
    let (holds, report) = verify(&scene.app)?;
    assert!(holds, "{report}");
    scene.begin_again()?;
    let call = scene.begin_act(scene.touch(name))?;
    scene.person.approve(SOON)?;
    let done = scene.end_act(call)?;
    assert_eq!(done.text_at("/outcome_status"), "success", "{}", done.text);
    assert!(scene.exists(name));
    Ok(())
}

#[test]
fn apr_13_inv_6_killed_while_an_ask_is_open_it_is_withdrawn() -> Result<()> {
    let mut scene = Scene::start()?;
    let asked = scene.act_now(scene.touch("never"))?;
    assert_eq!(code(&asked), "authorization_required", "{}", asked.text);
    let escalation = asked.text_at("/error/escalation_id");
    scene.armed()?;
    scene.app.kill9()?;
    scene.app.launch_with_driver()?;
    let said = said_at_start(&scene.app)?;
    assert!(said.contains("1 request was waiting when Bodyguard ended; nothing was done"), "{said}");
    let told = scene.poll(&escalation, 2_000)?;
    assert_eq!(code(&told), "withdrawn", "{}", told.text);
    assert_eq!(states(&scene.app, &escalation)?, ["withdrawn"]);
    assert!(scene.person.find_approve()?.is_none(), "what is over can't be approved any more");
    goes_on(&mut scene, "after")?;
    assert!(!scene.exists("never"));
    Ok(())
}

#[test]
fn apr_13_inv_4_killed_between_approval_and_execution_nothing_runs() -> Result<()> {
    let mut scene = Scene::start()?;
    let asked = scene.act_now(scene.touch("never"))?;
    let escalation = asked.text_at("/error/escalation_id");
    scene.person.approve(SOON)?;
    wait_records(&scene.app, "ask_moved", 0)?;
    assert_eq!(states(&scene.app, &escalation)?, ["approved"], "nobody is there to take it");
    assert!(!scene.exists("never"));
    scene.app.kill9()?;
    scene.app.launch_with_driver()?;
    let said = said_at_start(&scene.app)?;
    assert!(said.contains("nothing was done"), "{said}");
    let told = scene.poll(&escalation, 2_000)?;
    assert_eq!(code(&told), "withdrawn", "{}", told.text);
    assert_eq!(states(&scene.app, &escalation)?, ["approved", "withdrawn"]);
    assert!(records(&scene.app, "intent")?.is_empty());
    goes_on(&mut scene, "after")?;
    assert!(!scene.exists("never"), "the old yes was used");
    Ok(())
}

#[test]
fn apr_13_inv_4_killed_in_execution_it_is_interrupted_and_not_repeated() -> Result<()> {
    let mut scene = Scene::start()?;
    let call = scene.begin_act(long_act(&scene, "app"))?;
    scene.person.approve(SOON)?;
    wait_until("it runs", SOON, || scene.exists("begun-app"))?;
    let escalation = last_ask(&scene.app)?;
    assert!(!sleepers("app").is_empty(), "its process is found");
    scene.app.kill9()?;
    let cut = scene.agent.wait(call, SOON)?.err().context("the call in flight can't have succeeded")?;
    assert!(cut.data["code"].is_string(), "{cut}");
    wait_until("what it ran ends with the app", SOON, || sleepers("app").is_empty())?;
    std::fs::remove_file(scene.workspace.path().join("begun-app"))?;

    scene.app.launch_with_driver()?;
    let said = said_at_start(&scene.app)?;
    assert!(said.contains("Bodyguard ended while shell_exec was running"), "{said}");
    assert!(said.contains("may have had effects, and is not repeated"), "{said}");
    let told = scene.poll(&escalation, 2_000)?;
    assert_eq!(code(&told), "interrupted", "{}", told.text);
    let trace = records(&scene.app, "intent")?[0]["trace_id"].as_str().context("a trace")?.to_owned();
    let shown = scene.app.cli(&["trace", "show", &trace, "--json"]).output()?;
    let shown: Value = serde_json::from_slice(&shown.stdout)?;
    assert_eq!(shown["edges"][0]["error"], "interrupted", "{shown}");
    goes_on(&mut scene, "after")?;
    assert!(!scene.exists("begun-app") && !scene.exists("late-app"), "it was repeated");
    assert_eq!(records(&scene.app, "intent")?.len(), 2, "the old act and the new one");
    Ok(())
}

#[test]
fn apr_13_a_body_host_that_dies_during_an_ask_costs_nothing() -> Result<()> {
    let mut scene = Scene::start()?;
    let call = scene.begin_act(scene.touch("wanted"))?;
    scene.armed()?;
    assert_eq!(scene.app.kill9_body_hosts(), 1);
    wait_until("the body host is gone", SOON, || scene.app.body_host_pids().is_empty())?;
    scene.person.approve(SOON)?;
    let done = scene.end_act(call)?;
    assert_eq!(done.text_at("/outcome_status"), "success", "a new body host carries it out: {}", done.text);
    assert!(scene.exists("wanted"));
    assert_eq!(records(&scene.app, "intent")?.len(), 1, "once");
    let (holds, report) = verify(&scene.app)?;
    assert!(holds, "{report}");
    Ok(())
}

#[test]
fn apr_13_inv_4_a_body_host_that_dies_in_execution_is_said_and_nothing_is_repeated() -> Result<()> {
    let mut scene = Scene::start()?;
    let call = scene.begin_act(long_act(&scene, "body"))?;
    scene.person.approve(SOON)?;
    wait_until("it runs", SOON, || scene.exists("begun-body"))?;
    let escalation = last_ask(&scene.app)?;
    assert!(!sleepers("body").is_empty(), "its process is found");
    assert_eq!(scene.app.kill9_body_hosts(), 1);
    let cut = scene.end_act(call)?;
    assert_eq!(code(&cut), "body_lost", "{}", cut.text);
    assert_eq!(cut.text_at("/outcome_status"), "failure");
    wait_until("what it ran ends with the body host", SOON, || sleepers("body").is_empty())?;
    std::fs::remove_file(scene.workspace.path().join("begun-body"))?;
    let outcomes = records(&scene.app, "outcome")?;
    assert_eq!(outcomes.last().map(|last| last["error"]["code"].clone()), Some("body_lost".into()));
    let again = scene.poll(&escalation, 500)?;
    assert_eq!(code(&again), "body_lost", "the same answer, and no second run: {}", again.text);

    // The session itself goes on, with a new body host.
    let seen = poll(SOON, || scene.perceive().ok());
    assert!(seen.is_some(), "the session can look again");
    let call = scene.begin_act(scene.touch("after"))?;
    scene.next_request()?;
    scene.armed()?;
    scene.person.approve(Duration::from_secs(5))?;
    assert_eq!(scene.end_act(call)?.text_at("/outcome_status"), "success");
    assert!(scene.exists("after") && !scene.exists("begun-body") && !scene.exists("late-body"));
    let (holds, report) = verify(&scene.app)?;
    assert!(holds, "{report}");
    Ok(())
}
