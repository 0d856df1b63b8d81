//! Keys and clicks on the person's own desktop: only after a yes, only into the window that was shown,
//! never into a shell, and stopped by the person's own hands.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use approvals::{SOON, Scene, code, records};
use harness::{Agent as _, AppOptions, ToolResult, WindowInfo, list_windows, poll};
use serde_json::{Value, json};

/// A dialog of the person's that prints what is entered.
struct Dialog(Child);

impl Dialog {
    fn open(scene: &Scene) -> Result<Self> {
        let mut command = scene.desktop.command("zenity");
        command.args(["--entry", "--title", "Newsletter", "--text", "Your name", "--width", "420"]);
        Ok(Self(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?))
    }

    fn said(mut self) -> Result<String> {
        poll(SOON, || self.0.try_wait().ok().flatten()).context("the dialog didn't end")?;
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.0.stdout.take().context("no output")?, &mut text)?;
        Ok(text.trim_end_matches('\n').to_owned())
    }
}

impl Drop for Dialog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Looks at the screen, which the person permits; the first window with this title.
fn see(scene: &mut Scene, title: &str, first: bool) -> Result<Value> {
    shown(scene, title)?;
    let end = Instant::now() + SOON;
    let mut first = first;
    loop {
        let arguments = json!({ "session_id": scene.session, "mode": "screen", "wait_ms": 300_000 });
        let id = scene.agent.begin_call("body_os_perceive", arguments)?;
        turn_to_bodyguard(scene)?;
        if !first {
            scene.next_request()?;
        }
        first = false;
        scene.person.approve(SOON)?;
        let seen = scene.agent.wait_call(id, SOON)?;
        let windows = seen.at("/payload/windows");
        let found = windows.as_array().into_iter().flatten().find(|window| window["title"] == title).cloned();
        match found {
            Some(found) => return Ok(found),
            None if Instant::now() > end => bail!("no window {title}: {windows}"),
            None => {}
        }
    }
}

fn shown(scene: &Scene, title: &str) -> Result<WindowInfo> {
    let find = || list_windows(&scene.desktop).ok()?.into_iter().find(|window| window.title == title);
    poll(SOON, find).with_context(|| format!("no window {title}"))
}

/// The person clicks the title bar of Bodyguard's window: Approve isn't armed in a window that isn't in
/// use.
fn turn_to_bodyguard(scene: &mut Scene) -> Result<()> {
    let title = shown(scene, "Bodyguard")?;
    scene.person.click(title.frame.x + title.frame.width / 2, title.frame.y + 8)
}

fn typing(window: &Value, text: &str) -> Value {
    json!({ "type": "keyboard_input", "target": window["ref"], "params": { "text": text } })
}

fn decided(scene: &mut Scene, action: Value, yes: bool) -> Result<ToolResult> {
    let id = scene.begin_act(action)?;
    turn_to_bodyguard(scene)?;
    scene.next_request()?;
    if yes {
        scene.person.approve(SOON)?;
    } else {
        scene.person.deny(SOON)?;
    }
    scene.end_act(id)
}

#[test]
fn r9_r17_inp_an_approved_text_is_typed_and_a_denied_one_is_not() -> Result<()> {
    let mut scene = Scene::start()?;
    let dialog = Dialog::open(&scene)?;
    let window = see(&mut scene, "Newsletter", true)?;
    assert_eq!(window["runs_commands"], false, "{window}");
    let denied = decided(&mut scene, typing(&window, "Denied "), false)?;
    assert_eq!(code(&denied), "denied_by_person", "{}", denied.text);
    let window = see(&mut scene, "Newsletter", false)?;
    let typed = decided(&mut scene, typing(&window, "Zoë Grün"), true)?;
    assert_eq!(typed.text_at("/outcome_status"), "success", "{}", typed.text);
    assert_eq!(typed.text_at("/authorization/proof/device"), "TigerVNC pointer");
    let stale = scene.act_now(typing(&window, "again"))?;
    assert!(["stale_ref", "perceive_required"].contains(&code(&stale).as_str()), "{}", stale.text);
    let window = see(&mut scene, "Newsletter", false)?;
    let enter = json!({ "type": "keyboard_input", "target": window["ref"], "params": { "keys": ["enter"] } });
    assert_eq!(decided(&mut scene, enter, true)?.text_at("/outcome_status"), "success");
    assert_eq!(dialog.said()?, "Zoë Grün");
    Ok(())
}

#[test]
fn r73_inp_keys_to_a_shell_are_refused_without_a_question() -> Result<()> {
    let mut scene = Scene::start()?;
    let made = scene.workspace.path().join("made-by-keys");
    let mut command = scene.desktop.command("xterm");
    let mut terminal = command.args(["-T", "Notes"]).current_dir(scene.workspace.path()).spawn()?;
    let window = see(&mut scene, "Notes", true)?;
    assert_eq!(window["runs_commands"], true, "{window}");
    let text = format!(": > {}\n", made.display());
    let into = scene.act_now(typing(&window, &text))?;
    assert_eq!(code(&into), "denied_by_policy", "{}", into.text);
    let secret = json!({
        "type": "keyboard_input", "target": window["ref"], "params": { "text": "CANARY-in-clear", "secret": true }
    });
    assert_eq!(code(&scene.act_now(secret)?), "denied_by_policy");
    let recorded = serde_json::to_string(&records(&scene.app, "refused")?)?;
    assert!(recorded.contains("redacted typed") && !recorded.contains("CANARY"), "{recorded}");
    for keys in [json!(["super+r"]), json!(["alt+f2"]), json!(["ctrl+alt+t"])] {
        let window = see(&mut scene, "Notes", false)?;
        let chord = json!({ "type": "keyboard_input", "target": window["ref"], "params": { "keys": keys } });
        assert_eq!(code(&scene.act_now(chord)?), "denied_by_policy");
    }
    std::thread::sleep(Duration::from_millis(500));
    let ended = terminal.kill();
    terminal.wait()?;
    ended?;
    assert!(!made.exists());
    Ok(())
}

#[test]
fn inp_the_persons_own_hands_stop_what_is_typed() -> Result<()> {
    let mut scene = Scene::start()?;
    let dialog = Dialog::open(&scene)?;
    let window = see(&mut scene, "Newsletter", true)?;
    // Chords that are each held make an act that lasts.
    let slow = json!({
        "type": "keyboard_input", "target": window["ref"],
        "params": { "keys": vec!["x"; 60], "hold_ms": 300 }
    });
    let id = scene.begin_act(slow)?;
    turn_to_bodyguard(&mut scene)?;
    scene.next_request()?;
    scene.person.approve(SOON)?;
    std::thread::sleep(Duration::from_secs(4));
    for x in 0..30 {
        scene.person.move_to(200 + x * 4, 40)?;
    }
    let stopped = scene.end_act(id)?;
    assert_eq!(stopped.text_at("/outcome_status"), "partial", "{}", stopped.text);
    assert_eq!(code(&stopped), "person_active", "{}", stopped.text);
    let done = stopped.at("/observed_outcome/done").as_u64().unwrap_or_default();
    assert!((1..60).contains(&done), "{done}");
    drop(dialog);
    Ok(())
}

#[test]
fn r9_r73_inp_on_a_desktop_of_its_own_the_agent_sees_only_what_it_started() -> Result<()> {
    let mut scene =
        Scene::with(|options| AppOptions { init_arguments: vec!["--body".into(), "private".into()], ..options })?;
    // What the person has open is not there.
    let _persons = Dialog::open(&scene)?;
    shown(&scene, "Newsletter")?;
    let look = json!({ "session_id": scene.session, "mode": "screen" });
    let seen = scene.agent.call("body_os_perceive", look.clone())?;
    assert!(!seen.is_error, "its own desktop is seen unasked: {}", seen.text);
    assert_eq!(seen.at("/payload/windows"), json!([]));
    let ask = json!({
        "type": "process_spawn", "target": "zenity",
        "params": { "args": ["--entry", "--title", "Mine"], "env": { "GTK_IM_MODULE": "gtk-im-context-none" } }
    });
    let id = scene.begin_act(ask)?;
    turn_to_bodyguard(&mut scene)?;
    scene.person.approve(SOON)?;
    let started = scene.end_act(id)?;
    assert_eq!(started.text_at("/outcome_status"), "success", "{}", started.text);
    let mine = poll(SOON, || {
        let seen = scene.agent.call("body_os_perceive", look.clone()).ok()?;
        let mine = seen.at("/payload/windows").as_array()?.iter().find(|window| window["title"] == "Mine").cloned()?;
        // What changes after the look, such as the focus, would make it stale.
        (mine["focused"] == true).then_some(mine)
    });
    let mine = mine.context("the program's window doesn't appear")?;
    assert!(list_windows(&scene.desktop)?.iter().all(|window| window.title != "Mine"), "nor on the person's desktop");
    let id = scene.begin_act(typing(&mine, "hello\n"))?;
    scene.next_request()?;
    scene.person.approve(SOON)?;
    let typed = scene.end_act(id)?;
    assert_eq!(typed.text_at("/outcome_status"), "success", "{}", typed.text);
    let look = json!({ "session_id": scene.session, "mode": "process" });
    let told = poll(SOON, || {
        let seen = scene.agent.call("body_os_perceive", look.clone()).ok()?;
        let ended = seen.at("/payload/processes").as_array()?.iter().find(|one| one["exit_code"] == 0).cloned();
        ended.map(|one| one["output_tail"].as_str().unwrap_or_default().to_owned())
    });
    assert!(told.context("the program doesn't end")?.contains("hello"));
    Ok(())
}
