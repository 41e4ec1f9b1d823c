//! The folders of one history, and the processes that live in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::rule::Ground;

/// Where one history takes place; nothing else is seen or touched by its daemons.
pub(crate) struct World {
    root: PathBuf,
    /// Removes the folders at the end, unless somebody wants to look.
    cleaning: Mutex<Option<tempfile::TempDir>>,
    pub(crate) ground: Ground,
}

impl World {
    /// A world whose agents work in a plain folder, or in worktrees of a repository.
    pub(crate) fn new(in_repository: bool) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("crash").tempdir()?;
        let root = folder.path().to_owned();
        let name = root.file_name().context("a folder has a name")?.to_string_lossy();
        let ground = Ground { marker: root.join("marker"), mark: name.replace('.', "") };
        let world = Self { root, cleaning: Mutex::new(Some(folder)), ground };
        for folder in ["work", "home", "state", "run"] {
            fs::create_dir(world.path(folder))?;
        }
        fs::write(&world.ground.marker, "")?;
        if in_repository {
            world.git(&["init", "--quiet", "--initial-branch", "main"])?;
            fs::write(world.path("work/README"), "A repository.\n")?;
            world.git(&["add", "README"])?;
            world.git(&["commit", "--quiet", "--message", "First"])?;
        }
        Ok(world)
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// Leaves the folders where they are, for whoever wants to look.
    pub(crate) fn keep(&self) -> PathBuf {
        let folder = self.cleaning.lock().unwrap().take();
        folder.map_or_else(|| self.root.clone(), tempfile::TempDir::keep)
    }

    /// The store of the daemons' project, once it is there.
    pub(crate) fn store(&self) -> Option<PathBuf> {
        let projects = fs::read_dir(self.path("state/midturn/projects")).ok()?;
        projects.flatten().map(|project| project.path().join("store.db")).find(|store| store.exists())
    }

    /// A command that sees this world only.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .stdin(std::process::Stdio::null());
        command
    }

    fn git(&self, words: &[&str]) -> Result<()> {
        let identity = ["-c", "user.name=Crash", "-c", "user.email=crash@example.org"];
        let mut command = self.command(Path::new("git"));
        let done = command.args(identity).args(words).output().context("git can't be run")?;
        ensure!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    /// What the commands have noted so far: `begin` or `end`, and the call.
    pub(crate) fn markers(&self) -> Result<Vec<(String, String)>> {
        let text = fs::read_to_string(&self.ground.marker)?;
        let split =
            |line: &str| Some(line.split_once(' ')?).map(|(what, id)| (what.to_owned(), id.to_owned()));
        Ok(text.lines().filter_map(split).collect())
    }

    /// The processes of this world's commands, or of one call.
    pub(crate) fn processes(&self, call: Option<&str>) -> Vec<Process> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mark = match call {
            Some(call) => format!("{}/{call}", self.ground.mark),
            None => self.ground.mark.clone(),
        };
        numbers.filter_map(|pid| Process::of(pid, &mark)).collect()
    }

    /// Waits until no process of a command lives; gives back those that do at the deadline.
    pub(crate) fn until_empty(&self, patience: Duration) -> Vec<Process> {
        let deadline = Instant::now() + patience;
        loop {
            let alive = self.processes(None);
            if alive.is_empty() || !alive.iter().all(|process| process.ends_by(deadline)) {
                return alive;
            }
        }
    }
}

/// A process that a command has started.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// Its words, or what stands in its environment.
    pub(crate) what: String,
}

impl Process {
    /// A process that carries the mark: a shell in its words, what it starts in its environment.
    /// A dead one that nobody has waited for has neither.
    fn of(pid: i32, mark: &str) -> Option<Self> {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let words = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        let in_words = words.contains(&format!("CRASH_MARK={mark}"));
        let carries = || {
            let environment = read("environ");
            let wanted = format!("CRASH_MARK={mark}");
            environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(wanted.as_bytes()))
        };
        (in_words || carries()).then(|| Self { pid, what: words.trim().chars().take(160).collect() })
    }

    /// Waits for its end. `false`: it lives at the deadline.
    fn ends_by(&self, deadline: Instant) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else { return true };
        // One that is gone has no descriptor.
        let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
        let mut ended = [PollFd::new(&descriptor, PollFlags::IN)];
        poll(&mut ended, left.as_ref()).is_ok_and(|count| count > 0)
    }
}

/// The children of a daemon but its git commands: one that is killed in the middle leaves locks that a person has
/// to take away.
pub(crate) fn supervisors(daemon: u32) -> Vec<i32> {
    let path = format!("/proc/{daemon}/task");
    let threads = fs::read_dir(path).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .filter(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name != "git\n"))
        .collect()
}
