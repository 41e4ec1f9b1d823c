//! The `Clock` port: what time it is, and whose turn among what is due at the same instant.

use async_trait::async_trait;
use tokio::time::Instant;

use crate::rules::time::Micros;

/// The place of an act among those of one instant (scenarios.md, section 2). Ordered: first
/// the round's (1), then its (2), then its (3). A real clock knows no rounds and lets all pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// (1) A message's time is up; the number orders those of one instant.
    Expiry(u64),
    /// (1) A limit in time is reached: agent.
    TimeUp(u32),
    /// (1) At a take-up, the end of a run is told that the process before did not tell.
    Owed,
    /// (1) Something arrives that a scenario file names, in the file's order.
    Arrival(u64),
    /// (1) Something arrives that an agent caused, in the order of causes.
    Caused,
    /// (2) A tool ends: agent, call.
    ToolEnd(u32, u32),
    /// (2) A model call ends: agent.
    ModelEnd(u32),
    /// (2) What is still running when it is cut is cut now: what ended in this very instant has ended.
    Cut(u32),
    /// (2) A call that was aborted is waited for no longer: agent.
    Deadline(u32),
    /// (3) The agent passes its boundary and starts what is next.
    Boundary(u32),
    /// Behind (3): the round is over for everybody.
    Over,
}

impl Phase {
    /// The part of the round: 1, 2 or 3, and 4 for what is behind them.
    pub fn part(self) -> u8 {
        match self {
            Self::Expiry(_) | Self::TimeUp(_) | Self::Owed | Self::Arrival(_) | Self::Caused => 1,
            Self::ToolEnd(..) | Self::ModelEnd(_) | Self::Cut(_) | Self::Deadline(_) => 2,
            Self::Boundary(_) => 3,
            Self::Over => 4,
        }
    }
}

/// Time, and order within an instant.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Micros;

    /// Waits until `at` (at once when that is past) and then for the phase's turn.
    async fn until(&self, at: Micros, phase: Phase);

    /// Waits until `at` for something that is only told meanwhile and moves nothing. Where time
    /// jumps from what happens to what happens next there is no meanwhile, and it never comes.
    async fn meanwhile(&self, _at: Micros) {
        std::future::pending().await
    }

    /// Waits for the phase's turn in this instant.
    async fn turn(&self, phase: Phase) {
        self.until(self.now(), phase).await;
    }
}

/// The machine's own clock. It counts from the session's begin.
#[derive(Debug)]
pub struct RealClock {
    begin: Instant,
    /// What had passed when it was made.
    before: Micros,
}

impl RealClock {
    /// A clock that begins now.
    pub fn start() -> Self {
        Self::since(Micros(0))
    }

    /// The clock of a session that began so long ago.
    pub fn since(before: Micros) -> Self {
        Self { begin: Instant::now(), before }
    }
}

#[async_trait]
impl Clock for RealClock {
    fn now(&self) -> Micros {
        self.before.after(self.begin.elapsed().into())
    }

    async fn until(&self, at: Micros, _: Phase) {
        let now = self.now();
        if at > now {
            tokio::time::sleep(at.since(now).duration()).await;
        }
    }

    async fn meanwhile(&self, at: Micros) {
        self.until(at, Phase::Caused).await;
    }

    async fn turn(&self, _: Phase) {}
}
