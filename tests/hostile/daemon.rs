//! The real daemon, in a tier and as a user, with everything a program could want of it.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command as StdCommand;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::api::Api;
use crate::real::process::Process;
use crate::world::World;

/// How long a start may take.
const START: Duration = Duration::from_secs(30);
/// How long a daemon that is told to end may take.
const END: Duration = Duration::from_secs(30);
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
    process: Process,
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
        if let Some(user) = world.user {
            command.uid(user).gid(user);
        }
        Process::start(command).map(|process| Self { process })
    }

    /// Waits until it answers. `None`: it ended before, or didn't in time.
    pub(crate) async fn ready(&mut self) -> Option<Interface> {
        let path = self.process.ready(START).await?;
        // Its file system may not be ours.
        let seen = PathBuf::from(format!("/proc/{}/root{}", self.process.child.id()?, path.display()));
        let text = std::fs::read(&path).or_else(|_| std::fs::read(seen)).ok()?;
        let interface: Value = serde_json::from_slice(&text).ok()?;
        let tcp = interface["tcp"].as_str().and_then(|address| address.rsplit_once(':')?.1.parse().ok());
        let pid = interface["pid"].as_u64()?.try_into().ok()?;
        Some(Interface { api: Api::of(&interface).ok()?, pid, tcp, path })
    }

    pub(crate) fn lives(&mut self) -> bool {
        matches!(self.process.child.try_wait(), Ok(None))
    }

    /// What it has told people.
    pub(crate) fn said(&self) -> Vec<String> {
        self.process.said()
    }

    /// Tells it to end, and waits. What it said; `None`: it doesn't end.
    pub(crate) async fn terminate(mut self) -> Result<Option<Vec<String>>> {
        // One that is gone already has said so.
        let ended = self.process.terminate(END).await.unwrap_or_default();
        let is_gone = ended.is_some() || !self.lives();
        let said = self.process.last_words().await;
        Ok(is_gone.then_some(said))
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
    // What the programs are made of, and go for: that it can't be seen at all is another thing.
    let read = ["programs", "outside", "setuid"].map(|name| world.path(name).display().to_string());
    let read = format!("sandbox.read={}", read.join(","));
    for set in [
        base.as_str(),
        tier.as_str(),
        read.as_str(),
        "sandbox.network=false",
        "approvals.mode=auto",
        "retry.jitter=0",
    ] {
        command.args(["--set", set]);
    }
    Ok(command)
}
