//! The one place with `unsafe`: `fork`, and what a forked process has to undo.
//!
//! To become process 1 of a PID namespace inside a user namespace a process must make both
//! and then fork: executing a program in between would cost the privilege to mount `/proc`,
//! and no safe interface forks. It is sound here because a supervisor has one thread: no lock
//! can be held by a thread that the child doesn't have.
#![allow(unsafe_code)]

use std::io;

use nix::sys::signal::{SigHandler, Signal};
use nix::unistd::{ForkResult, Pid};

/// Forks. `None` in the child. Refuses (`EBUSY`) where there is more than one thread.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(nix::errno::Errno::EBUSY.into());
    }
    // SAFETY: the process has one thread, checked above, so the child finds every lock and
    // the allocator as consistent as the parent left them.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(Some(child)),
        ForkResult::Child => Ok(None),
    }
}

/// Gives up what a process inherits: all descriptors but the first three are closed when a
/// program is executed, and all signals are as the system sets them.
pub(super) fn inherit_nothing() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let Some(fd) = name.to_str().and_then(|name| name.parse::<i32>().ok()).filter(|fd| *fd > 2) else {
            continue;
        };
        // SAFETY: it only sets a flag of a descriptor; of one that isn't open it says so.
        if unsafe { nix::libc::fcntl(fd, nix::libc::F_SETFD, nix::libc::FD_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    for signal in Signal::iterator().filter(|s| !matches!(s, Signal::SIGKILL | Signal::SIGSTOP)) {
        // SAFETY: no handler is set, and none that was is relied on: a program is executed next.
        unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) }?;
    }
    Ok(nix::sys::signal::SigSet::empty().thread_set_mask()?)
}
