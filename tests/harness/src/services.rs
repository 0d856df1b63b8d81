//! The programs that make up a virtual desktop.

use crate::environment::Environment;
use crate::processes::{end_child, wait_child};
use crate::wait::poll;
use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const START: Duration = Duration::from_secs(20);

/// A running program of the desktop.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) child: Child,
}

impl Service {
    pub(crate) fn end(&mut self, patience: Duration) {
        end_child(&mut self.child, patience);
    }
}

/// Starts the desktop's programs with one environment; each writes to its own log file.
pub(crate) struct Starter<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) logs: &'a Path,
}

impl Starter<'_> {
    fn command(&self, name: &str, program: impl AsRef<OsStr>) -> Result<Command> {
        let log = File::create(self.logs.join(format!("{name}.log")))?;
        let mut command = self.environment.command(program);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).current_dir("/").process_group(0);
        Ok(command)
    }

    fn spawn(&self, name: &'static str, command: &mut Command) -> Result<Service> {
        let child = command.spawn().with_context(|| {
            format!(
                "start {name} ({:?}): is its package of tests/harness/packages.txt installed?",
                command.get_program()
            )
        })?;
        Ok(Service { name, child })
    }

    /// The first line that a program writes, which says that it is ready.
    fn first_line(&self, service: &mut Service) -> Result<String> {
        let stdout = service.child.stdout.take().context("no stdout")?;
        let mut line = String::new();
        // The program closes its end when it fails, so this ends either way.
        BufReader::new(stdout).read_line(&mut line)?;
        if line.trim().is_empty() {
            wait_child(&mut service.child, START);
            bail!("{} didn't start: {}", service.name, self.log(service.name));
        }
        Ok(line.trim().to_owned())
    }

    fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.logs.join(format!("{name}.log"))).unwrap_or_default()
    }

    /// The X server on this display, once it accepts clients.
    pub(crate) fn x_server(&self, display: u32, arguments: &[OsString]) -> Result<Service> {
        let mut command = self.command("xserver", "Xtigervnc")?;
        command
            .arg(format!(":{display}"))
            .args(["-displayfd", "1", "-noreset", "-depth", "24"])
            .args(["-nolisten", "tcp"])
            .args(["-rfbport=-1", "-rfbunixmode", "0600"])
            .args(["-AlwaysShared=1", "-AcceptSetDesktopSize=0"])
            .args(arguments)
            .stdout(Stdio::piped());
        let mut service = self.spawn("xserver", &mut command)?;
        self.first_line(&mut service)?;
        Ok(service)
    }

    pub(crate) fn window_manager(&self) -> Result<Service> {
        let mut command = self.command("openbox", "openbox")?;
        self.spawn("openbox", command.arg("--sm-disable"))
    }

    /// A session bus on which nothing is started on demand, except the keyring's prompter: what
    /// a test left out or ended stays away.
    pub(crate) fn bus(&self, runtime: &Path, folder: &Path) -> Result<(Service, String)> {
        let services = folder.join("dbus-services");
        std::fs::create_dir_all(&services)?;
        let prompter = "org.gnome.keyring.SystemPrompter.service";
        let installed = Path::new("/usr/share/dbus-1/services").join(prompter);
        if installed.exists() {
            std::fs::copy(installed, services.join(prompter))?;
        }
        let configuration = folder.join("session-bus.conf");
        std::fs::write(&configuration, bus_configuration(runtime, &services))?;
        let mut command = self.command("dbus", "dbus-daemon")?;
        command
            .args(["--nofork", "--nosyslog", "--print-address=1"])
            .arg(format!("--config-file={}", configuration.display()))
            .stdout(Stdio::piped());
        let mut service = self.spawn("dbus", &mut command)?;
        let address = self.first_line(&mut service)?;
        Ok((service, address))
    }

    /// The keyring, unlocked with `password` (which also makes its default collection).
    pub(crate) fn keyring(&self, password: &str) -> Result<Service> {
        let mut command = self.command("keyring", "gnome-keyring-daemon")?;
        command.args(["--foreground", "--unlock", "--components=secrets"]).stdin(Stdio::piped());
        let mut service = self.spawn("keyring", &mut command)?;
        let mut stdin = service.child.stdin.take().context("no stdin")?;
        // An empty input would leave it locked: even an empty password is a line.
        stdin.write_all(format!("{password}\n").as_bytes())?;
        Ok(service)
    }

    pub(crate) fn notifications(&self, folder: &Path) -> Result<Service> {
        let configuration = folder.join("dunstrc");
        std::fs::write(&configuration, DUNSTRC)?;
        let mut command = self.command("dunst", "dunst")?;
        self.spawn("dunst", command.arg("-conf").arg(configuration))
    }

    pub(crate) fn tray(&self) -> Result<Service> {
        let mut command = self.command("trayer", "trayer")?;
        let place = ["--edge", "bottom", "--align", "right", "--widthtype", "request", "--height", "32"];
        self.spawn("trayer", command.args(place))
    }

    pub(crate) fn accessibility(&self) -> Result<Service> {
        let launcher = ["/usr/libexec", "/usr/lib/at-spi2-core"]
            .map(|folder| PathBuf::from(folder).join("at-spi-bus-launcher"))
            .into_iter()
            .find(|path| path.exists())
            .context("at-spi-bus-launcher isn't installed (at-spi2-core)")?;
        let mut command = self.command("accessibility", launcher)?;
        command.args(["--launch-immediately", "--a11y=1"]);
        self.spawn("accessibility", &mut command)
    }
}

/// Notifications as most desktops have them: a click does the default action and closes.
const DUNSTRC: &str = "\
[global]
    origin = top-right
    font = DejaVu Sans 10
    mouse_left_click = do_action, close_current
    mouse_right_click = close_current
    ignore_dbusclose = false
";

fn bus_configuration(runtime: &Path, services: &Path) -> String {
    format!(
        r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={}/bus</listen>
  <auth>EXTERNAL</auth>
  <servicedir>{}</servicedir>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#,
        runtime.display(),
        services.display()
    )
}

/// Waits until names are owned on a bus, and the keyring's default collection is there.
pub(crate) fn wait_for_names(address: &str, names: &[&str]) -> Result<()> {
    let bus = zbus::blocking::connection::Builder::address(address)?.build()?;
    for name in names {
        poll(START, || {
            let reply = bus
                .call_method(
                    Some("org.freedesktop.DBus"),
                    "/org/freedesktop/DBus",
                    Some("org.freedesktop.DBus"),
                    "NameHasOwner",
                    name,
                )
                .ok()?;
            reply.body().deserialize::<bool>().ok()?.then_some(())
        })
        .with_context(|| format!("{name} doesn't appear on the session bus"))?;
    }
    if names.contains(&"org.freedesktop.secrets") {
        poll(START, || default_collection(&bus).ok()).context("the keyring has no collection")?;
    }
    Ok(())
}

const SECRETS: &str = "org.freedesktop.secrets";

fn default_collection(bus: &zbus::blocking::Connection) -> Result<zbus::zvariant::OwnedObjectPath> {
    let reply = bus.call_method(
        Some(SECRETS),
        "/org/freedesktop/secrets",
        Some("org.freedesktop.Secret.Service"),
        "ReadAlias",
        &"default",
    )?;
    let path: zbus::zvariant::OwnedObjectPath = reply.body().deserialize()?;
    if path.as_str() == "/" {
        bail!("no default collection");
    }
    Ok(path)
}

/// Locks the default collection of the keyring.
pub(crate) fn lock_keyring(address: &str) -> Result<()> {
    let bus = zbus::blocking::connection::Builder::address(address)?.build()?;
    let collection = default_collection(&bus)?;
    bus.call_method(
        Some(SECRETS),
        "/org/freedesktop/secrets",
        Some("org.freedesktop.Secret.Service"),
        "Lock",
        &vec![collection],
    )?;
    Ok(())
}
