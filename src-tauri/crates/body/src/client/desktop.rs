//! A private desktop: an X server and a window manager of a session's own, which nobody else's programs
//! can reach. Linux only; elsewhere there is none.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bodyguard_protocol::{ErrorCode, Fault};
use rustix::process::Signal;

/// The servers that can be one, and how each is told to have a screen.
const SERVERS: [(&str, &[&str]); 2] = [
    ("Xvfb", &["-screen", "0", "1280x800x24"]),
    ("Xtigervnc", &["-geometry", "1280x800", "-depth", "24", "-SecurityTypes", "None", "-rfbport", "-1"]),
];
/// Numbers are drawn at random from here on: the lowest free one would be taken again at once, and a
/// server that is just ending unlinks the socket of the one after it. Beyond 59,535 the TCP port that
/// belongs to a number doesn't exist, which clients don't expect.
const FIRST_DISPLAY: u32 = 52_000;
const DISPLAYS: u32 = 7_000;
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A window manager that starts no programs: no menus, no keys, and the mouse only for windows.
const MANAGER: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
  <focus><focusNew>yes</focusNew></focus>
  <placement><policy>Smart</policy></placement>
  <desktops><number>1</number></desktops>
  <keyboard/>
  <mouse>
    <context name="Client">
      <mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Middle" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Right" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
    </context>
    <context name="Titlebar">
      <mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Left" action="Drag"><action name="Move"/></mousebind>
    </context>
    <context name="Close"><mousebind button="Left" action="Click"><action name="Close"/></mousebind></context>
  </mouse>
  <menu/>
  <applications/>
</openbox_config>
"#;

/// A running private desktop. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct PrivateDesktop {
    display: u32,
    cookie: PathBuf,
    stop: Option<SyncSender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl PrivateDesktop {
    /// Starts one. Blocks until it can be used.
    ///
    /// # Errors
    /// `no_display` where no X server is installed, or it doesn't start.
    pub(crate) fn start() -> Result<Self, Fault> {
        let (started, start) = sync_channel(1);
        let (stop, stopped) = sync_channel(1);
        // Its programs are ended with the thread that started them, so the thread stays.
        let keeper = std::thread::Builder::new()
            .name("desktop".to_owned())
            .spawn(move || keep(&started, &stopped))
            .map_err(none)?;
        let (display, cookie) = start.recv().map_err(none)??;
        Ok(Self { display, cookie, stop: Some(stop), keeper: Some(keeper) })
    }

    /// The display's name, such as `:52001`.
    pub(crate) fn display(&self) -> String {
        format!(":{}", self.display)
    }

    /// The file with its cookie.
    pub(crate) fn cookie(&self) -> &Path {
        &self.cookie
    }
}

impl Drop for PrivateDesktop {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

type Started = Result<(u32, PathBuf), Fault>;

fn keep(started: &SyncSender<Started>, stopped: &Receiver<()>) {
    let mut parts = Parts { children: Vec::new(), folder: None };
    let begun = begin(&mut parts);
    let runs = begun.is_ok();
    if started.send(begun).is_ok() && runs {
        let _ = stopped.recv();
    }
}

/// What has to be ended and removed.
struct Parts {
    children: Vec<Child>,
    folder: Option<PathBuf>,
}

impl Drop for Parts {
    fn drop(&mut self) {
        // The window manager before the server.
        for child in self.children.iter_mut().rev() {
            let _ = rustix::process::kill_process(pid(child), Signal::TERM);
            let begun = Instant::now();
            while matches!(child.try_wait(), Ok(None)) && begun.elapsed() < Duration::from_secs(2) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn pid(child: &Child) -> rustix::process::Pid {
    rustix::process::Pid::from_child(child)
}

fn begin(parts: &mut Parts) -> Started {
    let folder = folder()?;
    parts.folder = Some(folder.clone());
    let secret = random()?;
    let cookie = folder.join("Xauthority");
    write_private(&cookie, &xauthority(&secret))?;
    let (program, words) = SERVERS
        .iter()
        .find(|(name, _)| PATH.split(':').any(|dir| Path::new(dir).join(name).is_file()))
        .ok_or_else(|| none("no X server for private desktops is installed").hint("install xvfb and openbox"))?;
    let mut failure = none("it was never tried");
    for _ in 0..4 {
        let number = FIRST_DISPLAY + u32::from_ne_bytes(first(random()?)) % DISPLAYS;
        match server(program, words, number, &cookie, &folder) {
            Ok(child) => {
                parts.children.push(child);
                manager(parts, number, &cookie, &folder)?;
                return Ok((number, cookie));
            }
            Err(fault) => failure = fault,
        }
    }
    Err(failure)
}

fn server(program: &str, words: &[&str], number: u32, cookie: &Path, folder: &Path) -> Result<Child, Fault> {
    let mut command = bare(program, folder);
    command.arg(format!(":{number}")).args(words).arg("-auth").arg(cookie);
    command.args(["-noreset", "-nolisten", "tcp", "-displayfd", "1"]).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(none)?;
    let said = child.stdout.take().map(BufReader::new);
    let mut line = String::new();
    // It says its number once it is ready, and nothing where it ends before.
    let ready = said.is_some_and(|mut said| said.read_line(&mut line).is_ok_and(|bytes| bytes > 0));
    if ready && line.trim() == number.to_string() {
        return Ok(child);
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(none(format!("{program} did not start on display {number}")))
}

/// Starts the window manager, if there is one: without it programs still run, with bare windows.
fn manager(parts: &mut Parts, number: u32, cookie: &Path, folder: &Path) -> Result<(), Fault> {
    let config = folder.join("rc.xml");
    write_private(&config, MANAGER.as_bytes())?;
    let mut command = bare("openbox", folder);
    command.arg("--config-file").arg(&config).arg("--sm-disable");
    command.env("DISPLAY", format!(":{number}")).env("XAUTHORITY", cookie).stdout(Stdio::null());
    match command.spawn() {
        Ok(child) => parts.children.push(child),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(none(error)),
    }
    Ok(())
}

/// A program with nothing of this process's environment, which ends with the thread that starts it.
fn bare(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", PATH).env("HOME", folder).env("XDG_CONFIG_HOME", folder);
    command.env("XDG_CACHE_HOME", folder).env("LANG", "C.UTF-8").current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    end_with_this_thread(&mut command);
    command
}

#[allow(unsafe_code, reason = "only the child itself can ask for it, between fork and exec")]
fn end_with_this_thread(command: &mut Command) {
    // SAFETY: one system call that allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into));
    }
}

/// A new folder for this user alone. The runtime folder where there is one: it goes with the login.
fn folder() -> Result<PathBuf, Fault> {
    let parent = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_dir());
    let parent = parent.unwrap_or_else(std::env::temp_dir);
    let folder = parent.join(format!("bodyguard-desktop-{}", hex::encode(random()?)));
    std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(none)?;
    Ok(folder)
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    let file: std::io::Result<File> = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(bytes)).map_err(none)
}

/// One entry that holds for every address and number. The cookie is its last 16 bytes.
pub(crate) fn xauthority(cookie: &[u8; 16]) -> Vec<u8> {
    const ANY_ADDRESS: u16 = 0xffff;
    let mut bytes = ANY_ADDRESS.to_be_bytes().to_vec();
    for part in [&b""[..], b"", b"MIT-MAGIC-COOKIE-1", cookie] {
        bytes.extend(u16::try_from(part.len()).unwrap_or(0).to_be_bytes());
        bytes.extend(part);
    }
    bytes
}

fn random() -> Result<[u8; 16], Fault> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).map_err(none)?;
    Ok(bytes)
}

fn first(bytes: [u8; 16]) -> [u8; 4] {
    [bytes[0], bytes[1], bytes[2], bytes[3]]
}

fn none(why: impl std::fmt::Display) -> Fault {
    Fault::new(ErrorCode::NoDisplay, format!("there is no private desktop: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_manager_has_nothing_that_starts_a_program() {
        for word in ["Execute", "ShowMenu", "<keybind", "Root"] {
            assert!(!MANAGER.contains(word), "{word}");
        }
    }

    #[test]
    fn a_cookie_file_has_one_entry_for_every_address() {
        let bytes = xauthority(&[7; 16]);
        assert_eq!(bytes.len(), 2 + 2 + 2 + 2 + 18 + 2 + 16);
        assert_eq!(&bytes[..8], &[0xff, 0xff, 0, 0, 0, 0, 0, 18]);
        assert!(bytes.ends_with(&[7; 16]));
    }
}
