//! Noticing a person's own hands on keyboard and mouse while an agent types or clicks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bodyguard_protocol::Fault;
use x11rb::connection::{Connection as _, RequestConnection as _};
use x11rb::protocol::Event;
use x11rb::protocol::xinput::{self, ConnectionExt as _, XIEventMask};

use super::super::screen::no_display;

const EVERY_MASTER: u16 = 1;
const EVERY_DEVICE: u16 = 0;
/// Between attempts to reach a display that has gone.
const PAUSE: Duration = Duration::from_secs(2);
/// Fewer movements than this are jitter: a knock against the table.
const JITTER: u64 = 6;
/// Movements further apart than this don't add up.
const MOVEMENT: Duration = Duration::from_millis(400);

/// What devices other than the server's own test devices did. A thread follows them for as long as
/// this process lives.
#[derive(Debug, Clone)]
pub(super) struct Person(Arc<Noted>);

#[derive(Debug)]
struct Noted {
    since: Instant,
    /// Milliseconds after `since`, plus one, of the last deliberate input; 0 for none.
    last: AtomicU64,
    /// How many there were.
    count: AtomicU64,
    /// Whether anything would be noticed.
    watching: AtomicBool,
}

impl Person {
    pub(super) fn watch() -> Self {
        let noted = Arc::new(Noted {
            since: Instant::now(),
            last: AtomicU64::new(0),
            count: AtomicU64::new(0),
            watching: AtomicBool::new(false),
        });
        let ours = Arc::clone(&noted);
        let _ = std::thread::Builder::new().name("person".to_owned()).spawn(move || {
            loop {
                let _ = follow(&ours);
                ours.watching.store(false, Ordering::Release);
                std::thread::sleep(PAUSE);
            }
        });
        Self(noted)
    }

    /// Whether a person's input would be noticed now.
    pub(super) fn is_watched(&self) -> bool {
        self.0.watching.load(Ordering::Acquire)
    }

    /// How often a person has acted so far; more later means that they did.
    pub(super) fn count(&self) -> u64 {
        self.0.count.load(Ordering::Acquire)
    }

    /// How long a person has been still.
    pub(super) fn still_for(&self) -> Duration {
        match self.0.last.load(Ordering::Acquire).checked_sub(1) {
            None => Duration::MAX,
            Some(millis) => self.0.since.elapsed().saturating_sub(Duration::from_millis(millis)),
        }
    }
}

impl Noted {
    fn note(&self) {
        let millis = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.last.store(millis + 1, Ordering::Release);
        self.count.fetch_add(1, Ordering::AcqRel);
    }
}

fn follow(noted: &Noted) -> Result<(), Fault> {
    let (connection, screen) = x11rb::connect(None).map_err(no_display)?;
    let root = connection.setup().roots.get(screen).ok_or_else(|| no_display("no such screen"))?.root;
    if connection.extension_information(xinput::X11_EXTENSION_NAME).map_err(no_display)?.is_none() {
        return Err(no_display("no XInput"));
    }
    connection.xinput_xi_query_version(2, 2).map_err(no_display)?.reply().map_err(no_display)?;
    let mask = XIEventMask::RAW_KEY_PRESS
        | XIEventMask::RAW_BUTTON_PRESS
        | XIEventMask::RAW_MOTION
        | XIEventMask::RAW_TOUCH_BEGIN;
    // Plugging in concerns all devices; input comes once, by the masters.
    let plugging = xinput::EventMask { deviceid: EVERY_DEVICE, mask: vec![XIEventMask::HIERARCHY] };
    let input = xinput::EventMask { deviceid: EVERY_MASTER, mask: vec![mask] };
    connection.xinput_xi_select_events(root, &[plugging, input]).map_err(no_display)?.check().map_err(no_display)?;
    noted.watching.store(true, Ordering::Release);
    let mut synthetic = synthetic_devices(&connection)?;
    let (mut moved, mut moved_at) = (0, Instant::now());
    loop {
        let source = match connection.wait_for_event().map_err(no_display)? {
            Event::XinputHierarchy(_) => {
                synthetic = synthetic_devices(&connection)?;
                continue;
            }
            Event::XinputRawKeyPress(event) => event.sourceid,
            Event::XinputRawButtonPress(event) => event.sourceid,
            Event::XinputRawTouchBegin(event) => event.sourceid,
            Event::XinputRawMotion(event) if !synthetic.contains(&event.sourceid) => {
                moved = if moved_at.elapsed() > MOVEMENT { 1 } else { moved + 1 };
                moved_at = Instant::now();
                if moved < JITTER {
                    continue;
                }
                event.sourceid
            }
            _ => continue,
        };
        if !synthetic.contains(&source) {
            noted.note();
        }
    }
}

/// The devices by which programs make input.
fn synthetic_devices(connection: &impl x11rb::connection::Connection) -> Result<Vec<u16>, Fault> {
    let reply = connection.xinput_xi_query_device(EVERY_DEVICE).map_err(no_display)?.reply().map_err(no_display)?;
    let made = reply.infos.iter().filter(|device| String::from_utf8_lossy(&device.name).contains("XTEST"));
    Ok(made.map(|device| device.deviceid).collect())
}
