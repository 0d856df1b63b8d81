//! A desktop of the session's own: its programs show there, nobody else's can be reached from it, and it
//! ends with the session.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use bodyguard_body::HostBody;
use bodyguard_protocol::{ErrorCode, OutcomeStatus, WindowInfo};
use common::desktop::Desktop;
use common::{Lab, code, lab, lab_with};
use serde_json::{Value, json};

async fn private() -> Lab<HostBody> {
    lab_with(|config| config.private_desktop = true).await
}

async fn display(lab: &Lab<HostBody>) -> String {
    lab.shell("printf %s \"$DISPLAY\"").await.observed["stdout"].as_str().unwrap().to_owned()
}

async fn window(lab: &Lab<HostBody>, title: &str) -> WindowInfo {
    for _ in 0..400 {
        let seen = lab.perceive(json!({"mode":"screen"})).await.unwrap();
        // It gets the focus a moment after it is there.
        if let Some(found) = seen.windows.into_iter().find(|window| window.title == title && window.focused) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("no window {title}");
}

fn spawn(program: &str, args: &[&str]) -> Value {
    let env = json!({"LC_ALL": "C.UTF-8", "NO_AT_BRIDGE": "1", "GTK_IM_MODULE": "gtk-im-context-none"});
    json!({"type":"process_spawn","target":program,"params":{"args":args,"env":env}})
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_inp_a_program_on_its_own_desktop_is_seen_typed_into_and_clicked() {
    let lab = private().await;
    let dialog = ["--entry", "--title", "Name", "--text", "What?"];
    lab.act(spawn("zenity", &dialog)).await.unwrap();
    let entry = window(&lab, "Name").await;
    let typed = json!({"type":"keyboard_input","target":entry.target,"params":{"text":"Zoë 你好"}});
    assert_eq!(lab.act(typed).await.unwrap().status, OutcomeStatus::Success);
    let enter = json!({"type":"keyboard_input","target":entry.target,"params":{"keys":["enter"]}});
    lab.act(enter).await.unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let seen = lab.perceive(json!({"mode":"process"})).await.unwrap();
        let ended = seen.processes.iter().find(|process| process.exit_code == Some(0));
        if let Some(ended) = ended {
            assert_eq!(ended.output_tail.as_deref().map(str::trim_end), Some("Zoë 你好"));
            break;
        }
        assert!(Instant::now() < end, "{:?}", seen.processes);
        std::thread::sleep(Duration::from_millis(50));
    }
    lab.act(spawn("zenity", &["--info", "--title", "Note", "--text", "Read this"])).await.unwrap();
    let note = window(&lab, "Note").await;
    // The only button is at the lower end, in the middle of it or to the right.
    let (x, y) = (note.x + i32::try_from(note.width).unwrap() - 20, note.y + i32::try_from(note.height).unwrap() - 20);
    lab.act(json!({"type":"mouse_click","target":{"x":x,"y":y}})).await.unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while lab.perceive(json!({"mode":"screen"})).await.unwrap().windows.iter().any(|window| window.title == "Note") {
        assert!(Instant::now() < end, "the click closed it");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r73_a_desktop_is_out_of_reach_for_everybody_elses_commands() {
    let (own, other, none) = (private().await, private().await, lab().await);
    let persons = Desktop::start("400x300", 24);
    let place = "xdotool getmouselocation 2>&1";
    let reached = own.shell(place).await;
    assert_eq!(reached.status, OutcomeStatus::Success, "the control: {:?}", reached.observed);
    for target in [display(&other).await, persons.name.clone()] {
        for lab in [&own, &none] {
            let tried = lab.shell(&format!("DISPLAY={target} {place}")).await;
            assert_eq!(tried.status, OutcomeStatus::Failure, "{target} {:?}", tried.observed);
        }
    }
    assert_eq!(display(&none).await, "");
    assert_ne!(display(&own).await, display(&other).await);
    // Without its cookie it is closed even to its own.
    let without = own.shell(&format!("XAUTHORITY=/dev/null {place}")).await;
    assert_eq!(without.status, OutcomeStatus::Failure, "{:?}", without.observed);
}

#[tokio::test(flavor = "multi_thread")]
async fn prc_a_private_desktop_ends_with_its_session() {
    let lab = private().await;
    let socket = format!("/tmp/.X11-unix/X{}", display(&lab).await.trim_start_matches(':'));
    assert!(Path::new(&socket).exists());
    drop(lab);
    let end = Instant::now() + Duration::from_secs(10);
    while Path::new(&socket).exists() {
        assert!(Instant::now() < end, "{socket} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inp_the_bare_desktop_starts_nothing() {
    let lab = private().await;
    for button in ["right", "middle", "left"] {
        let click = json!({"type":"mouse_click","target":{"x":600,"y":400},"params":{"button":button}});
        lab.act(click).await.unwrap();
    }
    std::thread::sleep(Duration::from_millis(500));
    let seen = lab.perceive(json!({"mode":"screen"})).await.unwrap();
    assert!(seen.windows.is_empty(), "{:?}", seen.windows);
    // No menu has opened either: the next click still reaches the bare desktop.
    assert!(lab.inspect(json!({"type":"mouse_click","target":{"x":610,"y":410}})).await.is_ok());
    let typed = json!({"type":"keyboard_input","target":"window:1","params":{"text":"x"}});
    assert_eq!(code(lab.inspect(typed).await), ErrorCode::NotFound);
}
