//! The last things a command's process does before it becomes the command: it gives up all that
//! the command must not have. Nothing here can be taken back, and whatever fails keeps the
//! command from being started.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities,
};

use super::cgroup;
use super::orders::{Bounds, Failed, Lock};

/// Locks this process up.
pub(crate) fn lock(lock: &Lock, doors: &[OwnedFd]) -> Result<(), (Failed, io::Error)> {
    doors.iter().try_for_each(cgroup::enter).map_err(|e| (Failed::Cgroup, e))?;
    bound(&lock.bounds).map_err(|e| (Failed::Bounds, e))?;
    if lock.no_privileges {
        give_up_privileges().map_err(|e| (Failed::Privileges, e))?;
    }
    if let Some(rights) = &lock.rights {
        rights.apply().map_err(|e| (Failed::Rights, io::Error::other(e)))?;
    }
    lock.filter
        .as_ref()
        .map_or(Ok(()), super::seccomp::apply)
        .map_err(|e| (Failed::Filters, io::Error::other(e)))
}

fn bound(bounds: &Bounds) -> io::Result<()> {
    let all = [
        (Resource::Fsize, bounds.file_size),
        (Resource::Nofile, bounds.open_files),
        (Resource::Data, bounds.memory),
        (Resource::Nproc, bounds.processes),
        // A core file is written wherever the system says, by the system.
        (Resource::Core, Some(0)),
    ];
    for (resource, limit) in all {
        let Some(limit) = limit else { continue };
        let limit = getrlimit(resource).maximum.map_or(limit, |most| most.min(limit));
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}

/// Takes away all capabilities, and every way to get one: none comes by executing a program.
fn give_up_privileges() -> io::Result<()> {
    nix::sys::prctl::set_no_new_privs()?;
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            // An older system doesn't know all.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            // Without privileges there is none to lose, now that none can be won.
            Err(rustix::io::Errno::PERM) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}
