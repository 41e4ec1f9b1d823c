//! Starts the command: a process that locks itself up and becomes it.

use std::ffi::OsString;
use std::io::{self, PipeWriter, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::fork::{fork, inherit_nothing};
use crate::process::wire::{LaunchOrder, Report};
use crate::sandbox::lock::lock;
use crate::sandbox::orders::Orders;

/// A group of its own (so that `kill 0` spares the supervisor), nothing to read, every signal
/// as the system sets it.
pub(super) fn start(orders: &Orders, order: &LaunchOrder) -> Result<Pid, Report> {
    try_start(orders, order).unwrap_or_else(|error| Err(not_started(&error)))
}

/// Forks, since what locks a process up is done by that process.
fn try_start(orders: &Orders, order: &LaunchOrder) -> io::Result<Result<Pid, Report>> {
    let (mut failure, tell) = io::pipe()?;
    let Some(child) = fork()? else { become_command(orders, order, tell) };
    drop(tell);
    // It ends when a program is executed: until then the child has the pipe, and tells.
    let mut told = Vec::new();
    let _cut = failure.read_to_end(&mut told);
    let Ok(report) = serde_json::from_slice(&told) else { return Ok(Ok(child)) };
    waitpid(child, None)?;
    Ok(Err(report))
}

fn become_command(orders: &Orders, order: &LaunchOrder, mut tell: PipeWriter) -> ! {
    let report = match prepare(orders, order) {
        Ok(()) => not_started(&execute(&order.words, &order.environment)),
        Err(why) => Report::NotLocked(why),
    };
    // If it can't be told, the command's status says that something went wrong.
    let _untold = report.line().and_then(|line| tell.write_all(&line));
    std::process::exit(126)
}

fn prepare(orders: &Orders, order: &LaunchOrder) -> Result<(), String> {
    let own_group = nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0)).map_err(io::Error::from);
    let alone = own_group.and_then(|()| inherit_nothing());
    alone.map_err(|e| format!("privileges could not be given up: {e}"))?;
    lock(orders, &order.doors)
}

/// Becomes the command. Returns only when that fails.
fn execute(words: &[OsString], environment: &[(OsString, OsString)]) -> io::Error {
    let Some((program, arguments)) = words.split_first() else { return rustix::io::Errno::INVAL.into() };
    let environment = environment.iter().map(|(name, value)| (name, value));
    Command::new(program).args(arguments).env_clear().envs(environment).stdin(Stdio::null()).exec()
}

pub(super) fn not_started(error: &io::Error) -> Report {
    Report::NotStarted { errno: error.raw_os_error().unwrap_or(0) }
}
