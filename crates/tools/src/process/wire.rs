//! What the two sides of the control socket say to each other.
//!
//! We send the length of the launch order, with the doors of the command's cgroups, then the order
//! itself, as JSON, and later, at most, the end of the stream or a byte: both mean "end the tree".
//! The supervisor answers with one report, a line of JSON. Nothing else is ever sent, so neither
//! side can wait for the other's reader. The command travels here and not on the supervisor's
//! command line or in its environment, so that nobody who looks for the command finds the supervisor.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use serde::{Deserialize, Serialize};

use super::{SUPERVISE, Supervision};
use crate::sandbox::InMemory;
use crate::sandbox::orders::Orders;

/// The longest list of words. The kernel takes no longer word than 128 KiB anyway.
const WORDS_MAX: usize = 136 << 10;

/// The longest environment. The kernel takes 2 MiB for it and the words together.
const ENVIRONMENT_MAX: usize = 2 << 20;

/// The longest launch order. As JSON a byte of a word takes up to four.
const ORDER_MAX: usize = 16 << 20;

/// The longest report: there is room for a path in it.
pub(crate) const REPORT_MAX: u64 = 16 << 10;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitStatus {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
}

/// What a supervisor says once nothing of its tree is alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The command ran and is gone. `outgrown`: all of it was ended for having more memory than its
    /// limit. `full`: the folder in memory that has no room left.
    Ended { status: ExitStatus, left_running: u32, outgrown: bool, full: Option<InMemory> },
    /// The command could not be executed: the system's error number.
    NotStarted { errno: i32 },
    /// This kind of supervision can't be had here; nothing was executed.
    Unavailable,
    /// The sandbox could not be built; nothing was executed. In words.
    NotLocked(String),
}

impl Report {
    pub(crate) fn line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// What is to be run, and how.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchOrder {
    pub(crate) supervision: Supervision,
    pub(crate) grace: Duration,
    pub(crate) words: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) sandbox: Orders,
    /// Of the command's cgroups; they come with the order.
    #[serde(skip)]
    pub(crate) doors: Vec<OwnedFd>,
}

impl LaunchOrder {
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        let order = serde_json::to_vec(self)?;
        let is_short = order.len() <= ORDER_MAX;
        is_short.then_some(order).ok_or_else(|| io::Error::other("there are too many places to protect"))
    }

    /// Read without a buffer, which would keep what is not yet asked for.
    pub(crate) fn receive(mut control: impl AsFd + Read) -> io::Result<Self> {
        let (length, doors) = receive_head(&control)?;
        let mut order = vec![0; length];
        control.read_exact(&mut order)?;
        Ok(Self { doors, ..serde_json::from_slice(&order)? })
    }
}

/// Whether the system takes these words and this environment: neither holds a NUL or is too long.
pub(crate) fn can_be_handed_over(words: &[OsString], environment: &[(OsString, OsString)]) -> bool {
    let variables = environment.iter().flat_map(|(name, value)| [name, value]);
    fit(words.iter(), WORDS_MAX) && fit(variables, ENVIRONMENT_MAX)
}

/// With one byte behind each.
fn fit<'a>(mut texts: impl Iterator<Item = &'a OsString>, max: usize) -> bool {
    let left = texts.try_fold(max, |left, text| {
        left.checked_sub(text.len() + 1).filter(|_| !text.as_bytes().contains(&0))
    });
    left.is_some()
}

/// The doors of a command's cgroups, at most.
const DOORS_MAX: usize = 4;

/// Sends how long the order will be, and the doors with it.
pub(crate) fn send_head(control: impl AsFd, length: usize, doors: &[OwnedFd]) -> io::Result<()> {
    let doors: Vec<_> = doors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DOORS_MAX))];
    let mut carried = SendAncillaryBuffer::new(&mut space);
    if !doors.is_empty() && !carried.push(SendAncillaryMessage::ScmRights(&doors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(control, &[IoSlice::new(&length.to_le_bytes())], &mut carried, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive_head(control: impl AsFd) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DOORS_MAX))];
    let mut carried = RecvAncillaryBuffer::new(&mut space);
    let mut length = [0; size_of::<usize>()];
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(control.as_fd(), &mut [IoSliceMut::new(&mut length)], &mut carried, RecvFlags::CMSG_CLOEXEC)
    });
    let received = received.map_err(|errno| match errno {
        Errno::NOTSOCK => {
            let what = "is not for people: midturn starts it for each command it runs";
            io::Error::other(format!("{SUPERVISE} {what}"))
        }
        errno => errno.into(),
    })?;
    if received.bytes != length.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let length = usize::from_le_bytes(length);
    if length > ORDER_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the launch order is too long"));
    }
    let rights = carried.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(doors) => Some(doors),
        _ => None,
    });
    Ok((length, rights.flatten().collect()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        for report in [
            Report::Ended {
                status: ExitStatus::Exited(3),
                left_running: 2,
                outgrown: true,
                full: Some(InMemory::Shared),
            },
            Report::Ended {
                status: ExitStatus::Signalled(i32::MIN),
                left_running: u32::MAX,
                outgrown: false,
                full: None,
            },
            Report::NotStarted { errno: 2 },
            Report::Unavailable,
            Report::NotLocked("a path:\n".repeat(700)),
        ] {
            let line = report.line().unwrap();
            assert_eq!(serde_json::from_slice::<Report>(&line).unwrap(), report);
            assert!(
                line.len() as u64 <= REPORT_MAX
                    && line.iter().position(|&b| b == b'\n') == Some(line.len() - 1)
            );
        }
    }

    #[test]
    fn a_launch_order_keeps_empty_words_and_refuses_nul() {
        let words = vec!["bash".into(), "".into(), "é x".into(), OsString::from_vec(vec![0xff])];
        let environment = vec![("A".into(), "b=c".into()), ("E".into(), "".into())];
        assert!(can_be_handed_over(&words, &environment));
        let (supervision, grace) = (Supervision::Subreaper, Duration::from_millis(7));
        let (sandbox, doors) = (Orders::default(), Vec::new());
        let order = LaunchOrder { supervision, grace, words, environment, sandbox, doors };
        let (ours, theirs) = UnixStream::pair().unwrap();
        let bytes = order.encode().unwrap();
        send_head(&ours, bytes.len(), &[theirs.try_clone().unwrap().into()]).unwrap();
        io::Write::write_all(&mut &ours, &bytes).unwrap();
        let read = LaunchOrder::receive(&theirs).unwrap();
        assert_eq!((read.words, read.environment), (order.words, order.environment));
        assert_eq!((read.supervision, read.grace, read.doors.len()), (supervision, grace, 1));
        for word in ["a\0b", "\0", &"x".repeat(WORDS_MAX)] {
            assert!(!can_be_handed_over(&[word.into()], &[]));
            let in_environment = can_be_handed_over(&[], &[("A".into(), word.into())]);
            assert_eq!(in_environment, !word.contains('\0'));
        }
    }
}
