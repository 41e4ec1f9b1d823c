//! What a seed and an anchor do all their lives: they fork when asked, and reap.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::{WaitOptions, wait};

use crate::process::wire::Message;

/// Answers each message until none can come any more, and then stays until no child is left: whoever forked a child
/// takes it along when it dies. `Some`: this is a child now.
pub(super) fn serve<T>(
    control: &UnixStream,
    mut answer: impl FnMut(Message) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let deaths = deaths()?;
    while until_asked(control, &deaths)? {
        let Some(message) = Message::receive(control)? else { break };
        if let Some(child) = answer(message)? {
            return Ok(Some(child));
        }
    }
    while !matches!(wait(WaitOptions::empty()), Err(rustix::io::Errno::CHILD)) {}
    Ok(None)
}

fn deaths() -> io::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGCHLD);
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

/// Waits for the next message, or for there being none, and reaps meanwhile.
fn until_asked(control: &UnixStream, deaths: &SignalFd) -> io::Result<bool> {
    loop {
        let mut sources =
            [PollFd::new(control.as_fd(), PollFlags::POLLIN), PollFd::new(deaths.as_fd(), PollFlags::POLLIN)];
        match poll(&mut sources, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let is_asked = sources[0].any().unwrap_or(false);
        while deaths.read_signal()?.is_some() {}
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
        if is_asked {
            return Ok(true);
        }
    }
}
