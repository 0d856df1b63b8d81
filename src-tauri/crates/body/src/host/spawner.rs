//! The one thread that starts programs. It lives as long as the host: a sandbox asks to be ended when
//! the *thread* that started it ends. And because nothing else starts programs, descriptors that it
//! makes inheritable for one program reach no other.

use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::mpsc::{SyncSender, sync_channel};

use rustix::io::FdFlags;

struct Job {
    command: Command,
    keep: Vec<OwnedFd>,
    reply: SyncSender<std::io::Result<Child>>,
}

#[derive(Debug)]
pub(crate) struct Spawner {
    jobs: SyncSender<Job>,
}

impl Spawner {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (jobs, todo) = sync_channel::<Job>(8);
        std::thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            while let Ok(mut job) = todo.recv() {
                let _ = job.reply.send(spawn(&mut job.command, &job.keep));
                // The descriptors close here, before another program starts.
                drop(job.keep);
            }
        })?;
        Ok(Self { jobs })
    }

    /// Starts a program that inherits `keep` under their present numbers.
    pub(crate) fn spawn(&self, command: Command, keep: Vec<OwnedFd>) -> std::io::Result<Child> {
        let (reply, started) = sync_channel(1);
        let gone = || std::io::Error::other("the spawning thread has ended");
        self.jobs.send(Job { command, keep, reply }).map_err(|_| gone())?;
        started.recv().map_err(|_| gone())?
    }
}

fn spawn(command: &mut Command, keep: &[OwnedFd]) -> std::io::Result<Child> {
    for fd in keep {
        rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
    }
    command.spawn()
}
