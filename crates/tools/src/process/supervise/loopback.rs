//! The loopback of a new network namespace, which is down to begin with: programs that speak to
//! themselves by way of `localhost` need it.

use std::io;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// A message that changes an interface; its answer is an error number.
const NEW_LINK: u16 = 16;
const REQUEST_WITH_ANSWER: u16 = 1 | 4;
const ANSWER: u16 = 2;

/// In every network namespace it is the first.
const LOOPBACK: i32 = 1;

const UP: u32 = 1;

/// Brings it up.
pub(super) fn start() -> io::Result<()> {
    let kernel = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&kernel, &request(), SendFlags::empty())?;
    let mut answer = [0; 64];
    let (length, _) = recv(&kernel, &mut answer[..], RecvFlags::empty())?;
    let number = |at: usize| answer[..length].get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    match (u16::from_ne_bytes([answer[4], answer[5]]), number(16).map(i32::from_ne_bytes)) {
        (ANSWER, Some(0)) => Ok(()),
        (ANSWER, Some(errno)) => Err(io::Error::from_raw_os_error(-errno)),
        _ => Err(Errno::PROTO.into()),
    }
}

/// The head (length, kind, flags, number, sender) and the interface (family, kind, number,
/// flags, which flags).
fn request() -> Vec<u8> {
    let head =
        [&32u32.to_ne_bytes()[..], &NEW_LINK.to_ne_bytes(), &REQUEST_WITH_ANSWER.to_ne_bytes(), &[0; 8]];
    let interface = [&[0; 4][..], &LOOPBACK.to_ne_bytes(), &UP.to_ne_bytes(), &UP.to_ne_bytes()];
    [head.concat(), interface.concat()].concat()
}
