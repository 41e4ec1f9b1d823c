//! The real binary at work, as a person has it in a terminal.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nix::sys::prctl::set_child_subreaper;
use nix::sys::wait::wait;
use tempfile::TempDir;

use super::server::Server;

/// A run under way.
pub(crate) struct Live {
    child: Child,
    typed: ChildStdin,
    events: BufReader<ChildStdout>,
}

/// A person's home, with a folder in it where they work. Not below `/tmp`, of which commands have their own.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        let home = Self(tempfile::tempdir_in("/var/tmp").unwrap());
        fs::create_dir(home.project()).unwrap();
        home
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.0.path().join("project")
    }
}

/// The binary, in a home that is all it sees of a person.
pub(crate) fn midturn(home: &Home, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_midturn"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.0.path())
        .current_dir(home.project())
        .args(words)
        .stdin(Stdio::null());
    command
}

impl Live {
    /// Gives a lead its task.
    pub(crate) fn start(home: &Home, server: &Server, more: &[&str]) -> Self {
        let words =
            [&["run", "the task", "--json", "--steer-stdin", "--model", "anthropic/bench"], more].concat();
        let mut command = midturn(home, &words);
        command.env("ANTHROPIC_API_KEY", "no-key-at-all").env("ANTHROPIC_BASE_URL", &server.url);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        set_child_subreaper(true).unwrap();
        let mut child = command.spawn().unwrap();
        let (typed, events) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, typed, events: BufReader::new(events) }
    }

    /// Types a line.
    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.typed, "{line}").unwrap();
        self.typed.flush().unwrap();
    }

    /// Reads events up to the first that holds this text.
    pub(crate) fn until(&mut self, text: &str) -> String {
        loop {
            let line = self.next().unwrap_or_else(|| panic!("the run ended before {text}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Resident memory in bytes, and what of it is its own and not a file's.
    pub(crate) fn resident(&self) -> (u64, u64) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let of = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
        };
        (of("VmRSS:"), of("RssAnon:"))
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        (self.events.read_line(&mut line).unwrap() > 0).then_some(line)
    }

    /// Reads to the end and waits for it, and for whatever it started: what nobody waited for has no processor time.
    pub(crate) fn end(mut self) {
        while self.next().is_some() {}
        self.child.wait().unwrap();
        while wait().is_ok() {}
    }

    /// Has it end, whatever it does.
    pub(crate) fn quit(mut self) {
        self.say("/quit");
        self.end();
    }
}
