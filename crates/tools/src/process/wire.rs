//! What the two sides of the control socket say to each other.
//!
//! A message is its length, with descriptors, then so many bytes of JSON. Whoever is to look after a command gets one
//! (the order, with the doors of the command's cgroups), and later, at most, the end of the stream or a byte: both
//! mean "end the tree". It answers with one report, a line. Nothing else is ever sent there, so neither
//! side can wait for the other's reader. The command travels here and not on the supervisor's
//! command line or in its environment, so that nobody who looks for the command finds the supervisor.
//!
//! A seed and its anchors are asked by messages, and answer each by one.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{SUPERVISE, Streams, Supervision};
use crate::sandbox::InMemory;
use crate::sandbox::mount_plan::Anew;
use crate::sandbox::orders::Orders;

/// The longest list of words. The kernel takes no longer word than 128 KiB anyway.
const WORDS_MAX: usize = 136 << 10;

/// The longest environment. The kernel takes 2 MiB for it and the words together.
const ENVIRONMENT_MAX: usize = 2 << 20;

/// The longest message. As JSON a byte of a word takes up to six.
const MESSAGE_MAX: usize = 16 << 20;

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
    /// This place of the anchor's view is not covered any more; nothing was executed.
    Stale(PathBuf),
}

impl Report {
    pub(crate) fn line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// What our binary is to be, executed as [`SUPERVISE`] says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Role {
    /// It forks anchors.
    Seed,
    /// It looks after one command.
    Supervisor(Box<(Setting, LaunchOrder)>),
}

/// What the commands of one anchor have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) supervision: Supervision,
    pub(crate) sandbox: Orders,
}

/// What an anchor has become.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Built {
    Ready,
    /// The system refuses its namespaces.
    Unavailable,
    /// Its view could not be made. In words.
    Failed(String),
}

/// The launch order: what is to be run, and how.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchOrder {
    pub(crate) grace: Duration,
    pub(crate) words: Vec<Text>,
    pub(crate) environment: Vec<(Text, Text)>,
    /// Where it runs. Who is forked goes there; who is executed is started there.
    pub(crate) folder: PathBuf,
    pub(crate) streams: Streams,
    /// What of a held view the command has anew.
    pub(crate) anew: Anew,
    /// Of the command's cgroups; they come with the order.
    #[serde(skip)]
    pub(crate) doors: Vec<OwnedFd>,
}

/// A word or a variable, which need not be Unicode: as JSON each byte is the character of that number. As an array of
/// numbers, which serde has for it, it would be four times as long, and most of what a launch has to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) OsString);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str().filter(|text| text.is_ascii()) {
            Some(text) => serializer.serialize_str(text),
            None => serializer
                .serialize_str(&self.0.as_bytes().iter().copied().map(char::from).collect::<String>()),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_ascii() {
            return Ok(Self(text.into()));
        }
        let bytes: Result<_, _> = text.chars().map(u8::try_from).collect();
        bytes.map(|bytes| Self(OsString::from_vec(bytes))).map_err(D::Error::custom)
    }
}

impl LaunchOrder {
    pub(crate) fn receive(control: &File) -> io::Result<Self> {
        let Message { bytes, carried } = Message::receive(control)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Self { doors: carried, ..serde_json::from_slice(&bytes)? })
    }
}

impl Role {
    pub(crate) fn receive(control: &File) -> io::Result<Self> {
        let Message { bytes, carried } = Message::receive(control)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut role = serde_json::from_slice(&bytes)?;
        if let Self::Supervisor(of_command) = &mut role {
            of_command.1.doors = carried;
        }
        Ok(role)
    }
}

/// As JSON, for a message.
pub(crate) fn encode(told: &impl Serialize) -> io::Result<Vec<u8>> {
    let bytes = serde_json::to_vec(told)?;
    let is_short = bytes.len() <= MESSAGE_MAX;
    is_short.then_some(bytes).ok_or_else(|| io::Error::other("there are too many places to protect"))
}

/// Words and an environment, to be handed over.
pub(crate) fn texts(
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
) -> (Vec<Text>, Vec<(Text, Text)>) {
    let variables = environment.into_iter().map(|(name, value)| (Text(name), Text(value)));
    (words.into_iter().map(Text).collect(), variables.collect())
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

/// What a message carries, at most: the doors of a command's cgroups, or a socket and a pipe.
const CARRIED_MAX: usize = 4;

/// One message.
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    pub(crate) carried: Vec<OwnedFd>,
}

impl Message {
    /// Read without a buffer, which would keep what is not yet asked for. `None`: none will come.
    pub(crate) fn receive(mut control: impl AsFd + Read) -> io::Result<Option<Self>> {
        let Some((length, carried)) = receive_head(&control)? else { return Ok(None) };
        let mut bytes = vec![0; length];
        control.read_exact(&mut bytes)?;
        Ok(Some(Self { bytes, carried }))
    }

    pub(crate) fn send(
        mut control: impl AsFd + Write,
        bytes: &[u8],
        carried: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        send_head(&control, bytes.len(), carried)?;
        control.write_all(bytes)
    }
}

/// Sends how long the rest will be, and what it carries.
pub(crate) fn send_head(control: impl AsFd, length: usize, carried: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(CARRIED_MAX))];
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    if !carried.is_empty() && !buffer.push(SendAncillaryMessage::ScmRights(carried)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(control, &[IoSlice::new(&length.to_le_bytes())], &mut buffer, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive_head(control: impl AsFd) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(CARRIED_MAX))];
    let mut buffer = RecvAncillaryBuffer::new(&mut space);
    let mut length = [0; size_of::<usize>()];
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(control.as_fd(), &mut [IoSliceMut::new(&mut length)], &mut buffer, RecvFlags::CMSG_CLOEXEC)
    });
    let received = received.map_err(|errno| match errno {
        Errno::NOTSOCK => {
            let what = "is not for people: midturn starts it for the commands it runs";
            io::Error::other(format!("{SUPERVISE} {what}"))
        }
        errno => errno.into(),
    })?;
    match received.bytes {
        0 => return Ok(None),
        bytes if bytes == length.len() => {}
        _ => return Err(io::ErrorKind::UnexpectedEof.into()),
    }
    let length = usize::from_le_bytes(length);
    if length > MESSAGE_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    let rights = buffer.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(carried) => Some(carried),
        _ => None,
    });
    Ok(Some((length, rights.flatten().collect())))
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
            Report::Stale("/w/.git".into()),
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
        let words = vec!["bash".into(), "".into(), "é x".into(), OsString::from_vec(vec![0xff, 1, b'a'])];
        let environment = vec![("A".into(), "b=c".into()), ("E".into(), "".into())];
        assert!(can_be_handed_over(&words, &environment));
        let (grace, folder) = (Duration::from_millis(7), PathBuf::from("/w"));
        let anew = Anew { covered: vec!["/p/.claude".into()], ..Anew::default() };
        let streams = Streams { input: Some("/in".into()), errors: None };
        let (words, environment) = texts(words, environment);
        let order = LaunchOrder { grace, words, environment, folder, streams, anew, doors: Vec::new() };
        let (ours, theirs) = UnixStream::pair().unwrap();
        Message::send(&ours, &encode(&order).unwrap(), &[theirs.as_fd()]).unwrap();
        let read = LaunchOrder::receive(&File::from(OwnedFd::from(theirs))).unwrap();
        assert_eq!((read.words, read.environment), (order.words, order.environment));
        assert_eq!((read.grace, read.folder, read.anew), (grace, order.folder, order.anew));
        assert_eq!(read.streams, order.streams);
        assert_eq!(read.doors.len(), 1);
        for word in ["a\0b", "\0", &"x".repeat(WORDS_MAX)] {
            assert!(!can_be_handed_over(&[word.into()], &[]));
            let in_environment = can_be_handed_over(&[], &[("A".into(), word.into())]);
            assert_eq!(in_environment, !word.contains('\0'));
        }
    }
}
