//! The one place with `unsafe`: `fork`.
//!
//! To become process 1 of a PID namespace inside a user namespace a process must make both
//! and then fork: executing a program in between would cost the privilege to mount `/proc`,
//! and no safe interface forks. It is sound here because a supervisor has one thread: no lock
//! can be held by a thread that the child doesn't have.
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::unistd::{ForkResult, Pid};

/// Forks. `None` in the child. Refuses (`EBUSY`) where there is more than one thread.
pub(super) fn fork() -> nix::Result<Option<Pid>> {
    if threads()? != 1 {
        return Err(Errno::EBUSY);
    }
    // SAFETY: the process has one thread, checked above, so the child finds every lock and
    // the allocator as consistent as the parent left them.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(Some(child)),
        ForkResult::Child => Ok(None),
    }
}

fn threads() -> nix::Result<usize> {
    let tasks = std::fs::read_dir("/proc/self/task");
    tasks.map(Iterator::count).map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(0)))
}
