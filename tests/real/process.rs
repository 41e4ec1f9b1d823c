//! A daemon's process, and what it tells people.

use std::path::PathBuf;
use std::process::{Command as StdCommand, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// How many lines of what it says are kept.
const LINES: usize = 2_000;

/// How long the rest of what it said is waited for: a process that it left could hold the other end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A daemon's process; it is killed when this is dropped.
pub(crate) struct Process {
    pub(crate) child: Child,
    said: Arc<Mutex<Vec<String>>>,
    published: watch::Receiver<Option<PathBuf>>,
    listening: AbortOnDropHandle<()>,
}

impl Process {
    pub(crate) fn start(mut command: StdCommand) -> Result<Self> {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child =
            Command::from(command).kill_on_drop(true).spawn().context("the daemon can't be started")?;
        let stderr = child.stderr.take().context("the daemon has no standard error")?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let (tell, published) = watch::channel(None);
        let listening = AbortOnDropHandle::new(tokio::spawn(listen(stderr, said.clone(), tell)));
        Ok(Self { child, said, published, listening })
    }

    /// Waits until it is ready: the file that says how it is reached. `None`: it ended before, or
    /// it took longer than that.
    pub(crate) async fn ready(&mut self, patience: Duration) -> Option<PathBuf> {
        timeout(patience, self.published.wait_for(Option::is_some)).await.ok()?.ok()?.clone()
    }

    /// What it has told people so far.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// Asks it to end, and waits. `None`: it doesn't.
    pub(crate) async fn terminate(&mut self, patience: Duration) -> Result<Option<ExitStatus>> {
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            kill_process(pid, Signal::TERM)?;
        }
        timeout(patience, self.child.wait()).await.ok().transpose().map_err(Into::into)
    }

    /// All it has said, once it is gone.
    pub(crate) async fn last_words(self) -> Vec<String> {
        // Late words are no loss.
        let _ = timeout(LAST_WORDS, self.listening).await;
        self.said.lock().unwrap().clone()
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
