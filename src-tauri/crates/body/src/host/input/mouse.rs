//! Moving, clicking, dragging and turning the wheel, by enigo.

use std::time::{Duration, Instant};

use bodyguard_protocol::Fault;
use bodyguard_protocol::action::{ClickPhase, MouseButton, MouseClick, MouseDrag};
use enigo::{Axis, Button, Coordinate, Direction, Enigo, Mouse as _, Settings};

use super::super::screen::no_display;
use super::{Course, Interrupted};

/// Between two clicks of a double click, and between notches of the wheel.
const BETWEEN: Duration = Duration::from_millis(40);
/// Between two points of a drag.
const STEP: Duration = Duration::from_millis(10);

/// The mouse while one act lasts. A button that is down when it is dropped is let go.
pub(super) struct Mouse {
    enigo: Enigo,
    down: Option<Button>,
}

impl Mouse {
    pub(super) fn open() -> Result<Self, Fault> {
        Ok(Self { enigo: Enigo::new(&Settings::default()).map_err(no_display)?, down: None })
    }

    pub(super) fn go(&mut self, (x, y): (i32, i32)) -> Result<(), Fault> {
        self.enigo.move_mouse(x, y, Coordinate::Abs).map_err(no_display)
    }

    /// Clicks, or turns the wheel. `done` counts.
    pub(super) fn click(
        &mut self,
        click: &MouseClick,
        course: &Course<'_>,
        done: &mut usize,
    ) -> Result<(), Interrupted> {
        let times = click.clicks.unwrap_or(1);
        if let Some((axis, notch)) = wheel(click.button) {
            for _ in 0..times {
                course.go_on()?;
                self.enigo.scroll(notch, axis).map_err(no_display)?;
                *done += 1;
                course.wait(BETWEEN)?;
            }
            return Ok(());
        }
        let Some(button) = button(click.button) else { return Ok(()) };
        match click.phase {
            ClickPhase::Down => self.enigo.button(button, Direction::Press).map_err(no_display)?,
            ClickPhase::Up => self.enigo.button(button, Direction::Release).map_err(no_display)?,
            ClickPhase::Click => {
                for index in 0..times {
                    if index > 0 {
                        course.wait(BETWEEN)?;
                    }
                    course.go_on()?;
                    self.press(button)?;
                    self.release();
                    *done += 1;
                }
                return Ok(());
            }
        }
        *done = 1;
        Ok(())
    }

    /// Lets a button go that an earlier act left down.
    pub(super) fn let_go(&mut self, wanted: MouseButton) {
        if let Some(button) = button(wanted) {
            let _ = self.enigo.button(button, Direction::Release);
        }
    }

    /// Drags from where it is along points. `done` counts the points that were reached.
    pub(super) fn drag(
        &mut self,
        from: (i32, i32),
        drag: &MouseDrag,
        course: &Course<'_>,
        done: &mut usize,
    ) -> Result<(), Interrupted> {
        let Some(button) = button(drag.button) else { return Ok(()) };
        course.go_on()?;
        self.press(button)?;
        let began = Instant::now();
        let whole = Duration::from_millis(drag.duration_ms);
        let share = whole / u32::try_from(drag.path.len()).unwrap_or(1).max(1);
        let mut last = from;
        for (index, &[x, y]) in (1_u32..).zip(&drag.path) {
            let end = began + share * index;
            loop {
                course.go_on_dragging()?;
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let part = 1.0 - left.as_secs_f64() / share.as_secs_f64().max(f64::EPSILON);
                self.go((between(last.0, x, part), between(last.1, y, part)))?;
                std::thread::sleep(STEP.min(left));
            }
            self.go((x, y))?;
            last = (x, y);
            *done += 1;
        }
        // Programs take what is dropped where the pointer was at rest.
        std::thread::sleep(BETWEEN);
        self.release();
        Ok(())
    }

    fn press(&mut self, button: Button) -> Result<(), Fault> {
        self.down = Some(button);
        self.enigo.button(button, Direction::Press).map_err(no_display)
    }

    fn release(&mut self) {
        if let Some(button) = self.down.take() {
            let _ = self.enigo.button(button, Direction::Release);
        }
    }
}

impl Drop for Mouse {
    fn drop(&mut self) {
        self.release();
    }
}

#[allow(clippy::cast_possible_truncation, reason = "between two i32")]
fn between(from: i32, to: i32, part: f64) -> i32 {
    let (from, to) = (f64::from(from), f64::from(to));
    (from + (to - from) * part.clamp(0.0, 1.0)).round() as i32
}

const fn button(button: MouseButton) -> Option<Button> {
    match button {
        MouseButton::Left => Some(Button::Left),
        MouseButton::Right => Some(Button::Right),
        MouseButton::Middle => Some(Button::Middle),
        MouseButton::Back => Some(Button::Back),
        MouseButton::Forward => Some(Button::Forward),
        _ => None,
    }
}

const fn wheel(button: MouseButton) -> Option<(Axis, i32)> {
    match button {
        MouseButton::WheelUp => Some((Axis::Vertical, -1)),
        MouseButton::WheelDown => Some((Axis::Vertical, 1)),
        MouseButton::WheelLeft => Some((Axis::Horizontal, -1)),
        MouseButton::WheelRight => Some((Axis::Horizontal, 1)),
        _ => None,
    }
}
