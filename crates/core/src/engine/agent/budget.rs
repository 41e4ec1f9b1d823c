//! What an agent may use: a turn is counted when it begins, the most that a request can use
//! is held before it leaves, and what it did use is counted when it has ended.
//!
//! The sums are `rules::limits`'; here is who waits.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::Driver;
use super::model_phase::NoReply;
use super::stream::Stream;
use crate::engine::limits;
use crate::engine::ports::Phase;
use crate::engine::session::{Activity, ActivityKind, AgentCell, Session};
use crate::rules::compaction;
use crate::rules::conversation::Usage;
use crate::rules::limits::{Bound, CONTEXT, Grant, Hold, Limit, Money, Prices, Whose};
use crate::rules::prompt::Prompt;
use crate::rules::time::{Micros, Span};

/// What is held for a request, of the agent's budget and of the session's. Dropped, it was
/// for nothing: all of it goes back.
pub(super) struct Holding {
    session: Arc<Session>,
    cell: Arc<AgentCell>,
    own: Hold,
    /// `None`: it is waited for.
    shared: Option<Hold>,
    /// Whether it is known how much the request can use: what was lost can be estimated then.
    is_bounded: bool,
    is_settled: bool,
}

impl Holding {
    /// The longest that the reply may be, if a budget says so.
    pub(super) fn max_output(&self) -> Option<u64> {
        self.shared.and_then(|shared| shared.output).or(self.own.output)
    }

    /// The limit because of which the reply may be no longer, if it is one.
    fn shortened_by(&self) -> Option<&'static str> {
        self.shared.and_then(|shared| shared.shortened).or(self.own.shortened)
    }

    /// The request has ended: what it used counts.
    fn settle(&mut self, tokens: u64, cost: Money) {
        self.is_settled = true;
        self.cell.state.lock().budget.settle(self.own, tokens, cost);
        if let Some(shared) = self.shared {
            self.session.budget.settle(shared, tokens, cost);
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if !self.is_settled {
            self.settle(0, Money::ZERO);
        }
    }
}

impl Driver {
    /// Counts a turn that is to begin. The setting that forbids it, if one does.
    pub(super) fn counts_turn(&mut self) -> Option<&'static str> {
        let now = self.session.clock.now();
        let mut state = self.cell.state.lock();
        state.budget.worked(self.worked(now));
        let used_up = state.budget.reached().or_else(|| self.session.budget.begin_turn(now).err());
        used_up.or_else(|| state.budget.begin_turn().err())
    }

    /// How long the agent was at work in all its runs, this one included.
    fn worked(&self, now: Micros) -> Span {
        Span(self.worked_before.0.saturating_add(now.since(self.began).0))
    }

    /// The run is to end at a limit, and from now on nobody wakes the agent.
    pub(super) fn reaches(&mut self, setting: &'static str) {
        self.run.limited(setting);
        limits::reaches(&self.session, &self.cell, setting);
    }

    /// The same at what the model's context holds; the text says what a person can do.
    pub(super) fn is_crowded(&mut self, why: &str) {
        self.run.limited(why);
        limits::reaches(&self.session, &self.cell, CONTEXT);
    }

    /// Holds what the request can use at most. While others hold what is left it waits until
    /// one of them has ended, which each does: a request has a deadline.
    pub(super) async fn hold(&mut self, prompt: Option<&Prompt>) -> Result<Holding, NoReply> {
        let bound = self.bound(prompt.unwrap_or(&self.body.prompt));
        let prices = self.prices();
        let granted = self.cell.state.lock().budget.hold(bound, prices);
        let own = match granted {
            Grant::Held(hold) => hold,
            // Nobody else holds any of it.
            Grant::Wait => return Err(NoReply::Limit(Limit::Tokens.setting(Whose::Agent))),
            Grant::Reached(limit) => return Err(NoReply::Limit(limit)),
        };
        let (session, cell, is_bounded) = (self.session.clone(), self.cell.clone(), bound.output.is_some());
        let mut holding = Holding { session, cell, own, shared: None, is_bounded, is_settled: false };
        let left = Bound { output: own.output.or(bound.output), ..bound };
        holding.shared = Some(self.hold_of_session(left, prices).await?);
        Ok(holding)
    }

    async fn hold_of_session(&mut self, bound: Bound, prices: Prices) -> Result<Hold, NoReply> {
        let (session, index) = (self.session.clone(), self.cell.index);
        let (budget, clock) = (&session.budget, &session.clock);
        loop {
            let settled = budget.changed();
            match budget.hold(bound, prices) {
                Grant::Held(hold) => return Ok(hold),
                Grant::Reached(limit) => return Err(NoReply::Limit(limit)),
                Grant::Wait => {}
            }
            self.sync().await;
            let _waits = Waits::begin(&self.cell, ActivityKind::Budget, clock.now());
            tokio::select! {
                biased;
                () = self.work.cancelled() => {
                    clock.turn(Phase::Cut(index)).await;
                    return Err(NoReply::Cut);
                }
                () = settled => clock.turn(Phase::Boundary(index)).await,
            }
        }
    }

    /// The most that a request can use. A token has at least one byte, so bytes are a bound
    /// where nobody has counted tokens.
    fn bound(&self, prompt: &Prompt) -> Bound {
        let Some(equipment) = &self.body.equipment else { return Bound { input: 0, output: None } };
        let around = equipment.system.len() as u64 + equipment.spec_bytes;
        Bound { input: compaction::most(prompt, around), output: equipment.model.max_output() }
    }

    fn prices(&self) -> Prices {
        self.session.models.prices(self.cell.model.as_deref().unwrap_or_default())
    }

    /// A request has given its reply.
    pub(super) fn settles(&mut self, mut holding: Holding, usage: Usage) {
        self.shortened = holding.shortened_by();
        holding.settle(usage.total(), self.prices().cost(&usage));
    }

    /// A request was cut or has failed. Where the provider is paid for what it had done by
    /// then, nobody is told how much: it is counted as estimated, and never as more than was held.
    pub(super) fn settles_lost(&self, mut holding: Holding, prompt: Option<&Prompt>, stream: &Stream) {
        if !holding.is_bounded || !stream.was_sent() {
            return;
        }
        let most = holding.max_output().unwrap_or(u64::MAX);
        let (prices, output) = (self.prices(), stream.tokens_so_far().min(most));
        let input = compaction::estimate(prompt.unwrap_or(&self.body.prompt));
        let cost = prices.input.times(input).plus(prices.output.times(output));
        holding.settle(input.saturating_add(output), cost);
    }

    /// Ends the run when its time, or the session's, is up: at once if it is by now and the run
    /// was left, so that nothing of it goes on; one that begins is ended by its first turn. It lives
    /// as long as the run, and looks again when somebody sets a limit.
    pub(super) fn timer(&self) -> AbortOnDropHandle<()> {
        let (session, cell) = (self.session.clone(), self.cell.clone());
        let since = (self.began, self.worked_before);
        let is_up = ends_by(&session, &cell, since).filter(|(at, _)| *at <= session.clock.now());
        if let Some((_, limit)) = is_up.filter(|_| self.goes_on.is_some()) {
            time_out(&session, &cell, limit);
        }
        AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                let changed = session.budget.limits_set();
                let Some((until, limit)) = ends_by(&session, &cell, since) else {
                    changed.await;
                    continue;
                };
                tokio::select! {
                    biased;
                    () = changed => {}
                    () = session.clock.until(until, Phase::TimeUp(cell.index)) => {
                        return time_out(&session, &cell, limit);
                    }
                }
            }
        }))
    }

    /// The run has ended: its time counts.
    pub(super) fn counts_time(&mut self) {
        let now = self.session.clock.now();
        let worked = self.worked(now);
        self.cell.state.lock().budget.worked(worked);
    }
}

fn time_out(session: &Session, cell: &AgentCell, limit: &'static str) {
    if cell.mailbox.time_out(limit) {
        limits::reaches(session, cell, limit);
    }
}

/// When the first of the limits in time is reached, and which that is. The run began at `since.0`,
/// and all runs before it took `since.1`.
fn ends_by(session: &Session, cell: &AgentCell, since: (Micros, Span)) -> Option<(Micros, &'static str)> {
    let own = cell.state.lock().budget.time();
    let own = own.map(|(most, limit)| (since.0.after(Span(most.0.saturating_sub(since.1.0))), limit));
    own.into_iter().chain(session.budget.ends_at()).min()
}

/// The agent waits for what no event tells the end of, as long as this lives.
pub(super) struct Waits {
    cell: Arc<AgentCell>,
    what: ActivityKind,
}

impl Waits {
    pub(super) fn begin(cell: &Arc<AgentCell>, what: ActivityKind, since: Micros) -> Self {
        cell.state.lock().activity.push(Activity { what: what.clone(), since });
        Self { cell: cell.clone(), what }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.cell.state.lock().activity.retain(|activity| activity.what != self.what);
    }
}
