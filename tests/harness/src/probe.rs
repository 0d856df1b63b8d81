//! A window that notes which input reaches it, and from which device.

use crate::desktop::Desktop;
use crate::image::Region;
use crate::wait::{poll, wait_until};
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xinput::{self, ConnectionExt as _, XIEventMask};
use x11rb::protocol::xproto::{
    ConnectionExt as _, CreateWindowAux, EventMask, InputFocus, PropMode, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

const EVERY_MASTER: u16 = 1;
const EVERY_DEVICE: u16 = 0;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Named as the X11 events.
pub enum ProbeKind {
    ButtonPress,
    ButtonRelease,
    KeyPress,
    KeyRelease,
}

/// One event at the probe window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeEvent {
    /// What happened.
    pub kind: ProbeKind,
    /// Button number or keycode.
    pub detail: u32,
    /// Name of the source device; none for events that another client sent.
    pub source: Option<String>,
    /// Another client sent it (XSendEvent).
    pub sent: bool,
}

/// A probe window, mapped and focused.
#[derive(Debug)]
pub struct Probe {
    /// Its X11 id.
    pub window: Window,
    /// Where it is on the screen.
    pub region: Region,
    events: Arc<Mutex<Vec<ProbeEvent>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Probe {
    /// Opens it at this place, above everything and unmanaged, so that it stays there.
    ///
    /// # Errors
    /// If the X server is gone or has no XInput 2.
    pub fn open(desktop: &Desktop, region: Region) -> Result<Self> {
        let (x, root) = desktop.x11()?;
        let window = create_window(&x, root, region)?;
        x.xinput_xi_query_version(2, 2)?.reply()?;
        let mask =
            XIEventMask::BUTTON_PRESS | XIEventMask::BUTTON_RELEASE | XIEventMask::KEY_PRESS | XIEventMask::KEY_RELEASE;
        let selected = xinput::EventMask { deviceid: EVERY_MASTER, mask: vec![mask] };
        x.xinput_xi_select_events(window, &[selected])?.check()?;
        x.map_window(window)?.check()?;
        wait_until("the probe window is focused", Duration::from_secs(5), || {
            let asked = x.set_input_focus(InputFocus::PARENT, window, x11rb::CURRENT_TIME);
            let focus = x.get_input_focus().map(|cookie| cookie.reply());
            asked.is_ok() && matches!(focus, Ok(Ok(reply)) if reply.focus == window)
        })?;
        let devices = device_names(&x)?;
        let events = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let (events, stop) = (events.clone(), stop.clone());
            move || {
                while !stop.load(Ordering::Relaxed) {
                    match x.poll_for_event() {
                        Ok(Some(event)) => {
                            if let Some(event) = translate(&event, &devices) {
                                lock(&events).push(event);
                            }
                        }
                        Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                        Err(_) => break,
                    }
                }
            }
        });
        Ok(Self { window, region, events, stop, thread: Some(thread) })
    }

    /// What has reached it so far.
    #[must_use]
    pub fn events(&self) -> Vec<ProbeEvent> {
        lock(&self.events).clone()
    }

    /// Forgets what has reached it.
    pub fn clear(&self) {
        lock(&self.events).clear();
    }

    /// Waits for an event of this kind, and takes the first such.
    ///
    /// # Errors
    /// If none comes within `timeout`.
    pub fn wait(&self, kind: ProbeKind, timeout: Duration) -> Result<ProbeEvent> {
        poll(timeout, || self.events().into_iter().find(|event| event.kind == kind))
            .with_context(|| format!("no {kind:?} at the probe, only {:?}", self.events()))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It only fails if the thread panicked, which the test has seen by missing events.
            let _ = thread.join();
        }
    }
}

fn lock(events: &Mutex<Vec<ProbeEvent>>) -> std::sync::MutexGuard<'_, Vec<ProbeEvent>> {
    events.lock().unwrap_or_else(PoisonError::into_inner)
}

fn create_window(x: &RustConnection, root: Window, region: Region) -> Result<Window> {
    let window = x.generate_id()?;
    let core = EventMask::BUTTON_PRESS | EventMask::BUTTON_RELEASE | EventMask::KEY_PRESS | EventMask::KEY_RELEASE;
    x.create_window(
        x11rb::COPY_DEPTH_FROM_PARENT,
        window,
        root,
        region.x.try_into()?,
        region.y.try_into()?,
        region.width.try_into()?,
        region.height.try_into()?,
        0,
        WindowClass::INPUT_OUTPUT,
        x11rb::COPY_FROM_PARENT,
        &CreateWindowAux::new().background_pixel(0x0020_40a0).override_redirect(1).event_mask(core),
    )?
    .check()?;
    x.change_property8(
        PropMode::REPLACE,
        window,
        x11rb::protocol::xproto::AtomEnum::WM_NAME,
        x11rb::protocol::xproto::AtomEnum::STRING,
        b"probe",
    )?;
    Ok(window)
}

/// Names of all input devices, by their number.
fn device_names(x: &RustConnection) -> Result<HashMap<u16, String>> {
    let reply = x.xinput_xi_query_device(EVERY_DEVICE)?.reply()?;
    Ok(reply
        .infos
        .into_iter()
        .map(|info| {
            let name = String::from_utf8_lossy(&info.name).into_owned();
            (info.deviceid, name)
        })
        .collect())
}

fn translate(event: &Event, devices: &HashMap<u16, String>) -> Option<ProbeEvent> {
    use ProbeKind::{ButtonPress, ButtonRelease, KeyPress, KeyRelease};
    let device = |kind, detail, source: u16| {
        let name = devices.get(&source).cloned();
        Some(ProbeEvent {
            kind,
            detail,
            source: Some(name.unwrap_or_else(|| format!("unknown device {source}"))),
            sent: false,
        })
    };
    let core = |kind, detail: u8, response_type: u8| {
        Some(ProbeEvent { kind, detail: detail.into(), source: None, sent: response_type & 0x80 != 0 })
    };
    match event {
        Event::XinputButtonPress(e) => device(ButtonPress, e.detail, e.sourceid),
        Event::XinputButtonRelease(e) => device(ButtonRelease, e.detail, e.sourceid),
        Event::XinputKeyPress(e) => device(KeyPress, e.detail, e.sourceid),
        Event::XinputKeyRelease(e) => device(KeyRelease, e.detail, e.sourceid),
        Event::ButtonPress(e) => core(ButtonPress, e.detail, e.response_type),
        Event::ButtonRelease(e) => core(ButtonRelease, e.detail, e.response_type),
        Event::KeyPress(e) => core(KeyPress, e.detail, e.response_type),
        Event::KeyRelease(e) => core(KeyRelease, e.detail, e.response_type),
        _ => None,
    }
}
