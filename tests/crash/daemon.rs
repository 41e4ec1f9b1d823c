//! One life of the real daemon: `midturn serve`, from its start to its end by SIGKILL.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use crate::api::Api;
use crate::real::process::Process;
use crate::rule::{GUEST, HOST};
use crate::world::{World, supervisors};

/// The program as it is, and where a fault is named, with it.
const PROGRAM: &str = env!("CARGO_BIN_EXE_midturn-planted");
/// How long a start may take.
const START: Duration = Duration::from_secs(20);
/// How long a daemon that is told to end may take.
const END: Duration = Duration::from_secs(20);
/// What a daemon is started with besides what is the same for all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) model_url: String,
    /// `NAME:N`.
    pub(crate) fail_point: Option<String>,
    /// The planted fault.
    pub(crate) planted: Option<String>,
    /// The store, for one that has everything else in other folders: no socket and no file of
    /// the first one's is in its way.
    pub(crate) elsewhere: Option<PathBuf>,
}

impl Settings {
    /// What every process of ours is told.
    fn set(&self, world: &World, command: &mut Command) {
        let base = format!("providers.anthropic.base_url={}", self.model_url);
        // The file in which commands say what they really did.
        let marker = format!("sandbox.writable={}", world.ground.marker.display());
        // A namespace would hide some of the faults that are planted.
        let tier = if self.planted.is_some() { "sandbox.tier=none" } else { "sandbox.network=false" };
        for set in [base.as_str(), &marker, tier, "retry.base=5ms", "retry.cap=20ms", "retry.jitter=0"] {
            command.args(["--set", set]);
        }
        command.env("ANTHROPIC_API_KEY", "no-key-at-all").env("RUST_BACKTRACE", "1");
    }
}

/// `midturn run` beside a daemon: its session lives there, and it only looks on.
pub(crate) fn run(world: &World, settings: &Settings, task: &str) -> Result<Child> {
    let mut command = world.command(Path::new(PROGRAM));
    command.args(["run", "--model", &format!("anthropic/{GUEST}")]);
    settings.set(world, &mut command);
    command.arg(task).stdout(Stdio::null()).stderr(Stdio::null());
    tokio::process::Command::from(command).kill_on_drop(true).spawn().context("midturn run can't be started")
}

/// A daemon.
pub(crate) struct Daemon {
    process: Process,
}

/// How a daemon has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) said: Vec<String>,
}

impl Ended {
    /// Whether a fail point ended it.
    pub(crate) fn at_fail_point(&self) -> bool {
        self.status.signal() == Some(Signal::ABORT.as_raw())
    }

    pub(crate) fn was_killed(&self) -> bool {
        self.status.signal() == Some(Signal::KILL.as_raw())
    }
}

impl Daemon {
    pub(crate) fn start(world: &World, settings: &Settings) -> Result<Self> {
        let mut command = world.command(Path::new(PROGRAM));
        command.args(["serve", "--model", &format!("anthropic/{HOST}")]);
        settings.set(world, &mut command);
        let named = [("_MIDTURN_FAIL_POINT", &settings.fail_point), ("_MIDTURN_PLANTED", &settings.planted)];
        for (name, value) in named {
            command.envs(value.as_ref().map(|value| (name, value)));
        }
        if let Some(store) = &settings.elsewhere {
            command.arg("--store").arg(store).env("XDG_STATE_HOME", world.path("elsewhere"));
            command.env_remove("XDG_RUNTIME_DIR");
        }
        Process::start(command).map(|process| Self { process })
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> Option<u32> {
        self.process.child.id()
    }

    /// Waits until it answers; `None`: it ended before, or didn't in time.
    pub(crate) async fn ready(&mut self) -> Option<Api> {
        let published = self.process.ready(START).await?;
        let text = std::fs::read(published).ok()?;
        Api::of(&serde_json::from_slice(&text).ok()?).ok()
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(&mut self) {
        // The status is asked for once more by `end`.
        let _ = self.process.child.wait().await;
    }

    /// Kills it, if it lives, and with it the supervisors of its commands if asked.
    pub(crate) async fn kill(mut self, with_children: bool) -> Result<Ended> {
        let left = self.process.child.id().filter(|_| with_children).map(supervisors).unwrap_or_default();
        self.process.child.start_kill().ok();
        // At once: those that see its death first end all that this is to leave behind.
        for pid in left.into_iter().filter_map(Pid::from_raw) {
            // Some are gone.
            let _ = kill_process(pid, Signal::KILL);
        }
        let status = self.process.child.wait().await?;
        Ok(self.over(status).await)
    }

    /// Tells it to end, and waits. `None`: it doesn't.
    pub(crate) async fn terminate(mut self) -> Result<Option<Ended>> {
        match self.told_to_end().await? {
            Some(status) => Ok(Some(self.over(status).await)),
            None => Ok(None),
        }
    }

    /// Tells it to end, and waits. `None`: it doesn't.
    pub(crate) async fn told_to_end(&mut self) -> Result<Option<ExitStatus>> {
        self.process.terminate(END).await
    }

    async fn over(self, status: ExitStatus) -> Ended {
        Ended { status, said: self.process.last_words().await }
    }
}
