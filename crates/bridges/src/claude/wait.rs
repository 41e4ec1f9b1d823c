//! `midturn hook wait`: sleeps behind an idle session until somebody writes to it, and wakes it.
//!
//! One at most waits for a session: a newer one takes its place. It acts only while the session rests; while that
//! works, its other hooks look.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;

use midturn_core::rules::mail::{Point, Urgency};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::hook::{Around, now};
use super::transcript;
use super::wire::Input;
use crate::spool::{By, Joined, Landed, MAIN, Mailbox, Spool, started, step, told};

/// Claude Code starts a turn with what such a hook says when it ends like this.
const WAKES: u8 = 2;

/// How far the program's transcript is behind, at most, in milliseconds.
const LAG_MILLIS: u16 = 500;

/// # Errors
/// Never: whatever goes wrong, nobody is woken.
pub(super) fn main(around: &Around, bytes: &[u8]) -> ExitCode {
    // Where nobody sits in front of it the program would wait for this process before it ends.
    if !around.attended {
        return ExitCode::SUCCESS;
    }
    match waits(around, bytes) {
        Ok(Some(text)) => match io::stderr().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::from(WAKES),
            Err(_) => ExitCode::SUCCESS,
        },
        Ok(None) | Err(_) => ExitCode::SUCCESS,
    }
}

/// What the session is woken with; `None`: it isn't.
fn waits(around: &Around, bytes: &[u8]) -> io::Result<Option<String>> {
    let Some(waiter) = Waiter::begins(around, bytes, std::process::id())? else { return Ok(None) };
    let watch = Inotify::init(InitFlags::IN_CLOEXEC)?;
    let changes = AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_CLOSE_WRITE;
    watch.add_watch(waiter.mailbox.folder(), changes)?;
    watch.add_watch(&waiter.mailbox.arrivals(), changes)?;
    let program = alive(around.program)?;
    let mut patience = PollTimeout::NONE;
    loop {
        match waiter.looks(now())? {
            Look::Over => return Ok(None),
            Look::Wakes(text) => return Ok(Some(text)),
            Look::Nothing => {}
        }
        match changed(&watch, &program, patience)? {
            Change::Ended => return Ok(None),
            // The program notes an interruption a moment later than it tells of it.
            Change::Came => patience = PollTimeout::from(LAG_MILLIS),
            Change::Nothing => patience = PollTimeout::NONE,
        }
    }
}

/// One that waits behind a session.
#[derive(Debug)]
pub struct Waiter {
    state: PathBuf,
    joined: Joined,
    by: By,
    mailbox: Mailbox,
    own: String,
}

/// What a waiter finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// A newer one waits: this one's time is over.
    Over,
    /// The session rests, and somebody has written: it is woken with this.
    Wakes(String),
    /// Nothing to do.
    Nothing,
}

impl Waiter {
    /// Takes the place of the one that waits. `None`: there is no such session.
    ///
    /// # Errors
    /// The spool can't be used.
    pub fn begins(around: &Around, bytes: &[u8], own: u32) -> io::Result<Option<Self>> {
        let Ok(input) = serde_json::from_slice::<Input<'_>>(bytes) else { return Ok(None) };
        let spool = Spool::of(&around.state, around.now);
        let Some(joined) = spool.session(&input.session_id) else { return Ok(None) };
        let Some(mailbox) = joined.mailbox(MAIN) else { return Ok(None) };
        // It can be quicker than the hook that notes the session.
        spool.touched()?;
        joined.is_ours(&mailbox)?;
        joined.made()?;
        mailbox.made()?;
        let own = own.to_string();
        step();
        fs::write(mailbox.folder().join("waiter"), &own)?;
        let started = started(around.program).unwrap_or_default();
        let by = By { woke: true, pid: around.program, started };
        Ok(Some(Self { state: around.state.clone(), joined, by, mailbox, own }))
    }

    /// One look, at that time: it goes on while one waits.
    ///
    /// # Errors
    /// The spool can't be used.
    pub fn looks(&self, now: u64) -> io::Result<Look> {
        step();
        if fs::read_to_string(self.mailbox.folder().join("waiter"))? != self.own {
            return Ok(Look::Over);
        }
        if !transcript::rests(&self.joined, MAIN) {
            return Ok(Look::Nothing);
        }
        let text = self.takes(now)?;
        Ok(text.map_or(Look::Nothing, Look::Wakes))
    }

    fn takes(&self, now: u64) -> io::Result<Option<String>> {
        let Some(mailbox) =
            Spool::of(&self.state, now).session(&self.joined.id).and_then(|joined| joined.mailbox(MAIN))
        else {
            return Ok(None);
        };
        let offset = self.joined.transcript(MAIN).map_or(0, |transcript| transcript::length(&transcript));
        let messages = mailbox.take(Urgency::FollowUp, offset, self.by, &Landed::at(Point::Start))?;
        if messages.is_empty() {
            return Ok(None);
        }
        self.joined.rests(MAIN, false)?;
        Ok(Some(told(&messages)))
    }
}

fn alive(program: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(program).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "whose session it is isn't said"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// What a sleep ended with.
enum Change {
    /// Something in the mailbox.
    Came,
    /// The time was up.
    Nothing,
    /// The program has ended.
    Ended,
}

fn changed(watch: &Inotify, program: &OwnedFd, patience: PollTimeout) -> io::Result<Change> {
    let looks = |what| PollFd::new(what, PollFlags::POLLIN);
    let mut both = [looks(watch.as_fd()), looks(program.as_fd())];
    if poll(&mut both, patience)? == 0 {
        return Ok(Change::Nothing);
    }
    if both[1].any().unwrap_or(true) {
        return Ok(Change::Ended);
    }
    watch.read_events()?;
    Ok(Change::Came)
}
