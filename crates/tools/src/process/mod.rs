//! Commands: started under a supervisor, ended as a whole tree, their output kept bounded.
//!
//! [`Supervisor`] starts them; [`supervise_main`] is the other side, in a process of its own.
//! Nothing in here knows of tools, models or paths.

mod anchors;
mod complaint;
mod launch;
mod running;
mod supervise;
pub(crate) mod table;
mod wire;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use midturn_core::rules::id::SessionId;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub use self::supervise::{SUPERVISE, Supervision, supervise_main};
pub use self::wire::ExitStatus;

use self::anchors::Anchors;
use self::complaint::Complaint;
use self::launch::Launched;
use self::wire::Report;
use crate::mark::{MARK, Mark, Purpose};
use crate::network::Gate;
use crate::planted::{Fault, planted};
use crate::sandbox::cgroup::Group;
use crate::sandbox::{Confinement, Exceeded, InForce, Sandbox};

/// How often it is tried to build a sandbox.
const TRIES: u32 = 3;

/// One command to run.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program and its arguments; a program without a slash is looked up in `PATH`.
    pub words: Vec<OsString>,
    /// Where it runs.
    pub folder: PathBuf,
    /// All of its environment.
    pub environment: Arc<[(OsString, OsString)]>,
    /// How long it may run.
    pub timeout: Duration,
    /// What it may touch, in a supervisor with a sandbox. `None` is for supervisors without.
    pub confinement: Option<Arc<Confinement>>,
    /// What of the network it may reach, where it is held to a list of hosts. `None`: nothing of that.
    pub gate: Option<Arc<Gate>>,
    /// What it reads, and where its errors go.
    pub streams: Streams,
}

/// Files for a command's streams. It opens them itself, as confined as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    /// What it reads. `None`: nothing.
    pub input: Option<PathBuf>,
    /// A file that isn't there, for its standard error. `None`: that is output like the other.
    pub errors: Option<PathBuf>,
}

/// Why a command came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It ended by itself.
    Itself,
    /// Its time was up.
    TimedOut,
    /// Its token was cancelled.
    Cancelled,
}

/// How a command ended. Nothing of its tree is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How the command itself ended.
    pub status: ExitStatus,
    /// Why it came to that.
    pub cause: Cause,
    /// How many processes it had left running when it exited by itself; they were ended.
    pub left_running: u32,
    /// Which limit of its sandbox it ran into, where that can be told.
    pub exceeded: Option<Exceeded>,
}

/// Why a command gave no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its words can't be handed to the system.
    #[error("the command is too long or holds a NUL character: put a long text in a file first")]
    Words,
    /// The command's program could not be executed.
    #[error("the command could not be executed: {0}")]
    NotExecuted(std::io::Error),
    /// The supervisor could not be started.
    #[error("the command was not started: its supervisor could not be started: {0}")]
    NoSupervisor(#[from] std::io::Error),
    /// What it may touch can't be kept to.
    #[error("the command was not started: its sandbox could not be built: {0}")]
    NoSandbox(String),
    /// The supervisor ended without a report.
    #[error("the command's supervisor was killed; what the command started may still be running")]
    SupervisorLost,
    /// As before, and it was process 1 of a namespace.
    #[error("the command's supervisor was killed from outside, and with it all that the command had started")]
    SupervisorKilled,
}

/// Starts commands under supervisors, and remembers which kind of supervision can be had, for all
/// of its clones.
#[derive(Clone, Debug)]
pub struct Supervisor {
    program: PathBuf,
    grace: Duration,
    supervision: Arc<Mutex<Supervision>>,
    mark: Option<Mark>,
    sandbox: Option<Sandbox>,
    anchors: Arc<Anchors>,
}

impl Supervisor {
    /// How long a tree has between SIGTERM and SIGKILL unless told otherwise.
    pub const GRACE: Duration = Duration::from_millis(100);

    /// Supervisors that are our own binary. Its `main` has to call [`supervise_main`] first
    /// thing when its first argument is [`SUPERVISE`].
    pub fn ourselves() -> Self {
        // The file that runs, even if it was replaced or removed since.
        Self::with_program("/proc/self/exe")
    }

    /// Supervisors that are another program, which behaves as [`Supervisor::ourselves`] says.
    pub fn with_program(program: impl Into<PathBuf>) -> Self {
        // A namespace would hide these faults: it dies with its supervisor.
        let best = if planted(Fault::GroupKillOnly) || planted(Fault::NoLeftovers) {
            Supervision::Subreaper
        } else if rustix::process::geteuid().is_root() {
            Supervision::Namespace
        } else {
            Supervision::UserNamespace
        };
        let supervision = Arc::new(Mutex::new(best));
        let (program, anchors) = (program.into(), Arc::default());
        Self { program, grace: Self::GRACE, supervision, mark: None, sandbox: None, anchors }
    }

    /// With another grace between SIGTERM and SIGKILL; counted in whole milliseconds.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// With a mark of this session in the environment of every command and of its supervisor,
    /// by which [`leftovers::end`](crate::leftovers::end) finds them when we are dead. Without
    /// `/proc` there is none, and none could be found.
    #[must_use]
    pub fn of_session(mut self, session: &SessionId) -> Self {
        self.mark = Mark::new(session.as_str(), Purpose::Command).ok();
        self.anchors = Arc::default();
        self
    }

    /// With each command in this sandbox.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        // What was decided for another one holds for that.
        self.anchors = Arc::default();
        self
    }

    /// What holds its commands. `None`: there is no sandbox, not even one without walls.
    pub(crate) fn in_force(&self) -> Option<InForce> {
        self.sandbox.as_ref().map(Sandbox::in_force)
    }

    /// With at best this kind of supervision.
    #[must_use]
    pub fn at_best(mut self, supervision: Supervision) -> Self {
        self.supervision = Arc::new(Mutex::new(supervision));
        self
    }

    /// The kind of supervision in use: after the first command the one that can be had here.
    pub fn supervision(&self) -> Supervision {
        let of_sandbox = self.sandbox.as_ref().and_then(Sandbox::supervision);
        of_sandbox.unwrap_or_else(|| *self.supervision.lock())
    }

    /// Runs a command to its end: its own, at its timeout, or when `cancel` is cancelled. Each
    /// time nothing of it is alive on return (semantics.md, section 5). When the future is
    /// dropped the tree is ended too, behind our back. `output` is told what the command
    /// writes, standard output and error in one, in the order it came.
    pub async fn run(
        &self,
        command: &Command,
        cancel: &CancellationToken,
        output: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Ended, RunError> {
        if !wire::can_be_handed_over(&command.words, &self.environment(command)) {
            return Err(RunError::Words);
        }
        let mut tries = 0;
        loop {
            let supervision = self.supervision();
            tries += 1;
            match self.attempt(supervision, command, cancel, output).await {
                Ok(Some(ended)) => return Ok(ended),
                Ok(None) => self.weaken(supervision)?,
                // Files come and go while it is being built.
                Err(RunError::NoSandbox(_)) if tries < TRIES && !cancel.is_cancelled() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The mark comes first, so that it is found where there is a lot to read.
    fn environment(&self, command: &Command) -> Vec<(OsString, OsString)> {
        // One that we carry ourselves is not handed on.
        let given = command.environment.iter().filter(|(name, _)| name != MARK).cloned();
        self.mark.iter().map(Mark::entry).chain(given).collect()
    }

    /// `None`: this kind of supervision can't be had; nothing was executed.
    async fn attempt(
        &self,
        supervision: Supervision,
        command: &Command,
        cancel: &CancellationToken,
        output: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Option<Ended>, RunError> {
        let launched = launch::launch(self, supervision, command).await?;
        let Some(Launched { running, order, mut holds }) = launched else { return Ok(None) };
        let mut complaint = Complaint::new(self.sandbox.is_some(), output);
        let ended =
            running.until_end(&order, command.timeout, cancel, &mut |bytes| complaint.hear(bytes)).await;
        let exceeded = holds.group.as_ref().and_then(Group::exceeded);
        let (report, cause) = match ended {
            Ok(ended) => ended,
            Err(RunError::SupervisorLost) if holds.is_namespace_dead().await => {
                return Err(RunError::SupervisorKilled);
            }
            Err(error) => return Err(complaint.words().map_or(error, RunError::NoSandbox)),
        };
        let anchor = holds.anchor.clone();
        holds.over();
        match report {
            Report::Ended { status, left_running, outgrown, full } => {
                complaint.it_ran();
                // The supervisor looks after the memory where no group does.
                let limits = self.sandbox.as_ref().map(|sandbox| sandbox.wanted().limits);
                let memory = limits.filter(|_| outgrown).map(|limits| Exceeded::Memory(limits.memory));
                let folder =
                    limits.zip(full).map(|(limits, full)| Exceeded::Folder(full, limits.in_memory()));
                let exceeded = memory.or(exceeded).or(folder);
                Ok(Some(Ended { status, cause, left_running, exceeded }))
            }
            Report::NotStarted { errno } => {
                Err(RunError::NotExecuted(std::io::Error::from_raw_os_error(errno)))
            }
            Report::NotLocked(why) => Err(RunError::NoSandbox(complaint.words().unwrap_or(why))),
            Report::Unavailable => Ok(None),
            Report::Stale(place) => {
                if let Some(anchor) = &anchor {
                    self.anchors.forget(anchor);
                }
                Err(RunError::NoSandbox(format!("{} is moved or replaced again and again", place.display())))
            }
        }
    }

    /// A sandbox's supervision is a part of it.
    fn weaken(&self, from: Supervision) -> Result<(), RunError> {
        if self.sandbox.as_ref().is_some_and(|sandbox| sandbox.supervision().is_some()) {
            return Err(RunError::NoSandbox(format!(
                "the system refuses to give it namespaces ({})",
                from.as_str()
            )));
        }
        let none = || std::io::Error::other("the system lets no process adopt orphans");
        let mut supervision = self.supervision.lock();
        *supervision = from.weaker().ok_or_else(none)?.max(*supervision);
        Ok(())
    }
}
