//! Keyboard and mouse, on an X server of the test's own. What arrives is observed by real programs and
//! by a window that notes its events.

mod common;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bodyguard_body::{Body as _, HostBody};
use bodyguard_protocol::{ErrorCode, OutcomeStatus, WindowInfo};
use common::desktop::{Client, Desktop, lab_on};
use common::{Lab, code, lab};
use serde_json::{Value, json};
use x11rb::connection::Connection as _;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    ChangeWindowAttributesAux, ConnectionExt as _, EventMask, KEY_PRESS_EVENT, MOTION_NOTIFY_EVENT, PropMode, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::wrapper::ConnectionExt as _;

/// A dialog that prints what was entered.
struct Dialog(Child);

impl Dialog {
    fn open(desktop: &Desktop, title: &str) -> Self {
        let mut command = Command::new("zenity");
        command.args(["--entry", "--title", title, "--text", "What?", "--width", "500"]);
        command.env("DISPLAY", &desktop.name).env("GTK_IM_MODULE", "gtk-im-context-none").env("NO_AT_BRIDGE", "1");
        command.env("LC_ALL", "C.UTF-8").stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn said(mut self) -> String {
        let end = Instant::now() + Duration::from_secs(20);
        while self.0.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "the dialog didn't end");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.0.stdout.take().unwrap(), &mut text).unwrap();
        text.trim_end_matches('\n').to_owned()
    }
}

impl Drop for Dialog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn window(lab: &Lab<HostBody>, title: &str) -> WindowInfo {
    for _ in 0..200 {
        let seen = lab.perceive(json!({"mode":"screen"})).await.unwrap();
        if let Some(found) = seen.windows.into_iter().find(|window| window.title == title) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("no window {title}");
}

fn typing(window: &WindowInfo, text: &str) -> Value {
    json!({"type":"keyboard_input","target":window.target,"params":{"text":text}})
}

fn keys(window: &WindowInfo, keys: &[&str]) -> Value {
    json!({"type":"keyboard_input","target":window.target,"params":{"keys":keys}})
}

fn click(x: i32, y: i32, params: Value) -> Value {
    json!({"type":"mouse_click","target":{"x":x,"y":y},"params":params})
}

/// A window of this test's own program that notes what reaches it.
fn noting(client: &Client, title: &str, place: [i16; 4]) -> Window {
    let id = client.window(title, Some(1), 0x00ff_ffff, place, true);
    let mask = EventMask::BUTTON_PRESS
        | EventMask::BUTTON_RELEASE
        | EventMask::POINTER_MOTION
        | EventMask::KEY_PRESS
        | EventMask::STRUCTURE_NOTIFY;
    let wanted = ChangeWindowAttributesAux::new().event_mask(mask);
    client.connection.change_window_attributes(id, &wanted).unwrap().check().unwrap();
    id
}

/// Button presses (`+1`), releases (`-1`) and moves with a button down (`m`), in order.
fn noted(client: &Client) -> Vec<String> {
    client.connection.sync().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let mut seen: Vec<String> = Vec::new();
    while let Some(event) = client.connection.poll_for_event().unwrap() {
        match event {
            Event::ButtonPress(event) => seen.push(format!("+{} {},{}", event.detail, event.event_x, event.event_y)),
            Event::ButtonRelease(event) => seen.push(format!("-{} {},{}", event.detail, event.event_x, event.event_y)),
            Event::MotionNotify(event) if u16::from(event.state) & 0x1f00 != 0 => seen.push("m".to_owned()),
            _ => {}
        }
    }
    seen.dedup();
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_inp_01_text_arrives_exactly_with_any_unicode() {
    let desktop = Desktop::start("1024x700", 24).with_window_manager();
    let lab = lab_on(&desktop).await;
    let dialog = Dialog::open(&desktop, "Name");
    let entry = window(&lab, "Name").await;
    assert!(!entry.runs_commands, "{entry:?}");
    let text =
        "Hello, WORLD! ~{}|\\ aA1! Grüße, ŁÓDŹ; Привет — 你好 🎈 «ß» @€ zZ: the quick brown fox; JUMPS? (0123456789)";
    let typed = lab.act(typing(&entry, text)).await.unwrap();
    assert_eq!(typed.status, OutcomeStatus::Success, "{typed:?}");
    assert_eq!(typed.observed["done"], text.chars().count());
    assert_eq!(lab.act(keys(&entry, &["enter"])).await.unwrap().status, OutcomeStatus::Success);
    assert_eq!(dialog.said(), text);
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_inp_chords_work_and_caps_lock_changes_nothing() {
    let desktop = Desktop::start("1024x700", 24).with_window_manager();
    let lab = lab_on(&desktop).await;
    let dialog = Dialog::open(&desktop, "Name");
    let entry = window(&lab, "Name").await;
    lab.act(typing(&entry, "wrong")).await.unwrap();
    let other = Client::connect(&desktop);
    // Caps Lock is key 66 everywhere.
    for event in [KEY_PRESS_EVENT, KEY_PRESS_EVENT + 1] {
        other.connection.xtest_fake_input(event, 66, 0, other.root, 0, 0, 0).unwrap();
    }
    other.connection.sync().unwrap();
    let locked = || u16::from(other.connection.query_pointer(other.root).unwrap().reply().unwrap().mask) & 2 != 0;
    assert!(locked());
    lab.act(keys(&entry, &["ctrl+a", "delete"])).await.unwrap();
    lab.act(typing(&entry, "Right 1")).await.unwrap();
    assert!(locked(), "it is as it was");
    lab.act(keys(&entry, &["shift+left", "2", "?", "enter"])).await.unwrap();
    assert_eq!(dialog.said(), "Right 2?");
}

#[tokio::test(flavor = "multi_thread")]
async fn r12_inp_nothing_is_typed_into_another_window_than_the_approved() {
    let desktop = Desktop::start("1024x700", 24).with_window_manager();
    let lab = lab_on(&desktop).await;
    let (wanted, other) = (Dialog::open(&desktop, "Wanted"), Dialog::open(&desktop, "Other"));
    let entry = window(&lab, "Wanted").await;
    let decoy = window(&lab, "Other").await;
    // Whichever has the focus, the approved one gets it.
    lab.act(typing(&entry, "one")).await.unwrap();
    lab.act(typing(&decoy, "two")).await.unwrap();
    lab.act(typing(&entry, "+three")).await.unwrap();
    let late = lab.inspect(typing(&entry, "late")).await.unwrap();
    lab.act(keys(&entry, &["enter"])).await.unwrap();
    assert_eq!(wanted.said(), "one+three");
    // It has gone, so that nothing is typed anywhere.
    let permit = lab.permit(&late).await;
    let refused = lab.body.act(permit, late.resolved, Default::default()).await;
    assert_eq!(code(refused), ErrorCode::StateChanged);
    assert_eq!(code(lab.inspect(typing(&entry, "late")).await), ErrorCode::NotFound);
    lab.act(keys(&decoy, &["enter"])).await.unwrap();
    assert_eq!(other.said(), "two");
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_inp_clicks_wheel_and_drags_reach_the_point_and_are_let_go() {
    let desktop = Desktop::start("800x600", 24);
    let client = Client::connect(&desktop);
    noting(&client, "Probe", [100, 100, 300, 300]);
    let lab = lab_on(&desktop).await;
    lab.act(click(110, 120, json!({}))).await.unwrap();
    assert_eq!(noted(&client), ["+1 10,20", "-1 10,20"]);
    lab.act(click(110, 120, json!({"button":"right","clicks":2}))).await.unwrap();
    assert_eq!(noted(&client), ["+3 10,20", "-3 10,20", "+3 10,20", "-3 10,20"]);
    for (button, detail) in [
        ("middle", 2),
        ("back", 8),
        ("forward", 9),
        ("wheel_up", 4),
        ("wheel_down", 5),
        ("wheel_left", 6),
        ("wheel_right", 7),
    ] {
        lab.act(click(111, 120, json!({"button":button}))).await.unwrap();
        assert_eq!(noted(&client), [format!("+{detail} 11,20"), format!("-{detail} 11,20")], "{button}");
    }
    lab.act(click(120, 130, json!({"button":"none"}))).await.unwrap();
    assert!(noted(&client).is_empty());
    let at = client.connection.query_pointer(client.root).unwrap().reply().unwrap();
    assert_eq!((at.root_x, at.root_y), (120, 130));
    let drag =
        json!({"type":"mouse_drag","target":"point:110,110","params":{"path":[[150,150],[200,120]],"duration_ms":80}});
    let dragged = lab.act(drag).await.unwrap();
    assert_eq!((&dragged.observed["done"], dragged.status), (&json!(2), OutcomeStatus::Success));
    let seen = noted(&client);
    assert_eq!((seen.first().unwrap().as_str(), seen.last().unwrap().as_str()), ("+1 10,10", "-1 100,20"), "{seen:?}");
    assert!(seen.contains(&"m".to_owned()));
    lab.act(click(110, 110, json!({"phase":"down"}))).await.unwrap();
    assert_eq!(noted(&client), ["+1 10,10"]);
    lab.act(click(112, 110, json!({"phase":"up"}))).await.unwrap();
    assert_eq!(noted(&client).last().unwrap(), "-1 12,10");
    let named = json!({"type":"mouse_click","target":window(&lab, "Probe").await.target});
    lab.act(named).await.unwrap();
    assert_eq!(noted(&client), ["+1 150,150", "-1 150,150"], "its middle");
}

#[tokio::test(flavor = "multi_thread")]
async fn inp_a_button_left_down_is_let_go_when_the_session_ends() {
    let desktop = Desktop::start("800x600", 24);
    let client = Client::connect(&desktop);
    noting(&client, "Probe", [100, 100, 300, 300]);
    let lab = lab_on(&desktop).await;
    lab.act(click(110, 110, json!({"phase":"down"}))).await.unwrap();
    let down = || u16::from(client.connection.query_pointer(client.root).unwrap().reply().unwrap().mask) & 0x100 != 0;
    assert!(down());
    drop(lab);
    let end = Instant::now() + Duration::from_secs(5);
    while down() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!down());
}

#[tokio::test(flavor = "multi_thread")]
async fn inp_nothing_is_clicked_once_another_window_is_there() {
    let desktop = Desktop::start("800x600", 24);
    let client = Client::connect(&desktop);
    noting(&client, "Probe", [100, 100, 300, 300]);
    let lab = lab_on(&desktop).await;
    let approved = lab.inspect(click(110, 120, json!({}))).await.unwrap();
    let above = Client::connect(&desktop);
    noting(&above, "Above", [50, 50, 200, 200]);
    let permit = lab.permit(&approved).await;
    let refused = lab.body.act(permit, approved.resolved, Default::default()).await;
    assert_eq!(code(refused), ErrorCode::StateChanged);
    assert!(noted(&client).is_empty() && noted(&above).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn inp_the_supervisors_own_windows_are_never_targets() {
    let desktop = Desktop::start("800x600", 24);
    let ours = Client::connect(&desktop);
    let own = ours.window("Decision", Some(std::process::id()), 0x00ff_00ff, [300, 300, 100, 100], true);
    ours.window("", None, 0x00ff_00ff, [420, 300, 50, 50], true);
    let note = Client::connect(&desktop);
    let shown = note.window("note", Some(1), 0x00ff_ffff, [10, 10, 50, 50], true);
    let (kind, notification) = (note.atom("_NET_WM_WINDOW_TYPE"), note.atom("_NET_WM_WINDOW_TYPE_NOTIFICATION"));
    let atom = x11rb::protocol::xproto::AtomEnum::ATOM;
    note.connection.change_property32(PropMode::REPLACE, shown, kind, atom, &[notification]).unwrap();
    note.connection.sync().unwrap();
    let lab = lab_on(&desktop).await;
    for (x, y) in [(350, 350), (430, 310), (20, 20), (-1, 5), (800, 5)] {
        assert_eq!(code(lab.inspect(click(x, y, json!({}))).await), ErrorCode::NotFound, "{x},{y}");
    }
    let typed = json!({"type":"keyboard_input","target":format!("window:{own}"),"params":{"text":"x"}});
    assert_eq!(code(lab.inspect(typed).await), ErrorCode::NotFound);
    // The control: beside them is the bare desktop, which can be inspected, and is a shell to the policy.
    assert!(lab.inspect(click(600, 500, json!({}))).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn inp_a_terminal_is_known_as_what_runs_commands() {
    let desktop = Desktop::start("800x600", 24).with_window_manager();
    let lab = lab_on(&desktop).await;
    let start = |class: &str, title: &str| {
        let mut command = Command::new("xterm");
        command.args(["-class", class, "-name", "plain", "-T", title, "-e", "sleep", "60"]);
        Dialog(command.env("DISPLAY", &desktop.name).stderr(Stdio::null()).spawn().unwrap())
    };
    let _named = start("XTerm", "Terminal");
    // Called otherwise, it is known by the program that it shows.
    let _disguised = start("Letter", "Letter");
    assert!(window(&lab, "Terminal").await.runs_commands);
    assert!(window(&lab, "Letter").await.runs_commands);
    let _dialog = Dialog::open(&desktop, "Plain");
    assert!(!window(&lab, "Plain").await.runs_commands, "the control");
}

#[tokio::test(flavor = "multi_thread")]
async fn inp_without_a_display_input_is_a_typed_refusal() {
    let lab = lab().await;
    assert_eq!(code(lab.inspect(click(1, 1, json!({}))).await), ErrorCode::NoDisplay);
    let typed = json!({"type":"keyboard_input","target":"window:7","params":{"text":"x"}});
    assert_eq!(code(lab.inspect(typed).await), ErrorCode::NoDisplay);
}

/// XTEST is how programs work keyboard and mouse; only what comes from elsewhere is a person.
#[tokio::test(flavor = "multi_thread")]
async fn inp_what_programs_do_is_no_person() {
    let desktop = Desktop::start("800x600", 24).with_window_manager();
    let lab = lab_on(&desktop).await;
    let dialog = Dialog::open(&desktop, "Name");
    let entry = window(&lab, "Name").await;
    let other = Client::connect(&desktop);
    for x in 0..20 {
        other.connection.xtest_fake_input(MOTION_NOTIFY_EVENT, 0, 0, other.root, 300 + x, 300, 0).unwrap();
    }
    other.connection.sync().unwrap();
    let typed = lab.act(typing(&entry, "still there")).await.unwrap();
    assert_eq!(typed.status, OutcomeStatus::Success);
    lab.act(keys(&entry, &["enter"])).await.unwrap();
    assert_eq!(dialog.said(), "still there");
}
