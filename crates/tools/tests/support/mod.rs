//! What the tests share: commands that carry a mark, and a look at who carries it.
#![allow(dead_code, reason = "each test file uses its part of it")]
#![allow(clippy::unwrap_used, reason = "this is all test code")]

pub(crate) mod guarded;
pub(crate) mod lead;
#[path = "../../../../tests/needs.rs"]
pub(crate) mod needs;
pub(crate) mod own;
pub(crate) mod project;
pub(crate) mod sandboxed;

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use midturn_core::engine::ports::{
    CallTraits, Output, OutputSink, Returned, ToolCall, Toolbox, Workplace as _,
};
use midturn_core::rules::approval::Unread;
use midturn_core::rules::conversation::ToolUse;
use midturn_core::rules::id::{AgentName, CallId, SessionId};
use midturn_tools::Limits;
use midturn_tools::process::{Command, SUPERVISE, Streams, Supervision, Supervisor};
use midturn_tools::workplace::{AgentPlace, GitWorkplace, Isolation};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The kinds of supervision that can be had on this machine, each of which has to do.
pub(crate) fn supervisors() -> Vec<(Supervision, Supervisor)> {
    [Supervision::Namespace, Supervision::UserNamespace, Supervision::Subreaper]
        .into_iter()
        .filter(|&kind| kind == Supervision::Subreaper || can_be_had(kind))
        .map(|kind| (kind, supervisor().at_best(kind)))
        .collect()
}

fn can_be_had(kind: Supervision) -> bool {
    let supervisor = supervisor().at_best(kind);
    // A thread of its own: the caller may be inside a runtime already.
    std::thread::scope(|scope| {
        let tried = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let cancel = CancellationToken::new();
            let command = shell("true", &Mark::new());
            runtime.block_on(supervisor.run(&command, &cancel, &mut |_| {})).unwrap();
        });
        tried.join().unwrap();
    });
    supervisor.supervision() == kind
}

pub(crate) fn supervisor() -> Supervisor {
    Supervisor::with_program(env!("CARGO_BIN_EXE_midturn-supervise"))
}

/// A variable that a command and all it starts carry in their environment.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn named(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    pub(crate) fn environment(&self) -> Arc<[(OsString, OsString)]> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Arc::new([("PATH".into(), path), ("MIDTURN_TEST_MARK".into(), self.0.clone().into())])
    }

    /// Who carries it and is alive: number and command line.
    pub(crate) fn alive(&self) -> Vec<(i32, String)> {
        self.alive_by("MIDTURN_TEST_MARK")
    }

    fn alive_by(&self, variable: &str) -> Vec<(i32, String)> {
        let mark = format!("{variable}={}\0", self.0);
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| {
                let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environ.windows(mark.len()).any(|w| w == mark.as_bytes())
            })
            .map(|pid| (pid, command_line(pid)))
            .collect()
    }

    /// A hold on each of them, to wait for their ends with.
    pub(crate) fn hold(&self) -> Vec<OwnedFd> {
        self.hold_by("MIDTURN_TEST_MARK")
    }

    /// A hold on each who carries it in another variable.
    pub(crate) fn hold_by(&self, variable: &str) -> Vec<OwnedFd> {
        self.alive_by(variable).into_iter().filter_map(|(pid, _)| hold(pid)).collect()
    }

    /// A hold on each supervisor of theirs.
    pub(crate) fn hold_supervisors(&self) -> Vec<OwnedFd> {
        let parents = self.alive().into_iter().filter_map(|(pid, _)| parent(pid));
        parents.filter(|pid| command_line(*pid).contains(SUPERVISE)).filter_map(hold).collect()
    }

    /// And on what forked it: anchor and seed, which stay for the next command.
    pub(crate) fn hold_all_above(&self) -> Vec<OwnedFd> {
        Self::above(self.alive().into_iter().map(|(pid, _)| pid).collect())
    }

    /// Those of one of the processes, the nearest first.
    pub(crate) fn hold_all_above_one(&self) -> Vec<OwnedFd> {
        let each = self.alive().into_iter().map(|(pid, _)| Self::above(vec![pid]));
        each.into_iter().find(|above| !above.is_empty()).unwrap_or_default()
    }

    fn above(mut next: Vec<i32>) -> Vec<OwnedFd> {
        let mut held = Vec::new();
        while let Some(pid) = next.pop() {
            let Some(parent) = parent(pid) else { continue };
            if command_line(parent).contains(SUPERVISE) {
                held.extend(hold(parent));
                next.push(parent);
            }
        }
        held
    }
}

/// Whether a program is to be found.
pub(crate) fn is_on_the_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// Whether this test can run, which needs Python.
#[must_use]
pub(crate) fn has_python() -> bool {
    needs::has(needs::Need::Python3, is_on_the_path("python3"))
}

/// Whether the part of this test that needs Python can run.
#[must_use]
pub(crate) fn has_python_for_a_part() -> bool {
    needs::has_for_a_part(needs::Need::Python3, is_on_the_path("python3"))
}

fn command_line(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

fn parent(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn hold(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// Waits until all of them are dead, however long that takes.
pub(crate) fn until_dead(held: &[OwnedFd]) {
    for fd in held {
        let mut ends = [PollFd::new(fd, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut ends, None)).unwrap();
    }
}

/// Whether it is dead now.
pub(crate) fn is_dead(held: &OwnedFd) -> bool {
    let mut ends = [PollFd::new(held, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::io::retry_on_intr(|| poll(&mut ends, Some(&now))).unwrap() > 0
}

pub(crate) fn shell(text: &str, mark: &Mark) -> Command {
    Command {
        words: vec!["bash".into(), "-c".into(), text.into()],
        folder: Path::new("/").to_owned(),
        environment: mark.environment(),
        timeout: Duration::from_secs(600),
        confinement: None,
        gate: None,
        streams: Streams::default(),
    }
}

/// An agent's name.
pub(crate) fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

/// Collects what a tool says while it runs, and tells when it has said a word.
#[derive(Default)]
pub(crate) struct Heard {
    text: parking_lot::Mutex<String>,
    word: Option<(String, CancellationToken)>,
}

impl Heard {
    pub(crate) fn text(&self) -> String {
        self.text.lock().clone()
    }
}

impl OutputSink for Heard {
    fn write(&self, text: &str) {
        self.tell(text);
    }

    fn tell(&self, text: &str) {
        let mut all = self.text.lock();
        if all.len() < 64 << 10 {
            all.push_str(text);
        }
        if let Some((word, token)) = &self.word
            && all.contains(word)
        {
            token.cancel();
        }
    }
}

/// The tools of one agent in a folder of its own.
pub(crate) struct Tools {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) workplace: GitWorkplace,
    pub(crate) toolbox: Arc<dyn Toolbox>,
}

impl Tools {
    pub(crate) async fn new(limits: Limits) -> Self {
        Self::of(limits, Unread::default()).await
    }

    pub(crate) async fn of(limits: Limits, unread: Unread) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = |_: &AgentName| AgentPlace::new(Isolation::None);
        let workplace = GitWorkplace::new(folder.path(), folder.path(), &SessionId::new("s"), place)
            .supervisor(supervisor())
            .unread(unread)
            .limits(limits);
        let toolbox = workplace.open(&name("lead")).await.unwrap();
        Self { folder, workplace, toolbox }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub(crate) fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
        std::fs::write(self.path(file), content).unwrap();
    }

    pub(crate) fn content(&self, file: &str) -> String {
        String::from_utf8(std::fs::read(self.path(file)).unwrap()).unwrap()
    }

    pub(crate) fn traits(&self, tool: &str, input: Value) -> CallTraits {
        let call = used(tool, input);
        self.toolbox.find(&call).unwrap().traits(&call)
    }

    /// The name of the tool that a call of this name gets.
    pub(crate) fn offered_as(&self, tool: &str) -> Option<String> {
        Some(self.toolbox.find(&used(tool, Value::Null))?.spec().name.to_string())
    }

    pub(crate) async fn call(&self, tool: &str, input: Value) -> Output {
        call(&self.toolbox, tool, input).await
    }

    /// A call whose token is cancelled once its output holds the word; and that output.
    pub(crate) async fn call_until(&self, word: &str, tool: &str, input: Value) -> (Output, String) {
        let cancel = CancellationToken::new();
        let heard = Arc::new(Heard { word: Some((word.to_owned(), cancel.clone())), ..Heard::default() });
        let output = call_with(&self.toolbox, tool, input, cancel, heard.clone()).await;
        (output, heard.text())
    }
}

/// Calls a tool of a toolbox.
pub(crate) async fn call(toolbox: &Arc<dyn Toolbox>, tool: &str, input: Value) -> Output {
    call_with(toolbox, tool, input, CancellationToken::new(), Arc::new(Heard::default())).await
}

async fn call_with(
    toolbox: &Arc<dyn Toolbox>,
    tool: &str,
    input: Value,
    cancel: CancellationToken,
    output: Arc<dyn OutputSink>,
) -> Output {
    let call = used(tool, input);
    let tool = toolbox.find(&call).unwrap();
    let call = ToolCall { agent: name("lead"), agent_index: 0, run: 1, call, index: 0, cancel, output };
    match tool.call(call).await {
        Returned::Done(output) => output,
        Returned::Continues(_) => panic!("no work tool goes on in the background"),
    }
}

fn used(tool: &str, input: Value) -> ToolUse {
    ToolUse { id: CallId::new("c"), name: tool.into(), input }
}

/// The variable that names a victim's mark.
pub(crate) const VICTIMS_MARK: &str = "MIDTURN_TEST_VICTIMS_MARK";

/// This very test program again, with this test alone. A test that needs another process is that
/// process itself where a variable says so: one that were nothing else would pass and do nothing.
pub(crate) fn again(test: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command
}

/// The test that asks, as the daemon that will be killed: told what to do by a variable, it runs a
/// command with the mark. The command has begun.
pub(crate) fn victim_at_work(variable: &str, value: &str, mark: &Mark) -> std::process::Child {
    let test = std::thread::current().name().unwrap().to_owned();
    let mut victim = again(&test)
        .env(variable, value)
        .env(VICTIMS_MARK, mark.text())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(victim.stderr.take().unwrap());
    assert!((&mut said).lines().any(|line| line.unwrap() == "ready"), "{variable}={value} began nothing");
    // Kept open: whoever can't say any more would end too early.
    victim.stderr = Some(said.into_inner());
    victim
}
