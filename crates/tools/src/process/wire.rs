//! What the two sides of the control socket say to each other.
//!
//! We send a byte that carries the doors of the command's cgroups, one launch order (the words of the
//! command, its environment, and the sandbox's orders) and later, at most, the end of the stream
//! or a byte: both mean "end the tree". The supervisor answers with one
//! report of a fixed size. Nothing else is ever sent, so neither side can wait for the other's
//! reader. The command travels here and not on the supervisor's command line or in its
//! environment, so that nobody who looks for the command finds the supervisor.

use std::ffi::{CString, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use serde::{Deserialize, Serialize};

use crate::sandbox::orders::{Failed, Orders};

/// The longest list of words. The kernel takes no longer word than 128 KiB anyway.
const WORDS_MAX: usize = 136 << 10;

/// The longest environment. The kernel takes 2 MiB for it and the words together.
const ENVIRONMENT_MAX: usize = 2 << 20;

/// The longest part of a launch order.
pub(crate) const PART_MAX: usize = ENVIRONMENT_MAX;

/// The size of a report, in bytes: JSON, and blanks behind it.
pub(crate) const REPORT_BYTES: usize = 128;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitStatus {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
}

/// What a supervisor says once nothing of its tree is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The command ran and is gone. `outgrown`: all of it was ended for having more memory than its
    /// limit.
    Ended { status: ExitStatus, left_running: u32, outgrown: bool },
    /// The command could not be executed: the system's error number.
    NotStarted { errno: i32 },
    /// This kind of supervision can't be had here; nothing was executed.
    Unavailable,
    /// The sandbox could not be built; nothing was executed.
    NotLocked { failed: Failed, errno: i32 },
}

impl Report {
    pub(crate) fn encode(self) -> io::Result<[u8; REPORT_BYTES]> {
        let mut bytes = [b' '; REPORT_BYTES];
        serde_json::to_writer(&mut bytes[..], &self)?;
        Ok(bytes)
    }

    pub(crate) fn decode(bytes: &[u8; REPORT_BYTES]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// The launch order of a command: its words, then its environment; each part with its length
/// before it and a NUL behind each entry. `None` when an entry holds a NUL or a part is too long.
pub(crate) fn launch_order(words: &[OsString], environment: &[(OsString, OsString)]) -> Option<Vec<u8>> {
    let words = words.iter().map(|word| vec![word.as_bytes()]);
    let variables = environment.iter().map(|(name, value)| vec![name.as_bytes(), b"=", value.as_bytes()]);
    Some([part(&joined(words)?, WORDS_MAX)?, part(&joined(variables)?, ENVIRONMENT_MAX)?].concat())
}

fn joined<'a>(entries: impl Iterator<Item = Vec<&'a [u8]>>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for entry in entries.map(|parts| parts.concat()) {
        if entry.contains(&0) {
            return None;
        }
        bytes.extend(entry);
        bytes.push(0);
    }
    Some(bytes)
}

fn part(content: &[u8], max: usize) -> Option<Vec<u8>> {
    let length = u32::try_from(content.len()).ok().filter(|_| content.len() <= max)?;
    Some([&length.to_le_bytes()[..], content].concat())
}

/// The last part of a launch order.
pub(crate) fn orders(orders: &Orders) -> io::Result<Vec<u8>> {
    let part = part(&serde_json::to_vec(orders)?, PART_MAX);
    part.ok_or_else(|| io::Error::other("there are too many places to protect"))
}

/// The doors of a command's cgroups, at most.
const DOORS_MAX: usize = 4;

/// Sends the first byte, and the doors with it.
pub(crate) fn send_doors(control: impl AsFd, doors: &[OwnedFd]) -> io::Result<()> {
    let doors: Vec<_> = doors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DOORS_MAX))];
    let mut carried = SendAncillaryBuffer::new(&mut space);
    if !doors.is_empty() && !carried.push(SendAncillaryMessage::ScmRights(&doors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(control, &[IoSlice::new(&[0])], &mut carried, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives the first byte, and the doors with it.
pub(crate) fn receive_doors(control: impl AsFd) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DOORS_MAX))];
    let mut carried = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut into = [IoSliceMut::new(&mut byte)];
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(control.as_fd(), &mut into, &mut carried, RecvFlags::CMSG_CLOEXEC)
    })?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let rights = carried.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(doors) => Some(doors),
        _ => None,
    });
    Ok(rights.flatten().collect())
}

/// The entries of a part.
pub(crate) fn entries(part: &[u8]) -> Vec<CString> {
    part.split_inclusive(|&b| b == 0)
        .filter_map(|entry| CString::from_vec_with_nul(entry.to_vec()).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        for report in [
            Report::Ended { status: ExitStatus::Exited(3), left_running: 2, outgrown: true },
            Report::Ended {
                status: ExitStatus::Signalled(i32::MIN),
                left_running: u32::MAX,
                outgrown: false,
            },
            Report::NotStarted { errno: 2 },
            Report::Unavailable,
            Report::NotLocked { failed: Failed::Rights, errno: 1 },
        ] {
            assert_eq!(Report::decode(&report.encode().unwrap()), Some(report));
        }
        assert_eq!(Report::decode(&[9; REPORT_BYTES]), None);
    }

    #[test]
    fn a_launch_order_keeps_empty_words_and_refuses_nul() {
        let words = ["bash", "", "é x"].map(OsString::from);
        let environment = [(OsString::from("A"), OsString::from("b=c")), ("E".into(), "".into())];
        let mut bytes = &*launch_order(&words, &environment).unwrap();
        let mut read = || {
            let (length, rest) = bytes.split_first_chunk().unwrap();
            let (part, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
            bytes = rest;
            entries(part).into_iter().map(|entry| entry.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(read(), ["bash", "", "é x"]);
        assert_eq!(read(), ["A=b=c", "E="]);
        assert!(bytes.is_empty());
        for word in ["a\0b", "\0", &"x".repeat(WORDS_MAX)] {
            assert!(launch_order(&[word.into()], &[]).is_none());
            assert_eq!(launch_order(&[], &[("A".into(), word.into())]).is_none(), word.contains('\0'));
        }
    }
}
