//! Keyboard and mouse of the desktop: only ever into the window that was approved, with everything let
//! go at the end, and stopped by a person's own hands.

mod keymap;
mod keys;
mod mouse;
mod person;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bodyguard_protocol::action::{ClickPhase, KeyboardInput, MouseButton, MouseClick, MouseDrag};
use bodyguard_protocol::{ErrorCode, Fault, OutcomeStatus, Params, TypedAction, WindowInfo};
use serde_json::{Value, json};

use super::cancel::Cancel;
use super::screen::Screen;
use crate::{Effect, Inspection, Review};
use keys::Keyboard;
use mouse::Mouse;
use person::Person;

/// A person has to have been still for this long before an agent types or clicks.
const STILL: Duration = Duration::from_millis(300);
/// How long to wait for that.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest that a button is left down between two acts.
const LEFT_DOWN: Duration = Duration::from_secs(10);
/// Between two looks while nothing is done.
const SLICE: Duration = Duration::from_millis(20);

/// The keyboard and mouse of this body.
#[derive(Debug)]
pub(super) struct Input {
    person: Option<Person>,
    left_down: Arc<Mutex<Option<(MouseButton, Instant)>>>,
}

/// Where an inspected action goes.
pub(super) struct Aim {
    window: Option<WindowInfo>,
    point: Option<(i32, i32)>,
}

/// What stopped an act on its way.
struct Interrupted(Fault);

impl From<Fault> for Interrupted {
    fn from(fault: Fault) -> Self {
        Self(fault)
    }
}

/// Whether an act may go on.
struct Course<'a> {
    cancel: &'a Cancel,
    person: &'a Person,
    began: u64,
    target: &'a dyn Fn() -> Result<(), Fault>,
}

impl Course<'_> {
    /// Before each step: not cancelled, the person's hands off, the target still there.
    fn go_on(&self) -> Result<(), Interrupted> {
        self.go_on_dragging()?;
        Ok((self.target)()?)
    }

    /// The same while what is dragged may move its window.
    fn go_on_dragging(&self) -> Result<(), Interrupted> {
        if self.cancel.wanted() {
            return Err(Fault::new(ErrorCode::Cancelled, "cancelled while it typed or clicked").into());
        }
        if self.person.count() != self.began {
            return Err(person_active("the person took keyboard or mouse").into());
        }
        Ok(())
    }

    fn wait(&self, time: Duration) -> Result<(), Interrupted> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(SLICE.min(left));
            self.go_on_dragging()?;
        }
    }
}

impl Input {
    /// Of this process's display, if it has one.
    pub(super) fn new() -> Self {
        let person = std::env::var_os("DISPLAY").map(|_| Person::watch());
        Self { person, left_down: Arc::default() }
    }

    /// Finds the window that would get it.
    pub(super) fn inspect(&self, screen: &Screen, action: &TypedAction) -> Result<(Inspection, Aim), Fault> {
        let (window, point) = match point_of(&action.target) {
            Some(point) => (screen.at(point)?, Some(point)),
            None => {
                let window = screen.window(&action.target)?;
                if matches!(action.params, Params::KeyboardInput(_)) {
                    (Some(window), None)
                } else {
                    let middle = middle(&window);
                    let there = screen.at(middle)?;
                    if there.as_ref().is_none_or(|there| there.target != window.target) {
                        return Err(Fault::new(ErrorCode::NotAfforded, "another window covers the middle of this one")
                            .at("action.target")
                            .hint("name a point of the window that can be seen"));
                    }
                    (there, Some(middle))
                }
            }
        };
        let mut resolved = action.clone();
        if let Some((x, y)) = point {
            resolved.target = format!("point:{x},{y}");
        }
        let bound = window.as_ref().map(|window| {
            let WindowInfo { target, title, app, x, y, width, height, .. } = window;
            json!({ "target": target, "title": title, "app": app, "at": [x, y], "size": [width, height] })
        });
        let at = point.map(|(x, y)| [x, y]);
        let binding = json!({ "type": action.kind, "window": bound, "point": at });
        let review = Review::Input { window: window.clone(), point };
        Ok((Inspection { resolved, binding, review, prediction: Value::Null }, Aim { window, point }))
    }

    /// Types or clicks. Nothing was done where it is an error.
    pub(super) fn act(
        &self,
        screen: &Screen,
        action: &TypedAction,
        aim: &Aim,
        cancel: &Cancel,
    ) -> Result<Effect, Fault> {
        let started = Instant::now();
        let person = self.person.as_ref().ok_or_else(|| super::screen::no_display("no display"))?;
        wait_until_still(person, cancel)?;
        let target = || still_there(screen, aim);
        let course = Course { cancel, person, began: person.count(), target: &target };
        let mut done = 0;
        let (of, ended) = match (&action.params, aim.point) {
            (Params::KeyboardInput(input), _) => keyboard(screen, input, aim, &course, &mut done),
            (Params::MouseClick(click), Some(point)) => (clicks(click), self.click(click, point, &course, &mut done)),
            (Params::MouseDrag(drag), Some(point)) => (drag.path.len(), drag_along(drag, point, &course, &mut done)),
            _ => return Err(Fault::internal("the parameters don't belong to the action's type")),
        };
        let error = match ended {
            Ok(()) => None,
            Err(Interrupted(fault)) if done == 0 => return Err(fault),
            Err(Interrupted(fault)) => Some(fault),
        };
        let status = if error.is_some() { OutcomeStatus::Partial } else { OutcomeStatus::Success };
        let observed = json!({
            "window": aim.window.as_ref().map(|window| json!({ "title": window.title, "app": window.app })),
            "point": aim.point.map(|(x, y)| [x, y]),
            "done": done,
            "of": of,
        });
        let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Effect { status, observed, error, image: None, latency_ms })
    }

    fn click(
        &self,
        click: &MouseClick,
        point: (i32, i32),
        course: &Course<'_>,
        done: &mut usize,
    ) -> Result<(), Interrupted> {
        course.go_on()?;
        let mut mouse = Mouse::open()?;
        mouse.go(point)?;
        if click.button == MouseButton::None {
            *done = 1;
            return Ok(());
        }
        course.go_on()?;
        let mut keyboard = held(&click.modifiers)?;
        let ended = mouse.click(click, course, done);
        if let Some(keyboard) = &mut keyboard {
            keyboard.release_all();
        }
        ended?;
        match click.phase {
            ClickPhase::Down => self.leave_down(click.button),
            ClickPhase::Up | ClickPhase::Click => *self.left() = None,
        }
        Ok(())
    }

    /// A button that no later act lets go is let go here.
    fn leave_down(&self, button: MouseButton) {
        let since = Instant::now();
        *self.left() = Some((button, since));
        let left_down = Arc::clone(&self.left_down);
        let let_go = move || {
            std::thread::sleep(LEFT_DOWN);
            let mut left = left_down.lock().unwrap_or_else(PoisonError::into_inner);
            if *left == Some((button, since)) {
                *left = None;
                let_go_of(button);
            }
        };
        if std::thread::Builder::new().name("let go".to_owned()).spawn(let_go).is_err() {
            self.let_go();
        }
    }

    /// Lets go of what is still down.
    pub(super) fn let_go(&self) {
        if let Some((button, _)) = self.left().take() {
            let_go_of(button);
        }
    }

    fn left(&self) -> std::sync::MutexGuard<'_, Option<(MouseButton, Instant)>> {
        self.left_down.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn let_go_of(button: MouseButton) {
    if let Ok(mut mouse) = Mouse::open() {
        mouse.let_go(button);
    }
}

fn keyboard(
    screen: &Screen,
    input: &KeyboardInput,
    aim: &Aim,
    course: &Course<'_>,
    done: &mut usize,
) -> (usize, Result<(), Interrupted>) {
    let of = input.text.as_ref().map_or(0, |text| text.chars().count()) + input.keys.as_ref().map_or(0, Vec::len);
    let mut type_all = || {
        course.go_on_dragging()?;
        if let Some(window) = &aim.window {
            screen.bring_forward(&window.target)?;
        }
        let mut keyboard = Keyboard::open()?;
        if let Some(text) = &input.text {
            keyboard.text(text, course, done)?;
        }
        if let Some(keys) = &input.keys {
            keyboard.chords(keys, Duration::from_millis(input.hold_ms), course, done)?;
        }
        Ok(())
    };
    (of, type_all())
}

fn drag_along(drag: &MouseDrag, point: (i32, i32), course: &Course<'_>, done: &mut usize) -> Result<(), Interrupted> {
    course.go_on()?;
    let mut mouse = Mouse::open()?;
    mouse.go(point)?;
    let mut keyboard = held(&drag.modifiers)?;
    let ended = mouse.drag(point, drag, course, done);
    if let Some(keyboard) = &mut keyboard {
        keyboard.release_all();
    }
    ended
}

fn held(modifiers: &[bodyguard_protocol::action::Modifier]) -> Result<Option<Keyboard>, Fault> {
    if modifiers.is_empty() {
        return Ok(None);
    }
    let mut keyboard = Keyboard::open()?;
    keyboard.hold(modifiers)?;
    Ok(Some(keyboard))
}

fn clicks(click: &MouseClick) -> usize {
    let times = if click.button == MouseButton::None { 1 } else { click.clicks.unwrap_or(1) };
    usize::try_from(times).unwrap_or(usize::MAX)
}

fn wait_until_still(person: &Person, cancel: &Cancel) -> Result<(), Fault> {
    let began = Instant::now();
    while !person.is_watched() || person.still_for() < STILL {
        if cancel.wanted() {
            return Err(Fault::new(ErrorCode::Cancelled, "cancelled before anything was done"));
        }
        if began.elapsed() > PATIENCE && !person.is_watched() {
            return Err(super::screen::no_display(
                "a person's own input can't be told apart there, so nothing is typed",
            ));
        }
        if began.elapsed() > PATIENCE {
            return Err(person_active("the person is using keyboard or mouse"));
        }
        std::thread::sleep(SLICE);
    }
    Ok(())
}

fn person_active(what: &str) -> Fault {
    Fault::new(ErrorCode::PersonActive, what)
        .hint("look at the screen again, and go on once the person has left keyboard and mouse alone")
}

/// Whether what is typed or clicked next still goes where it was approved to go.
fn still_there(screen: &Screen, aim: &Aim) -> Result<(), Fault> {
    let gone = |what: &str| {
        Fault::new(ErrorCode::StateChanged, what).at("action.target").hint("look at the screen again, then decide anew")
    };
    match (aim.point, &aim.window) {
        (Some(point), window) => {
            let there = screen.at(point)?.map(|window| window.target);
            let same = there == window.as_ref().map(|window| window.target.clone());
            if same { Ok(()) } else { Err(gone("another window is at this point now")) }
        }
        (None, Some(window)) => {
            let focused = screen.has_keyboard(&window.target)?;
            if focused { Ok(()) } else { Err(gone("the window doesn't have the keyboard any more")) }
        }
        (None, None) => Err(gone("there is no window")),
    }
}

/// The point of `point:X,Y`.
fn point_of(target: &str) -> Option<(i32, i32)> {
    let (x, y) = target.strip_prefix("point:")?.split_once(',')?;
    Some((x.parse().ok()?, y.parse().ok()?))
}

fn middle(window: &WindowInfo) -> (i32, i32) {
    let half = |length: u32| i32::try_from(length / 2).unwrap_or(0);
    (window.x.saturating_add(half(window.width)), window.y.saturating_add(half(window.height)))
}
