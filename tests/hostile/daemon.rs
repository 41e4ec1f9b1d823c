//! The real daemon, in a tier and as a user, with everything a program could want of it.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command as StdCommand, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::api::Api;
use crate::world::World;

/// How long a start may take.
const START: Duration = Duration::from_secs(30);
/// How long a daemon that is told to end may take.
const END: Duration = Duration::from_secs(30);
/// How many lines of what a daemon says are kept.
const LINES: usize = 2_000;

/// A kind of sandbox, as the configuration names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    Bubblewrap,
    Landlock,
    None,
}

impl Tier {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }
}

/// What a daemon is told to do.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) tier: Tier,
    /// Whether the system lets it make namespaces.
    pub(crate) namespaces: bool,
    pub(crate) model: u16,
    /// A command that becomes the daemon, whose words follow. `None`: one that gives it a terminal.
    pub(crate) through: Option<Vec<String>>,
}

/// A daemon.
pub(crate) struct Daemon {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
    published: watch::Receiver<Option<PathBuf>>,
    listening: AbortOnDropHandle<()>,
}

/// How it can be reached.
#[derive(Clone)]
pub(crate) struct Interface {
    pub(crate) api: Api,
    pub(crate) pid: u32,
    pub(crate) tcp: Option<u16>,
    pub(crate) path: PathBuf,
}

impl Daemon {
    pub(crate) fn start(world: &World, settings: &Settings) -> Result<Self> {
        let mut command = command(world, settings)?;
        world.surround(&mut command);
        command.env("ANTHROPIC_API_KEY", &world.key).env("RUST_BACKTRACE", "1");
        command.envs(world.environment.iter().map(|(name, value)| (name, value)));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        if let Some(user) = world.user {
            command.uid(user).gid(user);
        }
        let mut child =
            Command::from(command).kill_on_drop(true).spawn().context("the daemon can't be started")?;
        let stderr = child.stderr.take().context("the daemon has no standard error")?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let (tell, published) = watch::channel(None);
        let listening = AbortOnDropHandle::new(tokio::spawn(listen(stderr, said.clone(), tell)));
        Ok(Self { child, said, published, listening })
    }

    /// Waits until it answers. `None`: it ended before, or didn't in time.
    pub(crate) async fn ready(&mut self) -> Option<Interface> {
        let path = timeout(START, self.published.wait_for(Option::is_some)).await.ok()?.ok()?.clone()?;
        // Its file system may not be ours.
        let seen = PathBuf::from(format!("/proc/{}/root{}", self.child.id()?, path.display()));
        let text = std::fs::read(&path).or_else(|_| std::fs::read(seen)).ok()?;
        let interface: Value = serde_json::from_slice(&text).ok()?;
        let tcp = interface["tcp"].as_str().and_then(|address| address.rsplit_once(':')?.1.parse().ok());
        let pid = interface["pid"].as_u64()?.try_into().ok()?;
        Some(Interface { api: Api::of(&interface).ok()?, pid, tcp, path })
    }

    pub(crate) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it has told people.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// Tells it to end, and waits. What it said; `None`: it doesn't end.
    pub(crate) async fn terminate(mut self) -> Result<Option<Vec<String>>> {
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            // One that is gone already has said so.
            let _ = kill_process(pid, Signal::TERM);
        }
        let ended = timeout(END, self.child.wait()).await;
        // A process that it left could hold the other end.
        let _ = timeout(Duration::from_millis(500), self.listening).await;
        let said = self.said.lock().unwrap().clone();
        Ok(ended.is_ok().then_some(said))
    }
}

fn command(world: &World, settings: &Settings) -> Result<StdCommand> {
    let launch = midturn_tests::root().join("tests/hostile/launch.py");
    let usual = move || {
        let words = ["/usr/bin/env".into(), "python3".into(), "-B".into(), launch, world.path("outside")];
        words.map(|word: PathBuf| word.display().to_string()).into()
    };
    let through: Vec<String> = settings.through.clone().unwrap_or_else(usual);
    let mut command = StdCommand::new(&through[0]);
    command.args(&through[1..]);
    command.args((!settings.namespaces).then_some("--without-namespaces"));
    command.arg(world.binary()?);
    command.args(["serve", "--model", "anthropic/hostile", "--listen", "127.0.0.1:0", "--cwd"]);
    command.arg(world.path("main"));
    let base = format!("providers.anthropic.base_url=http://127.0.0.1:{}", settings.model);
    let tier = format!("sandbox.tier={}", settings.tier.word());
    for set in
        [base.as_str(), tier.as_str(), "sandbox.network=false", "approvals.mode=auto", "retry.jitter=0"]
    {
        command.args(["--set", set]);
    }
    Ok(command)
}

async fn listen(stderr: ChildStderr, said: Arc<Mutex<Vec<String>>>, tell: watch::Sender<Option<PathBuf>>) {
    let mut lines = BufReader::new(stderr).lines();
    let mut interface = None;
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some((_, path)) = line.split_once("the interface: ") {
            interface = Some(PathBuf::from(path.trim()));
        }
        if line.trim() == "ready" {
            tell.send_replace(interface.clone());
        }
        let mut said = said.lock().unwrap();
        if said.len() < LINES {
            said.push(line);
        }
    }
}
