//! A session that goes on: what was recorded is there again, and what was under way is
//! started again (semantics.md, sections 4, 6 and 8). What a crash makes of an open turn is
//! decided in `rules::recovery`.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::agent::{Body, Underway};
use super::deliver::{self, Report};
use super::mailbox::{Mailbox, Recovered, StopOrder};
use super::ports::SessionJournal;
use super::ports::archive::{AgentJournal, KeptMail};
use super::ports::store::RunEnd;
use super::session::{AgentCell, AgentState, LastEnd, Session};
use super::{spawn, stop};
use crate::fail;
use crate::rules::conversation::{InterruptReason, MessageKey};
use crate::rules::event::{EventKind, Outcome};
use crate::rules::id::AgentName;
use crate::rules::mail::{Admission, End, Mail, ReceiptState, Relation, Rest, Sender, Standing, admission};
use crate::rules::record::Line;
use crate::rules::recovery;

/// An agent as it was left, until the session goes on.
pub(crate) struct LeftAgent {
    cell: Arc<AgentCell>,
    /// Its last run was stopped by a shutdown, so it is resumed.
    shut_down: bool,
    /// The end of its last run, which its parent may not have been told.
    owed: Option<(AgentName, Report)>,
}

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
        session.left.lock().push(left(cell, agent));
    }
    fail::point("restored");
}

fn left(cell: Arc<AgentCell>, agent: &AgentJournal) -> LeftAgent {
    let end = agent.last_end.as_ref().map(|(end, _)| end);
    // Owed also when the next run has begun since: a report is told in its own time.
    let owed = end.and_then(|end| {
        let report = Report { run: end.run, end: End::of(end.outcome), text: end.text.clone() };
        Some((end.owed_to.clone()?, report))
    });
    let is_last = |end: &&RunEnd| end.run == agent.run;
    let shut_down = end.filter(is_last).is_some_and(|end| end.reason == Some(InterruptReason::Shutdown));
    LeftAgent { cell, shut_down, owed }
}

fn cell_of(session: &Session, agent: &AgentJournal, mail: &[KeptMail]) -> AgentCell {
    let record = &agent.record;
    let is_open = agent.run > agent.last_end.as_ref().map_or(0, |(end, _)| end.run);
    let stopped_by = recovery::stopped_by(&agent.tail).filter(|_| is_open);
    let own = || mail.iter().filter(|kept| kept.accepted.mail.to == record.name);
    let prices = session.models.prices(record.model.as_deref().unwrap_or_default());
    let body = Body::recovered(agent, is_open, stopped_by.clone(), underway(own()), prices);
    session.purse.restore(body.spent());
    let state = AgentState {
        prompt: record.prompt.clone().filter(|_| !has_had_its_prompt(agent)),
        run: agent.run,
        turn: recovery::turn(&agent.tail),
        tokens: body.spent().tokens,
        cost: body.spent().cost,
        last_end: agent.last_end.as_ref().map(|(end, _)| last_end(end)),
        plan: agent.plan.clone(),
        changes: agent.last_end.as_ref().map(|(end, _)| end.changes.clone()).unwrap_or_default(),
        ..AgentState::default()
    };
    let cell = AgentCell {
        name: record.name.clone(),
        index: record.index,
        role: record.role,
        parent: record.parent.clone(),
        depth: spawn::depth_of(session, record.parent.as_ref()),
        model: record.model.clone(),
        system: record.system.clone(),
        settings: record.settings.clone(),
        memo: record.memo.clone(),
        mailbox: Mailbox::default(),
        answered: Notify::new(),
        below: AtomicU32::new(0),
        state: Mutex::new(state),
        body: Mutex::new(Some(Box::new(body))),
    };
    let relation = |mail: &Mail| session.relation(&mail.from, &cell);
    let mailbox = Mailbox::recovered(mailbox(agent, is_open, stopped_by, own(), relation));
    AgentCell { mailbox, ..cell }
}

fn has_had_its_prompt(agent: &AgentJournal) -> bool {
    agent.rows.iter().any(|row| matches!(row.line, Line::Prompt(_)))
}

fn last_end(end: &RunEnd) -> LastEnd {
    LastEnd { run: end.run, outcome: end.outcome, text: end.text.clone() }
}

fn underway<'a>(mail: impl Iterator<Item = &'a KeptMail>) -> Underway {
    let mut underway = Underway::default();
    for kept in mail {
        let mail = kept.accepted.mail.clone();
        match &kept.state {
            ReceiptState::Injected(injection) => underway.unsent.push((mail, injection.clone())),
            ReceiptState::Sent { injection, .. } => underway.unanswered.push((mail, injection.clone())),
            ReceiptState::Queued | ReceiptState::Answered { .. } | ReceiptState::Returned(_) => {}
        }
    }
    underway
}

fn mailbox<'a>(
    agent: &AgentJournal,
    is_open: bool,
    stopped_by: Option<Sender>,
    mail: impl Iterator<Item = &'a KeptMail>,
    relation: impl Fn(&Mail) -> Relation,
) -> Recovered {
    let asks = Asks::of(agent, is_open);
    let queued = mail.filter(|kept| kept.state == ReceiptState::Queued);
    let mail: Vec<(Arc<Mail>, bool)> = queued
        .map(|kept| {
            let mail = &kept.accepted.mail;
            (mail.clone(), asks.by(kept.seq, relation(mail)))
        })
        .collect();
    let standing = match (is_open, &stopped_by) {
        (false, _) => Standing::Resting(asks.rest),
        (true, None) => Standing::Running,
        (true, Some(_)) => {
            let restart = mail.iter().any(|(_, wakes)| *wakes);
            Standing::Winding { then: asks.rest, restart }
        }
    };
    let order = |by| StopOrder { by, reason: InterruptReason::UserCancelled, run: None };
    let drives = agent.record.model.is_some();
    Recovered { drives, run: agent.run, standing, stop: stopped_by.map(order), mail }
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
        if agent.closed {
            return Self { rest: Rest::Closed, after: u64::MAX };
        }
        if is_open {
            let stop = agent.tail.iter().rev().find(|e| matches!(e.kind, EventKind::StopRequested { .. }));
            return match stop {
                Some(stop) => Self { rest: Rest::Stopped, after: stop.seq },
                None => Self { rest: Rest::Idle, after: 0 },
            };
        }
        match &agent.last_end {
            None => Self { rest: Rest::Idle, after: 0 },
            Some((end, seq)) => {
                let superseded = end.reason == Some(InterruptReason::Superseded);
                let rest =
                    if end.outcome == Outcome::Stopped && !superseded { Rest::Stopped } else { Rest::Idle };
                let all = end.restarts || end.outcome == Outcome::Finished;
                Self { rest, after: if all { 0 } else { *seq } }
            }
        }
    }

    fn by(&self, seq: u64, relation: Relation) -> bool {
        seq > self.after && admission(Standing::Resting(self.rest), relation) == Admission::Wake
    }
}

/// Starts what was under way, once. Names the agents that work now.
pub(crate) async fn go_on(session: &Arc<Session>) -> Vec<AgentName> {
    let left = std::mem::take(&mut *session.left.lock());
    let mut working = Vec::new();
    for agent in left {
        if let Some((parent, report)) = agent.owed {
            tell_if_owed(session, &agent.cell, &parent, report);
        }
        for mail in agent.cell.mailbox.queued() {
            if let Some(at) = mail.expires_at {
                deliver::expire(session, &agent.cell, mail, at);
            }
        }
        if starts(session, &agent.cell, agent.shut_down) {
            working.push(agent.cell.name.clone());
        }
    }
    fail::point("gone_on");
    working
}

fn tell_if_owed(session: &Arc<Session>, cell: &Arc<AgentCell>, parent: &AgentName, report: Report) {
    let id = deliver::report_id(&cell.name, report.run);
    let key = MessageKey { from: Sender::Coordinator(cell.name.clone()), id };
    if session.journal.receipts.of(&key).is_empty() {
        deliver::report(session, cell, parent, report);
    }
}

fn starts(session: &Arc<Session>, cell: &Arc<AgentCell>, shut_down: bool) -> bool {
    if cell.mailbox.is_running() {
        deliver::start_driver(session, cell);
        return true;
    }
    if cell.has_prompt() && !cell.is_closed() {
        deliver::start_prompted(session, cell);
        return true;
    }
    if shut_down {
        return stop::resume_stopped(session, cell);
    }
    let wakes = cell.mailbox.wake_if_asked();
    if wakes {
        deliver::start_driver(session, cell);
    }
    wakes
}
