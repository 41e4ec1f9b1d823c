//! Virtual time: an ordered queue of rounds (scenarios.md, section 2). Somebody waits for an
//! instant and a phase; when everybody is blocked the next one in order is let go.

use std::collections::BTreeMap;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::ports::{Clock, Phase};
use crate::rules::time::Micros;

/// So many rounds in one instant are a loop that time can't leave.
pub const MAX_ROUNDS: u32 = 10_000;

/// Time did not advance any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_ROUNDS} rounds in the instant {0} s: something answers itself without taking any time")]
pub struct Stuck(pub Micros);

/// A clock whose time is moved by [`VirtualClock::drive`] alone.
#[derive(Debug, Default)]
pub struct VirtualClock {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    now: Micros,
    round: u32,
    position: Option<Phase>,
    waiting: BTreeMap<Place, oneshot::Sender<()>>,
    registered: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    at: Micros,
    round: u32,
    phase: Phase,
    order: u64,
}

impl State {
    fn register(&mut self, at: Micros, phase: Phase) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.registered += 1;
        let round = match at > self.now {
            true => 0,
            false if self.is_still_to_come(phase) => self.round,
            false => self.round + 1,
        };
        let place = Place { at: at.max(self.now), round, phase, order: self.registered };
        self.waiting.insert(place, sender);
        receiver
    }

    /// Whether the phase is still to come in this round. What a part of a round causes in
    /// the same part comes in the next one.
    fn is_still_to_come(&self, phase: Phase) -> bool {
        self.position.is_none_or(|position| phase.part() > position.part())
    }

    /// Lets the next one go. `None`: nobody waits.
    fn advance(&mut self) -> Option<Result<(), Stuck>> {
        while let Some((place, sender)) = self.waiting.pop_first() {
            if sender.is_closed() {
                continue;
            }
            if place.round >= MAX_ROUNDS {
                return Some(Err(Stuck(place.at)));
            }
            (self.now, self.round, self.position) = (place.at, place.round, Some(place.phase));
            if sender.send(()).is_ok() {
                return Some(Ok(()));
            }
        }
        None
    }
}

impl VirtualClock {
    /// Moves time on to a later instant in which nothing has happened yet. For whoever has
    /// ended all that waited: a process that is not there.
    pub fn pass(&self, to: Micros) {
        let mut state = self.state.lock();
        if to > state.now {
            (state.now, state.round, state.position) = (to, 0, None);
        }
    }

    /// Moves time until nobody waits any more. To be called on a current-thread runtime that
    /// was started paused: its own clock only tells that everybody is blocked.
    pub async fn drive(&self) -> Result<(), Stuck> {
        self.drive_until(|| false).await
    }

    /// The same, or until it is over: that is asked when everybody is blocked, before anything more
    /// is let go.
    pub async fn drive_until(&self, is_over: impl Fn() -> bool) -> Result<(), Stuck> {
        loop {
            everybody_is_blocked().await;
            if is_over() {
                return Ok(());
            }
            match self.state.lock().advance() {
                Some(result) => result?,
                None => return Ok(()),
            }
        }
    }
}

/// A paused runtime advances its clock only when it has nothing else to do.
async fn everybody_is_blocked() {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Micros {
        self.state.lock().now
    }

    async fn until(&self, at: Micros, phase: Phase) {
        let turn = self.state.lock().register(at, phase);
        if turn.await.is_err() {
            // The clock is gone with everything that was still to come.
            std::future::pending::<()>().await;
        }
    }
}
