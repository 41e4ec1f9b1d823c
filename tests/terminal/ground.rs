//! The folders of one test, and what is started in them.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::real::process::Process;
use crate::tmux::{Size, Terminal};

/// How long a daemon's start may take.
const START: Duration = Duration::from_secs(20);

/// A home, a state and a project of its own. Nothing else is seen or touched.
pub(crate) struct Ground {
    folder: TempDir,
}

impl Ground {
    pub(crate) fn new() -> Self {
        // Neither below `/tmp`, of which a sandbox has its own, nor with a long path: it has sockets.
        let mut folder = tempfile::Builder::new().prefix("term-").tempdir_in("/var/tmp").unwrap();
        folder.disable_cleanup(std::env::var_os("MIDTURN_TERMINAL_KEEP").is_some());
        let ground = Self { folder };
        for folder in ["main", "home", "state", "run"] {
            fs::create_dir(ground.path(folder)).unwrap();
        }
        fs::write(ground.path("main/README"), "A project.\n").unwrap();
        ground.git(&["init", "--quiet", "--initial-branch", "main"]);
        ground.git(&["add", "."]);
        ground.git(&["commit", "--quiet", "--message", "First"]);
        ground
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// A command that sees this ground only.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path("main"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("LANG", "C.UTF-8")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::null());
        command
    }

    fn git(&self, words: &[&str]) {
        let identity = ["-c", "user.name=Terminal", "-c", "user.email=terminal@example.org"];
        output(self.command("git").args(identity).args(words));
    }

    /// What `midturn` with these words says on its standard output; it has no terminal there.
    pub(crate) fn says(&self, words: &[&str]) -> String {
        output(self.command(midturn_tests::binary()).args(words))
    }

    /// All events that are recorded of the last session.
    pub(crate) fn log(&self) -> Vec<Value> {
        let all = self.says(&["log", "last", "--json"]);
        all.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Those of this type.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        self.log().into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// A terminal in which `midturn` runs with these words.
    pub(crate) fn midturn(&self, size: Size, words: &[&str]) -> Terminal {
        let program = midturn_tests::binary().display().to_string();
        self.terminal(size, &[&[program.as_str()], words].concat())
    }

    /// A terminal in which this program runs. A test may have several.
    pub(crate) fn terminal(&self, size: Size, program: &[&str]) -> Terminal {
        Terminal::start(|tmux| self.command(tmux), self.folder.path(), size, program)
    }

    /// `midturn serve` with these words, once it answers.
    pub(crate) async fn daemon(&self, words: &[&str]) -> Daemon {
        let mut command = self.command(midturn_tests::binary());
        command.arg("serve").args(words);
        let mut process = Process::start(command).unwrap();
        let ready = process.ready(START).await;
        assert!(ready.is_some(), "the daemon doesn't begin: {:?}", process.said());
        Daemon { process }
    }
}

/// A daemon; it is killed when this is dropped.
pub(crate) struct Daemon {
    process: Process,
}

impl Daemon {
    /// `kill -9`: nothing of it can say goodbye. Waits until it is gone.
    pub(crate) async fn kill(mut self) {
        self.process.child.start_kill().unwrap();
        self.process.child.wait().await.unwrap();
    }

    /// Whether it lives.
    pub(crate) fn lives(&mut self) -> bool {
        self.process.child.try_wait().unwrap().is_none()
    }
}

/// What a command says; it has to succeed.
pub(crate) fn output(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let words: Vec<_> = command.get_args().collect();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}
