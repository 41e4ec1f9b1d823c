//! Everything that our command started, and its end. We are the subreaper: what is orphaned becomes our child, so
//! none gets away, and when we have no child there is no descendant either.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, pidfd_open, pidfd_send_signal, wait,
};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(100);

/// After that it is given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// Each death wakes us; this is for what was forked behind the last look.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Ends all of it. False: something is left after [`PATIENCE`].
pub(super) fn end(signals: &SignalFd) -> io::Result<bool> {
    let begun = Instant::now();
    // What is stopped can't act on SIGTERM until it is continued.
    signal_each(&[Signal::TERM, Signal::CONT], begun)?;
    loop {
        if reap(|_, _| {})? {
            return Ok(true);
        }
        let spent = begun.elapsed();
        if spent >= PATIENCE {
            return Ok(false);
        }
        if spent >= GRACE {
            signal_each(&[Signal::KILL], begun)?;
        }
        doze(signals, GRACE.checked_sub(spent).unwrap_or(LOOK_AGAIN).min(PATIENCE))?;
    }
}

/// Until something died, or so long.
fn doze(signals: &SignalFd, at_most: Duration) -> io::Result<()> {
    let at_most = Timespec::try_from(at_most + Duration::from_micros(500)).map_err(io::Error::other)?;
    let fd = signals.as_fd();
    rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&at_most)))?;
    while signals.read_signal()?.is_some() {}
    Ok(())
}

/// Takes all that is dead and tells of it. True: there is no child left.
pub(super) fn reap(mut told: impl FnMut(Pid, WaitStatus)) -> io::Result<bool> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(None) => return Ok(false),
            Ok(Some((pid, status))) => told(pid, status),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CHILD) => return Ok(true),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Signals all there are, those first who started the others: they shall not go on to their next command. Looks
/// again until it finds nobody new: what forks meanwhile is found then.
fn signal_each(signals: &[Signal], begun: Instant) -> io::Result<()> {
    let mut seen = HashSet::new();
    while begun.elapsed() < PATIENCE {
        let members = descendants(std::process::id().cast_signed(), &processes()?);
        let fresh: Vec<_> = members.into_iter().filter(|process| seen.insert(*process)).collect();
        if fresh.is_empty() {
            break;
        }
        for process in fresh {
            process.signal(signals);
        }
    }
    Ok(())
}

/// A line of the system's table. Number and start name a process for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pid: i32,
    parent: i32,
    started: u64,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        // A process may give itself a name that is no text.
        Self::parse(&String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?))
    }

    /// `PID (NAME) STATE PPID … STARTTIME …`; the name may hold blanks and brackets.
    fn parse(stat: &str) -> Option<Self> {
        let (head, tail) = stat.rsplit_once(") ")?;
        let mut fields = tail.split(' ');
        let pid = head.split_once(' ')?.0.parse().ok()?;
        Some(Self { pid, parent: fields.nth(1)?.parse().ok()?, started: fields.nth(17)?.parse().ok()? })
    }

    /// This very process: its number may have gone to another one, so it is held first and looked at again. Who is
    /// gone, or has become another user, is out of our reach.
    fn signal(self, signals: &[Signal]) {
        let held = Pid::from_raw(self.pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let is_it = |_: &_| Self::read(self.pid).is_some_and(|now| now.started == self.started);
        if let Some(held) = held.filter(is_it) {
            for &signal in signals {
                let (Ok(()) | Err(_)) = pidfd_send_signal(&held, signal);
            }
        }
    }
}

fn processes() -> io::Result<Vec<Process>> {
    let entries = std::fs::read_dir("/proc")?.flatten();
    Ok(entries.filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?)).collect())
}

/// How deep a tree is looked up.
const DEPTH_MAX: usize = 1_000;

/// Whether the process is one of ours.
pub(super) fn is_inside(pid: i32) -> bool {
    let us = std::process::id().cast_signed();
    let parent = |of: &i32| Process::read(*of).map(|process| process.parent);
    std::iter::successors(parent(&pid), parent).take(DEPTH_MAX).any(|parent| parent == us)
}

fn descendants(of: i32, all: &[Process]) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = children.remove(&of).unwrap_or_default();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        found.extend(children.remove(&process.pid).unwrap_or_default());
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_name() {
        let line = "42 (a) b (c) S 7 41 40 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99887 1 2";
        assert_eq!(Process::parse(line), Some(Process { pid: 42, parent: 7, started: 99887 }));
        assert_eq!(Process::parse("42 (a"), None);
    }

    #[test]
    fn descendants_are_found_at_any_depth_top_down_and_nobody_else() {
        let row = |pid, parent| Process { pid, parent, started: 1 };
        let found = descendants(5, &[row(9, 8), row(6, 5), row(8, 6), row(7, 1), row(5, 1)]);
        assert_eq!(found.iter().map(|p| p.pid).collect::<Vec<_>>(), [6, 8, 9]);
    }
}
