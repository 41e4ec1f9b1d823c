//! A session that goes on: what was recorded is there again, and what was under way is
//! started again (semantics.md, sections 4, 6 and 8). What a crash makes of an open turn is
//! decided in `rules::recovery`.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::body::{Body, spent};
use super::coordinator::Coordinator;
use super::deliver;
use super::journal::Draft;
use super::mailbox::{Kept, Mailbox, Recovered, StopOrder};
use super::ports::archive::{AgentJournal, KeptMail};
use super::ports::{Phase, SessionJournal};
use super::report::Report;
use super::resume::{self, Resumed};
use super::session::{AgentCell, AgentState, LeftAgent, Session};
use super::spawn;
use crate::fail;
use crate::rules::conversation::{InterruptReason, MessageKey};
use crate::rules::event::{Event, EventKind, Halt, Outcome};
use crate::rules::id::AgentName;
use crate::rules::lifetime::SetLimits;
use crate::rules::limits::{Budget, Spent, Whose};
use crate::rules::mail::{Admission, End, Mail, ReceiptState, Relation, Rest, Sender, Standing, admission};
use crate::rules::progress::Closed;
use crate::rules::record::Line;
use crate::rules::recovery;

/// Brings everything back that was recorded. Nothing runs yet.
pub(crate) fn restore(session: &Arc<Session>, journal: SessionJournal) {
    // No message without an id has one above the number of events: each has at least one.
    session.journal.receipts.count_from(journal.last_seq);
    for kept in &journal.mail {
        session.journal.receipts.restore(&kept.accepted, kept.state.clone());
    }
    for agent in &journal.agents {
        let cell = Arc::new(cell_of(session, agent, &journal.mail));
        session.order.lock().push(cell.name.clone());
        session.agents.insert(cell.name.clone(), cell.clone());
        spawn::count_below(session, cell.parent.as_ref());
    }
    restore_limits(session, &journal);
    let told = told_in_results(&journal);
    for agent in &journal.agents {
        let Some(cell) = session.agent(agent.record.name.as_str()) else { continue };
        let left = left(session, cell, agent, &journal, &told);
        session.left.lock().push(left);
    }
    fail::point("restored");
}

/// The session's limits, and whether one of them is reached.
fn restore_limits(session: &Session, journal: &SessionJournal) {
    let now = session.clock.now();
    let (limits, raised_at) = &journal.limits;
    if let Err(below) = session.budget.set(limits, now) {
        tracing::warn!(%below, "the session has spent more than the limit that was set");
    }
    let ended_by = |agent: &AgentJournal| {
        let (end, seq) = agent.last_end.as_ref()?;
        end.limit().filter(|limit| limit.starts_with("session.") && seq > raised_at)
    };
    let used_up = || {
        let limit = session.budget.is_used_up(now)?;
        rested_since_the_last_turn(journal, *raised_at).then_some(limit)
    };
    let reached = journal.agents.iter().find_map(ended_by).or_else(used_up);
    if reached.is_some() {
        session.reaches(reached);
    }
}

/// Whether anybody rested after a run when the last turn had begun, or limits were set: what is
/// used up by then is reached.
fn rested_since_the_last_turn(journal: &SessionJournal, raised_at: u64) -> bool {
    let is_turn = |event: &&Event| matches!(event.kind, EventKind::ModelStarted { .. });
    let begun = |agent: &AgentJournal| agent.tail.iter().find(is_turn).map(|event| event.seq);
    let last_turn = journal.agents.iter().filter_map(begun).max().unwrap_or(0);
    let mut ends = journal.agents.iter().filter_map(|agent| agent.last_end.as_ref());
    ends.any(|(_, seq)| raised_at.max(*seq) > last_turn)
}

/// The reports that a recorded result has told.
fn told_in_results(journal: &SessionJournal) -> HashSet<MessageKey> {
    let rows = journal.agents.iter().flat_map(|agent| &agent.rows);
    rows.filter_map(|row| row.line.result()).flat_map(|result| result.messages.iter().cloned()).collect()
}

fn left(
    session: &Session,
    cell: Arc<AgentCell>,
    agent: &AgentJournal,
    journal: &SessionJournal,
    told: &HashSet<MessageKey>,
) -> LeftAgent {
    let end = agent.last_end.as_ref();
    // Owed also when the next run has begun since: a report is told in its own time.
    let at_limit = cell.mailbox.own_limit().or(session.budget.reached()).is_some();
    let owed = end.and_then(|(end, _)| {
        let how = if end.restarts && !at_limit {
            End::followed(end.outcome, end.reason)
        } else {
            End::of(end.outcome)
        };
        let report = Report { run: end.run, end: how, text: end.text.clone() };
        let is_told = told.contains(&report.key(&cell.name));
        Some((end.owed_to.clone().filter(|_| !is_told)?, report))
    });
    let last = end.filter(|(end, _)| end.run == agent.stands.run);
    let shut_down = last.is_some_and(|(end, _)| end.reason == Some(InterruptReason::Shutdown));
    // A limit was raised, and the process ended before the run that it had ended started again.
    let raised = |(limits, at): &SetLimits, seq: u64, limit: &str| *at > seq && limits.sets(limit);
    let lifted = last.is_some_and(|(end, seq)| {
        end.limit().is_some_and(|limit| match limit.starts_with("session.") {
            true => raised(&journal.limits, *seq, limit) && session.budget.reached().is_none(),
            false => raised(&agent.limits, *seq, limit) && cell.mailbox.own_limit().is_none(),
        })
    });
    let closes = agent.stands.closed == Closed::Asked && last.is_some();
    let resumes = (shut_down || lifted || agent.stands.is_resumed()) && !agent.stands.closed.is_asked();
    if resumes {
        cell.mailbox.ask_again();
    }
    LeftAgent { cell, resumes, owed, closes }
}

fn cell_of(session: &Session, agent: &AgentJournal, mail: &[KeptMail]) -> AgentCell {
    let record = &agent.record;
    let is_open = agent.is_open();
    let stopped = recovery::stopped_by(&agent.tail).filter(|_| is_open);
    let own = || mail.iter().filter(|kept| kept.accepted.mail.to == record.name);
    let prices = session.models.prices(record.model.as_deref().unwrap_or_default());
    let by = stopped.as_ref().map(|(by, _)| by.clone());
    let body = Body::recovered(agent, is_open, by.clone(), own());
    let budget = budget_of(agent, spent(agent, prices));
    session.budget.restore(budget.spent());
    let has_begun = agent.rows.iter().any(|row| matches!(row.line, Line::Prompt(_)));
    let state = AgentState {
        prompt: record.prompt.clone().filter(|_| !has_begun),
        run: agent.stands.run,
        turn: recovery::turn(&agent.tail),
        begun: agent.stands.run,
        unheard: by.is_some(),
        usage: agent.usage(|_| true),
        context: agent.context(),
        budget,
        last_end: agent.last_end.as_ref().map(|(end, _)| end.clone()),
        plan: agent.stands.plan.clone(),
        ..AgentState::default()
    };
    let limit = reached_by(agent, &state).filter(|_| !is_open);
    let depth = spawn::depth_of(session, record.parent.as_ref());
    let mut cell = AgentCell::new(record.clone(), depth, Mailbox::default(), state);
    cell.body = Mutex::new(Some(Box::new(body)));
    let relation = |mail: &Mail| session.relation(&mail.from, &cell);
    cell.mailbox = Mailbox::recovered(mailbox(agent, is_open, stopped, own(), relation));
    if let Some(limit) = limit {
        cell.mailbox.reaches(limit);
    }
    cell
}

/// What the agent may use, by its settings and what was set since, and what it has used.
fn budget_of(agent: &AgentJournal, spent: Spent) -> Budget {
    let mut budget = Budget::new(Whose::Agent, agent.record.settings.caps(), spent);
    if let Err(below) = budget.set(&agent.limits.0) {
        tracing::warn!(agent = %agent.record.name, %below, "more is spent than the limit that was set");
    }
    budget
}

/// The limit of its own that keeps an agent that rests from being woken.
fn reached_by(agent: &AgentJournal, state: &AgentState) -> Option<&'static str> {
    let ended_by = agent.last_end.as_ref().and_then(|(end, seq)| {
        end.limit().filter(|limit| !limit.starts_with("session.") && *seq > agent.limits.1)
    });
    let used_up = || state.budget.reached().filter(|_| agent.last_end.is_some());
    ended_by.or_else(used_up)
}

fn mailbox<'a>(
    agent: &AgentJournal,
    is_open: bool,
    stopped: Option<(Sender, Halt)>,
    mail: impl Iterator<Item = &'a KeptMail>,
    relation: impl Fn(&Mail) -> Relation,
) -> Recovered {
    let asks = Asks::of(agent, is_open);
    let committed = committed(agent);
    let queued = mail.filter(|kept| kept.state == ReceiptState::Queued);
    let mail: Vec<Kept> = queued
        .map(|kept| {
            let mail = kept.accepted.mail.clone();
            let wakes = asks.by(kept.seq, relation(&mail));
            Kept { wakes, committed: committed.contains(&mail.key()), mail }
        })
        .collect();
    // What a shutdown stopped goes on, also when the process did not live to end it.
    let resumed = agent.stands.is_resumed() || matches!(stopped, Some((_, Halt::Shutdown)));
    let standing = match (is_open, &stopped) {
        (false, _) => Standing::Resting(asks.rest),
        (true, None) => Standing::Running,
        (true, Some(_)) => {
            let restart = resumed || mail.iter().any(|kept| kept.wakes);
            Standing::Winding { then: asks.rest, restart }
        }
    };
    let stop = stopped.map(|(by, halt)| StopOrder { by, halt, run: None });
    let drives = agent.record.model.is_some();
    Recovered { drives, run: agent.stands.run, standing, stop, mail, resumed }
}

/// The messages that a result says it was cut or skipped for. A run that was stopped meanwhile leaves
/// such a one queued.
fn committed(agent: &AgentJournal) -> HashSet<MessageKey> {
    let results = agent.rows.iter().filter_map(|row| row.line.result());
    results.flat_map(|result| result.cost.iter().cloned()).collect()
}

/// Which queued messages ask for the agent's next run.
struct Asks {
    rest: Rest,
    /// Mail up to the event of this number was there when the run was stopped or failed, and
    /// only waits for the next run.
    after: u64,
}

impl Asks {
    fn of(agent: &AgentJournal, is_open: bool) -> Self {
        if agent.stands.closed.is_asked() {
            return Self { rest: Rest::Closed, after: u64::MAX };
        }
        if is_open {
            let stop = agent.tail.iter().rev().find(|e| matches!(e.kind, EventKind::StopRequested { .. }));
            return match stop.map(|stop| (&stop.kind, stop.seq)) {
                // A shutdown takes no start back.
                Some((EventKind::StopRequested { reason: Halt::Shutdown, .. }, _)) => {
                    Self { rest: Rest::Stopped, after: 0 }
                }
                Some((_, seq)) => Self { rest: Rest::Stopped, after: seq },
                None => Self { rest: Rest::Idle, after: 0 },
            };
        }
        match &agent.last_end {
            None => Self { rest: Rest::Idle, after: 0 },
            Some((end, seq)) => {
                let rest = if end.outcome == Outcome::Stopped { Rest::Stopped } else { Rest::Idle };
                let after = match (end.outcome, end.restarts) {
                    (Outcome::Finished, _) => 0,
                    // Somebody asked for the next run while the last calls ended.
                    (Outcome::Stopped, true) => agent.stands.stop_seq,
                    (Outcome::Failed | Outcome::Limit, true) => 0,
                    (Outcome::Failed | Outcome::Limit | Outcome::Stopped, false) => *seq,
                };
                Self { rest, after }
            }
        }
    }

    fn by(&self, seq: u64, relation: Relation) -> bool {
        seq > self.after && admission(Standing::Resting(self.rest), None, relation) == Admission::Wake
    }
}

impl Coordinator {
    /// Starts what was under way when a resumed session was left: open runs go on in the same
    /// run, agents that a shutdown stopped are resumed, and mail that asked for a run gets it.
    /// Names the agents that work now. Call it once, after [`Builder::resume`](super::Builder::resume).
    pub async fn go_on(&self) -> Vec<AgentName> {
        let session = &self.session;
        let left = std::mem::take(&mut *session.left.lock());
        expire_first(session, &left).await;
        finish_what_was_begun(session, &left).await;
        let mut working = Vec::new();
        for agent in left {
            if let Some((parent, report)) = agent.owed {
                tell_if_owed(session, &agent.cell, &parent, report);
            }
            if starts(session, &agent.cell, agent.resumes) {
                working.push(agent.cell.name.clone());
            }
        }
        fail::point("gone_on");
        working
    }
}

/// What expired while no process lived is returned before all else.
async fn expire_first(session: &Arc<Session>, left: &[LeftAgent]) {
    let now = session.clock.now();
    for agent in left {
        for mail in agent.cell.mailbox.queued() {
            let Some(at) = mail.expires_at else { continue };
            if at > now {
                deliver::expire(session, &agent.cell, mail, at);
                continue;
            }
            deliver::has_expired(session, &agent.cell, &mail).await;
        }
    }
}

/// What one step makes of two records, where the process may have ended between them: what a closed
/// or a stopped agent accepts goes back, and who was closed in a run is closed after its end.
async fn finish_what_was_begun(session: &Arc<Session>, left: &[LeftAgent]) {
    let mut draft = Draft::default();
    for agent in left {
        let strays = (!agent.resumes).then(|| agent.cell.mailbox.take_strays()).flatten();
        if let Some((mail, reason)) = strays {
            draft.returns(&mail, reason, &agent.cell.place());
        }
        if agent.closes {
            draft.tell(agent.cell.place(), EventKind::AgentClosed {});
        }
    }
    if let Err(error) = session.journal.record(draft).await {
        tracing::error!(%error, "what the last process had begun is not recorded");
    }
}

fn tell_if_owed(session: &Arc<Session>, cell: &Arc<AgentCell>, parent: &AgentName, report: Report) {
    if session.journal.receipts.of(&report.key(&cell.name)).is_empty() {
        deliver::report(Phase::Owed, session, cell, parent, report);
    }
}

fn starts(session: &Arc<Session>, cell: &Arc<AgentCell>, resumes: bool) -> bool {
    let starts = if cell.mailbox.is_running() {
        true
    } else if cell.has_prompt() && !cell.is_closed() {
        cell.mailbox.prompt()
    } else if resumes {
        return resume::go_on(session, cell) == Resumed::Starts;
    } else {
        cell.mailbox.wake_if_asked()
    };
    if starts {
        deliver::start_driver(session, cell);
    }
    starts
}
