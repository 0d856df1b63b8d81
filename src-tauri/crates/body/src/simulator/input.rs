//! Simulated keys and clicks: one window, which remembers what came into it.

use bodyguard_protocol::{ErrorCode, Fault, MonitorInfo, Params, TypedAction, WindowInfo};
use serde_json::{Value, json};

use crate::Review;

/// What has come into the window so far.
#[derive(Debug, Default)]
pub(super) struct Typed {
    text: String,
    clicks: u64,
    pointer: (i32, i32),
}

/// Resolves input; its target becomes a point where it is one of the mouse.
pub(super) fn resolve(
    resolved: &mut TypedAction,
    screen: &MonitorInfo,
    window: WindowInfo,
) -> Result<(Value, Review), Fault> {
    let missing = |what: &str| Fault::new(ErrorCode::NotFound, what).at("action.target");
    let side = |length: u32| i32::try_from(length).unwrap_or(i32::MAX);
    let point = match point(&resolved.target) {
        Some((x, y)) if (0..side(screen.width)).contains(&x) && (0..side(screen.height)).contains(&y) => Some((x, y)),
        Some(_) => return Err(missing("the point is outside the desktop")),
        None if resolved.target != window.target => return Err(missing("the window has gone")),
        None if matches!(resolved.params, Params::KeyboardInput(_)) => None,
        None => Some((side(window.width / 2), side(window.height / 2))),
    };
    if let Some((x, y)) = point {
        resolved.target = format!("point:{x},{y}");
    }
    let at = point.map(|(x, y)| [x, y]);
    let binding = json!({ "type": resolved.kind, "window": [&window.target, &window.title], "point": at });
    Ok((binding, Review::Input { window: Some(window), point }))
}

impl Typed {
    pub(super) fn take(&mut self, action: &TypedAction, window: &WindowInfo) -> Value {
        let mut count = 1;
        match &action.params {
            Params::KeyboardInput(input) => {
                if let Some(text) = &input.text {
                    self.text.push_str(text);
                    count = text.chars().count();
                }
                for chord in input.keys.iter().flatten() {
                    self.text.push_str(&format!("<{chord}>"));
                }
                count = input.keys.as_ref().map_or(count, Vec::len);
            }
            Params::MouseDrag(drag) => {
                count = drag.path.len();
                self.pointer = drag.path.last().map_or(self.pointer, |[x, y]| (*x, *y));
            }
            _ => {
                self.clicks += 1;
                self.pointer = point(&action.target).unwrap_or(self.pointer);
            }
        }
        let at = point(&action.target).map(|(x, y)| [x, y]);
        json!({ "window": { "title": window.title, "app": window.app }, "point": at, "done": count, "of": count })
    }

    /// What a look at the screen shows of it.
    pub(super) fn seen(&self) -> Value {
        let (x, y) = self.pointer;
        json!({ "pointer": { "x": x, "y": y }, "simulated": { "text": self.text, "clicks": self.clicks } })
    }
}

fn point(target: &str) -> Option<(i32, i32)> {
    let (x, y) = target.strip_prefix("point:")?.split_once(',')?;
    Some((x.parse().ok()?, y.parse().ok()?))
}
