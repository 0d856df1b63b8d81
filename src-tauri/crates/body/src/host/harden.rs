//! What the host does first: keep out of reach, and bring nothing along.

use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};

/// Takes the socket from standard input (no program started here gets that), and makes this process one that can't be traced, leaves no
/// core file, and ends with its parent.
pub(super) fn harden() -> std::io::Result<OwnedFd> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    // Anything a program makes here is for its owner alone unless it says otherwise.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    close_the_rest(&socket)?;
    Ok(socket)
}

/// Closes every other descriptor. The supervisor opens its own so that none is inherited; this holds
/// even where a library of it did not.
fn close_the_rest(socket: &OwnedFd) -> std::io::Result<()> {
    let listing = std::fs::read_dir("/proc/self/fd")?;
    let numbers = listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    for number in numbers.filter(|&number| number > 2 && number != socket.as_raw_fd()).collect::<Vec<_>>() {
        close(number);
    }
    Ok(())
}

#[allow(unsafe_code, reason = "a descriptor that was inherited by accident has no owner to drop")]
fn close(number: RawFd) {
    // SAFETY: runs before this process has opened anything but the socket, which is left out. Of the
    // numbers listed, that of the listing itself is closed by now and is let go of again; the others
    // were inherited and belong to nobody here.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    if rustix::io::fcntl_getfd(&fd).is_err() {
        std::mem::forget(fd);
    }
}
