//! Processes of a dead daemon: found by the mark in their environment, and ended.
//!
//! A supervisor ends its tree when the pipe to us closes, so there is something to do here only
//! for one that was killed too, or that hasn't got round to it yet. What is ended: every process
//! of ours that carries a session's mark and whose owner (the daemon that started it) is dead,
//! supervisors included; all their descendants; and all that is in a POSIX session which one of
//! them made. So a process that scrubbed its environment is found as long as its parent or its
//! POSIX session tells where it comes from. Process 1 of a PID namespace takes all of it along.
//!
//! What isn't found: where the supervisor was no process 1 of a namespace, a process that threw
//! its environment away (or wrote over it, as some servers do to show a status there), made a
//! session of its own *and* lost its parent; and one that runs as another user and was orphaned.
//!
//! What is never touched: processes of an owner that lives, ourselves, whom we descend from,
//! and what we started.

mod look;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use midturn_core::rules::id::SessionId;
use nix::sys::signal::Signal;
use tokio::task::spawn_blocking;

use self::look::{Leftover, Look, Sight};
use crate::mark::Purpose;
use crate::planted::{Fault, planted};
use crate::process::table::{Process, is_dead_by, send};

/// How long all of it may take. What is stuck in the kernel (a dead network disk, say) doesn't
/// die sooner for being waited for.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// How long a daemon that may be dying has to show it. Which one has begun to, is waited for: it
/// gives up the store before it is dead.
const OWNER_DIES: Duration = Duration::from_secs(1);

/// How long and how often it goes on looking without finding anybody when others come and go so
/// quickly that nothing can be seen clearly. Where a look takes a second, time alone is no proof.
const LOOKS_ON: (Duration, u32) = (Duration::from_secs(1), 5);

/// How long a git command of ours may go on: ended in the middle, it leaves half a merge.
const GIT_ENDS_ITSELF: Duration = Duration::from_secs(5);

/// How often it is looked for git commands before none is there.
const GIT_LOOKS: usize = 5;

/// How long a git command has after SIGTERM to take its locks away.
const GIT_TIDIES_UP: Duration = Duration::from_secs(2);

/// Why it isn't sure that nothing is left.
#[derive(Debug, thiserror::Error)]
pub enum LeftoversError {
    /// The system's table can't be read.
    #[error("the processes that the last daemon left running can't be looked up: {0}")]
    NotFound(#[from] io::Error),
    /// Some don't die.
    #[error("of the processes that the last daemon left running, these don't end (end them by hand): {0:?}")]
    Alive(Vec<i32>),
    /// They start others faster than they can be ended.
    #[error("the processes that the last daemon left running go on starting others: end them by hand")]
    Starting,
}

/// Ends all that dead daemons left of these sessions and returns when it is gone, after at most
/// [`DEADLINE`]: how many processes were ended. Called before any of these sessions goes on.
///
/// # Errors
/// When the table of processes can't be read, or when something doesn't die.
pub async fn end(sessions: &[SessionId]) -> Result<usize, LeftoversError> {
    if planted(Fault::NoLeftovers) || sessions.is_empty() {
        return Ok(0);
    }
    let sessions = sessions.iter().map(|session| session.as_str().to_owned()).collect();
    let ended = spawn_blocking(move || Hunt::new(Look::new(sessions)?).until_none_is_left());
    ended.await.map_err(|error| io::Error::other(error.to_string()))?
}

/// Those that were found so far, each held, so that no signal hits another with its number.
struct Hunt {
    look: Look,
    until: Instant,
    targets: HashMap<(i32, u64), (OwnedFd, Purpose)>,
}

impl Hunt {
    fn new(look: Look) -> Self {
        Self { look, until: Instant::now() + DEADLINE, targets: HashMap::new() }
    }

    fn until_none_is_left(mut self) -> Result<usize, LeftoversError> {
        // Mostly nothing is left, nor a daemon that may be dying.
        let (_, sight) = self.look(None)?;
        if sight == Sight::Clear && self.targets.is_empty() && self.look.live.is_empty() {
            return Ok(0);
        }
        self.let_owners_die()?;
        self.let_git_finish()?;
        let mut ended = 0;
        loop {
            let sure = self.stop_all()?;
            if self.targets.is_empty() && sure {
                return Ok(ended);
            }
            for (target, _) in self.targets.values() {
                send(target, Signal::SIGKILL)?;
            }
            ended += self.targets.len();
            let alive = self.until_dead(self.until)?;
            if !alive.is_empty() {
                return Err(LeftoversError::Alive(alive));
            }
            if !sure {
                return Err(LeftoversError::Starting);
            }
            // Once more: a death may have let something loose that nobody saw.
            self.targets.clear();
        }
    }

    /// Stops all: what is stopped can neither fork nor lose a child to somebody else. It looks
    /// until it sees clearly that there is nobody new. False: its time is up.
    fn stop_all(&mut self) -> io::Result<bool> {
        let (mut found_last, mut looks) = (Instant::now(), 0);
        while Instant::now() < self.until {
            let (fresh, sight) = self.look(Some(Signal::SIGSTOP))?;
            looks += 1;
            if fresh > 0 {
                (found_last, looks) = (Instant::now(), 0);
            } else if is_enough(sight, found_last.elapsed(), looks) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks, and holds whom it doesn't hold yet, unless it is dead and waits for its parent;
    /// those get the signal. How many, and how much was to be seen.
    fn look(&mut self, signal: Option<Signal>) -> io::Result<(usize, Sight)> {
        let Self { look, targets, .. } = self;
        let (mut fresh, mut missed) = (0, false);
        let mut take = |Leftover { process, purpose }| {
            let key = (process.pid, process.started);
            if targets.contains_key(&key) {
                return Ok(());
            }
            match process.hold()? {
                Some(hold) if !is_dead_by(&hold, Duration::ZERO)? => {
                    signal.map_or(Ok(()), |signal| send(&hold, signal))?;
                    targets.insert(key, (hold, purpose));
                    fresh += 1;
                }
                // It may have started another one since its line was read.
                Some(_) | None => missed = true,
            }
            Ok(())
        };
        let sight = match look.again(&mut take)? {
            Sight::Clear if missed => Sight::Hazy,
            sight => sight,
        };
        Ok((fresh, sight))
    }

    /// Waits for the daemons of these sessions that were seen and are not quite dead yet. One that
    /// doesn't die is alive, and its processes are let be.
    fn let_owners_die(&mut self) -> io::Result<()> {
        let until = Instant::now() + OWNER_DIES;
        for (pid, started) in self.look.live.drain() {
            let read = || Process::read(pid).filter(|owner| owner.started == started);
            if let Some(held) = read().map(|owner| owner.hold()).transpose()?.flatten()
                && !is_dead_by(&held, until.saturating_duration_since(Instant::now()))?
                && read().is_some_and(|owner| owner.is_exiting())
            {
                is_dead_by(&held, self.until.saturating_duration_since(Instant::now()))?;
            }
        }
        Ok(())
    }

    /// Waits for git commands of the dead daemon, then asks them to end and to tidy up.
    fn let_git_finish(&mut self) -> io::Result<()> {
        let until = Instant::now() + GIT_ENDS_ITSELF;
        let mut looks = 0;
        while looks < GIT_LOOKS {
            looks += 1;
            let (_, sight) = self.look(None)?;
            self.targets.retain(|_, (_, purpose)| *purpose == Purpose::Git);
            if self.targets.is_empty() && sight == Sight::Clear {
                break;
            } else if self.targets.is_empty() {
                continue;
            } else if !self.until_dead(until)?.is_empty() {
                for (target, _) in self.targets.values() {
                    send(target, Signal::SIGTERM)?;
                }
                self.until_dead(Instant::now() + GIT_TIDIES_UP)?;
                break;
            }
            // One git command may have started another, which goes on.
            self.targets.clear();
            looks = 0;
        }
        self.targets.clear();
        Ok(())
    }

    /// Waits for the deaths of all that are held; who is alive then.
    fn until_dead(&self, until: Instant) -> io::Result<Vec<i32>> {
        let mut alive = Vec::new();
        for ((pid, _), (target, _)) in &self.targets {
            if !is_dead_by(target, until.saturating_duration_since(Instant::now()))? {
                alive.push(*pid);
            }
        }
        Ok(alive)
    }
}

/// Whether nobody is left, after so long and so many looks in which nobody was found.
fn is_enough(sight: Sight, since: Duration, looks: u32) -> bool {
    match sight {
        Sight::Clear => true,
        Sight::Hazy => since > LOOKS_ON.0 && looks >= LOOKS_ON.1,
        Sight::Begins => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E9: on a machine so busy that one look takes longer than the whole search should, a search
    /// that has seen nothing clearly has not ended.
    #[test]
    fn a_search_ends_with_a_clear_sight_or_after_many_looks_and_long() {
        let (short, long) = (Duration::from_millis(1), Duration::from_secs(9));
        for (sight, since, looks, expected) in [
            (Sight::Clear, short, 1, true),
            (Sight::Hazy, long, 1, false),
            (Sight::Hazy, short, 100, false),
            (Sight::Hazy, long, 5, true),
            (Sight::Begins, long, 1_000, false),
        ] {
            assert_eq!(is_enough(sight, since, looks), expected, "{sight:?} {since:?} {looks}");
        }
    }
}
