//! The one place with `unsafe` in this crate: `fork`, and dying of a signal.
//!
//! The standard library starts programs with SIGPIPE as the system sets it and can't have them die with their
//! parent; Claude Code's commands have it ignored, and a shell whose supervisor is gone would run on unseen. Both
//! need code between `fork` and `execve`. It is sound here because this program has one thread: no lock can
//! be held by a thread that the child doesn't have.
#![allow(unsafe_code)]

use std::io;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::SigSet;
use nix::unistd::{ForkResult, Pid};

/// Forks. `None` in the child. Refuses (`EBUSY`) where there is more than one thread.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(Errno::EBUSY.into());
    }
    // SAFETY: the process has one thread, checked above, so the child finds every lock and
    // the allocator as consistent as the parent left them.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(Some(child)),
        ForkResult::Child => Ok(None),
    }
}

/// Ends this process as its child ended: by the signal of this number, and without a dump of us. Returns only if
/// the signal ends nobody.
pub(super) fn die_of(signal: i32) {
    // Neither can fail for our own process; a dump more would do no harm.
    let (_, _) = (nix::sys::prctl::set_dumpable(false), SigSet::empty().thread_set_mask());
    // SAFETY: no handler is set, and there is none of ours that was to be called.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
