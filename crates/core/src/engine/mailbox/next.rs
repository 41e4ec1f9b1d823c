//! The agent's next run: what asks for it, and whether it begins.

use super::Mailbox;
use super::inner::{Asked, Begun, Resume};
use crate::rules::mail::{Rest, Standing};

impl Mailbox {
    /// Starts the first run of an agent that has a prompt; `true`: it is to be driven. It is there
    /// from now on, and begins when the agent passes its boundary.
    pub fn prompt(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.prompted = true;
        inner.wake()
    }

    /// Starts a stopped agent; `true`: its run is to be driven.
    pub fn resume(&self, how: Resume) -> bool {
        let mut inner = self.inner.lock();
        inner.resumed = how;
        inner.wake()
    }

    /// Whether a resume asks for the next run, and nobody has taken that back.
    pub(crate) fn is_resumed(&self) -> bool {
        self.inner.lock().resumed != Resume::No
    }

    /// The run passes its first boundary. `false`: what woke the agent was taken back before
    /// it began, or somebody drives it already, so there is nothing to drive.
    pub fn begins(&self) -> bool {
        let mut inner = self.inner.lock();
        let is_left = std::mem::take(&mut inner.left);
        let is_there = inner.standing.is_in_a_run() && (inner.begun == Begun::No || is_left);
        if !is_there {
            return false;
        }
        let asked = Asked { resumed: inner.resumed, prompted: inner.prompted };
        if !is_left {
            inner.begun = Begun::Driven(asked);
        }
        inner.prompted = false;
        // While a run is ending it is the next one that is asked for.
        if inner.standing == Standing::Running {
            inner.resumed = Resume::No;
        }
        !inner.puts_off()
    }

    /// The run gets its place in the record, and whoever gives it that asks here. `false`: the process
    /// ends, and there is no run. A shutdown takes its own place there after it has shut the mailboxes,
    /// so that it finds either what stands before it, or what never comes.
    pub fn starts(&self) -> bool {
        let mut inner = self.inner.lock();
        if inner.puts_off() {
            return false;
        }
        inner.begun = Begun::Recorded;
        true
    }

    /// A stop that was taken while nothing waited: the agent may be woken by anybody again.
    pub fn unstop(&self) {
        let mut inner = self.inner.lock();
        inner.resumed = Resume::No;
        if inner.standing == Standing::Resting(Rest::Stopped) {
            inner.standing = Standing::Resting(Rest::Idle);
        }
    }

    /// All of the conversation is answered, and the run ends.
    pub(crate) fn settle_resume(&self) {
        self.inner.lock().settle_resume();
    }

    /// Whether the next run follows as soon as this one has ended.
    pub fn goes_on(&self) -> bool {
        let inner = self.inner.lock();
        let restarts = matches!(inner.standing, Standing::Winding { restart: true, .. });
        let waits = inner.shut || inner.limited.or(inner.session_limited).is_some();
        restarts && !waits && inner.is_asked_for()
    }
}
