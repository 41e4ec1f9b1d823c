//! A place of its own for each test: a repository, a home, configuration and state folders,
//! and the real binary that sees nothing else.

// Each test binary uses its part of this.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by several test binaries")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

/// How long what a test waits for may take: longer is a failure, and no test that hangs.
const PATIENCE: Timespec = Timespec { tv_sec: 120, tv_nsec: 0 };

/// Waits until there is something to read, to accept, or an end; panics when there never is.
pub fn until_ready(source: impl AsFd, wanted: &str) {
    let mut ready = [PollFd::new(&source, PollFlags::IN)];
    assert!(poll(&mut ready, Some(&PATIENCE)).unwrap() > 0, "nothing came: {wanted}");
}

/// A request that a provider of a test's gets: its head, a line each in lower case, and its body.
pub fn request(stream: &TcpStream) -> (String, Vec<u8>) {
    stream.set_read_timeout(Some(std::time::Duration::from_secs(PATIENCE.tv_sec.unsigned_abs()))).unwrap();
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
        head.push('\n');
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (head, body)
}

/// The folders of one test; removed at its end.
pub struct Place(tempfile::TempDir);

impl Place {
    /// A place with an empty git repository `repo`.
    pub fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(place.path("repo")).unwrap();
        place.git(&["init", "--quiet", "--initial-branch", "main"]);
        place
    }

    /// A path in it.
    pub fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    /// Writes a file and the folders above it.
    pub fn write(&self, below: &str, text: &str) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs git in the repository.
    pub fn git(&self, words: &[&str]) -> String {
        let identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"];
        let mut command = Command::new("git");
        self.surround(&mut command).args(identity).args(words).current_dir(self.path("repo"));
        let said = command.output().unwrap();
        assert!(said.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap()
    }

    /// The binary, to be started in a folder of the place.
    pub fn midturn(&self, folder: &str, words: &[&str]) -> Command {
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_midturn")));
        self.surround(&mut command).args(words).current_dir(self.path(folder));
        command
    }

    /// A shell script of the place, to be started in a folder of it.
    pub fn shell(&self, folder: &str, script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        self.surround(&mut command).arg(script).current_dir(self.path(folder));
        command
    }

    fn surround<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_STATE_HOME", self.path("state"))
            .stdin(std::process::Stdio::null())
    }
}

/// A run under way: its events are read as they come, and lines can be typed to it.
pub struct Running {
    child: Child,
    typed: Option<ChildStdin>,
    events: Option<BufReader<ChildStdout>>,
}

/// How a run ended.
pub struct Ended {
    /// The exit status.
    pub status: Option<i32>,
    /// The events that nobody had waited for.
    pub events: Vec<Value>,
    /// What people were told.
    pub told: String,
}

impl Running {
    /// Starts `midturn run --json` with a scripted model; standard input stays open.
    pub fn start(place: &Place, scenario: &str, more: &[&str]) -> Self {
        place.write("scenario.yaml", scenario);
        let words = ["run", "the task", "--json", "--steer-stdin", "--model", "scripted:../scenario.yaml"];
        let mut command = place.midturn("repo", &words);
        command.args(more).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::of(command)
    }

    /// Starts a command whose standard output is events and whose three streams are pipes.
    pub fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (typed, events) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Self { child, typed, events }
    }

    /// Types a line.
    pub fn say(&mut self, line: &str) {
        let typed = self.typed.as_mut().unwrap();
        writeln!(typed, "{line}").unwrap();
        typed.flush().unwrap();
    }

    /// Reads events up to the first of this type that has all these fields.
    pub fn until(&mut self, kind: &str, fields: &[(&str, &str)]) -> Value {
        loop {
            let mut line = String::new();
            let events = self.events.as_mut().unwrap();
            if events.buffer().is_empty() {
                until_ready(events.get_ref(), &format!("{kind} {fields:?}"));
            }
            if events.read_line(&mut line).unwrap() == 0 {
                let mut told = String::new();
                self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
                panic!("the run ended without {kind} {fields:?}:\n{told}");
            }
            let event: Value = serde_json::from_str(&line).unwrap();
            let fits = fields.iter().all(|(name, value)| event[*name] == *value);
            if event["type"] == kind && fits {
                return event;
            }
        }
    }

    /// Closes the other end of its standard output.
    pub fn stop_reading(&mut self) {
        drop(self.events.take());
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name, as a shell would.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for the end with standard input still open.
    pub fn end(mut self) -> Ended {
        let mut events = Vec::new();
        for line in self.events.take().into_iter().flat_map(BufRead::lines) {
            events.push(serde_json::from_str(&line.unwrap()).unwrap());
        }
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        let status = self.child.wait().unwrap().code();
        drop(self.typed.take());
        Ended { status, events, told }
    }
}
