//! The screen: monitors, windows, focus, pictures. What the supervisor shows never leaves here.

mod display;
mod focus;
mod picture;
mod shared;
mod shells;
mod target;
mod windows;

use std::sync::{Mutex, MutexGuard, PoisonError};

use bodyguard_protocol::action::CaptureFormat;
use bodyguard_protocol::{ErrorCode, Fault, MonitorInfo, WindowInfo};
use serde_json::{Value, json};

use super::state::Focused;
use crate::Image;
use display::Display;
use focus::Watch;
pub(crate) use picture::{Picture, Rect};

/// A perception's picture is at most this wide.
const LOOK_WIDTH: u32 = 1_600;

/// The desktop of this body, connected when it is first needed.
#[derive(Debug)]
pub(crate) struct Screen {
    hidden_pids: Vec<u32>,
    display: Mutex<Option<Display>>,
    watch: Option<Watch>,
}

/// A picture and what was done to it.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) image: Image,
    pub(crate) masked: usize,
}

/// What a look at the screen found.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) monitors: Vec<MonitorInfo>,
    pub(crate) windows: Vec<WindowInfo>,
    pub(crate) capture: Capture,
    pub(crate) payload: Value,
}

impl Screen {
    /// The screen of this process's environment, if it has one.
    pub(crate) fn new(hidden_pids: Vec<u32>) -> Self {
        let watch = std::env::var_os("DISPLAY").map(|_| Watch::start(hidden_pids.clone()));
        Self { hidden_pids, display: Mutex::new(None), watch }
    }

    /// The focused window that isn't ours; empty without a display.
    pub(crate) fn focused(&self) -> Focused {
        let Some(watch) = &self.watch else { return Focused::default() };
        self.with(|display| display.focused(&self.hidden_pids, watch.last())).unwrap_or_default()
    }

    pub(crate) fn monitors(&self) -> Result<Vec<MonitorInfo>, Fault> {
        self.with(|display| display.monitors())
    }

    pub(crate) fn look(&self) -> Result<Look, Fault> {
        let last = self.watch.as_ref().and_then(Watch::last);
        let (monitors, windows, pointer) = self.with(|display| {
            let focused = display.focused_window(&self.hidden_pids, last)?;
            Ok((display.monitors()?, display.windows(&self.hidden_pids, focused)?, display.pointer()?))
        })?;
        let first = monitors.first().ok_or_else(|| no_display("it has no monitor"))?;
        let capture = self.capture(first, Rect::whole(first), CaptureFormat::Png, Some(LOOK_WIDTH))?;
        let payload = json!({
            "pointer": { "x": pointer.0, "y": pointer.1 },
            "picture": { "monitor": first.index, "scale": capture.image.scale, "masked_windows": capture.masked },
        });
        Ok(Look { monitors, windows, capture, payload })
    }

    /// The window that a click at a point would reach; none where it is the bare desktop.
    pub(crate) fn at(&self, point: (i32, i32)) -> Result<Option<WindowInfo>, Fault> {
        self.with(|display| display.window_at(point, &self.hidden_pids))
    }

    /// The window that `window:N` names.
    pub(crate) fn window(&self, target: &str) -> Result<WindowInfo, Fault> {
        self.with(|display| display.window_of(target, &self.hidden_pids))
    }

    /// Brings a window to the front with the keyboard.
    pub(crate) fn bring_forward(&self, target: &str) -> Result<(), Fault> {
        self.with(|display| display.bring_forward(target))
    }

    /// Whether keys go into a window now.
    pub(crate) fn has_keyboard(&self, target: &str) -> Result<bool, Fault> {
        self.with(|display| display.target_has_keyboard(target))
    }

    /// The monitor that `monitor:N` names.
    pub(crate) fn monitor(&self, target: &str) -> Result<MonitorInfo, Fault> {
        let index = target.strip_prefix("monitor:").and_then(|text| text.parse::<u32>().ok());
        let index = index.ok_or_else(|| Fault::invalid("action.target", "a monitor is `monitor:0`"))?;
        let found = self.monitors()?.into_iter().find(|monitor| monitor.index == index);
        found.ok_or_else(|| Fault::new(ErrorCode::NotFound, format!("there is no monitor {index}")).at("action.target"))
    }

    /// A region of a monitor, in the monitor's own pixels, without the windows that nobody may see.
    pub(crate) fn capture(
        &self,
        monitor: &MonitorInfo,
        region: Rect,
        format: CaptureFormat,
        max_width: Option<u32>,
    ) -> Result<Capture, Fault> {
        let area = region.moved(monitor.x, monitor.y);
        let (mut picture, hidden) = self.with(|display| display.grab(area, monitor, &self.hidden_pids))?;
        let mut masked = 0;
        for window in hidden {
            masked += usize::from(picture.mask(window.moved(-area.x, -area.y)));
        }
        let (picture, scale) = picture.shrink(max_width);
        let (width, height) = (picture.width, picture.height);
        let bytes = picture.encode(format)?;
        let media_type = format.media_type().to_owned();
        Ok(Capture { image: Image { media_type, bytes, width, height, scale }, masked })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Display) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut slot = self.lock();
        let display = match slot.take() {
            Some(display) => slot.insert(display),
            None => slot.insert(Display::connect()?),
        };
        let result = work(display);
        if result.as_ref().is_err_and(|fault| fault.code == ErrorCode::NoDisplay) {
            // The connection has gone; the next call makes another.
            *slot = None;
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, Option<Display>> {
        self.display.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The region of a monitor that was asked for.
pub(crate) fn region_of(monitor: &MonitorInfo, region: Option<[u32; 4]>) -> Result<Rect, Fault> {
    let Some([x, y, width, height]) = region else { return Ok(Rect::whole(monitor)) };
    let fits =
        |from: u32, length: u32, whole: u32| length > 0 && from.checked_add(length).is_some_and(|end| end <= whole);
    if !fits(x, width, monitor.width) || !fits(y, height, monitor.height) {
        let message = format!("the region must lie within {} × {} pixels", monitor.width, monitor.height);
        return Err(Fault::invalid("action.params.region", message));
    }
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    Ok(Rect { x: number(x), y: number(y), width, height })
}

pub(crate) fn no_display(why: impl std::fmt::Display) -> Fault {
    Fault::new(ErrorCode::NoDisplay, format!("there is no screen to look at: {why}"))
}
