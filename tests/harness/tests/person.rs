//! A person's and other input arrive as what they are; a person sees, reads and types.

use anyhow::{Context, Result};
use harness::accessibility::Accessibility;
use harness::windows::find_window;
use harness::{
    Button, Desktop, DesktopOptions, Person, Probe, ProbeEvent, ProbeKind, Region, Rgb, injector, keysym, poll,
    wait_until,
};
use std::process::{Child, Stdio};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);
const PERSON_POINTER: &str = "TigerVNC pointer";
const PERSON_KEYBOARD: &str = "TigerVNC keyboard";
/// X servers name them after themselves: `Virtual core XTEST pointer`.
const XTEST_POINTER: &str = "Virtual core XTEST pointer";
const XTEST_KEYBOARD: &str = "Virtual core XTEST keyboard";

fn place() -> Region {
    Region::new(100, 100, 300, 200)
}

fn button(source: &str) -> ProbeEvent {
    ProbeEvent { kind: ProbeKind::ButtonPress, detail: 1, source: Some(source.to_owned()), sent: false }
}

#[test]
fn clicks_tell_where_they_come_from() -> Result<()> {
    let desktop = Desktop::with(DesktopOptions::bare())?;
    let mut person = Person::at(&desktop)?;
    let probe = Probe::open(&desktop, place())?;
    let (x, y) = place().centre();

    person.click(x, y)?;
    let seen = probe.wait(ProbeKind::ButtonPress, SOON)?;
    assert_eq!(seen, button(PERSON_POINTER));

    type Click = fn(&Desktop, i32, i32) -> Result<()>;
    let ways: [Click; 3] = [injector::xdotool_click, injector::enigo_click, injector::xtest_click];
    for click in ways {
        probe.clear();
        click(&desktop, x, y)?;
        let seen = probe.wait(ProbeKind::ButtonPress, SOON)?;
        assert_eq!(seen, button(XTEST_POINTER));
    }

    probe.clear();
    injector::send_event_click(&desktop, x, y)?;
    let seen = probe.wait(ProbeKind::ButtonPress, SOON)?;
    assert!(seen.sent && seen.source.is_none(), "{seen:?}");
    probe.wait(ProbeKind::ButtonRelease, SOON)?;
    Ok(())
}

#[test]
fn keys_tell_where_they_come_from() -> Result<()> {
    let desktop = Desktop::with(DesktopOptions::bare())?;
    let mut person = Person::at(&desktop)?;
    let probe = Probe::open(&desktop, place())?;

    person.key(keysym::RETURN)?;
    let seen = probe.wait(ProbeKind::KeyPress, SOON)?;
    assert_eq!(seen.source.as_deref(), Some(PERSON_KEYBOARD));
    let return_key = seen.detail;

    for inject in [
        |d: &Desktop| injector::xdotool_key(d, "Return"),
        |d: &Desktop| injector::xtest_key(d, keysym::RETURN),
        |d: &Desktop| injector::enigo_key(d, 'a'),
    ] {
        probe.clear();
        inject(&desktop)?;
        let seen = probe.wait(ProbeKind::KeyPress, SOON)?;
        assert_eq!(seen.source.as_deref(), Some(XTEST_KEYBOARD));
    }

    // To the window with the focus, xdotool would inject: another one has it now.
    let window = probe.window;
    let _other = Probe::open(&desktop, Region::new(500, 100, 50, 50))?;
    for send in [
        |d: &Desktop, w| injector::send_event_key(d, w, keysym::RETURN),
        |d: &Desktop, w| injector::xdotool_key_to_window(d, w, "Return"),
    ] {
        probe.clear();
        send(&desktop, window)?;
        let seen = probe.wait(ProbeKind::KeyPress, SOON)?;
        assert!(seen.sent && seen.detail == return_key, "{seen:?}");
    }
    Ok(())
}

#[test]
fn a_person_has_all_buttons_the_wheel_and_drags() -> Result<()> {
    let desktop = Desktop::with(DesktopOptions::bare())?;
    let mut person = Person::at(&desktop)?;
    let probe = Probe::open(&desktop, place())?;
    let (x, y) = place().centre();
    person.click_with(Button::Right, x, y)?;
    person.click_with(Button::Middle, x, y)?;
    person.wheel(x, y, -1)?;
    person.wheel(x, y, 2)?;
    person.drag((x - 20, y), (x + 20, y + 10))?;
    let releases = || -> Vec<u32> {
        let events = probe.events().into_iter();
        let events = events.filter(|e| e.kind == ProbeKind::ButtonRelease);
        events.map(|e| e.detail).collect()
    };
    wait_until("all have arrived", SOON, || releases().len() == 6)?;
    assert_eq!(releases(), [3, 2, 4, 5, 5, 1]);
    Ok(())
}

#[test]
fn a_person_finds_colours() -> Result<()> {
    let desktop = Desktop::with(DesktopOptions::bare())?;
    let mut person = Person::at(&desktop)?;
    let blue = Rgb(0x20, 0x40, 0xa0);
    assert_eq!(person.screenshot()?.find_colour(blue, 1), []);
    let probe = Probe::open(&desktop, place())?;
    assert_eq!(person.wait_for_colour(blue, 300, SOON)?, place());
    let image = person.screenshot()?;
    assert_eq!(image.at(99, 100), Some(Rgb(0xd5, 0xdb, 0xe1)));
    assert_eq!(image.at(100, 100), Some(blue));
    drop(probe);
    person.wait_for("the colour gone", SOON, |image| image.find_colour(blue, 1).is_empty().then_some(()))?;
    let missing = person.approve(Duration::from_millis(200));
    assert!(missing.is_err());
    Ok(())
}

fn zenity(desktop: &Desktop, arguments: &[&str]) -> Result<Child> {
    Ok(desktop.command("zenity").args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?)
}

#[test]
fn a_person_reads_and_presses_what_is_read() -> Result<()> {
    let desktop = Desktop::with(DesktopOptions::bare())?;
    let mut person = Person::at(&desktop)?;
    let text = "--text=Delete the folder reports in /home/anna?";
    let mut dialog = zenity(&desktop, &["--question", "--title=Careful", text])?;
    person.wait_for_text("Delete the folder reports", SOON)?;
    let window = find_window(&desktop, |w| w.title == "Careful")?.context("no window")?;
    assert_eq!(window.pid, Some(dialog.id().cast_signed()));
    assert!(window.frame.height > window.geometry.height);
    let read = person.read_text(window.geometry)?;
    assert!(read.contains("reports in /home/anna?"), "{read}");
    let no = person.wait_for_text("No", SOON)?;
    assert!(window.geometry.contains(no.x, no.y));
    person.click_on(no)?;
    assert_eq!(dialog.wait()?.code(), Some(1));
    Ok(())
}

#[test]
fn typed_text_arrives_exactly() -> Result<()> {
    let desktop = Desktop::with(DesktopOptions::bare())?;
    let mut person = Person::at(&desktop)?;
    let dialog = zenity(&desktop, &["--entry", "--text=Type here"])?;
    person.wait_for_text("Type here", SOON)?;
    // A key held down, so that the focus is surely there: the entry shows it.
    let text = "The quick BROWN fox: ~!@#$%^&*()_+{}|<>? [x]\\';/.,`-=\" äÖß€ жд 日本";
    person.type_text(text)?;
    person.key(keysym::RETURN)?;
    let output = dialog.wait_with_output()?;
    assert_eq!(String::from_utf8(output.stdout)?, format!("{text}\n"));
    Ok(())
}

#[test]
fn accessibility_presses_by_name() -> Result<()> {
    let desktop = Desktop::start()?;
    let mut dialog = zenity(&desktop, &["--question", "--text=Really?"])?;
    let accessibility = Accessibility::of(&desktop)?;
    let button = poll(SOON, || {
        let found = accessibility.find("No").ok()?;
        found.into_iter().find(|node| node.role == "push button")
    });
    assert!(button.is_some(), "{:?}", accessibility.nodes()?);
    assert!(accessibility.press("Nothing of that name").is_err());
    assert!(accessibility.press("No")?);
    assert_eq!(dialog.wait()?.code(), Some(1));
    Ok(())
}
