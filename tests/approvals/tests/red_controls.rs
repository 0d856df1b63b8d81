//! Red controls: what isn't a person's hand approves nothing, and the person then still can. The
//! same ways run against the app with the presence check off, where they do approve; so these tests
//! can fail.

use anyhow::{Context, Result};
use approvals::{SOON, Scene, ask_as_page, records, wait_records};
use harness::accessibility::Accessibility;
use harness::windows::find_window;
use harness::{AppOptions, Desktop, binary, injector, keysym, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than the time within which the bar records alike attempts as one.
const APART: Duration = Duration::from_millis(400);
/// Longer than the bar needs to arm again after a disturbance.
const LONG_ENOUGH: Duration = Duration::from_millis(1800);
const XTEST_POINTER: &str = "XTEST pointer";
const XTEST_KEYBOARD: &str = "XTEST keyboard";

/// A way of acting that isn't a person's, at the point where Approve is.
struct Way {
    name: &'static str,
    act: fn(&Desktop, (i32, i32)) -> Result<()>,
}

const CLICKS: [Way; 3] = [
    Way { name: "xdotool click", act: |desktop, (x, y)| injector::xdotool_click(desktop, x, y) },
    Way { name: "enigo click", act: |desktop, (x, y)| injector::enigo_click(desktop, x, y) },
    Way { name: "XTEST click", act: |desktop, (x, y)| injector::xtest_click(desktop, x, y) },
];

/// With the focus on Approve, where Space presses it.
const KEYS: [Way; 4] = [
    Way { name: "xdotool alt+a", act: |desktop, _| injector::xdotool_key(desktop, "alt+a") },
    Way { name: "xdotool space", act: |desktop, _| injector::xdotool_key(desktop, "space") },
    Way { name: "enigo space", act: |desktop, _| injector::enigo_key(desktop, ' ') },
    Way { name: "XTEST space", act: |desktop, _| injector::xtest_key(desktop, keysym::SPACE) },
];

/// The test-only build of the same app with its guards off.
fn unguarded() -> Result<impl FnOnce(AppOptions) -> AppOptions> {
    let red = binary("bodyguard-red").context("build it: cargo build --workspace --bins")?;
    Ok(|options| AppOptions { binary: Some(red), ..options })
}

/// Makes GTK listen to core events, which other clients can send, and which name no device.
const CORE_EVENTS: &str = "GDK_CORE_DEVICE_EVENTS";

/// XSendEvent, to the window under the pointer and to the app's.
const SENT: [Way; 2] = [
    Way { name: "XSendEvent click", act: |desktop, (x, y)| injector::send_event_click(desktop, x, y) },
    Way { name: "XSendEvent space", act: |desktop, at| injector::send_event_key_at(desktop, at, keysym::SPACE) },
];

/// A press by the accessibility bus.
const PRESS: Way = Way {
    name: "accessibility press",
    act: |desktop, _| {
        let pressed = Accessibility::of(desktop)?.press("Approve")?;
        pressed.then_some(()).context("the accessibility bus offers the button")
    },
};

/// One request that is shown and armed, for which nothing may happen until the person acts.
struct Shown {
    scene: Scene,
    call: i64,
    refused: usize,
}

impl Shown {
    fn of(mut scene: Scene) -> Result<Self> {
        let call = scene.begin_act(scene.touch("ran"))?;
        scene.armed()?;
        Ok(Self { scene, call, refused: 0 })
    }

    fn refusals(&self) -> Result<Vec<Value>> {
        records(&self.scene.app, "presence_refused")
    }

    /// Nothing ran, nothing was answered, and the ask stands where it stood.
    fn still_open(&self, way: &str) -> Result<()> {
        assert!(!self.scene.exists("ran"), "{way} ran the command");
        assert!(!self.scene.agent.has_answer(self.call), "{way} answered the agent");
        let moves = records(&self.scene.app, "ask_moved")?;
        assert!(moves.is_empty(), "{way} moved the ask: {moves:?}");
        assert!(records(&self.scene.app, "block_issued")?.is_empty(), "{way} got a block signed");
        Ok(())
    }

    /// Does it twice: by the second time the pointer lies on the armed button already.
    fn refuses(&mut self, way: &Way, reason: &str, device: &str, event: &str) -> Result<()> {
        for round in ["", ", the pointer at rest"] {
            self.refuses_once(way, &format!("{}{round}", way.name), reason, device, event)?;
        }
        Ok(())
    }

    fn refuses_once(&mut self, way: &Way, name: &str, reason: &str, device: &str, event: &str) -> Result<()> {
        let at = self.scene.armed().with_context(|| format!("before {name}"))?;
        self.refused = self.refusals()?.len();
        std::thread::sleep(APART);
        (way.act)(&self.scene.desktop, at)?;
        let all = wait_records(&self.scene.app, "presence_refused", self.refused).with_context(|| name.to_owned())?;
        let last = all.last().context("a record")?;
        let from = last["device"].as_str().unwrap_or_default();
        assert!(from.ends_with(device), "{name}: {last}");
        assert_eq!((&last["reason"], &last["event"]), (&json!(reason), &json!(event)), "{name}: {last}");
        self.still_open(name)
    }

    /// What doesn't even reach the bar leaves no record, and nothing else either.
    fn ignores(&mut self, name: &str, act: impl FnOnce(&mut Scene, (i32, i32)) -> Result<()>) -> Result<()> {
        let at = self.scene.armed().with_context(|| format!("before {name}"))?;
        act(&mut self.scene, at).with_context(|| name.to_owned())?;
        std::thread::sleep(LONG_ENOUGH);
        self.still_open(name)
    }

    /// The very same ask, by the person's own hand.
    fn person_approves(mut self) -> Result<()> {
        self.scene.person.approve(SOON)?;
        let done = self.scene.end_act(self.call)?;
        assert_eq!(done.text_at("/outcome_status"), "success", "{}", done.text);
        assert_eq!(done.text_at("/authorization/proof/device"), "TigerVNC pointer");
        assert!(self.scene.exists("ran"));
        Ok(())
    }
}

#[test]
fn r17_inv_2_injected_clicks_and_keys_approve_nothing() -> Result<()> {
    let mut shown = Shown::of(Scene::start()?)?;
    for way in &CLICKS {
        shown.refuses(way, "synthetic_event", XTEST_POINTER, "pointer")?;
    }
    // The person's own Tab takes the focus from Deny to Approve.
    shown.scene.person.key(keysym::TAB)?;
    for way in &KEYS {
        // A person types with pauses; so does this, or the bar would take it for typing.
        std::thread::sleep(Duration::from_millis(900));
        shown.refuses_once(way, way.name, "synthetic_event", XTEST_KEYBOARD, "key")?;
    }
    shown.person_approves()
}

#[test]
fn r17_inv_2_sent_events_and_accessibility_presses_approve_nothing() -> Result<()> {
    // The app clears what would let it hear events that other programs send.
    let mut shown = Shown::of(Scene::with(|options| options.variable(CORE_EVENTS, "1"))?)?;
    let [click, space] = &SENT;
    shown.ignores(click.name, |scene, at| (click.act)(&scene.desktop, at))?;
    shown.scene.person.key(keysym::TAB)?;
    shown.ignores(space.name, |scene, at| {
        (space.act)(&scene.desktop, at)?;
        let pid = scene.app.pid()?;
        let window = find_window(&scene.desktop, |window| window.pid == Some(pid))?.context("the app's window")?;
        injector::xdotool_key_to_window(&scene.desktop, window.id, "space")
    })?;
    let at = shown.scene.armed()?;
    shown.refused = shown.refusals()?.len();
    std::thread::sleep(APART);
    (PRESS.act)(&shown.scene.desktop, at)?;
    let all = wait_records(&shown.scene.app, "presence_refused", shown.refused)?;
    let last = all.last().context("a record")?;
    assert_eq!((&last["reason"], last.get("device").unwrap_or(&Value::Null)), (&json!("no_device"), &Value::Null));
    shown.still_open(PRESS.name)?;
    shown.person_approves()
}

/// A button of the page's own that says yes, for WebDriver to click.
const OWN_BUTTON: &str = "
  const button = document.createElement('button');
  button.id = 'own-approve';
  button.style = 'position: fixed; inset: 0 auto auto 0; z-index: 9; padding: 2rem';
  button.onclick = () => window.__TAURI_INTERNALS__.invoke(...arguments[0]).catch(() => {});
  document.body.append(button);";

/// Puts the button there and clicks it.
fn click_own_button(scene: &Scene) -> Result<()> {
    let asked = records(&scene.app, "ask_opened")?.pop().context("the ask")?;
    let (command, arguments) = wishes(&asked["ask_id"], &asked["shown_digest"]).swap_remove(0);
    let page = scene.app.page()?;
    page.script(OWN_BUTTON, &[json!([command, arguments])])?;
    page.click("#own-approve")?;
    page.script("document.querySelector('#own-approve').remove()", &[])?;
    Ok(())
}

/// Everything a page could think of saying to decide an ask.
fn wishes(ask_id: &Value, digest: &Value) -> Vec<(String, Value)> {
    let methods = [
        "approve",
        "Approve",
        "decide",
        "allow",
        "grant",
        "answer",
        "confirm",
        "authorize",
        "press",
        "yes",
        "approve_ask",
        "ask_approve",
        "ask_approved",
        "issue",
        "presence",
        "set_bar_state",
        "arm",
    ];
    let mut all = Vec::new();
    for method in methods {
        for params in [
            json!({ "ask_id": ask_id }),
            json!({ "ask_id": ask_id, "shown_digest": digest, "device": "TigerVNC pointer", "decision": "approve" }),
            json!({ "ask_id": ask_id, "presence": { "ask_id": ask_id, "shown_digest": digest, "device": "TigerVNC pointer" } }),
        ] {
            all.push(("rpc".to_owned(), json!({ "request": { "method": method, "params": params } })));
        }
        all.push((method.to_owned(), json!({ "askId": ask_id, "ask_id": ask_id })));
    }
    // Widening who counts as present needs presence itself.
    for change in [
        json!({ "change": "enrol_device", "device": "Virtual core XTEST pointer" }),
        json!({ "change": "enrol_device", "name": "Virtual core XTEST pointer" }),
    ] {
        all.push(("rpc".to_owned(), json!({ "request": { "method": "narrow", "params": { "change": change } } })));
    }
    for command in ["plugin:event|emit", "plugin:webview|internal_toggle_devtools", "plugin:window|close"] {
        all.push((command.to_owned(), json!({ "event": "approve", "payload": { "ask_id": ask_id }, "label": "main" })));
    }
    all
}

/// Clicks and keys made in the page, on all of it.
const PAGE_EVENTS: &str = "
  const targets = [window, document, document.body, ...document.querySelectorAll('main, article, section, h1, h2, p')];
  for (const target of targets) {
    for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click']) {
      target.dispatchEvent(new MouseEvent(type, { bubbles: true, cancelable: true, button: 0 }));
    }
    for (const key of ['a', ' ', 'Enter']) {
      for (const type of ['keydown', 'keypress', 'keyup']) {
        target.dispatchEvent(new KeyboardEvent(type, { key, altKey: key === 'a', bubbles: true }));
      }
    }
  }
  for (const button of document.querySelectorAll('button')) {
    if (/approve|allow|yes|confirm/i.test(button.textContent)) button.click();
  }
  return targets.length;";

#[test]
fn r17_inv_2_scripts_in_the_page_and_webdriver_approve_nothing() -> Result<()> {
    let mut shown = Shown::of(Scene::with_driver(|options| options)?)?;
    let asked = records(&shown.scene.app, "ask_opened")?.pop().context("the ask")?;
    for (command, arguments) in wishes(&asked["ask_id"], &asked["shown_digest"]) {
        let answer = ask_as_page(&shown.scene.app, &command, &arguments)?;
        let refused = answer.get("error").is_some() || answer.pointer("/value/err").is_some();
        assert!(refused, "{command} {arguments} was answered {answer}");
    }
    shown.still_open("a request of the page")?;
    let events = |scene: &mut Scene, _: (i32, i32)| scene.app.page()?.script(PAGE_EVENTS, &[]).map(drop);
    shown.ignores("events made in the page", events)?;
    shown.ignores("a WebDriver click on the page", |scene, _| scene.app.page()?.click("main"))?;
    shown.ignores("a WebDriver click where Approve is", |scene, (x, y)| {
        // The driver may refuse a point outside the page; what counts is that nothing is decided.
        let page = scene.app.page()?;
        let _ = page.click_at(x, y).and_then(|()| page.click_at(x, y - 30));
        Ok(())
    })?;
    shown.ignores("a WebDriver click on a button of the page's own", |scene, _| click_own_button(scene))?;
    shown.ignores("WebDriver's Alt+A", |scene, _| scene.app.page()?.chord(&['\u{e00a}', 'a']))?;
    shown.ignores("WebDriver's Alt+A into the page", |scene, _| {
        scene.app.page()?.type_into("body", "\u{e00a}a\u{e00a}")
    })?;
    shown.person_approves()
}

/// Asks, arms, acts in this way; whether it approved, and by which device.
fn approves(scene: &mut Scene, number: usize, way: &Way, focus_approve: bool) -> Result<String> {
    let file = format!("red-{number}");
    let call = scene.begin_act(scene.touch(&file))?;
    if number > 0 {
        scene.next_request()?;
    }
    scene.armed()?;
    if focus_approve {
        scene.person.key(keysym::TAB)?;
        std::thread::sleep(Duration::from_millis(700));
    }
    let at = scene.armed()?;
    (way.act)(&scene.desktop, at)?;
    let done = scene.end_act(call)?;
    assert_eq!(done.text_at("/outcome_status"), "success", "{}: {}", way.name, done.text);
    wait_until(way.name, SOON, || scene.exists(&file))?;
    scene.perceive()?;
    Ok(done.text_at("/authorization/proof/device"))
}

#[test]
fn red_twin_with_the_guards_off_injected_input_approves() -> Result<()> {
    let mut scene = Scene::with(unguarded()?)?;
    for (number, way) in CLICKS.iter().enumerate() {
        let device = approves(&mut scene, number, way, false)?;
        assert!(device.ends_with(XTEST_POINTER), "{}: {device}", way.name);
    }
    for (number, way) in KEYS.iter().enumerate() {
        let device = approves(&mut scene, CLICKS.len() + number, way, !way.name.ends_with("alt+a"))?;
        assert!(device.ends_with(XTEST_KEYBOARD), "{}: {device}", way.name);
    }
    Ok(())
}

#[test]
fn red_twin_with_the_guards_off_sent_events_and_accessibility_presses_approve() -> Result<()> {
    let guards_off = unguarded()?;
    let mut scene = Scene::with(|options| guards_off(options).variable(CORE_EVENTS, "1"))?;
    let [click, space] = &SENT;
    for (number, (way, focus)) in [(click, false), (space, true), (&PRESS, false)].into_iter().enumerate() {
        let device = approves(&mut scene, number, way, focus)?;
        assert!(!device.contains("TigerVNC"), "{}: {device}", way.name);
    }
    Ok(())
}

#[test]
fn red_twin_with_the_guards_off_scripts_in_the_page_and_webdriver_approve() -> Result<()> {
    let mut scene = Scene::with_driver(unguarded()?)?;
    let call = scene.begin_act(scene.touch("by-script"))?;
    scene.armed()?;
    let asked = records(&scene.app, "ask_opened")?.pop().context("the ask")?;
    let (command, arguments) = wishes(&asked["ask_id"], &asked["shown_digest"]).swap_remove(0);
    let answer = ask_as_page(&scene.app, &command, &arguments)?;
    assert!(answer.pointer("/value/ok").is_some(), "{answer}");
    assert_eq!(scene.end_act(call)?.text_at("/outcome_status"), "success");
    assert!(scene.exists("by-script"));

    scene.perceive()?;
    let call = scene.begin_act(scene.touch("by-driver"))?;
    scene.next_request()?;
    scene.armed()?;
    click_own_button(&scene)?;
    assert_eq!(scene.end_act(call)?.text_at("/outcome_status"), "success");
    assert!(scene.exists("by-driver"));
    Ok(())
}
