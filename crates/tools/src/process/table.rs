//! Lines of the system's table of processes, and a hold on the process that a line names.

use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

/// The kernel's `PF_EXITING`.
const EXITING: u32 = 0x4;

/// The kernel's `PF_FORKNOEXEC`.
const FORKED_ONLY: u32 = 0x40;

/// A line of the system's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    /// The POSIX session; 0 when it was made outside of our PID namespace.
    pub(crate) session: i32,
    pub(crate) state: u8,
    /// What the kernel notes of it; see [`Process::is_exiting`] and [`Process::has_executed`].
    pub(crate) flags: u32,
    pub(crate) threads: u64,
    /// Together with the number it names a process for good, until the machine starts anew.
    pub(crate) started: u64,
}

impl Process {
    pub(crate) fn read(pid: impl Display) -> Option<Self> {
        Self::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Our own line, with the numbers that others know us by.
    pub(crate) fn ourselves() -> io::Result<Self> {
        Self::read("self").ok_or_else(|| io::Error::other("/proc/self/stat can't be read"))
    }

    /// `PID (NAME) STATE PPID PGRP SESSION TTY TPGID FLAGS … THREADS … STARTTIME …`; the name may hold
    /// blanks and brackets, and need not be text.
    fn parse(stat: &[u8]) -> Option<Self> {
        let (head, tail) = stat.split_at(memchr::memrchr(b')', stat)?);
        let pid = std::str::from_utf8(&head[..memchr::memchr(b' ', head)?]).ok()?.parse().ok()?;
        let mut fields = std::str::from_utf8(tail).ok()?.split(' ').skip(1);
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let flags = fields.nth(2)?.parse().ok()?;
        let threads = fields.nth(10)?.parse().ok()?;
        let started = fields.nth(1)?.parse().ok()?;
        Some(Self { pid, parent, session, state, flags, threads, started })
    }

    /// Whether it is more than a line that waits for its parent.
    pub(crate) fn is_alive(&self) -> bool {
        self.state != b'Z' && self.state != b'X'
    }

    /// Whether it has begun to die: nothing brings it back, however long it takes.
    pub(crate) fn is_exiting(&self) -> bool {
        self.flags & EXITING != 0
    }

    /// Whether it runs a program of its own. Before that it shows its parent's environment.
    pub(crate) fn has_executed(&self) -> bool {
        self.flags & FORKED_ONLY == 0
    }

    /// A hold on this very process: its number may have gone to another one meanwhile, so it
    /// is held first and looked at again. `None`: it is gone.
    pub(crate) fn hold(&self) -> io::Result<Option<OwnedFd>> {
        let pid = rustix::process::Pid::from_raw(self.pid).ok_or(io::ErrorKind::InvalidData)?;
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(None) };
        Ok(Self::read(self.pid).filter(|now| now.started == self.started).map(|_| held))
    }

    /// Signals this very process. One that is gone needs no signal.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        self.hold()?.map_or(Ok(()), |held| send(&held, signal))
    }
}

/// Signals the process that is held.
pub(crate) fn send(held: &OwnedFd, signal: Signal) -> io::Result<()> {
    let signal = rustix::process::Signal::from_named_raw(signal as i32).ok_or(io::ErrorKind::InvalidData)?;
    match pidfd_send_signal(held, signal) {
        // A process that changed its user is out of our reach; it is waited for all the same.
        Ok(()) | Err(rustix::io::Errno::SRCH | rustix::io::Errno::PERM) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether the process that is held is dead, after at most so long.
pub(crate) fn is_dead_by(held: &OwnedFd, patience: Duration) -> io::Result<bool> {
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    let mut ends = [PollFd::new(held, PollFlags::IN)];
    Ok(rustix::io::retry_on_intr(|| poll(&mut ends, Some(&patience)))? > 0)
}

/// How long something is kept for a process that nobody waits for.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// As [`is_dead_by`], for as long as anything is kept.
pub(crate) fn is_dead_at_last(held: &OwnedFd) -> bool {
    is_dead_by(held, LAST_WAIT).is_ok_and(|is_dead| is_dead)
}

/// Keeps something until the process is dead, behind everybody's back: what is taken away sooner could be used by it.
/// What can't be taken away even then stays, and is harmless.
pub(crate) fn keep_until_dead(held: OwnedFd, kept: impl Send + 'static) {
    let wait = move || {
        is_dead_at_last(&held);
        drop(kept);
    };
    let _no_thread =
        thread::Builder::new().name("midturn-last-wait".into()).stack_size(128 << 10).spawn(wait);
}

/// The numbers of all processes that can be seen.
pub(crate) fn pids() -> io::Result<Vec<i32>> {
    let entries = std::fs::read_dir("/proc")?;
    Ok(entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect())
}

/// The whole table, as far as it can be read.
pub(crate) fn processes() -> io::Result<Vec<Process>> {
    Ok(pids()?.into_iter().filter_map(Process::read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_brackets_is_read_over() {
        let line = b"42 (a) b (c) S 7 41 40 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99887 1 2";
        let process = Process::parse(line).unwrap();
        assert_eq!(
            process,
            Process {
                pid: 42,
                parent: 7,
                session: 40,
                state: b'S',
                flags: 0x40_0000,
                threads: 1,
                started: 99887
            }
        );
        assert!(process.has_executed() && !process.is_exiting());
        assert_eq!(Process::parse(b"42 (a"), None);
    }

    #[test]
    fn a_process_whose_name_is_no_text_is_found() {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
        std::os::unix::fs::symlink("/usr/bin/cat", &program).unwrap();
        let mut child =
            std::process::Command::new(&program).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id().cast_signed();
        assert_eq!(Process::read(pid).map(|process| (process.pid, process.threads)), Some((pid, 1)));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn we_find_ourselves_and_can_be_held() {
        let us = Process::ourselves().unwrap();
        assert_eq!(us.pid.cast_unsigned(), std::process::id());
        assert!(us.is_alive() && us.hold().unwrap().is_some());
        assert!(Process { started: us.started + 1, ..us }.hold().unwrap().is_none());
    }
}
