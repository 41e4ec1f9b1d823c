//! Starts the command: a process that locks itself up and becomes it.

use std::io::{self, PipeWriter, Read as _, Write as _};

use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::LaunchOrder;
use super::fork::{fork, inherit_nothing};
use crate::process::wire::{REPORT_BYTES, Report};
use crate::sandbox::lock::{execute, lock};
use crate::sandbox::orders::Failed;

/// A group of its own (so that `kill 0` spares the supervisor), nothing to read, every signal
/// as the system sets it.
pub(super) fn start(order: &LaunchOrder) -> Result<Pid, Report> {
    try_start(order).unwrap_or_else(|error| Err(not_started(&error)))
}

/// Forks, since what locks a process up is done by that process.
fn try_start(order: &LaunchOrder) -> io::Result<Result<Pid, Report>> {
    let (mut failure, tell) = io::pipe()?;
    let Some(child) = fork()? else { become_command(order, tell) };
    drop(tell);
    let mut report = [0; REPORT_BYTES];
    // It ends when a program is executed: until then the child has the pipe, and tells.
    match failure.read_exact(&mut report) {
        Ok(()) => {
            waitpid(child, None)?;
            Ok(Err(Report::decode(&report).unwrap_or(Report::NotStarted { errno: 0 })))
        }
        Err(_) => Ok(Ok(child)),
    }
}

fn become_command(order: &LaunchOrder, mut tell: PipeWriter) -> ! {
    let report = match prepare(order) {
        Ok(()) => not_started(&execute(&order.words, &order.environment)),
        Err((failed, error)) => Report::NotLocked { failed, errno: number(&error) },
    };
    // If it can't be told, the command's status says that something went wrong.
    let _untold = report.encode().and_then(|report| tell.write_all(&report));
    std::process::exit(126)
}

fn prepare(order: &LaunchOrder) -> Result<(), (Failed, io::Error)> {
    let own_group = nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0));
    own_group.map_err(|e| (Failed::Privileges, e.into()))?;
    inherit_nothing().map_err(|e| (Failed::Privileges, e))?;
    lock(&order.sandbox.lock, &order.doors)
}

fn not_started(error: &io::Error) -> Report {
    Report::NotStarted { errno: number(error) }
}

pub(super) fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}
