//! The system's two clocks.

use bodyguard_protocol::{Clock, Moment, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_REALTIME` and `CLOCK_BOOTTIME`.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let wall = clock_gettime(ClockId::Realtime);
        let boot = clock_gettime(ClockId::Boottime);
        Moment {
            wall: Timestamp::from_millis(wall.tv_sec * 1000 + wall.tv_nsec / 1_000_000),
            boot_ms: (boot.tv_sec * 1000 + boot.tv_nsec / 1_000_000).unsigned_abs(),
        }
    }
}
