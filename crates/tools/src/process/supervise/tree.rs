//! Everything a command started: how many are alive, and how to signal them all.

use std::collections::{HashMap, HashSet};
use std::io;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

/// How the tree is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tree {
    /// All processes of our PID namespace but us.
    Namespace,
    /// Our descendants; what is orphaned becomes our child, so none gets away.
    Descendants,
}

impl Tree {
    /// How many are alive. What is dead and waits for its parent is not.
    pub(super) fn alive(self) -> io::Result<u32> {
        let processes = self.members()?;
        let alive = processes.iter().filter(|p| p.state != b'Z' && p.state != b'X').count();
        Ok(u32::try_from(alive).unwrap_or(u32::MAX))
    }

    /// Sends the signal to all that are there. For [`Tree::Descendants`] it looks again until
    /// a look finds nobody new: what forks while it is being looked at is found then.
    pub(super) fn signal(self, signal: Signal) -> io::Result<()> {
        match self {
            // The kernel does it in one step, forks included.
            Self::Namespace => match kill(Pid::from_raw(-1), signal) {
                Ok(()) | Err(Errno::ESRCH) => Ok(()),
                Err(errno) => Err(errno.into()),
            },
            Self::Descendants => signal_each(signal),
        }
    }

    fn members(self) -> io::Result<Vec<Process>> {
        let us = std::process::id().cast_signed();
        match self {
            Self::Namespace => Ok(processes()?.into_iter().filter(|p| p.pid != us).collect()),
            Self::Descendants => match descendants_by_list(us) {
                Ok(found) => Ok(found),
                // A kernel without the lists of children.
                Err(_) => Ok(descendants(us, processes()?)),
            },
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

/// A line of the system's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    state: u8,
    /// Together with the number it names a process for good.
    started: u64,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `PID (NAME) STATE PPID … STARTTIME …`; the name may hold blanks and brackets.
    fn parse(stat: &str) -> Option<Self> {
        let (head, tail) = stat.rsplit_once(") ")?;
        let pid = head.split_once(' ')?.0.parse().ok()?;
        let mut fields = tail.split(' ');
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let started = fields.nth(17)?.parse().ok()?;
        Some(Self { pid, parent, state, started })
    }

    /// Signals this very process: its number may have gone to another one meanwhile, so it is
    /// held first and looked at again. One that is gone needs no signal.
    fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = rustix::process::Pid::from_raw(self.pid).ok_or(io::ErrorKind::InvalidData)?;
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
        if Self::read(self.pid).is_none_or(|now| now.started != self.started) {
            return Ok(());
        }
        let signal =
            rustix::process::Signal::from_named_raw(signal as i32).ok_or(io::ErrorKind::InvalidData)?;
        match pidfd_send_signal(&held, signal) {
            // A process that changed its user is out of our reach; it is waited for all the same.
            Ok(()) | Err(rustix::io::Errno::SRCH | rustix::io::Errno::PERM) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn processes() -> io::Result<Vec<Process>> {
    let entries = std::fs::read_dir("/proc")?;
    Ok(entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .collect())
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
    fn a_name_with_blanks_and_brackets_is_read_over() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99887 1 2";
        let process = Process::parse(line).unwrap();
        assert_eq!(process, Process { pid: 42, parent: 7, state: b'S', started: 99887 });
        assert_eq!(Process::parse("42 (a"), None);
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_nobody_else() {
        let row = |pid, parent| Process { pid, parent, state: b'S', started: 1 };
        let found = descendants(5, vec![row(9, 8), row(6, 5), row(8, 6), row(7, 1), row(5, 1)]);
        let mut pids: Vec<_> = found.iter().map(|p| p.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [6, 8, 9]);
    }
}
