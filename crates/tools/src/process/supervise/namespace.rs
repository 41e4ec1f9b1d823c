//! PID namespaces: the kernel keeps a tree together, and nothing can leave it.

use std::io;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, mount};

/// Gives process 1 of a PID namespace its own `/proc`, where the view is that of all. Without that, what
/// the command sees there (`ps`, `pgrep`, `/proc/$$`) would be other people's processes, so
/// where `/proc` can't be mounted there is no namespace either.
pub(super) fn own_processes() -> io::Result<()> {
    is_first()?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", "/proc", "proc", flags, c"")?)
}

fn is_first() -> io::Result<()> {
    if std::process::id() == 1 { Ok(()) } else { Err(Errno::ESRCH.into()) }
}

/// Settles in as process 1 of the namespaces that bubblewrap made. It must not be looked into
/// by the command, which is of the same user.
pub(super) fn inside() -> io::Result<()> {
    is_first()?;
    Ok(nix::sys::prctl::set_dumpable(false)?)
}

/// Makes a user namespace that maps us to ourselves.
pub(super) fn own_user() -> io::Result<()> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}
