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

use super::orders::{Bounds, Orders};
use super::{cgroup, seccomp};

/// Locks this process up. What fails is told in words.
pub(crate) fn lock(orders: &Orders, doors: &[OwnedFd]) -> Result<(), String> {
    let entered = doors.iter().try_for_each(cgroup::enter);
    entered.map_err(|e| format!("the command could not be put into its cgroup: {e}"))?;
    bound(&orders.bounds).map_err(|e| format!("its limits could not be set: {e}"))?;
    if orders.no_privileges {
        give_up_privileges().map_err(|e| format!("privileges could not be given up: {e}"))?;
    }
    if let Some(rights) = &orders.rights {
        rights.apply().map_err(|e| format!("Landlock could not be applied: {e}"))?;
    }
    if let Some(filter) = &orders.filter {
        seccomp::apply(filter).map_err(|e| format!("system calls could not be filtered: {e}"))?;
    }
    Ok(())
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
