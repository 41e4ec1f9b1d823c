//! One run of an agent: what it does next. `Run` is the specification, the driver waits.

use std::sync::Arc;

use super::batch::PlannedCall;
use super::boundary::Inbox;
use super::conversation::{Reply, StopReason};
use super::event::Outcome;
use super::id::{RunId, TurnId};
use super::mail::{Injection, Point, Sender};
use super::recovery::{Left, OpenRun};
use super::settings::{Retry, Settings};
use super::time::Span;
use super::turn::Turn;

/// What the agent does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Takes the mail of this point, records what is in, and calls the model.
    CallModel(Injection),
    /// Starts these calls (perhaps none) and waits for what runs.
    RunTools(Vec<usize>),
    /// Ends the run, if no mail has come meanwhile where that would go on.
    Finish(Ending),
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The outcome.
    pub outcome: Outcome,
    /// What went wrong, or which limit was reached.
    pub error: Option<Arc<str>>,
}

impl Ending {
    fn new(outcome: Outcome, error: Option<&str>) -> Self {
        Self { outcome, error: error.map(Arc::from) }
    }
}

/// A run of an agent.
#[derive(Debug)]
pub struct Run {
    id: RunId,
    turn: TurnId,
    settings: Arc<Settings>,
    starved: u32,
    stage: Stage,
    stopped_by: Option<Sender>,
    /// The limit that ends the run as soon as nothing of the turn is under way.
    timed_out: Option<&'static str>,
}

#[derive(Debug)]
enum Stage {
    Start,
    /// The model is called.
    Calling,
    /// The stream was cut by an urgent message.
    Cut,
    /// The reply asked for no tools.
    Replied,
    Tools(Turn),
    /// It ends so, come what may.
    Over(Ending),
}

impl Run {
    /// A run that is about to start.
    pub fn new(id: RunId, settings: Arc<Settings>) -> Self {
        Self { id, turn: 0, settings, starved: 0, stage: Stage::Start, stopped_by: None, timed_out: None }
    }

    /// A run that goes on where its process left it.
    pub fn recovered(open: &OpenRun, settings: Arc<Settings>) -> Self {
        let stopped_by = open.stopped_by.clone();
        let mut run = Self { turn: open.turn, stopped_by, ..Self::new(open.run, settings) };
        match &open.left {
            Left::NotBegun | Left::Start => {}
            Left::Calling | Left::Between => run.stage = Stage::Cut,
            Left::Replied(reply) => run.model_replied(reply, Vec::new()),
            Left::Tools { open, started } => run.stage = Stage::Tools(Turn::recovered(open, started)),
        }
        run
    }

    /// Its number.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// The number of the current turn; 0 before the first.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// Looks at the mailbox once and decides. A stop wins over whatever else happened.
    pub fn step(&mut self, inbox: &dyn Inbox) -> Step {
        if self.stopped_by.is_some() && self.is_between() {
            return Step::Finish(Ending::new(Outcome::Stopped, None));
        }
        if let Some(limit) = self.timed_out.filter(|_| self.is_between()) {
            return Step::Finish(Ending::new(Outcome::Limit, Some(limit)));
        }
        match &mut self.stage {
            Stage::Start => self.request(Point::Start),
            Stage::Cut => self.request(Point::Stream),
            Stage::Replied if inbox.pending().is_some() => self.request(Point::B),
            Stage::Replied => Step::Finish(Ending::new(Outcome::Finished, None)),
            Stage::Over(ending) => Step::Finish(ending.clone()),
            Stage::Calling => Step::RunTools(Vec::new()),
            Stage::Tools(turn) => {
                let start = turn.step(inbox, &self.settings);
                if !turn.is_complete() {
                    return Step::RunTools(start);
                }
                let point = turn.point();
                self.request(point)
            }
        }
    }

    /// The next turn, with what is taken before it.
    fn request(&self, point: Point) -> Step {
        let free = self.free(point);
        Step::CallModel(match &self.stage {
            Stage::Tools(turn) => {
                Injection { skipped: turn.skipped(), interrupted: turn.interrupted(), ..free }
            }
            Stage::Start | Stage::Calling | Stage::Cut | Stage::Replied | Stage::Over(_) => free,
        })
    }

    /// What mail that is taken now has cost, if that is no call.
    pub fn free(&self, point: Point) -> Injection {
        let (run, turn) = (self.id, self.turn);
        Injection { point, run, turn, skipped: Arc::default(), interrupted: Arc::default() }
    }

    /// Whether nothing of the turn is under way.
    fn is_between(&self) -> bool {
        match &self.stage {
            Stage::Tools(turn) => turn.is_complete(),
            Stage::Calling => false,
            Stage::Start | Stage::Cut | Stage::Replied | Stage::Over(_) => true,
        }
    }

    /// A new turn is to begin with a model call. `false`: a limit forbids it, the run is over.
    pub fn turn_begins(&mut self, forbidden: Option<&str>) -> bool {
        if let Stage::Tools(turn) = &self.stage {
            self.starved = turn.starved_after(self.starved);
        }
        if let Some(limit) = forbidden {
            self.limited(limit);
            return false;
        }
        self.turn += 1;
        self.stage = Stage::Calling;
        true
    }

    /// A whole reply is recorded. `plan` holds its calls with what their tools say of them.
    pub fn model_replied(&mut self, reply: &Reply, plan: Vec<PlannedCall>) {
        self.stage = match failure_of(reply, &plan) {
            Some(why) => Stage::Over(Ending::new(Outcome::Failed, Some(why))),
            None if plan.is_empty() => Stage::Replied,
            None => {
                let threshold = self.settings.progress_guard.0;
                let guarded = threshold != 0 && self.starved >= threshold;
                Stage::Tools(Turn::new(plan, &self.settings, guarded))
            }
        };
    }

    /// The stream, or the wait for the next attempt, was cut.
    pub fn model_cut(&mut self) {
        self.stage = Stage::Cut;
    }

    /// The model failed for good, or something else that the run can't go on without.
    pub fn failed(&mut self, why: &str) {
        self.stage = Stage::Over(Ending::new(Outcome::Failed, Some(why)));
    }

    /// The run ends at a limit: a budget, or the room that the model's context has.
    pub fn limited(&mut self, why: &str) {
        self.stage = Stage::Over(Ending::new(Outcome::Limit, Some(why)));
    }

    /// The run is to end as stopped, whatever else happens. The first stop counts.
    pub fn stop(&mut self, by: &Sender) {
        self.stopped_by.get_or_insert_with(|| by.clone());
    }

    /// The run's time is up. A stop still wins.
    pub fn times_out(&mut self, limit: &'static str) {
        self.timed_out = Some(limit);
    }

    /// Whether the model is being called.
    pub fn is_calling(&self) -> bool {
        matches!(self.stage, Stage::Calling)
    }

    /// The calls of the turn, while there are any.
    pub fn tools(&mut self) -> Option<&mut Turn> {
        match &mut self.stage {
            Stage::Tools(turn) => Some(turn),
            Stage::Start | Stage::Calling | Stage::Cut | Stage::Replied | Stage::Over(_) => None,
        }
    }
}

/// Why a whole reply ends the run, if it does (semantics.md, section 7).
fn failure_of(reply: &Reply, plan: &[PlannedCall]) -> Option<&'static str> {
    use super::conversation::Block;
    let says_something = reply.blocks.iter().any(|block| match block {
        Block::Text(text) => !text.trim().is_empty(),
        Block::ToolUse(_) | Block::Provider(_) => true,
        Block::Thinking(_) => false,
    });
    if plan.is_empty() && reply.stop_reason == StopReason::MaxTokens {
        Some("cut at its token limit")
    } else if !says_something {
        Some("empty reply")
    } else {
        None
    }
}

/// How long to wait (before jitter) until a failed attempt is tried again: `failed` attempts so far,
/// `elapsed` since the first one began (semantics.md, section 7). `None`: it is given up.
pub fn retrying(
    retry: &Retry,
    failed: u32,
    elapsed: Span,
    retryable: bool,
    retry_after: Option<Span>,
) -> Option<Span> {
    let wait = retry.wait(failed, retry_after);
    let in_time = elapsed.0.saturating_add(wait.0) <= retry.time.0;
    (retryable && failed < retry.attempts && in_time).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_and_time_bound_the_retries() {
        let retry = Retry { attempts: 20, ..Retry::default() };
        let at = |failed, elapsed| retrying(&retry, failed, Span::secs(elapsed), true, None);
        assert_eq!(at(1, 0), Some(Span::millis(500)));
        assert_eq!(at(4, 0), Some(Span::secs(4)));
        assert_eq!(at(14, 241), Some(Span::secs(30)));
        assert_eq!((at(15, 271), at(1, 300)), (None, None));
        let few = Retry::default();
        assert_eq!(retrying(&few, 5, Span::ZERO, true, None), None);
        assert_eq!(retrying(&retry, 1, Span::ZERO, false, None), None);
        let late = retrying(&retry, 1, Span::ZERO, true, Some(Span::secs(301)));
        assert_eq!(late, None);
    }
}
