//! Frames between the supervisor and the body host: one message of a `SOCK_SEQPACKET` socket each, a
//! byte of flags and JSON. What is too large for a message, and pixels, travel as sealed memory
//! files beside it.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use bodyguard_protocol::ui::HealthCheck;
use bodyguard_protocol::{Digest, Fault, PerceptionQuery, TypedAction};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BodyConfig, Effect, Image, Inspection, Perception, SandboxInfo, StableState};

/// JSON up to this long travels in the message itself; a socket holds a dozen of these unread.
const INLINE_BYTES: usize = 16 * 1024;
/// No payload is longer; more is taken as an attack or a fault.
const MAX_PAYLOAD: u64 = 256 * 1024 * 1024;
const PAYLOAD_BESIDE: u8 = 1;
const IMAGE_BESIDE: u8 = 2;

/// What the supervisor asks of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    Start(BodyConfig),
    Stable { cwd: String },
    Perceive { query: PerceptionQuery },
    Inspect { action: TypedAction },
    Recheck { action: TypedAction, binding: Value },
    Act { action: TypedAction, action_digest: Digest, binding_digest: Digest },
    Health,
    Cancel { id: u64 },
}

/// What the host answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Answer {
    Started(SandboxInfo),
    Stable(StableState),
    Perception(Box<Perception>, Option<ImageHead>),
    Inspection(Box<Inspection>),
    Unchanged,
    Effect(Box<Effect>, Option<ImageHead>),
    Health(Vec<HealthCheck>),
    Fault(Fault),
}

/// An image without its bytes, which travel beside the frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ImageHead {
    media_type: String,
    width: u32,
    height: u32,
    scale: f64,
}

impl ImageHead {
    pub(crate) fn split(image: Image) -> (Self, Vec<u8>) {
        let Image { media_type, bytes, width, height, scale } = image;
        (Self { media_type, width, height, scale }, bytes)
    }

    pub(crate) fn join(self, bytes: Vec<u8>) -> Image {
        let Self { media_type, width, height, scale } = self;
        Image { media_type, bytes, width, height, scale }
    }
}

/// A message with the number that joins requests and answers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Envelope<T> {
    pub(crate) id: u64,
    pub(crate) body: T,
}

/// Sends one frame. With `wait` false a full socket is an error instead of a pause.
pub(crate) fn send<T: Serialize>(
    socket: BorrowedFd<'_>,
    envelope: &Envelope<T>,
    image: Option<&[u8]>,
    wait: bool,
) -> io::Result<()> {
    let json = serde_json::to_vec(envelope)?;
    let mut flags = 0;
    let mut beside: Vec<OwnedFd> = Vec::new();
    let inline: &[u8] = if json.len() > INLINE_BYTES {
        flags |= PAYLOAD_BESIDE;
        beside.push(memory_file(&json)?);
        &[]
    } else {
        &json
    };
    if let Some(bytes) = image {
        flags |= IMAGE_BESIDE;
        beside.push(memory_file(bytes)?);
    }
    let fds: Vec<BorrowedFd<'_>> = beside.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("no room for descriptors"));
    }
    let how = if wait { SendFlags::NOSIGNAL } else { SendFlags::NOSIGNAL | SendFlags::DONTWAIT };
    rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(socket, &[IoSlice::new(&[flags]), IoSlice::new(inline)], &mut control, how)
    })?;
    Ok(())
}

/// Receives one frame and its image; `None` when the other side has gone.
#[allow(clippy::type_complexity, reason = "an envelope with its bytes, or the end")]
pub(crate) fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
) -> io::Result<Option<(Envelope<T>, Option<Vec<u8>>)>> {
    let mut buffer = vec![0; INLINE_BYTES + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut beside = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let Some((flags, inline)) = buffer.get(..got.bytes).and_then(<[u8]>::split_first) else { return Ok(None) };
    let json = if flags & PAYLOAD_BESIDE == 0 { inline.to_vec() } else { contents(beside.next())? };
    let image = if flags & IMAGE_BESIDE == 0 { None } else { Some(contents(beside.next())?) };
    Ok(Some((serde_json::from_slice(&json)?, image)))
}

fn memory_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    let fd = rustix::fs::memfd_create("bodyguard-frame", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(fd);
    file.write_all(bytes)?;
    let fd = OwnedFd::from(file);
    rustix::fs::fcntl_add_seals(&fd, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(fd)
}

// Read, not mapped: a sender that cut the file short would otherwise end this process by SIGBUS.
fn contents(fd: Option<OwnedFd>) -> io::Result<Vec<u8>> {
    let file = File::from(fd.ok_or_else(|| io::Error::other("a frame without its memory file"))?);
    let length = file.metadata()?.len();
    if length > MAX_PAYLOAD {
        return Err(io::Error::other("a payload beyond the limit"));
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType};

    fn pair() -> (OwnedFd, OwnedFd) {
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
        #[test]
        fn a_frame_of_any_size_arrives_whole(id: u64, length in 0_usize..300_000, image in proptest::option::of(0_usize..200_000)) {
            let (a, b) = pair();
            let sent = Envelope { id, body: Request::Stable { cwd: "ä".repeat(length / 2) } };
            let pixels = image.map(|n| vec![7_u8; n]);
            send(a.as_fd(), &sent, pixels.as_deref(), true).unwrap();
            let (got, beside) = receive::<Request>(b.as_fd()).unwrap().unwrap();
            proptest::prop_assert_eq!(got, sent);
            proptest::prop_assert_eq!(beside, pixels);
        }
    }

    #[test]
    fn the_end_of_the_other_side_is_an_end_and_not_an_error() {
        let (a, b) = pair();
        drop(a);
        assert!(receive::<Request>(b.as_fd()).unwrap().is_none());
    }

    #[test]
    fn a_reader_who_does_not_read_is_noticed_instead_of_waited_for() {
        let (a, _b) = pair();
        let frame = Envelope { id: 1, body: Request::Stable { cwd: "x".repeat(16_000) } };
        assert!((0..64).any(|_| send(a.as_fd(), &frame, None, false).is_err()));
    }
}
