//! Starts a supervisor: a socket, a pipe, one child, nothing inherited besides.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::supervise::{SUPERVISE, Supervision};
use super::{Command, Supervisor, wire};
use crate::mark::Mark;
use crate::planted;
use crate::sandbox::cgroup::Group;
use crate::sandbox::{Confinement, Prepared, Sandbox, Wrapper};

/// A supervisor that was started and waits for its command.
pub(super) struct Launched {
    pub(super) child: Child,
    /// Our end of the control socket. The doors went through it already.
    pub(super) control: UnixStream,
    /// What the command writes.
    pub(super) output: OwnedFd,
    /// The last part of the request.
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
            let patience = Timespec::try_from(LAST_WAIT).ok();
            let mut ends = [PollFd::new(&supervisor, PollFlags::IN)];
            // However it ends: what can't be taken away stays, and is harmless.
            let _over = rustix::io::retry_on_intr(|| poll(&mut ends, patience.as_ref()));
            drop((group, prepared));
        };
        let _no_thread =
            thread::Builder::new().name("midturn-last-wait".into()).stack_size(128 << 10).spawn(wait);
    }
}

/// Why there is no supervisor.
pub(super) enum LaunchError {
    /// The system refuses a namespace.
    Refused,
    /// The sandbox can't be built.
    NoSandbox(io::Error),
    /// Something else.
    Failed(io::Error),
}

impl From<io::Error> for LaunchError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Starts a supervisor from a thread of its own, for three reasons: executing a program holds
/// its thread for a while, a new PID namespace is a property of the thread that asks for it and
/// can't be taken back, and a sandbox has to look at files.
pub(super) async fn launch(
    supervisor: &Supervisor,
    supervision: Supervision,
    command: &Command,
) -> Result<Launched, LaunchError> {
    let (ours, theirs) = UnixStream::pair()?;
    let (output, writer) = io::pipe()?;
    let start = Start {
        program: supervisor.program.clone(),
        supervision,
        grace: supervisor.grace,
        sandbox: supervisor.sandbox.clone(),
        confinement: command.confinement.clone(),
        folder: command.folder.clone(),
        // Where to look for the command; the rest of its environment is in the request.
        path: command.environment.iter().find(|(name, _)| name == "PATH").cloned(),
        mark: supervisor.mark.clone(),
        runtime: Handle::current(),
    };
    let (answer, answered) = oneshot::channel();
    // If nobody waits for the answer any more the control socket is closed, so the supervisor
    // ends, and the runtime reaps it.
    let job = move || drop(answer.send(start.go(ours, theirs, output.into(), writer)));
    thread::Builder::new().name("midturn-spawn".into()).stack_size(256 << 10).spawn(job)?;
    answered.await.map_err(|_| io::Error::other("the thread that starts it died"))?
}

/// All that it takes.
struct Start {
    program: PathBuf,
    supervision: Supervision,
    grace: Duration,
    sandbox: Option<Sandbox>,
    confinement: Option<Arc<Confinement>>,
    folder: PathBuf,
    path: Option<(std::ffi::OsString, std::ffi::OsString)>,
    mark: Option<Mark>,
    runtime: Handle,
}

impl Start {
    fn go(
        self,
        ours: UnixStream,
        theirs: UnixStream,
        output: OwnedFd,
        writer: PipeWriter,
    ) -> Result<Launched, LaunchError> {
        let prepared = self.sandbox.as_ref().map(|s| s.prepare(self.confinement.as_deref(), &self.folder));
        let prepared = prepared.transpose().map_err(LaunchError::NoSandbox)?;
        let orders = prepared.as_ref().map(|prepared| wire::orders(&prepared.orders)).transpose();
        let orders = orders.map_err(LaunchError::NoSandbox)?.unwrap_or_else(|| vec![0; 4]);
        let wrapper = prepared.as_ref().and_then(|prepared| prepared.wrapper.as_ref());
        let child = self.spawn(wrapper, theirs, writer)?;
        let supervisor = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let supervisor = supervisor.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        // Made while the sandbox is being built.
        let group = self.sandbox.as_ref().map_or(Ok(None), Sandbox::group).map_err(LaunchError::NoSandbox)?;
        let doors = group.as_ref().map_or(Ok(Vec::new()), Group::doors).map_err(LaunchError::NoSandbox)?;
        // One that is gone already is noticed when its report is read.
        let _gone = wire::send_doors(&ours, &doors);
        Ok(Launched { child, control: ours, output, orders, holds: Holds { group, prepared, supervisor } })
    }

    fn spawn(
        &self,
        wrapper: Option<&Wrapper>,
        theirs: UnixStream,
        writer: PipeWriter,
    ) -> Result<Child, LaunchError> {
        let mut process = match wrapper {
            None => {
                let mut process = Process::new(&self.program);
                process.stdout(writer.try_clone()?);
                process
            }
            Some(wrapper) => self.wrapped(wrapper)?,
        };
        process
            .args([SUPERVISE, self.supervision.as_str(), &self.grace.as_millis().to_string()])
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.path.clone())
            .envs(self.mark.as_ref().map(Mark::entry))
            .envs(planted::handed_on())
            .stdin(OwnedFd::from(theirs))
            .stderr(Stdio::from(writer));
        if self.supervision == Supervision::Namespace && unshare(CloneFlags::CLONE_NEWPID).is_err() {
            return Err(LaunchError::Refused);
        }
        let _entered = self.runtime.enter();
        Ok(tokio::process::Command::from(process).spawn()?)
    }

    /// The program itself goes in as an open file, in the place of standard output: by its name
    /// it could be hidden in there, or another one.
    fn wrapped(&self, wrapper: &Wrapper) -> io::Result<Process> {
        let mut process = Process::new(&wrapper.program);
        process.args(&wrapper.arguments).arg("/proc/self/fd/1").stdout(File::open(&self.program)?);
        Ok(process)
    }
}
