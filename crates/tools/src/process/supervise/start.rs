//! Starts the command: a process that locks itself up and becomes it.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::io::Errno;

use super::fork::{Alone, fork_to_execute, hear_all_signals};
use crate::process::Streams;
use crate::process::wire::{LaunchOrder, Report, Text};
use crate::sandbox::lock::lock;
use crate::sandbox::orders::Orders;

/// The status of a process that could not become the command. It has said why.
const NOT_STARTED: u8 = 126;

/// A group of its own (so that `kill 0` spares the supervisor), nothing to read, every signal
/// as the system sets it.
pub(super) fn start(alone: Alone, orders: &Orders, order: &LaunchOrder) -> Result<Pid, Report> {
    let mut failure = None;
    // What locks a process up is done by that process.
    let child = fork_to_execute(alone, || {
        failure = Some(become_command(orders, order));
        NOT_STARTED
    });
    let child = child.map_err(|error| not_started(&error))?;
    let Some(failure) = failure else { return Ok(child) };
    waitpid(child, None).map_err(|errno| not_started(&errno.into()))?;
    Err(failure)
}

/// Why it didn't.
fn become_command(orders: &Orders, order: &LaunchOrder) -> Report {
    match prepare(orders, order) {
        Ok(()) => not_started(&execute(order)),
        Err(why) => Report::NotLocked(why),
    }
}

fn prepare(orders: &Orders, order: &LaunchOrder) -> Result<(), String> {
    let own_group = nix::unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0)).map_err(io::Error::from);
    let of_system = own_group.and_then(|()| hear_all_signals());
    of_system.map_err(|e| format!("privileges could not be given up: {e}"))?;
    lock(orders, &order.doors)
}

/// Becomes the command. Returns only when that fails.
fn execute(order: &LaunchOrder) -> io::Error {
    let Some((Text(program), arguments)) = order.words.split_first() else { return Errno::INVAL.into() };
    let mut command = Command::new(program);
    command.args(arguments.iter().map(|Text(word)| word)).env_clear();
    command.envs(order.environment.iter().map(|(Text(name), Text(value))| (name, value)));
    match redirect(&mut command, &order.streams) {
        Ok(()) => command.exec(),
        Err(error) => error,
    }
}

fn redirect(command: &mut Command, streams: &Streams) -> io::Result<()> {
    let input = streams.input.as_ref().map(File::open).transpose()?;
    command.stdin(input.map_or_else(Stdio::null, Stdio::from));
    if let Some(errors) = &streams.errors {
        command.stderr(File::create_new(errors)?);
    }
    Ok(())
}

pub(super) fn not_started(error: &io::Error) -> Report {
    Report::NotStarted { errno: error.raw_os_error().unwrap_or(0) }
}
