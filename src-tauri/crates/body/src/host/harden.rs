//! What the host does first: keep out of reach, and bring nothing along.

use std::os::fd::{AsFd as _, OwnedFd};

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

/// Marks every other descriptor to be closed when a program is started. The supervisor opens all of
/// its own that way; this holds even where a library of it did not.
fn close_the_rest(socket: &OwnedFd) -> std::io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let listing = std::fs::read_dir("/proc/self/fd")?;
    let numbers = listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|&number| number > 2 && number != socket.as_raw_fd()).collect::<Vec<_>>() {
        close(number);
    }
    Ok(())
}

#[allow(unsafe_code, reason = "a descriptor that was inherited by accident has no owner to drop")]
fn close(number: i32) {
    use std::os::fd::FromRawFd as _;
    // SAFETY: runs before this process has opened anything but the socket, which is left out, and the
    // listing of /proc, which is closed by now; what remains was inherited and belongs to nobody here.
    drop(unsafe { OwnedFd::from_raw_fd(number) });
}
