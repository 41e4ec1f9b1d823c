//! Starts a supervisor: a socket, a pipe, one child, nothing inherited besides.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command as Process, Stdio};
use std::thread;

use nix::sched::{CloneFlags, unshare};
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::supervise::{SUPERVISE, Supervision};
use super::{Command, Supervisor};
use crate::mark::Mark;
use crate::planted;

/// A supervisor that was started and waits for its command.
pub(super) struct Launched {
    pub(super) child: Child,
    /// Our end of the control socket.
    pub(super) control: UnixStream,
    /// What the command writes.
    pub(super) output: OwnedFd,
}

/// Why there is no supervisor.
pub(super) enum LaunchError {
    /// The system refuses a namespace.
    Refused,
    /// Something else.
    Failed(io::Error),
}

impl From<io::Error> for LaunchError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Starts a supervisor from a thread of its own, for two reasons: executing a program holds
/// its thread for a while, and a new PID namespace is a property of the thread that asks for
/// it and can't be taken back.
pub(super) async fn launch(
    supervisor: &Supervisor,
    supervision: Supervision,
    command: &Command,
) -> Result<Launched, LaunchError> {
    let (ours, theirs) = UnixStream::pair()?;
    let (output, writer) = io::pipe()?;
    let mut process = Process::new(&supervisor.program);
    process
        .args([SUPERVISE, supervision.as_str(), &supervisor.grace.as_millis().to_string()])
        .current_dir(&command.folder)
        // Where to look for the command; the rest of its environment is in the request.
        .env_clear()
        .envs(command.environment.iter().filter(|(name, _)| name == "PATH").map(|(name, path)| (name, path)))
        .envs(supervisor.mark.as_ref().map(Mark::entry))
        .envs(planted::handed_on())
        .stdin(OwnedFd::from(theirs))
        .stdout(writer.try_clone()?)
        .stderr(Stdio::from(writer));
    let runtime = Handle::current();
    let (answer, answered) = oneshot::channel();
    // If nobody waits for the answer any more the control socket is closed, so the supervisor
    // ends, and the runtime reaps it.
    let job = move || drop(answer.send(spawn(process, supervision, &runtime)));
    thread::Builder::new().name("midturn-spawn".into()).stack_size(128 << 10).spawn(job)?;
    let child = answered.await.map_err(|_| io::Error::other("the thread that starts it died"))??;
    Ok(Launched { child, control: ours, output: output.into() })
}

fn spawn(process: Process, supervision: Supervision, runtime: &Handle) -> Result<Child, LaunchError> {
    if supervision == Supervision::Namespace && unshare(CloneFlags::CLONE_NEWPID).is_err() {
        return Err(LaunchError::Refused);
    }
    let _entered = runtime.enter();
    Ok(tokio::process::Command::from(process).spawn()?)
}
