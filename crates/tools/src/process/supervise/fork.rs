//! The one place with `unsafe`: `fork`, and what a process has inherited and has to undo.
//!
//! Namespaces are entered by forking: executing a program in between would cost the privilege to mount `/proc`,
//! and the time that all of this is about; and no safe interface forks. It is sound here because seeds, anchors and
//! supervisors have one thread: no lock can be held by a thread that the child doesn't have.
#![allow(unsafe_code)]

use std::io;

use nix::errno::Errno;
use nix::sched::{CloneFlags, clone};
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::unistd::{ForkResult, Pid};

/// What becomes a command needs so much for its stack, in bytes. It makes a few files, no deep calls.
const STACK: usize = 256 << 10;

unsafe extern "C" {
    /// The C library's.
    static mut environ: *const *const std::ffi::c_char;
}

/// Says that the process has one thread. A seed finds it out before it starts anything, and nothing in here starts a
/// thread; who is forked has one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone(());

impl Alone {
    /// Refuses (`EBUSY`) where there is more than one thread.
    pub(super) fn check() -> io::Result<Self> {
        let is_alone = std::fs::read_dir("/proc/self/task")?.count() == 1;
        if is_alone { Ok(Self(())) } else { Err(Errno::EBUSY.into()) }
    }
}

/// Forks. `None` in the child.
pub(super) fn fork(_: Alone) -> io::Result<Option<Pid>> {
    // SAFETY: the process has one thread, so the child finds every lock and the allocator as consistent as the
    // parent left them.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(Some(child)),
        ForkResult::Child => Ok(None),
    }
}

/// Forks into new namespaces, of which the child, `None`, is process 1 where they are PID namespaces: no process that
/// is there already can make more than one such child.
pub(super) fn fork_into(_: Alone, namespaces: CloneFlags) -> io::Result<Option<Pid>> {
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

/// A child that works in our memory, while we wait, until it executes a program; or until it returns, with the status
/// that it ends with. A copy of our memory would be thrown away at once.
pub(super) fn fork_to_execute(_: Alone, mut child: impl FnMut() -> u8) -> io::Result<Pid> {
    let mut stack = vec![0; STACK];
    let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
    // SAFETY: nobody else reads or writes it, and what it is set back to is where it was.
    let environment = unsafe { environ };
    // SAFETY: as `fork`, and of the two that have the memory only one ever runs: the system lets us go on when the
    // child has executed a program or is dead. It has a stack of its own. Descriptors, signals and all that it does to
    // itself are not shared. What it has in memory when it executes a program stays there, unused.
    // A child that is killed in between may leave the allocator in the middle of something; then we fail, and what
    // is killed with us is this one command.
    let child =
        unsafe { clone(Box::new(|| child().into()), &mut stack, flags, Some(Signal::SIGCHLD as i32)) };
    // The standard library has put the command's in the place of ours.
    // SAFETY: as above.
    unsafe { environ = environment };
    Ok(child?)
}

/// Ends this process at once. Nothing of ours has to be written or given back at an end, and to do so a process that
/// was forked would copy the memory that it is about to lose.
pub(super) fn leave(status: i32) -> ! {
    // SAFETY: it takes no memory and leaves none.
    unsafe { nix::libc::_exit(status) }
}

/// Gives up what an executed process inherits: all descriptors but the first three are closed when a program is
/// executed, as all are that are opened later, and all signals are as the system sets them, but for a closed pipe:
/// who writes to one is told so.
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
    for of_system in Signal::iterator().filter(|s| !matches!(s, Signal::SIGKILL | Signal::SIGSTOP)) {
        let handler = if of_system == Signal::SIGPIPE { SigHandler::SigIgn } else { SigHandler::SigDfl };
        // SAFETY: no handler of ours is set; what the runtime catches, to say that a stack is full, ends us as well
        // without.
        unsafe { signal(of_system, handler) }?;
    }
    Ok(())
}

/// In what becomes a command, all signals are as the system sets them, and none is blocked.
pub(super) fn hear_all_signals() -> io::Result<()> {
    // SAFETY: it sets no handler, and a program is executed next.
    unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) }?;
    Ok(SigSet::empty().thread_set_mask()?)
}
