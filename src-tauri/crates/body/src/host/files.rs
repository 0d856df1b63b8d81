//! Reaching files beneath the workspace's root, and only there.
//!
//! A path is first walked link by link, which gives the real path that a person sees, and then opened
//! by `openat2` beneath the root without following any link. Whatever changes in between makes the
//! open fail instead of landing elsewhere.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use bodyguard_protocol::{ErrorCode, Fault, escape_line};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;
const FIELD: &str = "action.target";

/// The workspace's root, held open.
#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    path: String,
    /// The root without links, which absolute links inside the workspace may name.
    real: String,
}

/// A place in the workspace, without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Relative to the root; empty for the root itself.
    pub(crate) relative: String,
    /// As people know it.
    pub(crate) absolute: String,
}

impl Root {
    pub(crate) fn open(path: &str) -> Result<Self, Fault> {
        let path = path.trim_end_matches('/');
        if !path.starts_with('/') {
            return Err(Fault::invalid("root", "a workspace's root is an absolute path below `/`"));
        }
        let real = std::fs::canonicalize(path)
            .ok()
            .and_then(|real| real.into_os_string().into_string().ok())
            .ok_or_else(|| Fault::new(ErrorCode::NotFound, "the workspace's root isn't there").at("root"))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&real, flags, Mode::empty()).map_err(|e| fault_of(e, path))?;
        Ok(Self { fd, path: path.to_owned(), real })
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The place that a target names: links are followed as long as they stay in the workspace.
    pub(crate) fn resolve(&self, target: &str) -> Result<Place, Fault> {
        let mut ahead = self.parts_of(target).ok_or_else(|| outside(target))?;
        let mut walked: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = ahead.pop_front() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    walked.pop().ok_or_else(|| outside(target))?;
                    continue;
                }
                _ => {}
            }
            let relative = join(&walked, &part);
            let fd = self.open_at(&relative, OFlags::PATH | OFlags::NOFOLLOW).map_err(|e| fault_of(e, target))?;
            let stat = rustix::fs::fstat(&fd).map_err(|e| fault_of(e, target))?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
                walked.push(part);
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(Fault::invalid(FIELD, format!("the links of {} go in a circle", escape_line(target))));
            }
            let link = rustix::fs::readlinkat(&fd, "", Vec::new()).map_err(|e| fault_of(e, target))?;
            let link = link
                .into_string()
                .map_err(|_| Fault::invalid(FIELD, "a link on the way isn't UTF-8, so it can't be shown"))?;
            if link.starts_with('/') {
                walked.clear();
            }
            let parts = self.parts_of(&link).ok_or_else(|| outside(target))?;
            ahead = parts.into_iter().chain(ahead).collect();
        }
        let relative = walked.join("/");
        Ok(Place { absolute: self.absolute(&relative), relative })
    }

    /// The place that a target names without following a link at its end, and what is there, if
    /// anything is. Its folder must be there.
    pub(crate) fn entry(&self, target: &str) -> Result<(Place, Option<OwnedFd>), Fault> {
        let (folder, name) = target.rsplit_once('/').unwrap_or(("", target));
        if matches!(name, "" | "." | "..") {
            return Err(Fault::invalid(FIELD, "a target that is made or deleted ends in its own name"));
        }
        let folder = self.resolve(folder)?;
        drop(self.folder(&folder)?);
        let relative = if folder.relative.is_empty() { name.to_owned() } else { format!("{}/{name}", folder.relative) };
        let place = self.place(&relative);
        match self.open_at(&relative, OFlags::PATH | OFlags::NOFOLLOW) {
            Ok(fd) => Ok((place, Some(fd))),
            Err(Errno::NOENT) => Ok((place, None)),
            // With RESOLVE_NO_SYMLINKS a link at the end is an error, but it is there.
            Err(Errno::LOOP) => Err(not_regular(&place.absolute, "is a link")),
            Err(other) => Err(fault_of(other, &place.absolute)),
        }
    }

    /// A place by a relative path that is known to have no links.
    pub(crate) fn place(&self, relative: &str) -> Place {
        Place { relative: relative.to_owned(), absolute: self.absolute(relative) }
    }

    fn absolute(&self, relative: &str) -> String {
        if relative.is_empty() { self.path.clone() } else { format!("{}/{relative}", self.path) }
    }

    /// The parts of a path below the root; none where it lies elsewhere.
    fn parts_of(&self, path: &str) -> Option<VecDeque<String>> {
        let below = if path.starts_with('/') {
            [&self.path, &self.real].into_iter().find_map(|root| {
                path.strip_prefix(root.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
            })?
        } else {
            path
        };
        Some(below.split('/').map(str::to_owned).collect())
    }

    /// Opens beneath the root without following a link anywhere.
    pub(crate) fn open_at(&self, relative: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let relative = if relative.is_empty() { "." } else { relative };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        // EAGAIN: something was renamed on the way, and the kernel could not be sure. Once more, then no.
        let open = || rustix::fs::openat2(&self.fd, relative, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
        match open() {
            Err(Errno::AGAIN) => open(),
            other => other,
        }
    }

    /// Opens a folder for reading its entries.
    pub(crate) fn folder(&self, place: &Place) -> Result<OwnedFd, Fault> {
        self.open_at(&place.relative, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW).map_err(|e| match e {
            Errno::NOTDIR => not_regular(&place.absolute, "isn't a folder"),
            other => fault_of(other, &place.absolute),
        })
    }

    /// The folder of a place, and its name in it.
    pub(crate) fn parent(&self, place: &Place) -> Result<(OwnedFd, String), Fault> {
        let (folder, name) = place.relative.rsplit_once('/').unwrap_or(("", &place.relative));
        let folder = self.folder(&self.place(folder))?;
        Ok((folder, name.to_owned()))
    }

    /// Opens a regular file with one link, without ever waiting on a pipe or waking a device.
    pub(crate) fn regular(&self, place: &Place) -> Result<(File, Stat), Fault> {
        let fd =
            self.open_at(&place.relative, OFlags::PATH | OFlags::NOFOLLOW).map_err(|e| fault_of(e, &place.absolute))?;
        let stat = regular_stat(&fd, &place.absolute)?;
        let file = reopen(&fd).map_err(|e| fault_of(e, &place.absolute))?;
        Ok((file, stat))
    }
}

/// The state of a descriptor of a regular file with one link.
pub(crate) fn regular_stat(fd: &OwnedFd, path: &str) -> Result<Stat, Fault> {
    let stat = rustix::fs::fstat(fd).map_err(|e| fault_of(e, path))?;
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink == 1 => return Ok(stat),
        FileType::RegularFile => "has several hard links, so it may also lie outside of the workspace",
        FileType::Directory => "is a folder",
        FileType::Symlink => "is a link",
        FileType::Fifo => "is a pipe",
        FileType::Socket => "is a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "is a device",
        FileType::Unknown => "is no regular file",
    };
    Err(not_regular(path, what))
}

/// Opens for reading what an `O_PATH` descriptor names: that very file, whatever its name is now.
pub(crate) fn reopen(fd: &OwnedFd) -> Result<File, Errno> {
    use std::os::fd::AsRawFd as _;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags, Mode::empty()).map(File::from)
}

/// Reads at most `limit` bytes from `offset`.
pub(crate) fn read_at_most(file: &File, offset: u64, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 256 * 1024];
    while (bytes.len() as u64) < limit {
        let want = usize::try_from(limit - bytes.len() as u64).unwrap_or(usize::MAX).min(buffer.len());
        let Some(part) = buffer.get_mut(..want) else { break };
        match file.read_at(part, offset.saturating_add(bytes.len() as u64)) {
            Ok(0) => break,
            Ok(got) => bytes.extend_from_slice(buffer.get(..got).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// The whole of a file, which must not be larger than `limit` bytes.
pub(crate) fn read_whole(file: &File, limit: u64, path: &str) -> Result<Vec<u8>, Fault> {
    let bytes = read_at_most(file, 0, limit.saturating_add(1)).map_err(|e| io_fault(&e, path))?;
    if bytes.len() as u64 > limit {
        let message = format!("{} is larger than {limit} bytes", escape_line(path));
        return Err(Fault::new(ErrorCode::TooLarge, message).at(FIELD));
    }
    Ok(bytes)
}

fn join(walked: &[String], part: &str) -> String {
    let mut relative = walked.join("/");
    if !relative.is_empty() {
        relative.push('/');
    }
    relative.push_str(part);
    relative
}

pub(crate) fn outside(target: &str) -> Fault {
    let message = format!("{} isn't in the workspace, or leaves it through a link", escape_line(target));
    Fault::new(ErrorCode::OutsideWorkspace, message).at(FIELD)
}

pub(crate) fn not_regular(path: &str, what: &str) -> Fault {
    Fault::new(ErrorCode::NotRegularFile, format!("{} {what}", escape_line(path))).at(FIELD)
}

pub(crate) fn io_fault(error: &std::io::Error, path: &str) -> Fault {
    match Errno::from_io_error(error) {
        Some(errno) => fault_of(errno, path),
        None => Fault::internal(format!("{}: {error}", escape_line(path))),
    }
}

/// What an error of the system means to a caller.
pub(crate) fn fault_of(errno: Errno, path: &str) -> Fault {
    let path = escape_line(path);
    let fault = match errno {
        Errno::NOENT | Errno::NOTDIR => Fault::new(ErrorCode::NotFound, format!("{path} isn't there")),
        Errno::XDEV => Fault::new(ErrorCode::OutsideWorkspace, format!("{path} leaves the workspace")),
        Errno::LOOP => Fault::new(ErrorCode::StateChanged, format!("{path} was replaced by a link meanwhile")),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            Fault::new(ErrorCode::PermissionDenied, format!("the system doesn't permit it for {path}"))
        }
        Errno::NAMETOOLONG => Fault::new(ErrorCode::InvalidArgument, format!("{path} is too long")),
        Errno::NOSPC | Errno::DQUOT => Fault::new(ErrorCode::TooLarge, format!("no room left for {path}")),
        Errno::NXIO | Errno::AGAIN => Fault::new(ErrorCode::StateChanged, format!("{path} was replaced meanwhile")),
        other => Fault::internal(format!("{path}: {other}")),
    };
    fault.at(FIELD)
}
