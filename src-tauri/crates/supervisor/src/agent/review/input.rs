//! What a person sees of keys and clicks.

use bodyguard_protocol::action::{ClickPhase, KeyboardInput, Modifier, MouseButton, MouseClick, MouseDrag};
use bodyguard_protocol::ui::Fact;
use bodyguard_protocol::{Params, WindowInfo};

use super::{fact, quoted};

/// What it wants to do, without where.
pub(super) fn phrase(params: &Params) -> String {
    match params {
        Params::KeyboardInput(KeyboardInput { text: Some(text), .. }) => {
            let count = text.chars().count();
            format!("type {count} {} into", if count == 1 { "character" } else { "characters" })
        }
        Params::KeyboardInput(KeyboardInput { keys: Some(keys), .. }) => match &keys[..] {
            [only] => format!("press {only} in"),
            several => format!("press {} keys in", several.len()),
        },
        Params::MouseClick(click) if click.button == MouseButton::None => "move the pointer to".to_owned(),
        Params::MouseClick(click) if click.button.is_wheel() => "turn the wheel over".to_owned(),
        Params::MouseClick(_) => "click in".to_owned(),
        Params::MouseDrag(_) => "drag in".to_owned(),
        _ => "act on".to_owned(),
    }
}

/// The window, in words.
pub(super) fn place(window: Option<&WindowInfo>) -> String {
    match window {
        None => "the bare desktop".to_owned(),
        Some(window) if window.title.is_empty() => format!("a window of {}", quoted(&window.app)),
        Some(window) => quoted(&window.title),
    }
}

/// Window, place and how, row by row.
pub(super) fn facts(params: &Params, window: Option<&WindowInfo>, point: Option<(i32, i32)>) -> Vec<Fact> {
    let mut facts = Vec::new();
    match window {
        Some(window) => {
            let WindowInfo { x, y, width, height, .. } = window;
            facts.push(fact("Window", &window.title));
            facts.push(fact("Application", if window.app.is_empty() { "unknown" } else { &window.app }));
            facts.push(fact("Window's place", &format!("{width} × {height} pixels at {x}, {y}")));
        }
        None => facts.push(fact("Window", "none: the bare desktop")),
    }
    if let Some((x, y)) = point {
        facts.push(fact("Point", &format!("{x}, {y}")));
    }
    match params {
        Params::MouseClick(click) => facts.push(fact("Mouse", &click_words(click))),
        Params::MouseDrag(MouseDrag { path, button, duration_ms, modifiers }) => {
            let points = path.iter().map(|[x, y]| format!("{x}, {y}")).collect::<Vec<_>>().join(" → ");
            facts.push(fact("Drags to", &points));
            facts.push(fact("Mouse", &format!("{}{} button, {duration_ms} ms", held(modifiers), name(*button))));
        }
        Params::KeyboardInput(input) if input.hold_ms > 0 => {
            facts.push(fact("Each key is held", &format!("{} ms", input.hold_ms)));
        }
        _ => {}
    }
    facts.push(fact("Containment", "none: what the window's program does with it isn't contained"));
    facts
}

fn click_words(click: &MouseClick) -> String {
    let held = held(&click.modifiers);
    let clicks = click.clicks.unwrap_or(1);
    match (click.button, click.phase) {
        (MouseButton::None, _) => format!("{held}moves only"),
        (wheel, _) if wheel.is_wheel() => format!("{held}{}, {clicks} notches", name(wheel)),
        (button, ClickPhase::Down) => format!("{held}{} button goes down", name(button)),
        (button, ClickPhase::Up) => format!("{held}{} button goes up", name(button)),
        (button, ClickPhase::Click) => match clicks {
            1 => format!("{held}{} button, one click", name(button)),
            2 => format!("{held}{} button, double click", name(button)),
            more => format!("{held}{} button, {more} clicks", name(button)),
        },
    }
}

fn held(modifiers: &[Modifier]) -> String {
    modifiers.iter().map(|modifier| format!("{} + ", modifier.name())).collect()
}

const fn name(button: MouseButton) -> &'static str {
    match button {
        MouseButton::Left => "left",
        MouseButton::Right => "right",
        MouseButton::Middle => "middle",
        MouseButton::Back => "back",
        MouseButton::Forward => "forward",
        MouseButton::WheelUp => "wheel up",
        MouseButton::WheelDown => "wheel down",
        MouseButton::WheelLeft => "wheel left",
        MouseButton::WheelRight => "wheel right",
        MouseButton::None => "no",
    }
}
