//! Everything a command started: how many are alive, and how to signal them all.

use std::collections::{HashMap, HashSet};
use std::io;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::super::table::{Process, processes};

/// How the tree is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tree {
    /// All processes of our PID namespace but us.
    Namespace,
    /// Our descendants; what is orphaned becomes our child, so none gets away.
    Descendants,
    /// The process group only: [`Fault::GroupKillOnly`].
    ///
    /// [`Fault::GroupKillOnly`]: crate::planted::Fault::GroupKillOnly
    Group(Pid),
}

impl Tree {
    /// How many are alive. What is dead and waits for its parent is not.
    pub(super) fn alive(self) -> io::Result<u32> {
        let processes = self.members()?;
        let alive = processes.iter().filter(|p| p.is_alive()).count();
        Ok(u32::try_from(alive).unwrap_or(u32::MAX))
    }

    /// Sends the signal to all that are there. For [`Tree::Descendants`] it looks again until
    /// a look finds nobody new: what forks while it is being looked at is found then.
    pub(super) fn signal(self, signal: Signal) -> io::Result<()> {
        let sent = match self {
            // The kernel does it in one step, forks included.
            Self::Namespace => kill(Pid::from_raw(-1), signal),
            Self::Group(leader) => killpg(leader, signal),
            Self::Descendants => return signal_each(signal),
        };
        match sent {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn members(self) -> io::Result<Vec<Process>> {
        let us = std::process::id().cast_signed();
        match self {
            Self::Namespace => Ok(processes()?.into_iter().filter(|p| p.pid != us).collect()),
            // There are kernels without the lists of children.
            Self::Descendants => descendants_by_list(us).or_else(|_| Ok(descendants(us, processes()?))),
            Self::Group(_) => Ok(Vec::new()),
        }
    }
}

fn signal_each(signal: Signal) -> io::Result<()> {
    let mut seen = HashSet::new();
    loop {
        let members = Tree::Descendants.members()?;
        let fresh: Vec<_> = members.iter().filter(|p| seen.insert((p.pid, p.started))).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        for process in fresh {
            process.signal(signal)?;
        }
    }
}

/// From each process's own list of children: only the tree is looked at, not the machine.
fn descendants_by_list(of: i32) -> io::Result<Vec<Process>> {
    let mut next = children(of)?;
    let mut found = Vec::new();
    while let Some(pid) = next.pop() {
        // Who is gone by now has left its children to others of the tree, or to us.
        found.extend(Process::read(pid));
        next.extend(children(pid).unwrap_or_default());
    }
    Ok(found)
}

/// A child belongs to the thread that started it, so each thread has a list.
fn children(of: i32) -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{of}/task"))? {
        let list = std::fs::read_to_string(task?.path().join("children"))?;
        found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Ok(found)
}

fn descendants(of: i32, all: Vec<Process>) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut next = vec![of];
    while let Some(parent) = next.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            next.push(child.pid);
            found.push(child);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_at_any_depth_and_nobody_else() {
        let row =
            |pid, parent| Process { pid, parent, session: 1, state: b'S', flags: 0, threads: 1, started: 1 };
        let found = descendants(5, vec![row(9, 8), row(6, 5), row(8, 6), row(7, 1), row(5, 1)]);
        let mut pids: Vec<_> = found.iter().map(|p| p.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [6, 8, 9]);
    }
}
