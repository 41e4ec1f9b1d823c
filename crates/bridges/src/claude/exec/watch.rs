//! One command, from its start to its end: what is sent to us is passed on, its status becomes ours, and urgent
//! mail ends it.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::process::ExitCode;
use std::time::Instant;

use midturn_core::rules::mail::Sender;
use midturn_core::rules::time::Span;
use midturn_core::rules::wording::{self, Cause};
use nix::libc;
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::process::WaitStatus;

use super::claim::Claim;
use super::fork::{die_of, fork};
use super::image::Image;
use super::{not_executed, tree};

/// What a call reads as when its command was ended from outside, and yet not as one that died of a signal: Claude
/// Code has other words for that.
const CUT: u8 = 143;

/// Runs it as our child. If it can't be watched, it runs in our place.
pub(super) fn run(image: &Image, claim: &Claim) -> ExitCode {
    let Ok(ready) = Ready::new(claim) else { return ExitCode::from(not_executed(&image.become_it())) };
    let us = Pid::this();
    match fork() {
        Ok(Some(shell)) => Watch { ready, claim, shell, begun: Instant::now() }.until_the_end(),
        Ok(None) => {
            ready.undo();
            // Without us nobody would pass anything on. If we are gone by now nobody tells it.
            if set_pdeathsig(Signal::SIGKILL).is_ok() && Pid::parent() != us {
                return ExitCode::FAILURE;
            }
            ExitCode::from(not_executed(&image.become_it()))
        }
        Err(_) => {
            ready.undo();
            ExitCode::from(not_executed(&image.become_it()))
        }
    }
}

/// What has to be there before the command starts.
struct Ready {
    signals: SignalFd,
    /// The signals that were blocked before.
    blocked: SigSet,
    mail: OwnedFd,
}

impl Ready {
    fn new(claim: &Claim) -> io::Result<Self> {
        let mail = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let comes = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        inotify::add_watch(&mail, claim.mailbox().path(), comes)?;
        // Those that have a name can be passed on. Of another one we die, and the shell with us.
        let named: SigSet = Signal::iterator().collect();
        let signals = SignalFd::with_flags(&named, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let blocked = named.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let ready = Self { signals, blocked, mail };
        match set_child_subreaper(true) {
            Ok(()) => Ok(ready),
            Err(errno) => {
                ready.undo();
                Err(errno.into())
            }
        }
    }

    /// For what is executed now: it would inherit both.
    fn undo(&self) {
        // Neither can fail: both were set before.
        let (_, _) = (self.blocked.thread_set_mask(), set_child_subreaper(false));
    }
}

struct Watch<'a> {
    ready: Ready,
    claim: &'a Claim,
    shell: Pid,
    begun: Instant,
}

impl Watch<'_> {
    fn until_the_end(self) -> ExitCode {
        self.let_go_of_input();
        loop {
            match self.step() {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                // There is no way on, and the command must not be left to itself.
                Err(error) => {
                    eprintln!("{}: {error}", super::NAME);
                    return ExitCode::from(not_executed(&error));
                }
            }
        }
    }

    /// Who writes to the command's input is to see when the command has closed it.
    fn let_go_of_input(&self) {
        if let Ok(null) = File::open("/dev/null") {
            // It stays open then, as a descriptor more that nobody reads.
            let (Ok(()) | Err(_)) = rustix::stdio::dup2_stdin(&null);
        }
    }

    /// The mail is looked at first: what was there before the watch tells of nothing.
    fn step(&self) -> io::Result<Option<ExitCode>> {
        if let Some(sender) = self.claim.cut_by() {
            return Ok(Some(self.cut(sender)));
        }
        self.wait_quietly()
    }

    /// Waits as long as there is no mail. `None`: there is.
    fn wait_quietly(&self) -> io::Result<Option<ExitCode>> {
        loop {
            let signals = self.ready.signals.as_fd();
            let mut sources =
                [PollFd::new(&signals, PollFlags::IN), PollFd::new(&self.ready.mail, PollFlags::IN)];
            rustix::io::retry_on_intr(|| poll(&mut sources, None))?;
            let has_mail = !sources[1].revents().is_empty();
            self.pass_on()?;
            if let Some(end) = self.end_of_shell()? {
                return Ok(Some(end));
            }
            if has_mail {
                drain(&self.ready.mail)?;
                return Ok(None);
            }
        }
    }

    fn pass_on(&self) -> io::Result<()> {
        while let Some(info) = self.ready.signals.read_signal()? {
            let signal = info.ssi_signo.cast_signed();
            if let Ok(signal) = Signal::try_from(signal)
                && is_for_us_alone(&info, signal)
            {
                // It isn't reaped yet, so its number is its own.
                let (Ok(()) | Err(_)) = kill(self.shell, signal);
            }
        }
        Ok(())
    }

    fn end_of_shell(&self) -> io::Result<Option<ExitCode>> {
        let mut end = None;
        let none_left = tree::reap(|pid, status| {
            if pid.as_raw_nonzero().get() == self.shell.as_raw() {
                end = Some(status);
            }
        })?;
        match end {
            Some(status) => Ok(Some(as_it_ended(status))),
            None if none_left => Err(rustix::io::Errno::CHILD.into()),
            None => Ok(None),
        }
    }

    fn cut(&self, sender: Sender) -> ExitCode {
        let ran = Span::from(self.begun.elapsed());
        let line = match tree::end(&self.ready.signals) {
            Ok(true) => wording::cut(&Cause::Mail(sender), ran, ""),
            Ok(false) | Err(_) => wording::given_up(Span::from(tree::PATIENCE)),
        };
        // If nobody hears it, the status still says that it didn't end of itself.
        let (Ok(()) | Err(_)) = say(&line);
        ExitCode::from(CUT)
    }
}

/// What a terminal or a `kill 0` of the command's own sends goes to the whole group: the shell has it already. Claude
/// Code signals each process of the tree, and kills the group afterwards.
fn is_for_us_alone(info: &libc::signalfd_siginfo, signal: Signal) -> bool {
    let is_from_the_kernel = info.ssi_code == libc::SI_KERNEL;
    match signal {
        Signal::SIGCHLD => false,
        // A terminal that hangs up tells the session's leader only.
        Signal::SIGHUP if is_from_the_kernel => true,
        _ => {
            !is_from_the_kernel
                && !is_claude_code(info.ssi_pid)
                && !tree::is_inside(info.ssi_pid.cast_signed())
        }
    }
}

fn is_claude_code(pid: u32) -> bool {
    std::env::var("CLAUDE_PID").is_ok_and(|claude| claude.parse() == Ok(pid))
}

fn as_it_ended(status: WaitStatus) -> ExitCode {
    if let Some(signal) = status.terminating_signal() {
        die_of(signal);
    }
    let code = status.exit_status().and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(u8::MAX))
}

fn drain(mail: &OwnedFd) -> io::Result<()> {
    let mut room = [0; 4_096];
    loop {
        match rustix::io::read(mail, &mut room) {
            Ok(0) | Err(rustix::io::Errno::AGAIN) => return Ok(()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// On a line of its own, behind what the command wrote.
fn say(line: &str) -> io::Result<()> {
    let begin = if ends_a_line().unwrap_or(false) { "" } else { "\n" };
    let mut output = io::stdout().lock();
    output.write_all(format!("{begin}{line}\n").as_bytes())?;
    output.flush()
}

/// Whether the output is a file whose last line is ended.
fn ends_a_line() -> io::Result<bool> {
    let output = File::open("/proc/self/fd/1")?;
    let written = output.metadata()?;
    if !written.is_file() {
        return Ok(false);
    }
    let mut last = *b"\n";
    if let Some(at) = written.len().checked_sub(1) {
        output.read_exact_at(&mut last, at)?;
    }
    Ok(last == *b"\n")
}
