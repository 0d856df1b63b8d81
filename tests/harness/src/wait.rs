//! Waiting for something that becomes true soon, without fixed sleeps.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// Asks `probe` every few milliseconds until it gives a value, or `None` after `timeout`.
pub fn poll<T>(timeout: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + timeout;
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(value) = probe() {
            return Some(value);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Waits until `condition` holds.
///
/// # Errors
/// If it doesn't within `timeout`; `what` names it in the message.
pub fn wait_until(what: &str, timeout: Duration, mut condition: impl FnMut() -> bool) -> Result<()> {
    match poll(timeout, || condition().then_some(())) {
        Some(()) => Ok(()),
        None => bail!("not within {timeout:?}: {what}"),
    }
}
