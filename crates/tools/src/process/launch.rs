//! Starts a supervisor, forked by an anchor or executed: a socket, a pipe, nothing inherited besides.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::mem::take;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command as Process;
use std::sync::Arc;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::process::Child;
use tokio::task::spawn_blocking;

use super::anchors::{Anchor, Needs};
use super::running::Running;
use super::supervise::{SUPERVISE, Supervision};
use super::table::{is_dead_at_last, keep_until_dead};
use super::wire::{LaunchOrder, Role, Setting, encode, send_head, texts};
use super::{Command, RunError, Supervisor};
use crate::mark::Mark;
use crate::sandbox::cgroup::Group;
use crate::sandbox::stand_in::StandIns;
use crate::sandbox::{Prepared, Sandbox};
use crate::{network, planted};

/// A supervisor that was started and waits for its order. The doors of the command's cgroups
/// went through the control socket already.
pub(super) struct Launched {
    pub(super) running: Running,
    pub(super) order: Vec<u8>,
    /// To be kept until nothing of the command is alive.
    pub(super) holds: Holds,
}

/// What stands around a command as long as something of it is alive.
#[derive(Debug, Default)]
pub(super) struct Holds {
    pub(super) group: Option<Group>,
    stand_ins: StandIns,
    pub(super) anchor: Option<Arc<Anchor>>,
    /// Alive as long as anything of the command is, unless the command is over.
    supervisor: Option<OwnedFd>,
}

impl Holds {
    /// Waits for the end of process 1 of a namespace, which is that of all in it. False: there is none, or it goes on.
    pub(super) async fn is_namespace_dead(&mut self) -> bool {
        let Some(first) = self.supervisor.take().filter(|_| self.anchor.is_some()) else { return false };
        spawn_blocking(move || is_dead_at_last(&first)).await.is_ok_and(|is_dead| is_dead)
    }

    /// Nothing of the command is alive. A group that is not as new is removed behind our back: the system may
    /// take milliseconds, and what is empty harms nobody.
    pub(super) fn over(mut self) {
        self.supervisor = None;
        if let Some(used) = self.group.take().and_then(Group::over) {
            spawn_blocking(move || drop(used));
        }
    }
}

impl Drop for Holds {
    /// When nobody waits any more the tree is being ended behind our back; until it has come
    /// to that, what is taken away here could be used by it.
    fn drop(&mut self) {
        let mine = (self.group.take(), take(&mut self.stand_ins), self.anchor.take());
        let Some(supervisor) = self.supervisor.take() else { return };
        keep_until_dead(supervisor, mine);
    }
}

/// Starts a supervisor off the runtime: executing a program holds its thread for a while, an anchor has to be
/// waited for, and a sandbox has to look at files. `None`: the system refuses a namespace.
///
/// If nobody waits for the answer any more the control socket is closed, so the supervisor ends, and the runtime reaps
/// it.
pub(super) async fn launch(
    supervisor: &Supervisor,
    supervision: Supervision,
    command: &Command,
) -> Result<Option<Launched>, RunError> {
    let (supervisor, command) = (supervisor.clone(), command.clone());
    let started = spawn_blocking(move || start(&supervisor, supervision, &command)).await;
    started.map_err(|_| io::Error::other("the thread that starts it died"))?
}

fn start(
    supervisor: &Supervisor,
    supervision: Supervision,
    command: &Command,
) -> Result<Option<Launched>, RunError> {
    let Supervisor { grace, sandbox, .. } = supervisor;
    let Prepared { wrapper, orders, anew, ground, stand_ins } =
        prepare(supervisor, supervision, command).map_err(no_sandbox)?;
    let (words, environment) = texts(command.words.clone(), supervisor.environment(command));
    let (folder, streams) = (command.folder.clone(), command.streams.clone());
    let order = LaunchOrder { grace: *grace, words, environment, folder, streams, anew, doors: Vec::new() };
    let mut setting = Setting { supervision, sandbox: orders };
    setting.sandbox.way_out = command.gate.as_ref().map(|_| network::PORT);
    let (ours, theirs) = UnixStream::pair()?;
    let (output, writer) = io::pipe()?;
    let mut holds = Holds { group: None, stand_ins, anchor: None, supervisor: None };
    let (order, child) = if supervision.is_held() {
        let needs = Needs { setting, ground };
        let gate = command.gate.as_ref();
        let Some(first) = supervisor.anchors.start(supervisor, needs, gate, (&theirs, &writer))? else {
            return Ok(None);
        };
        (holds.anchor, holds.supervisor) = (Some(first.anchor), Some(first.hold));
        (encode(&order), None)
    } else {
        let child = execute(supervisor, wrapper, &command.folder, theirs, writer)?;
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        holds.supervisor = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        (encode(&Role::Supervisor(Box::new((setting, order)))), Some(child))
    };
    let order = order.map_err(no_sandbox)?;
    // Made while it starts.
    holds.group = sandbox.as_ref().map_or(Ok(None), Sandbox::group).map_err(no_sandbox)?;
    let doors: Vec<_> = holds.group.iter().flat_map(Group::doors).collect();
    // One that is gone already is noticed when its report is read.
    let _gone = send_head(&ours, order.len(), &doors);
    let running = Running::new(child, ours, output.into())?;
    Ok(Some(Launched { running, order, holds }))
}

fn prepare(supervisor: &Supervisor, supervision: Supervision, command: &Command) -> io::Result<Prepared> {
    let Some(sandbox) = &supervisor.sandbox else { return Ok(Prepared::default()) };
    let (confinement, folder) = (command.confinement.as_deref(), &command.folder);
    let held = confinement.filter(|_| supervision.is_held());
    let Some(place) = held.map(|confinement| supervisor.anchors.place(&confinement.temporary)) else {
        return sandbox.prepare(confinement, folder, &mut None);
    };
    sandbox.prepare(confinement, folder, &mut place.kept.lock())
}

fn no_sandbox(error: io::Error) -> RunError {
    RunError::NoSandbox(error.to_string())
}

fn execute(
    supervisor: &Supervisor,
    wrapper: Option<Process>,
    folder: &Path,
    control: UnixStream,
    writer: PipeWriter,
) -> io::Result<Child> {
    let mut process = process(&supervisor.program, wrapper, &writer)?;
    process
        .arg(SUPERVISE)
        .current_dir(folder)
        .env_clear()
        .envs(supervisor.mark.as_ref().map(Mark::entry))
        .envs(planted::handed_on())
        .stdin(OwnedFd::from(control))
        .stderr(writer);
    tokio::process::Command::from(process).spawn()
}

/// In a wrapper the program itself goes in as an open file, in the place of standard output:
/// by its name it could be hidden in there, or another one.
fn process(program: &Path, wrapper: Option<Process>, writer: &PipeWriter) -> io::Result<Process> {
    let Some(mut process) = wrapper else {
        let mut process = Process::new(program);
        process.stdout(writer.try_clone()?);
        return Ok(process);
    };
    process.arg("/proc/self/fd/1").stdout(File::open(program)?);
    Ok(process)
}
