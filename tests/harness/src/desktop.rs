//! A whole desktop of its own: X server with VNC, window manager, session bus, keyring,
//! notification daemon, accessibility bus, folders. It ends with its owner, whatever happens.

use crate::environment::Environment;
use crate::processes::{Keeper, Process, kill_all, marked};
use crate::rfb::password_file;
use crate::services::{Service, Starter, lock_keyring, wait_for_names};
use crate::wait::poll;
use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ChangeWindowAttributesAux, ConnectionExt};
use x11rb::rust_connection::{DefaultStream, RustConnection};

/// Names the desktop in the environment of everything that runs on it.
const MARKER: &str = "VIRTUAL_DESKTOP";

/// The colour of the desktop where no window is.
const BACKGROUND: u32 = 0x00d5_dbe1;

/// What a desktop has.
#[derive(Clone, Debug)]
pub struct DesktopOptions {
    /// Width and height in pixels.
    pub size: (u16, u16),
    /// Password for viewers (VNC looks at 8 bytes); none for tests.
    pub vnc_password: Option<String>,
    /// Where the VNC socket is made; by default in the desktop's own folder.
    pub vnc_socket: Option<PathBuf>,
    /// A home folder that outlives the desktop; by default an own one, removed at the end.
    pub home: Option<PathBuf>,
    /// A window manager (openbox).
    pub window_manager: bool,
    /// A session bus. Keyring, notifications and accessibility need it.
    pub bus: bool,
    /// An unlocked keyring (gnome-keyring) with an empty password.
    pub keyring: bool,
    /// A notification daemon (dunst).
    pub notifications: bool,
    /// An accessibility bus (at-spi2).
    pub accessibility: bool,
    /// A place for tray icons (trayer), at the bottom right.
    pub tray: bool,
}

impl Default for DesktopOptions {
    fn default() -> Self {
        Self {
            size: (1280, 800),
            vnc_password: None,
            vnc_socket: None,
            home: None,
            window_manager: true,
            bus: true,
            keyring: true,
            notifications: true,
            accessibility: true,
            tray: false,
        }
    }
}

impl DesktopOptions {
    /// X server and window manager only: quickest to start.
    #[must_use]
    pub fn bare() -> Self {
        Self { bus: false, keyring: false, notifications: false, accessibility: false, ..Self::default() }
    }
}

/// A running virtual desktop. Dropping it ends every process on it.
#[derive(Debug)]
pub struct Desktop {
    folder: PathBuf,
    marker: String,
    environment: Environment,
    size: (u16, u16),
    display: u32,
    cookie: [u8; 16],
    vnc_socket: PathBuf,
    vnc_password: Option<String>,
    bus_address: Option<String>,
    home: PathBuf,
    services: Vec<Service>,
    /// Dropped last.
    _keeper: Keeper,
}

impl Desktop {
    /// Starts a desktop with everything.
    ///
    /// # Errors
    /// If a part is missing or doesn't start; its log is in the message.
    pub fn start() -> Result<Self> {
        Self::with(DesktopOptions::default())
    }

    /// Starts a desktop with these parts.
    ///
    /// # Errors
    /// As [`Desktop::start`].
    pub fn with(options: DesktopOptions) -> Result<Self> {
        let mut new = Self::prepare(&options)?;
        new.start_display(&options).context("virtual display")?;
        new.start_services(&options).context("programs of the virtual desktop")?;
        Ok(new)
    }

    /// Folders, cookie and environment, with nothing running but the keeper.
    fn prepare(options: &DesktopOptions) -> Result<Self> {
        // Directly under /tmp: the paths of Unix sockets are limited to 107 bytes.
        let folder = tempfile::Builder::new()
            .prefix("bg-desk-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in("/tmp")?
            .keep();
        let marker = format!("{MARKER}={}", folder.display());
        let keeper = Keeper::start(&marker, &folder)?;
        let home = options.home.clone().unwrap_or_else(|| folder.join("home"));
        let mut environment = Environment::base();
        environment.set(MARKER, folder.as_os_str());
        environment.set("XAUTHORITY", folder.join("Xauthority"));
        set_folders(&mut environment, &folder, &home)?;
        for (name, value) in [
            ("XDG_SESSION_TYPE", "x11"),
            ("GDK_BACKEND", "x11"),
            ("GSETTINGS_BACKEND", "memory"),
            ("WEBKIT_DISABLE_DMABUF_RENDERER", "1"),
            ("LIBGL_ALWAYS_SOFTWARE", "1"),
        ] {
            environment.set(name, value);
        }
        if !options.accessibility {
            environment.set("NO_AT_BRIDGE", "1");
        }
        // Without a bus nothing shall find one, nor start one by itself.
        let no_bus = format!("unix:path={}", folder.join("no-bus").display());
        environment.set("DBUS_SESSION_BUS_ADDRESS", no_bus);
        let vnc_socket = options.vnc_socket.clone().unwrap_or_else(|| folder.join("vnc.sock"));
        Ok(Self {
            marker,
            environment,
            size: options.size,
            display: 0,
            cookie: random()?,
            vnc_socket,
            vnc_password: options.vnc_password.clone(),
            bus_address: None,
            home,
            services: Vec::new(),
            folder,
            _keeper: keeper,
        })
    }

    fn start_display(&mut self, options: &DesktopOptions) -> Result<()> {
        let (width, height) = self.size;
        let cookie_file = self.folder.join("Xauthority");
        write_private(&cookie_file, &xauthority(None, &self.cookie))?;
        let mut arguments: Vec<OsString> = vec![
            "-geometry".into(),
            format!("{width}x{height}").into(),
            "-auth".into(),
            cookie_file.clone().into(),
            "-rfbunixpath".into(),
            self.vnc_socket.clone().into(),
            "-SecurityTypes".into(),
        ];
        if let Some(password) = &options.vnc_password {
            let file = self.folder.join("vnc-password");
            write_private(&file, &password_file(password))?;
            arguments.extend(["VncAuth".into(), "-PasswordFile".into(), file.into()]);
        } else {
            arguments.push("None".into());
        }
        let (server, display) = self.start_x_server(&arguments)?;
        self.services.push(server);
        self.display = display;
        fs::write(self.folder.join("display"), display.to_string())?;
        // Some clients match entries by display number only.
        write_private(&cookie_file, &xauthority(Some(display), &self.cookie))?;
        self.environment.set("DISPLAY", format!(":{display}"));
        self.paint_background()
    }

    /// Starts the X server on a display that no other has.
    ///
    /// Numbers are drawn at random, and taken by the kernel's refusal of a second abstract socket
    /// of that name. The lowest free one would be reused at once, and a server that is just
    /// ending unlinks the socket file of the one that follows it.
    fn start_x_server(&self, arguments: &[OsString]) -> Result<(Service, u32)> {
        const FIRST: u32 = 1000;
        const COUNT: u32 = 50_000;
        let mut failure = None;
        for _ in 0..5 {
            let display = FIRST + u32::from_ne_bytes(random()?) % COUNT;
            match self.starter().x_server(display, arguments) {
                Ok(server) => return Ok((server, display)),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.context("never tried")?)
    }

    /// A plain light background, as most desktops have, instead of black.
    fn paint_background(&self) -> Result<()> {
        let (x, root) = self.x11()?;
        let colour = ChangeWindowAttributesAux::new().background_pixel(BACKGROUND);
        x.change_window_attributes(root, &colour)?.check()?;
        x.clear_area(false, root, 0, 0, 0, 0)?.check()?;
        Ok(())
    }

    fn start_services(&mut self, options: &DesktopOptions) -> Result<()> {
        if options.window_manager {
            let service = self.starter().window_manager()?;
            self.services.push(service);
        }
        if options.bus {
            let (service, address) = self.starter().bus(&self.runtime_dir(), &self.folder)?;
            self.services.push(service);
            self.environment.set("DBUS_SESSION_BUS_ADDRESS", address.clone());
            self.bus_address = Some(address);
        } else if options.keyring || options.notifications || options.accessibility {
            bail!("keyring, notifications and accessibility need the bus");
        }
        let mut names = Vec::new();
        if options.keyring {
            self.services.push(self.starter().keyring("")?);
            names.push("org.freedesktop.secrets");
        }
        if options.notifications {
            let service = self.starter().notifications(&self.folder)?;
            self.services.push(service);
            names.push("org.freedesktop.Notifications");
        }
        if options.accessibility {
            self.services.push(self.starter().accessibility()?);
            names.push("org.a11y.Bus");
        }
        if let Some(address) = &self.bus_address {
            wait_for_names(address, &names).with_context(|| self.logs())?;
        }
        if options.window_manager {
            self.wait_for_window_manager().with_context(|| self.logs())?;
        }
        if options.tray {
            self.services.push(self.starter().tray()?);
            self.wait_for_tray().with_context(|| self.logs())?;
        }
        Ok(())
    }

    fn wait_for_window_manager(&self) -> Result<()> {
        let (x, root) = self.x11()?;
        let atom = x.intern_atom(false, b"_NET_SUPPORTING_WM_CHECK")?.reply()?.atom;
        poll(Duration::from_secs(20), || {
            let property = x.get_property(false, root, atom, AtomEnum::WINDOW, 0, 1).ok()?.reply().ok()?;
            (property.value_len == 1).then_some(())
        })
        .context("the window manager doesn't take over")
    }

    fn wait_for_tray(&self) -> Result<()> {
        let (x, _) = self.x11()?;
        let atom = x.intern_atom(false, b"_NET_SYSTEM_TRAY_S0")?.reply()?.atom;
        let owned = || {
            let owner = x.get_selection_owner(atom).ok()?.reply().ok()?.owner;
            (owner != x11rb::NONE).then_some(())
        };
        poll(Duration::from_secs(20), owned).context("nobody shows tray icons")
    }

    fn starter(&self) -> Starter<'_> {
        Starter { environment: &self.environment, logs: &self.folder }
    }

    /// A command that runs on this desktop, with its environment and nothing of the caller's but
    /// `PATH`. What it starts ends with the desktop at the latest.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.environment.command(program)
    }

    /// The environment of [`Desktop::command`].
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// An X11 connection of its own, and the root window.
    ///
    /// # Errors
    /// If the server is gone.
    pub fn x11(&self) -> Result<(RustConnection, u32)> {
        let socket = UnixStream::connect(format!("/tmp/.X11-unix/X{}", self.display))?;
        let (stream, _) = DefaultStream::from_unix_stream(socket)?;
        let connection = RustConnection::connect_to_stream_with_auth_info(
            stream,
            0,
            b"MIT-MAGIC-COOKIE-1".to_vec(),
            self.cookie.to_vec(),
        )?;
        let root = connection.setup().roots.first().context("no screen")?.root;
        Ok((connection, root))
    }

    /// The display's number `N` in `:N`.
    #[must_use]
    pub fn display(&self) -> u32 {
        self.display
    }

    /// Width and height in pixels.
    #[must_use]
    pub fn size(&self) -> (u16, u16) {
        self.size
    }

    /// The VNC server's Unix socket (mode 0600).
    #[must_use]
    pub fn vnc_socket(&self) -> &Path {
        &self.vnc_socket
    }

    /// The password for viewers, if there is one.
    #[must_use]
    pub fn vnc_password(&self) -> Option<&str> {
        self.vnc_password.as_deref()
    }

    /// The session bus.
    #[must_use]
    pub fn bus_address(&self) -> Option<&str> {
        self.bus_address.as_deref()
    }

    /// `HOME` of the desktop.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// `XDG_RUNTIME_DIR` of the desktop.
    #[must_use]
    pub fn runtime_dir(&self) -> PathBuf {
        self.folder.join("run")
    }

    /// The desktop's own folder, for anything that shall go with it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `NAME=VALUE` in the environment of all processes on this desktop.
    #[must_use]
    pub fn marker(&self) -> &str {
        &self.marker
    }

    /// Living processes on this desktop.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        marked(&self.marker)
    }

    /// Ends one part, as a fault: `openbox`, `dbus`, `keyring`, `dunst`, `accessibility`.
    ///
    /// # Errors
    /// If it doesn't run here.
    pub fn end_service(&mut self, name: &str) -> Result<()> {
        let at = self
            .services
            .iter()
            .position(|service| service.name == name)
            .with_context(|| format!("{name} doesn't run on this desktop"))?;
        self.services.remove(at).end(Duration::from_secs(2));
        Ok(())
    }

    /// Starts the keyring again after [`Desktop::end_service`], unlocked.
    ///
    /// # Errors
    /// If it doesn't start.
    pub fn restart_keyring(&mut self) -> Result<()> {
        let address = self.bus_address.clone().context("no bus")?;
        self.services.push(self.starter().keyring("")?);
        wait_for_names(&address, &["org.freedesktop.secrets"])
    }

    /// Locks the keyring, as after a time away. Unlocking it then asks with a window.
    ///
    /// # Errors
    /// If there is no keyring.
    pub fn lock_keyring(&self) -> Result<()> {
        lock_keyring(self.bus_address.as_deref().context("no bus")?)
    }

    /// What the desktop's programs wrote, for failure messages.
    #[must_use]
    pub fn logs(&self) -> String {
        let mut text = String::new();
        for service in &self.services {
            let log = self.folder.join(format!("{}.log", service.name));
            let log = fs::read_to_string(log).unwrap_or_default();
            text.push_str(&format!("--- {}\n{}\n", service.name, log.trim()));
        }
        text
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        let server = self
            .services
            .iter()
            .find(|service| service.name == "xserver")
            .map(|service| service.child.id().cast_signed());
        // All but the X server, which must end by itself to give its display number back.
        kill_all(|| {
            let mut found = marked(&self.marker);
            found.retain(|process| Some(process.pid) != server);
            found
        });
        for service in self.services.iter_mut().rev() {
            service.end(Duration::from_secs(3));
        }
        if server.is_some() {
            // What a server leaves that had to be killed.
            let _ = fs::remove_file(&self.vnc_socket);
            let _ = fs::remove_file(format!("/tmp/.X11-unix/X{}", self.display));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Own `HOME`, runtime and XDG folders, each 0700.
fn set_folders(environment: &mut Environment, folder: &Path, home: &Path) -> Result<()> {
    let mut folders = vec![("HOME", home.to_owned()), ("XDG_RUNTIME_DIR", folder.join("run"))];
    for (name, path) in [
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_STATE_HOME", ".local/state"),
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_CACHE_HOME", ".cache"),
    ] {
        folders.push((name, home.join(path)));
    }
    for (name, path) in folders {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).with_context(|| format!("create {path:?}"))?;
        environment.set(name, path);
    }
    Ok(())
}

/// An Xauthority file with one cookie, for any host; first without a display number (the server
/// reads the cookie only), then with it.
fn xauthority(display: Option<u32>, cookie: &[u8; 16]) -> Vec<u8> {
    const ANY_HOST: u16 = 0xffff;
    let number = display.map(|n| n.to_string()).unwrap_or_default();
    let mut file = ANY_HOST.to_be_bytes().to_vec();
    let parts: [&[u8]; 4] = [b"", number.as_bytes(), b"MIT-MAGIC-COOKIE-1", cookie];
    for part in parts {
        // All parts are shorter than 65536 bytes.
        file.extend((part.len() as u16).to_be_bytes());
        file.extend(part);
    }
    file
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    Ok(())
}

/// Random bytes of the kernel.
fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    std::io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes)
}
