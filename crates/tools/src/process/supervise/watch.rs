//! Waits for the end of a tree, and brings it about when the command is gone or we are told.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use rustix::process::{WaitOptions, WaitStatus};

use super::super::wire::{ExitStatus, Report};
use super::scales::Scales;
use super::tree::Tree;
use crate::planted::{Fault, planted};
use crate::sandbox::InMemory;
use crate::sandbox::orders::Bounds;

/// After SIGKILL each death wakes us and we look again; this is for the case that a process
/// was forked behind the last look and its parent's death was not told to us.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// From now on the signals that concern us come through a descriptor.
pub(super) fn block_signals() -> io::Result<SignalFd> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        set.add(signal);
    }
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

/// How far the end has come.
#[derive(Clone, Copy, Debug)]
enum EndStage {
    Running,
    /// SIGTERM was sent; SIGKILL follows then.
    Asked(Instant),
    /// SIGKILL was sent.
    Killed,
}

/// One command's tree, being watched.
pub(super) struct Watch {
    tree: Tree,
    command: Pid,
    grace: Duration,
    stage: EndStage,
    status: Option<ExitStatus>,
    left_running: u32,
    /// Where no cgroup holds it.
    scales: Option<Scales>,
    /// What a folder in memory holds, where it has some of its own.
    in_memory: Option<u64>,
    /// Whether it was ended for its memory.
    outgrown: bool,
    /// Whether there is nothing to be heard from us any more: only with a planted fault.
    deaf: bool,
}

impl Watch {
    /// With a limit on its memory, in bytes, where we are to look after that.
    pub(super) fn new(tree: Tree, command: Pid, grace: Duration, bounds: &Bounds) -> Self {
        let tree = if planted(Fault::GroupKillOnly) { Tree::Group(command) } else { tree };
        Self {
            tree,
            command,
            grace,
            stage: EndStage::Running,
            status: None,
            left_running: 0,
            scales: bounds.memory.map(|limit| Scales::new(tree, limit)),
            in_memory: bounds.in_memory,
            outgrown: false,
            deaf: false,
        }
    }

    /// Returns when no process of the tree is left, neither alive nor unreaped.
    pub(super) fn until_none_is_left(mut self, signals: &SignalFd) -> io::Result<Report> {
        loop {
            let told = self.wait(signals)?;
            if self.reap()? || self.forgets_the_rest() {
                return Ok(self.report());
            }
            self.advance(told)?;
        }
    }

    fn report(&self) -> Report {
        let status = self.status.unwrap_or(ExitStatus::Signalled(Signal::SIGKILL as i32));
        let full = self.in_memory.and_then(InMemory::full);
        Report::Ended { status, left_running: self.left_running, outgrown: self.outgrown, full }
    }

    fn forgets_the_rest(&self) -> bool {
        planted(Fault::GroupKillOnly) && self.status.is_some() && !matches!(self.stage, EndStage::Running)
    }

    /// Waits for a death, for our word, or for the time of the next step. True: our word.
    fn wait(&mut self, signals: &SignalFd) -> io::Result<bool> {
        let control = rustix::stdio::stdin();
        let mut sources =
            [PollFd::new(signals.as_fd(), PollFlags::POLLIN), PollFd::new(control, PollFlags::POLLIN)];
        // Once the end has begun there is nothing more to be told.
        let count = if matches!(self.stage, EndStage::Running) && !self.deaf { 2 } else { 1 };
        match poll(&mut sources[..count], self.timeout()) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let told = count == 2 && sources[1].any().unwrap_or(false) && !self.becomes_deaf();
        Ok(asked_by_signal(signals)? || told)
    }

    /// With [`Fault::SupervisorIgnoresPipe`] only a byte is our word, not the end of the pipe.
    fn becomes_deaf(&mut self) -> bool {
        if planted(Fault::SupervisorIgnoresPipe) {
            self.deaf = !matches!(nix::unistd::read(rustix::stdio::stdin(), &mut [0]), Ok(1));
        }
        self.deaf
    }

    fn timeout(&self) -> PollTimeout {
        let look = self.scales.as_ref().map(Scales::next);
        let next = match self.stage {
            EndStage::Running => look,
            EndStage::Asked(until) => Some(look.map_or(until, |look| look.min(until))),
            EndStage::Killed => Some(Instant::now() + LOOK_AGAIN),
        };
        let Some(next) = next else { return PollTimeout::NONE };
        // Up to the next whole millisecond, so that it is over when we wake.
        let rest = next.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
        PollTimeout::try_from(rest).unwrap_or(PollTimeout::MAX)
    }

    /// Takes all that is dead. True: there is no child left, and since what is orphaned
    /// becomes our child, no descendant either.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            // Not nix's: that one has no word for a real-time signal.
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(None) => return Ok(false),
                Ok(Some((pid, status))) => self.note(pid.as_raw_nonzero().get(), status),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CHILD) => return Ok(true),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn note(&mut self, pid: i32, status: WaitStatus) {
        if pid == self.command.as_raw() {
            let exited = status.exit_status().map(ExitStatus::Exited);
            self.status = exited.or(status.terminating_signal().map(ExitStatus::Signalled));
        }
    }

    fn advance(&mut self, told: bool) -> io::Result<()> {
        match self.stage {
            EndStage::Running | EndStage::Asked(_) if self.scales.as_mut().is_some_and(Scales::tip) => {
                self.outgrown = true;
                self.stage = EndStage::Killed;
                self.tree.signal(Signal::SIGKILL)
            }
            EndStage::Running if told => self.ask(),
            EndStage::Running if self.status.is_some() => {
                self.left_running = self.tree.alive()?;
                self.ask()
            }
            EndStage::Running => Ok(()),
            EndStage::Asked(until) if Instant::now() < until => Ok(()),
            EndStage::Asked(_) | EndStage::Killed => {
                self.stage = EndStage::Killed;
                self.tree.signal(Signal::SIGKILL)
            }
        }
    }

    /// What is stopped can't act on SIGTERM until it is continued.
    fn ask(&mut self) -> io::Result<()> {
        self.stage = EndStage::Asked(Instant::now() + self.grace);
        self.tree.signal(Signal::SIGTERM)?;
        self.tree.signal(Signal::SIGCONT)
    }
}

/// Takes all signals that came. True: one of them asks for the end.
fn asked_by_signal(signals: &SignalFd) -> io::Result<bool> {
    let mut asked = false;
    while let Some(info) = signals.read_signal()? {
        asked |= info.ssi_signo != Signal::SIGCHLD as u32;
    }
    Ok(asked)
}
