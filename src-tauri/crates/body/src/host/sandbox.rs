//! The containment of commands: bubblewrap with every namespace of its own, an allow-listed tree, no
//! network, no capability, and never as root.

use std::ffi::OsString;
use std::fs::File;
use std::io::{PipeReader, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bodyguard_protocol::{ErrorCode, Fault, canonical_digest};
use rustix::fs::{MemfdFlags, Mode, OFlags};

use super::files::Root;
use super::inner::{self, Spec};
use super::spawner::Spawner;
use crate::{BodyConfig, SandboxInfo, SandboxLevel};

pub(crate) const HOME: &str = "/home/sandbox";
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const PROGRAMS: [&str; 3] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];
/// Where the inner program lies in a sandbox.
pub(super) const INNER: &str = "/.bodyguard/inner";
/// Where X servers have their sockets.
const SOCKETS: &str = "/tmp/.X11-unix";
/// Where the cookie of the session's own desktop lies in a sandbox.
const COOKIE: &str = "/.bodyguard/Xauthority";
/// Bytes that a command may put into each of its two temporary folders.
const TEMPORARY_BYTES: &str = "536870912";
const NOBODY: u32 = 65_534;
/// Read-only, where they exist.
const SYSTEM: [&str; 6] =
    ["/etc/ld.so.cache", "/etc/ssl/certs", "/etc/alternatives", "/etc/localtime", "/etc/mime.types", "/etc/fonts"];
const LINKS: [&str; 6] = ["bin", "sbin", "lib", "lib64", "lib32", "libx32"];

/// A user and group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Whether the host has to step down to it.
    step_down: bool,
}

impl User {
    /// Whoever this process is; root steps down to the owner of the workspace, or to nobody.
    pub(crate) fn for_root(root: &Root) -> Result<Self, Fault> {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        if uid != 0 {
            return Ok(Self { uid, gid, step_down: false });
        }
        let stat = rustix::fs::fstat(root.fd()).map_err(|e| Fault::internal(format!("the workspace's root: {e}")))?;
        let (uid, gid) = if stat.st_uid == 0 { (NOBODY, NOBODY) } else { (stat.st_uid, stat.st_gid) };
        // A workspace of group root must not hand out that group.
        Ok(Self { uid, gid: if gid == 0 { NOBODY } else { gid }, step_down: true })
    }
}

/// What a command gets to stand on.
#[derive(Debug)]
pub(crate) struct Sandbox {
    program: PathBuf,
    inner: OwnedFd,
    user: User,
    desktop: Option<OwnDesktop>,
}

/// The session's own desktop, as its programs reach it.
#[derive(Debug)]
pub(crate) struct OwnDesktop {
    socket: OwnedFd,
    number: String,
    cookie: Vec<u8>,
}

impl OwnDesktop {
    /// The one of a body's configuration, if it has one.
    pub(crate) fn of(config: &BodyConfig) -> Result<Option<Self>, Fault> {
        let (true, Some(display), Some(cookie)) = (config.private_desktop, &config.display, &config.xauthority) else {
            return Ok(None);
        };
        let failed = |error: std::io::Error| Fault::internal(format!("the private desktop: {error}"));
        let number = display.trim_start_matches(':').to_owned();
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let socket = rustix::fs::open(format!("{SOCKETS}/X{number}"), flags, Mode::empty());
        let socket = socket.map_err(|error| failed(error.into()))?;
        let cookie = std::fs::read(cookie).map_err(failed)?;
        Ok(Some(Self { socket, number, cookie }))
    }

    /// The variables by which its programs find it.
    pub(crate) fn variables(&self) -> [(String, String); 2] {
        [("DISPLAY".to_owned(), format!(":{}", self.number)), ("XAUTHORITY".to_owned(), COOKIE.to_owned())]
    }
}

/// A command in its sandbox.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// Where the inner program reports; closed when the sandbox has gone.
    pub(crate) report: UnixStream,
    /// Both streams of a program that goes on, in the order in which it wrote; a command has two.
    pub(crate) output: Option<PipeReader>,
}

/// What goes to a program that is about to start, and what stays here of it.
struct Prepared {
    command: Command,
    keep: Vec<OwnedFd>,
    report: UnixStream,
    output: Option<PipeReader>,
}

impl Sandbox {
    /// The sandbox of this machine, if there is one.
    pub(crate) fn find(user: User, desktop: Option<OwnDesktop>) -> Result<Self, String> {
        let program = PROGRAMS.iter().map(Path::new).find(|path| path.is_file());
        let program = program.ok_or("bubblewrap (`bwrap`) isn't installed")?.to_owned();
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let inner = rustix::fs::open("/proc/self/exe", flags, Mode::empty()).map_err(|e| e.to_string())?;
        Ok(Self { program, inner, user, desktop })
    }

    /// Starts a command. `held` are places of the workspace that it sees read-only, by relative path.
    pub(crate) fn start(
        &self,
        spawner: &Spawner,
        root: &Root,
        held: &Held,
        spec: &Spec,
        stdin: Option<&str>,
    ) -> Result<Running, Fault> {
        let prepared = self.prepare(root, held, spec, stdin).map_err(|error| unavailable(&error.to_string()))?;
        let Prepared { command, keep, report, output } = prepared;
        let child = spawner.spawn(command, keep).map_err(|error| unavailable(&error.to_string()))?;
        Ok(Running { child, report, output })
    }

    fn prepare(&self, root: &Root, held: &Held, spec: &Spec, stdin: Option<&str>) -> std::io::Result<Prepared> {
        let mut keep = Keep::default();
        let (report, report_in) = UnixStream::pair()?;
        let mut command = Command::new(&self.program);
        command.args(isolation()).args(self.tree(&mut keep)?);
        let workspace = keep.add(root.fd().try_clone()?);
        command.args(["--bind-fd", &workspace, root.path()]);
        for (relative, read_only) in &held.places {
            let flags = OFlags::PATH | OFlags::NOFOLLOW;
            // What vanished since needs no holding.
            let Ok(fd) = root.open_at(relative, flags) else { continue };
            let how = if *read_only { "--ro-bind-fd" } else { "--bind-fd" };
            command.args([how, &keep.add(fd), &format!("{}/{relative}", root.path())]);
        }
        let inner_spec = keep.add(memory_file(&serde_json::to_vec(spec)?)?);
        let report_in = keep.add(OwnedFd::from(report_in));
        command.args(["--remount-ro", "/", "--chdir", "/", "--", INNER, inner::WORD, &inner_spec, &report_in]);
        command.env_clear().current_dir("/").process_group(0);
        command.stdin(input(stdin)?);
        let output = streams(&mut command, spec.goes_on)?;
        if self.user.step_down {
            // With a uid set and none but root before, the standard library also drops all groups.
            command.gid(self.user.gid).uid(self.user.uid);
        }
        Ok(Prepared { command, keep: keep.0, report, output })
    }

    fn tree(&self, keep: &mut Keep) -> std::io::Result<Vec<OsString>> {
        let mut args: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str]| args.extend(words.iter().map(OsString::from));
        add(&["--ro-bind", "/usr", "/usr"]);
        for name in LINKS {
            let path = format!("/{name}");
            match std::fs::read_link(&path) {
                Ok(to) => add(&["--symlink", &to.to_string_lossy(), &path]),
                Err(_) => add(&["--ro-bind-try", &path, &path]),
            }
        }
        for path in SYSTEM {
            add(&["--ro-bind-try", path, path]);
        }
        let User { uid, gid, .. } = self.user;
        let passwd = keep.add(memory_file(format!("sandbox:x:{uid}:{gid}::{HOME}:/bin/sh\n").as_bytes())?);
        let group = keep.add(memory_file(format!("sandbox:x:{gid}:\n").as_bytes())?);
        add(&["--ro-bind-data", &passwd, "/etc/passwd", "--ro-bind-data", &group, "/etc/group"]);
        add(&["--proc", "/proc", "--dev", "/dev"]);
        add(&["--perms", "1777", "--size", TEMPORARY_BYTES, "--tmpfs", "/tmp"]);
        add(&["--perms", "0700", "--size", TEMPORARY_BYTES, "--tmpfs", HOME]);
        add(&["--ro-bind-fd", &keep.add(self.inner.try_clone()?), INNER]);
        if let Some(OwnDesktop { socket, number, cookie }) = &self.desktop {
            add(&["--dir", SOCKETS, "--bind-fd", &keep.add(socket.try_clone()?), &format!("{SOCKETS}/X{number}")]);
            add(&["--ro-bind-data", &keep.add(memory_file(cookie)?), COOKIE]);
        }
        Ok(args)
    }
}

fn isolation() -> [&'static str; 10] {
    [
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--cap-drop",
        "ALL",
        "--hostname",
        "sandbox",
    ]
}

/// Descriptors that the sandbox inherits, under the numbers they have here.
#[derive(Default)]
struct Keep(Vec<OwnedFd>);

impl Keep {
    fn add(&mut self, fd: OwnedFd) -> String {
        let number = fd.as_raw_fd().to_string();
        self.0.push(fd);
        number
    }
}

/// Places of a workspace that a command sees in a special way: `true` read-only, `false` as they are
/// but impossible to move away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) places: Vec<(String, bool)>,
}

fn streams(command: &mut Command, together: bool) -> std::io::Result<Option<PipeReader>> {
    if !together {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        return Ok(None);
    }
    let (output, end) = std::io::pipe()?;
    command.stdout(end.try_clone()?).stderr(end);
    Ok(Some(output))
}

fn input(stdin: Option<&str>) -> std::io::Result<Stdio> {
    let Some(text) = stdin else { return Ok(Stdio::null()) };
    let mut file = File::from(memory_file(text.as_bytes())?);
    std::io::Seek::rewind(&mut file)?;
    Ok(Stdio::from(file))
}

fn memory_file(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("bodyguard", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    std::io::Seek::rewind(&mut file)?;
    Ok(OwnedFd::from(file))
}

pub(crate) fn unavailable(why: &str) -> Fault {
    Fault::new(ErrorCode::SandboxUnavailable, format!("commands can't be contained here: {why}"))
        .hint("commands never run without containment; install bubblewrap and allow user namespaces")
}

/// The description of a containment, with its digest.
pub(crate) fn describe(outcome: &Result<User, String>, own_desktop: bool) -> Result<SandboxInfo, Fault> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let (level, facts) = match outcome {
        Ok(user) => (
            SandboxLevel::Bubblewrap,
            vec![
                fact("containment", "bubblewrap: namespaces of its own, no capabilities".to_owned()),
                fact("network", "none".to_owned()),
                fact("files", "the workspace; /usr read-only; temporary folders of its own".to_owned()),
                fact("user", format!("{}:{}", user.uid, user.gid)),
                fact("desktop", if own_desktop { "one of the session's own" } else { "none" }.to_owned()),
            ],
        ),
        Err(why) => (SandboxLevel::None, vec![fact("containment", format!("none: {why}"))]),
    };
    let digest = canonical_digest(&(level, &facts))?;
    Ok(SandboxInfo { level, digest, facts })
}
