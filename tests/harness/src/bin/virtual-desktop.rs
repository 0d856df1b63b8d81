//! Runs a command on a virtual desktop:
//! `virtual-desktop [--size WxH] [--vnc-socket PATH] [--vnc-password-file FILE] [--home DIR] -- COMMAND…`

use anyhow::{Context, Result, bail};
use harness::{Desktop, DesktopOptions};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: virtual-desktop [--size WxH] [--vnc-socket PATH] \
[--vnc-password-file FILE] [--home DIR] -- COMMAND [ARGUMENT…]

  --size WxH                size of the screen in pixels (1280x800)
  --vnc-socket PATH         where to make the Unix socket for viewers (mode 0600)
  --vnc-password-file FILE  the password for viewers is its first line (VNC takes 8 characters);
                            without it one is made and printed
  --home DIR                a home folder that stays; without it one is made and removed";

/// Variables of the caller's own desktop, which must not reach the virtual one.
const FOREIGN: [&str; 10] = [
    "WAYLAND_DISPLAY",
    "WAYLAND_SOCKET",
    "SESSION_MANAGER",
    "DESKTOP_SESSION",
    "XDG_CURRENT_DESKTOP",
    "XDG_SESSION_ID",
    "GNOME_KEYRING_CONTROL",
    "AT_SPI_BUS_ADDRESS",
    "GDK_CORE_DEVICE_EVENTS",
    "SSH_AUTH_SOCK",
];

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("virtual-desktop: {error:#}");
            ExitCode::from(125)
        }
    }
}

fn run() -> Result<ExitCode> {
    let (mut options, command) = parse(std::env::args_os().skip(1))?;
    let made = options.vnc_password.is_none();
    if made {
        options.vnc_password = Some(password()?);
    }
    let desktop = Desktop::with(options)?;
    explain(&desktop, made);
    let Some((program, arguments)) = command.split_first() else {
        bail!("no command\n{USAGE}");
    };
    let mut child = Command::new(program);
    child.args(arguments);
    for name in FOREIGN {
        child.env_remove(name);
    }
    keep_toolchains(&mut child);
    child.envs(desktop.environment().iter());
    let status = child.status().with_context(|| format!("start {program:?}"))?;
    drop(desktop);
    // As a shell tells it: 128 + the signal that ended it.
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<(DesktopOptions, Vec<OsString>)> {
    let mut options = DesktopOptions::default();
    while let Some(option) = arguments.next() {
        let mut value = || {
            let value = arguments.next();
            value.with_context(|| format!("{option:?} needs a value\n{USAGE}"))
        };
        match option.to_str() {
            Some("--") => {
                let command: Vec<OsString> = arguments.collect();
                if command.is_empty() {
                    bail!("no command\n{USAGE}");
                }
                return Ok((options, command));
            }
            Some("--size") => options.size = size(&value()?.to_string_lossy())?,
            Some("--vnc-socket") => options.vnc_socket = Some(absolute(&value()?)?),
            Some("--vnc-password-file") => {
                options.vnc_password = Some(read_password(Path::new(&value()?))?);
            }
            Some("--home") => options.home = Some(absolute(&value()?)?),
            Some("--help" | "-h") => {
                println!("{USAGE}");
                std::process::exit(0);
            }
            _ => bail!("unknown option {option:?}\n{USAGE}"),
        }
    }
    bail!("no command\n{USAGE}")
}

fn size(text: &str) -> Result<(u16, u16)> {
    let parsed = text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    match parsed {
        Some((width @ 64.., height @ 64..)) => Ok((width, height)),
        _ => bail!("not a size: {text:?} (as 1280x800)"),
    }
}

fn absolute(path: &OsString) -> Result<PathBuf> {
    Ok(std::path::absolute(path)?)
}

fn read_password(file: &Path) -> Result<String> {
    let text = fs::read_to_string(file).with_context(|| format!("read {file:?}"))?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() {
        bail!("{file:?} has no password in its first line");
    }
    Ok(line.to_owned())
}

/// Eight random characters that can't be mistaken for one another: 40 bits.
fn password() -> Result<String> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 8];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

/// Rust's tools look into the home folder, which is another one on the desktop.
fn keep_toolchains(command: &mut Command) {
    let Some(home) = std::env::var_os("HOME").map(PathBuf::from) else {
        return;
    };
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let path = home.join(folder);
        if std::env::var_os(name).is_none() && path.is_dir() {
            command.env(name, path);
        }
    }
}

fn explain(desktop: &Desktop, password_made: bool) {
    let socket = desktop.vnc_socket().display();
    let (width, height) = desktop.size();
    eprintln!("Virtual desktop :{}, {width}x{height}. To see it:", desktop.display());
    eprintln!("  here:           vncviewer {socket}");
    eprintln!(
        "  by a TCP port:  socat TCP-LISTEN:5900,bind=127.0.0.1,fork UNIX-CONNECT:{socket}   \
         then a viewer on 127.0.0.1:5900"
    );
    eprintln!(
        "  from elsewhere: ssh -L 5900:{socket} USER@THIS-MACHINE   \
         then a viewer on 127.0.0.1:5900"
    );
    match desktop.vnc_password() {
        Some(password) if password_made => eprintln!("  password:       {password}"),
        _ => eprintln!("  password:       the one of the password file"),
    }
}
