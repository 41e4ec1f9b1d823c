//! One life of the real daemon: `midturn serve`, from its start to its end by SIGKILL.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::api::Api;
use crate::world::{World, children};

/// How long a start may take.
const START: Duration = Duration::from_secs(20);
/// How long a daemon that is told to end may take.
const END: Duration = Duration::from_secs(20);
/// How many lines of what a daemon says are kept.
const LINES: usize = 400;

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

/// A daemon.
pub(crate) struct Daemon {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
    published: watch::Receiver<Option<PathBuf>>,
    listening: AbortOnDropHandle<()>,
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
        let mut command = world.command(midturn_tests::binary());
        let base = format!("providers.anthropic.base_url={}", settings.model_url);
        command.args(["serve", "--model", "anthropic/crash"]);
        // The file in which commands say what they really did.
        let marker = format!("sandbox.writable={}", world.ground.marker.display());
        // A namespace would hide some of the faults that are planted.
        let tier = if settings.planted.is_some() { "sandbox.tier=none" } else { "sandbox.network=false" };
        for set in [base.as_str(), &marker, tier, "retry.base=5ms", "retry.cap=20ms", "retry.jitter=0"] {
            command.args(["--set", set]);
        }
        command.env("ANTHROPIC_API_KEY", "no-key-at-all").env("RUST_BACKTRACE", "1");
        let named = [("_MIDTURN_FAIL_POINT", &settings.fail_point), ("_MIDTURN_PLANTED", &settings.planted)];
        for (name, value) in named {
            command.envs(value.as_ref().map(|value| (name, value)));
        }
        if let Some(store) = &settings.elsewhere {
            command.arg("--store").arg(store).env("XDG_STATE_HOME", world.path("elsewhere"));
            command.env_remove("XDG_RUNTIME_DIR");
        }
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child =
            Command::from(command).kill_on_drop(true).spawn().context("the daemon can't be started")?;
        let stderr = child.stderr.take().context("the daemon has no standard error")?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let (tell, published) = watch::channel(None);
        let listening = AbortOnDropHandle::new(tokio::spawn(listen(stderr, said.clone(), tell)));
        Ok(Self { child, said, published, listening })
    }

    /// Waits until it answers; `None`: it ended before, or didn't in time.
    pub(crate) async fn ready(&mut self) -> Option<Api> {
        let published = timeout(START, self.published.wait_for(Option::is_some)).await.ok()?.ok()?.clone()?;
        let text = std::fs::read(published).ok()?;
        Api::of(&serde_json::from_slice(&text).ok()?).ok()
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(&mut self) {
        // The status is asked for once more by `end`.
        let _ = self.child.wait().await;
    }

    /// Kills it, if it lives, and with it the supervisors of its commands if asked.
    pub(crate) async fn kill(mut self, with_children: bool) -> Result<Ended> {
        let below = self.child.id().filter(|_| with_children).map(children).unwrap_or_default();
        self.child.start_kill().ok();
        let status = self.child.wait().await?;
        for pid in below.into_iter().filter_map(Pid::from_raw) {
            // Most have ended with it.
            let _ = kill_process(pid, Signal::KILL);
        }
        self.over(status).await
    }

    /// Tells it to end, and waits. `None`: it doesn't.
    pub(crate) async fn terminate(mut self) -> Result<Option<Ended>> {
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            kill_process(pid, Signal::TERM)?;
        }
        match timeout(END, self.child.wait()).await {
            Ok(status) => self.over(status?).await.map(Some),
            Err(_) => Ok(None),
        }
    }

    async fn over(self, status: ExitStatus) -> Result<Ended> {
        // A process that it left could hold the other end.
        let _ = timeout(Duration::from_millis(500), self.listening).await;
        let said = self.said.lock().unwrap().clone();
        Ok(Ended { status, said })
    }
}

async fn listen(stderr: ChildStderr, said: Arc<Mutex<Vec<String>>>, tell: watch::Sender<Option<PathBuf>>) {
    let mut lines = BufReader::new(stderr).lines();
    let mut interface = None;
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some((_, path)) = line.split_once("the interface: ") {
            interface = Some(PathBuf::from(path.trim()));
        }
        // Only now is everything taken up that was left.
        if line.trim() == "ready" {
            tell.send_replace(interface.clone());
        }
        let mut said = said.lock().unwrap();
        if said.len() < LINES {
            said.push(line);
        }
    }
}
