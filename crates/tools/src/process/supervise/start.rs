//! Starts the command, as it is or locked up.

use std::ffi::CString;
use std::io::{self, PipeWriter, Read as _, Write as _};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::signal::SigSet;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::fs::{Mode, OFlags};

use super::Request;
use super::fork::{fork, inherit_nothing};
use crate::process::wire::{REPORT_BYTES, Report};
use crate::sandbox::lock::{become_command, lock};
use crate::sandbox::orders::{Failed, Lock};

/// A group of its own (so that `kill 0` spares the supervisor), nothing to read, every signal
/// as the system sets it.
pub(super) fn start(request: &Request) -> Result<Pid, Report> {
    if request.orders.lock == Lock::default() && request.doors.is_empty() {
        let started = start_unlocked(&request.words, &request.environment);
        return started.map_err(|errno| Report::NotStarted { errno: errno as i32 });
    }
    start_locked(request).unwrap_or_else(|error| Err(Report::NotStarted { errno: number(&error) }))
}

/// Forks, since what locks a process up is done by that process.
fn start_locked(request: &Request) -> io::Result<Result<Pid, Report>> {
    let (mut failure, tell) = io::pipe()?;
    let Some(child) = fork()? else { become_locked(request, tell) };
    drop(tell);
    let mut report = [0; REPORT_BYTES];
    // It ends when a program is executed: until then the child has the pipe, and tells.
    match failure.read_exact(&mut report) {
        Ok(()) => {
            waitpid(child, None)?;
            Ok(Err(Report::decode(report).unwrap_or(Report::NotStarted { errno: 0 })))
        }
        Err(_) => Ok(Ok(child)),
    }
}

fn become_locked(request: &Request, mut tell: PipeWriter) -> ! {
    let report = match prepare(request) {
        Ok(()) => Report::NotStarted { errno: number(&become_command(&request.words, &request.environment)) },
        Err((failed, error)) => Report::NotLocked { failed, errno: number(&error) },
    };
    // If it can't be told, the command's status says that something went wrong.
    let _untold = tell.write_all(&report.encode());
    std::process::exit(126)
}

fn prepare(request: &Request) -> Result<(), (Failed, io::Error)> {
    let own_group = nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0));
    own_group.map_err(|e| (Failed::Privileges, e.into()))?;
    inherit_nothing().map_err(|e| (Failed::Privileges, e))?;
    lock(&request.orders.lock, &request.doors)
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// Without a copy of ourselves, which is what is quickest.
fn start_unlocked(words: &[CString], environment: &[CString]) -> nix::Result<Pid> {
    let program = words.first().ok_or(Errno::EINVAL)?;
    let mut actions = PosixSpawnFileActions::init()?;
    let nothing = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let nothing = nothing.map_err(|e| Errno::from_raw(e.raw_os_error()))?;
    actions.add_dup2(nothing.as_raw_fd(), 0)?;
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETPGROUP
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF,
    )?;
    attributes.set_pgroup(Pid::from_raw(0))?;
    attributes.set_sigmask(&SigSet::empty())?;
    attributes.set_sigdefault(&SigSet::all())?;
    posix_spawnp(program, &actions, &attributes, words, environment)
}
