//! PID namespaces: the kernel keeps a tree together, and nothing can leave it.

use std::io;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

use super::fork::fork;
use super::loopback;
use crate::sandbox::orders::View;

/// Settles in as process 1 of a PID namespace: gives it its own `/proc`. Without that, what
/// the command sees there (`ps`, `pgrep`, `/proc/$$`) would be other people's processes, so
/// where `/proc` can't be mounted there is no namespace either.
pub(super) fn as_first(also: CloneFlags) -> io::Result<()> {
    is_first()?;
    unshare(CloneFlags::CLONE_NEWNS | also)?;
    if also.contains(CloneFlags::CLONE_NEWNET) {
        loopback::start()?;
    }
    // As a slave: mounts made outside later are seen, ours is not seen outside.
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", "/proc", "proc", flags, c"")?)
}

fn is_first() -> io::Result<()> {
    if std::process::id() == 1 { Ok(()) } else { Err(Errno::ESRCH.into()) }
}

/// The namespaces that a view needs besides.
pub(super) fn of_a_view(view: &View) -> CloneFlags {
    let all = CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWCGROUP;
    if view.network_off { all | CloneFlags::CLONE_NEWNET } else { all }
}

/// Settles in as process 1 of the namespaces that bubblewrap made. It must not be looked into
/// by the command, which is of the same user.
pub(super) fn inside() -> io::Result<()> {
    is_first()?;
    Ok(nix::sys::prctl::set_dumpable(false)?)
}

/// Makes a user namespace that maps us to ourselves, a PID namespace in it, and its process 1
/// by forking: `None` there. The child dies with us.
pub(super) fn fork_first() -> io::Result<Option<Pid>> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    let child = fork()?;
    if child.is_none() {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    }
    Ok(child)
}

/// Waits for process 1. Once it is reaped the kernel has ended all of its namespace.
pub(super) fn wait_for(first: Pid) -> io::Result<()> {
    // It holds the control socket and the output now; ours would keep them open.
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    while let Err(errno) = waitpid(first, None) {
        if errno != Errno::EINTR {
            return Err(errno.into());
        }
    }
    Ok(())
}
