//! Pixels of the root window: by shared memory where the server can, else by xcap.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use bodyguard_protocol::{Fault, MonitorInfo};
use rustix::fs::MemfdFlags;
use x11rb::connection::Connection as _;
use x11rb::protocol::shm::{ConnectionExt as _, Seg};
use x11rb::protocol::xproto::{ImageFormat, ImageOrder, Window};
use x11rb::rust_connection::RustConnection;

use super::no_display;
use super::picture::{Picture, Rect};

/// A source of pixels. `area` is in pixels of the virtual desktop.
pub(super) trait Pixels {
    fn picture(&mut self, area: Rect, monitor: &MonitorInfo) -> Result<Picture, Fault>;
}

/// A memory file that the X server writes into; kept from one picture to the next.
#[derive(Debug)]
pub(super) struct Segment {
    id: Seg,
    memory: File,
    bytes: usize,
}

/// MIT-SHM. The memory is read through its descriptor, not mapped, so that nothing here is unsafe.
pub(super) struct SharedMemory<'a> {
    pub(super) connection: &'a RustConnection,
    pub(super) root: Window,
    pub(super) segment: &'a mut Option<Segment>,
}

impl SharedMemory<'_> {
    /// Whether the root window's pixels are four bytes of blue, green, red.
    pub(super) fn fits(connection: &RustConnection, depth: u8) -> bool {
        let setup = connection.setup();
        let words = setup.pixmap_formats.iter().any(|format| format.depth == depth && format.bits_per_pixel == 32);
        let shared = connection.shm_query_version().ok().and_then(|cookie| cookie.reply().ok());
        depth == 24
            && words
            && setup.image_byte_order == ImageOrder::LSB_FIRST
            && shared.is_some_and(|version| (version.major_version, version.minor_version) >= (1, 2))
    }

    fn segment(&mut self, bytes: usize) -> Result<&Segment, Fault> {
        if self.segment.as_ref().is_none_or(|segment| segment.bytes < bytes) {
            if let Some(old) = self.segment.take() {
                self.connection.shm_detach(old.id).map_err(no_display)?.check().map_err(no_display)?;
            }
            let fd = rustix::fs::memfd_create("bodyguard-screen", MemfdFlags::CLOEXEC).map_err(no_display)?;
            let memory = File::from(fd);
            memory.set_len(bytes as u64).map_err(no_display)?;
            let id = self.connection.generate_id().map_err(no_display)?;
            let theirs = std::os::fd::OwnedFd::from(memory.try_clone().map_err(no_display)?);
            self.connection.shm_attach_fd(id, theirs, false).map_err(no_display)?.check().map_err(no_display)?;
            *self.segment = Some(Segment { id, memory, bytes });
        }
        self.segment.as_ref().ok_or_else(|| no_display("no shared memory"))
    }
}

impl Pixels for SharedMemory<'_> {
    fn picture(&mut self, area: Rect, _monitor: &MonitorInfo) -> Result<Picture, Fault> {
        let length = area.width as usize * area.height as usize * 4;
        let (connection, root) = (self.connection, self.root);
        let segment = self.segment(length)?;
        let side = |n: u32| u16::try_from(n).map_err(no_display);
        let corner = |n: i32| i16::try_from(n).map_err(no_display);
        let (x, y, width, height) = (corner(area.x)?, corner(area.y)?, side(area.width)?, side(area.height)?);
        let format = u8::from(ImageFormat::Z_PIXMAP);
        let reply =
            connection.shm_get_image(root, x, y, width, height, u32::MAX, format, segment.id, 0).map_err(no_display)?;
        reply.reply().map_err(no_display)?;
        let mut bytes = vec![0; length];
        segment.memory.read_exact_at(&mut bytes, 0).map_err(no_display)?;
        Ok(Picture::from_words(area.width, area.height, &bytes, [2, 1, 0]))
    }
}

/// xcap, which finds its display by the environment.
pub(super) struct Portable;

impl Pixels for Portable {
    fn picture(&mut self, area: Rect, monitor: &MonitorInfo) -> Result<Picture, Fault> {
        let monitors = xcap::Monitor::all().map_err(no_display)?;
        let same = |candidate: &&xcap::Monitor| {
            candidate.x().is_ok_and(|x| x == monitor.x) && candidate.y().is_ok_and(|y| y == monitor.y)
        };
        let found = monitors.iter().find(same).ok_or_else(|| no_display("the monitor has gone"))?;
        let offset = |n: i32| u32::try_from(n).map_err(no_display);
        let (x, y) = (offset(area.x - monitor.x)?, offset(area.y - monitor.y)?);
        let image = found.capture_region(x, y, area.width, area.height).map_err(no_display)?;
        let (width, height) = image.dimensions();
        if (width, height) != (area.width, area.height) {
            return Err(no_display("the picture has another size than was asked for"));
        }
        Ok(Picture::from_words(width, height, image.as_raw(), [0, 1, 2]))
    }
}
