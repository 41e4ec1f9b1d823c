//! Starts a supervisor: a socket, a pipe, one child, nothing inherited besides.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command as Process, Stdio};
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::running::Running;
use super::supervise::{SUPERVISE, Supervision};
use super::table::is_dead_by;
use super::{Command, RunError, Supervisor, wire};
use crate::mark::Mark;
use crate::planted;
use crate::sandbox::cgroup::Group;
use crate::sandbox::orders::Orders;
use crate::sandbox::{Prepared, Sandbox, Wrapper};

/// A supervisor that was started and waits for its command. The doors of the command's cgroups
/// went through the control socket already.
pub(super) struct Launched {
    pub(super) running: Running,
    /// The last part of the launch order.
    pub(super) orders: Vec<u8>,
    /// To be kept until nothing of the command is alive.
    pub(super) holds: Holds,
}

/// How long what stands around a command waits for the end of one that nobody waits for.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// What stands around a command as long as something of it is alive.
#[derive(Debug, Default)]
pub(super) struct Holds {
    pub(super) group: Option<Group>,
    prepared: Option<Prepared>,
    /// Alive as long as anything of the command is, unless the command is over.
    supervisor: Option<OwnedFd>,
}

impl Holds {
    /// Nothing of the command is alive. The group is removed behind our back: the system may
    /// take milliseconds, and what is empty harms nobody.
    pub(super) fn over(mut self) {
        self.supervisor = None;
        if let Some(group) = self.group.take() {
            spawn_blocking(move || drop(group));
        }
    }
}

impl Drop for Holds {
    /// When nobody waits any more the tree is being ended behind our back; until it has come
    /// to that, what is taken away here could be used by it.
    fn drop(&mut self) {
        let (group, prepared) = (self.group.take(), self.prepared.take());
        let Some(supervisor) = self.supervisor.take() else { return };
        let wait = move || {
            // However it ends: what can't be taken away stays, and is harmless.
            let _over = is_dead_by(&supervisor, LAST_WAIT);
            drop((group, prepared));
        };
        let _no_thread =
            thread::Builder::new().name("midturn-last-wait".into()).stack_size(128 << 10).spawn(wait);
    }
}

/// Starts a supervisor from a thread of its own, for three reasons: executing a program holds
/// its thread for a while, a new PID namespace is a property of the thread that asks for it and
/// can't be taken back, and a sandbox has to look at files. `None`: the system refuses a namespace.
pub(super) async fn launch(
    supervisor: &Supervisor,
    supervision: Supervision,
    command: &Command,
) -> Result<Option<Launched>, RunError> {
    let start = Start {
        supervisor: supervisor.clone(),
        supervision,
        command: command.clone(),
        runtime: Handle::current(),
    };
    let (answer, answered) = oneshot::channel();
    // If nobody waits for the answer any more the control socket is closed, so the supervisor
    // ends, and the runtime reaps it.
    let job = move || drop(answer.send(start.go()));
    thread::Builder::new().name("midturn-spawn".into()).stack_size(256 << 10).spawn(job)?;
    answered.await.map_err(|_| io::Error::other("the thread that starts it died"))?
}

/// All that it takes.
struct Start {
    supervisor: Supervisor,
    supervision: Supervision,
    command: Command,
    runtime: Handle,
}

impl Start {
    fn go(self) -> Result<Option<Launched>, RunError> {
        let no_sandbox = |error: io::Error| RunError::NoSandbox(error.to_string());
        let sandbox = self.supervisor.sandbox.as_ref();
        let (confinement, folder) = (self.command.confinement.as_deref(), &self.command.folder);
        let prepared = sandbox.map(|sandbox| sandbox.prepare(confinement, folder)).transpose();
        let prepared = prepared.map_err(no_sandbox)?;
        let unbound = Orders::default();
        let orders = wire::orders(prepared.as_ref().map_or(&unbound, |prepared| &prepared.orders));
        let orders = orders.map_err(no_sandbox)?;
        let wrapper = prepared.as_ref().and_then(|prepared| prepared.wrapper.as_ref());
        let (ours, theirs) = UnixStream::pair()?;
        let (output, writer) = io::pipe()?;
        let Some(child) = self.spawn(wrapper, theirs, writer)? else { return Ok(None) };
        let supervisor = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let supervisor = supervisor.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        // Made while the sandbox is being built.
        let group = sandbox.map_or(Ok(None), Sandbox::group).map_err(no_sandbox)?;
        let doors = group.as_ref().map_or(Ok(Vec::new()), Group::doors).map_err(no_sandbox)?;
        // One that is gone already is noticed when its report is read.
        let _gone = wire::send_doors(&ours, &doors);
        let _entered = self.runtime.enter();
        let running = Running::new(child, ours, output.into())?;
        Ok(Some(Launched { running, orders, holds: Holds { group, prepared, supervisor } }))
    }

    /// `None`: the system refuses a namespace.
    fn spawn(
        &self,
        wrapper: Option<&Wrapper>,
        theirs: UnixStream,
        writer: PipeWriter,
    ) -> io::Result<Option<Child>> {
        let mut process = self.program(wrapper, &writer)?;
        process
            .args([SUPERVISE, self.supervision.as_str(), &self.supervisor.grace.as_millis().to_string()])
            .current_dir(&self.command.folder)
            .env_clear()
            .envs(self.supervisor.mark.as_ref().map(Mark::entry))
            .envs(planted::handed_on())
            .stdin(OwnedFd::from(theirs))
            .stderr(Stdio::from(writer));
        if self.supervision == Supervision::Namespace && unshare(CloneFlags::CLONE_NEWPID).is_err() {
            return Ok(None);
        }
        let _entered = self.runtime.enter();
        tokio::process::Command::from(process).spawn().map(Some)
    }

    /// In a wrapper the program itself goes in as an open file, in the place of standard output:
    /// by its name it could be hidden in there, or another one.
    fn program(&self, wrapper: Option<&Wrapper>, writer: &PipeWriter) -> io::Result<Process> {
        let program = &self.supervisor.program;
        let mut process = Process::new(wrapper.map_or(program, |wrapper| &wrapper.program));
        match wrapper {
            None => process.stdout(writer.try_clone()?),
            Some(wrapper) => {
                process.args(&wrapper.arguments).arg("/proc/self/fd/1").stdout(File::open(program)?)
            }
        };
        Ok(process)
    }
}
