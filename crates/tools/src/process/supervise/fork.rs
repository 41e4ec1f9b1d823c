//! The one place with `unsafe`: `fork`, and what a forked process has to undo.
//!
//! Namespaces are entered by forking: executing a program in between would cost the privilege to mount `/proc`,
//! and the time that all of this is about; and no safe interface forks. It is sound here because seeds, anchors and
//! supervisors have one thread: no lock can be held by a thread that the child doesn't have.
#![allow(unsafe_code)]

use std::io;

use nix::sched::CloneFlags;
use nix::sys::signal::{SigHandler, Signal};
use nix::unistd::{ForkResult, Pid};

/// Forks. `None` in the child. Refuses (`EBUSY`) where there is more than one thread.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    alone()?;
    // SAFETY: the process has one thread, checked above, so the child finds every lock and
    // the allocator as consistent as the parent left them.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(Some(child)),
        ForkResult::Child => Ok(None),
    }
}

/// Forks into new namespaces, of which the child, `None`, is process 1 where they are PID namespaces: no process that
/// is there already can make more than one such child.
pub(super) fn fork_into(namespaces: CloneFlags) -> io::Result<Option<Pid>> {
    alone()?;
    let flags = i64::from(namespaces.bits() | Signal::SIGCHLD as i32);
    // SAFETY: as `fork`: one thread, and without a stack of its own the child goes on, on a copy of ours, where
    // we are. That the C library's own `fork` doesn't know of it costs nothing that is used here: it
    // prepares locks for what other threads hold.
    match unsafe { nix::libc::syscall(nix::libc::SYS_clone, flags, 0, 0, 0, 0) } {
        0 => Ok(None),
        child if child > 0 => Ok(i32::try_from(child).ok().map(Pid::from_raw)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn alone() -> io::Result<()> {
    let is_alone = std::fs::read_dir("/proc/self/task")?.count() == 1;
    if is_alone { Ok(()) } else { Err(nix::errno::Errno::EBUSY.into()) }
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
