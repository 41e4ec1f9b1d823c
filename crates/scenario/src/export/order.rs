//! Orders: what is played is held against what was recorded, and where a step came too early
//! in the replay, it is made to wait for what was before it in the session.
//!
//! Times are taken as they were measured. They leave open what came between the end of a
//! piece of work and the look at the mailbox behind it: in a session that takes a commit and a
//! task's waking, in a replay nothing. The engine says what that comes to. What an agent did
//! first that it does not do in the replay shows which arrival was not there yet, or was there
//! too early; the end before it then follows that arrival, or the other way round. Of what can be
//! said, that is kept which brings the replay nearer to the session.

use midturn_core::engine::tools::is_own;
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind, Halt};
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::ReturnReason;
use midturn_core::rules::time::{Micros, Span};

use super::difference::{Difference, Reach, arrival, first, is_arrival};
use super::plan::{Change, Done, Plan, behind};
use crate::error::Error;
use crate::play;
use crate::scenario::{Act, Anchor, When};

/// So many orders are written at most.
const ORDERS: usize = 500;

/// A plan, what a replay of it comes to, and how far that is as in the session.
#[derive(Clone)]
pub(super) struct Tried {
    pub(super) plan: Plan,
    pub(super) played: Vec<Event>,
    reach: Reach,
}

impl Tried {
    fn of(plan: Plan, told: &[Event]) -> Result<Self, Error> {
        let played = play::play(&plan.scenario(), None)?.record.events;
        let reach = Reach::of(&plan, told, &played);
        Ok(Self { plan, played, reach })
    }

    /// The first change that brings it nearer to the session; where none does, the first that can be
    /// played: it may show what else is to be said. Nothing is said twice.
    fn nearer(&self, told: &[Event], said: &mut Vec<Vec<Change>>) -> Option<Self> {
        let difference = first(&self.plan, told, &self.played)?;
        let mut other = None;
        for changes in (Look { tried: self, told, difference }).changes() {
            let mut plan = self.plan.clone();
            if said.contains(&changes) || !plan.change(&changes) {
                continue;
            }
            // Orders that wait for each other can't be played.
            let Ok(tried) = Self::of(plan, told) else { continue };
            if tried.reach > self.reach {
                said.push(changes);
                return Some(tried);
            }
            other.get_or_insert((tried, changes));
        }
        other.map(|(tried, changes)| {
            said.push(changes);
            tried
        })
    }
}

/// Brings the plan into the order of the session.
pub(super) fn ordered(plan: Plan, told: &[Event]) -> Result<Tried, Error> {
    let mut best = Tried::of(plan, told)?;
    let (mut last, mut said) = (best.clone(), Vec::new());
    while said.len() < ORDERS
        && let Some(tried) = last.nearer(told, &mut said)
    {
        last = tried;
        if last.reach > best.reach {
            best = last.clone();
        }
    }
    Ok(best)
}

/// A look at the first difference between a session and a replay.
struct Look<'l> {
    tried: &'l Tried,
    told: &'l [Event],
    difference: Difference<'l>,
}

impl Look<'_> {
    /// What may bring the replay nearer to the session, the likeliest first.
    fn changes(&self) -> Vec<Vec<Change>> {
        let mut changes: Vec<Vec<Change>> = self.outlives().into_iter().collect();
        changes.extend(self.comes_too_late());
        changes.extend(self.resumed_before());
        changes.extend(self.resumes());
        changes.extend(self.comes_too_early());
        changes.extend(self.came_behind_others());
        changes
    }

    fn agent(&self) -> &AgentName {
        &self.difference.agent
    }

    /// What the agent had seen and sees too late: the end before the look waits for it, or it comes sooner.
    fn comes_too_late(&self) -> Vec<Vec<Change>> {
        let Some(late) = self.difference.late else { return Vec::new() };
        let own = own_before(self.agent(), &self.tried.played, self.difference.until);
        let began = own.iter().rposition(|event| matches!(event.kind, EventKind::RunStarted { .. }));
        let (before, run) = own.split_at(began.unwrap_or(0));
        let last = run.iter().rev().find(|event| is_end(event));
        let waits = last.and_then(|last| self.hold(last, &own, unique(self.told, late)?));
        let item = self.item_of(late);
        let at_its_time = item.filter(|done| self.follows_the_agent(done));
        let at_its_time = at_its_time.map(|done| Change::Comes(done.seq, When::at(done.at)));
        let waits = waits.map(|waits| at_its_time.into_iter().chain([waits]).collect());
        let with_the_run = item.and_then(|done| self.comes_with_the_run(done, before));
        // What it had to come before may be such an end itself: the coordinator's calls take no time.
        let itself = self.difference.until.filter(|until| is_end(until));
        let itself = itself.and_then(|end| self.hold(end, &own, unique(self.told, late)?));
        let itself = itself.map(|waits| vec![waits]);
        waits.into_iter().chain(with_the_run).chain(itself).collect()
    }

    /// What came just before the step that the session has not: there it came behind another agent's step of
    /// that instant.
    fn came_behind_others(&self) -> Vec<Vec<Change>> {
        let own = own_before(self.agent(), &self.tried.played, self.difference.is);
        let at = own.last().map(|last| last.t);
        let came = own.iter().rev().take_while(|event| Some(event.t) == at);
        came.filter_map(|came| Some(vec![self.came_behind_another(self.item_of(came)?)?])).collect()
    }

    fn came_behind_another(&self, done: &Done) -> Option<Change> {
        let before = self.told.iter().rev().skip_while(|event| event.seq >= done.seq);
        let mut steps =
            before.take_while(|event| event.t == done.at).filter(|event| !is_arrival(&event.kind));
        Some(Change::Comes(done.seq, behind(unique(self.told, steps.next()?)?)))
    }

    /// What a step waits for does not itself wait for that agent's steps.
    fn follows_the_agent(&self, done: &Done) -> bool {
        matches!(&done.item.when, When::After(anchor, _) if anchor.agent.as_ref() == Some(self.agent()))
    }

    /// A run begins in the round of what begins it: what came before its first step comes then, too.
    fn comes_with_the_run(&self, late: &Done, before: &[&Event]) -> Option<Vec<Change>> {
        let woke = before.iter().rev().take_while(|event| is_arrival(&event.kind));
        let waker = woke.filter(|event| matches!(event.kind, EventKind::MessageQueued { .. })).last();
        if let Some(waker) = waker {
            let waker = self.item_of(waker)?;
            return Some(vec![Change::Behind(late.seq, waker.item.when.clone(), waker.seq)]);
        }
        let spawned = before.iter().find(|e| matches!(e.kind, EventKind::AgentSpawned { .. }))?;
        let at_once = spawned.t == Micros(0);
        let when = if at_once { When::at(spawned.t) } else { behind(Anchor::of(spawned, 0)) };
        Some(vec![Change::Comes(late.seq, when)])
    }

    /// What the agent sees that it had not seen: what caused it waits for what the agent did.
    fn comes_too_early(&self) -> Option<Vec<Change>> {
        let (early, was) = (self.difference.early?, self.difference.from?);
        use ReturnReason::{Stopped, Superseded};
        if let EventKind::MessageReturned { message, reason: Stopped | Superseded } = &early.kind {
            return self.comes_behind_the_stop(message, early);
        }
        let after = unique(self.told, was)?;
        if let Some(done) = self.item_of(early) {
            return Some(vec![Change::Comes(done.seq, behind(after))]);
        }
        let causer = self.causer(early)?;
        self.begins_behind_the_call(&causer, early).or_else(|| {
            let own = own_before(&causer, &self.tried.played, Some(early));
            let last = own.iter().rev().find(|event| is_end(event) || arrival(event, 0).is_some())?;
            Some(vec![self.hold(last, &own, after)?])
        })
    }

    /// A call of another's that found nothing to stop in the session: what began the run came behind it.
    fn begins_behind_the_call(&self, stopper: &AgentName, stop: &Event) -> Option<Vec<Change>> {
        let EventKind::StopRequested { .. } = stop.kind else { return None };
        let played = own_before(stopper, &self.tried.played, Some(stop));
        let mut calls = played.iter().rev().filter_map(|event| match &event.kind {
            EventKind::ToolStarted { tool, .. } => Some(tool),
            _ => None,
        });
        let call = calls.next()?;
        let ends =
            |event: &&&Event| matches!(&event.kind, EventKind::ToolFinished { tool, .. } if tool == call);
        let theirs = own_before(stopper, self.told, None);
        let end = theirs.iter().find(ends)?;
        let own = own_before(self.agent(), self.told, None);
        let begins = |event: &&Event| {
            event.at.run == stop.at.run && matches!(event.kind, EventKind::RunStarted { .. })
        };
        let began = own.iter().position(begins)?;
        let waker = own[..began].iter().rev().find(|event| is_arrival(&event.kind))?;
        let comes = Change::Comes(self.item_of(waker)?.seq, behind(unique(self.told, end)?));
        (end.seq < own[began].seq).then(|| vec![comes])
    }

    /// What a stop gave back and had not: it came behind it, in its round.
    fn comes_behind_the_stop(&self, message: &MessageId, returned: &Event) -> Option<Vec<Change>> {
        let items = &self.tried.plan.items;
        let sends =
            |done: &Done| matches!(done.item.act, Act::Send(_)) && done.item.id.as_ref() == Some(message);
        let stops = |done: &Done| {
            let is_stop = matches!(done.item.act, Act::Stop { .. } | Act::Supersede { .. });
            let soon = done.at <= returned.t.after(Span::millis(1));
            is_stop && done.agent.as_ref() == Some(self.agent()) && soon
        };
        let (sent, stop) = (items.iter().position(sends)?, items.iter().rposition(stops)?);
        let when = items[stop].item.when.clone();
        (sent < stop).then(|| vec![Change::Behind(items[sent].seq, when, items[stop].seq)])
    }

    /// The agent that sent what came.
    fn causer(&self, event: &Event) -> Option<AgentName> {
        let name = match &event.kind {
            EventKind::MessageQueued { message, from, .. } if from == "coordinator" => {
                message.as_str().split('#').next()?
            }
            EventKind::MessageQueued { from, .. } => from,
            EventKind::StopRequested { by, .. } => by,
            _ => return None,
        };
        self.tried.plan.scripts.keys().find(|agent| agent.as_str() == name).cloned()
    }

    /// A call that was cut in the replay and went on in the session: it could not be aborted.
    fn outlives(&self) -> Option<Vec<Change>> {
        let is = self.difference.is?;
        let EventKind::ToolFinished { tool, .. } = &is.kind else { return None };
        if is_end(is) || self.difference.early.is_some() {
            return None;
        }
        let mut calls = self.tried.plan.scripts.get(self.agent())?.iter().flat_map(|entry| &entry.tools);
        let call = calls.find(|call| call.id == *tool)?;
        let end = call.ends_after.as_ref().filter(|end| end.anchor.agent.is_none())?;
        let more = call.continues.unwrap_or_default();
        let outlived = end.plus.0 + more.0 > is.t.0;
        outlived.then(|| vec![Change::Outlives(self.agent().clone(), tool.clone())])
    }

    /// A run that began, and nothing in the replay began it then, or not behind the last step.
    fn resumes(&self) -> Vec<Vec<Change>> {
        let Some(was) = self.difference.was else { return Vec::new() };
        let begins = matches!(was.kind, EventKind::RunStarted { .. });
        if !begins || self.difference.is.is_some_and(|is| is.t <= was.t) {
            return Vec::new();
        }
        let last = own_before(self.agent(), self.told, Some(was)).pop();
        let last = last.filter(|last| last.t == was.t).and_then(|last| unique(self.told, last));
        let whens = std::iter::once(When::at(was.t)).chain(last.map(behind));
        whens.map(|when| vec![Change::Resumes(self.agent().clone(), when, was.t, was.seq)]).collect()
    }

    /// Somebody had asked for an agent again before it accepted what it gives back in the replay, or before a
    /// run was stopped that has not begun there.
    fn resumed_before(&self) -> Option<Vec<Change>> {
        let (early, late) = (self.difference.early, self.difference.late);
        let own = own_before(self.agent(), self.told, None);
        let is_accepted = |event: &&Event| match (&event.kind, early.map(|early| &early.kind)) {
            (
                EventKind::MessageQueued { message, .. },
                Some(EventKind::MessageReturned { message: returned, reason: ReturnReason::Stopped }),
            ) => message == returned,
            _ => false,
        };
        let had_begun = |stop: &Event| {
            own.iter()
                .any(|event| event.seq < stop.seq && event.at.run == stop.at.run && !is_arrival(&event.kind))
        };
        let is_stop =
            |late: &&Event| matches!(late.kind, EventKind::StopRequested { .. }) && !had_begun(late);
        let came = own.iter().copied().find(is_accepted).or(late.filter(is_stop))?;
        let when = self.item_of(came).map_or(When::at(came.t), |done| done.item.when.clone());
        Some(vec![Change::Resumes(self.agent().clone(), when, came.t, came.seq)])
    }

    /// The item that something came of.
    fn item_of(&self, event: &Event) -> Option<&Done> {
        let agent = event.at.agent.as_ref();
        let of = |done: &&Done| match (&event.kind, &done.item.act) {
            (EventKind::SessionResumed { .. }, act) => act.ends_process() && done.at <= event.t,
            (EventKind::MessageQueued { message, .. }, Act::Send(_) | Act::Supersede { .. }) => {
                done.item.id.as_ref() == Some(message)
            }
            (EventKind::MessageReturned { message, .. }, Act::Withdraw { message: of, .. }) => message == of,
            (EventKind::StopRequested { reason: Halt::Close, .. }, Act::Close { agent: root, .. }) => {
                self.is_within(agent, root) && done.at <= event.t
            }
            (EventKind::StopRequested { reason: Halt::Shutdown, .. }, Act::ShutDown { .. }) => {
                done.at <= event.t
            }
            (EventKind::StopRequested { .. }, Act::Stop { .. } | Act::Supersede { .. }) => {
                done.agent.as_ref() == agent && done.at <= event.t
            }
            _ => false,
        };
        self.tried.plan.items.iter().rfind(of)
    }

    /// Whether an agent is that one, or stands below it.
    fn is_within(&self, agent: Option<&AgentName>, root: &AgentName) -> bool {
        let agents = &self.tried.plan.frame.agents;
        let parent = |name: &&AgentName| agents.iter().find(|of| of.name == **name)?.parent.as_ref();
        std::iter::successors(agent, parent).take(agents.len()).any(|above| above == root)
    }

    /// What ended there waits for an event, if a file can say that.
    fn hold(&self, end: &Event, own: &[&Event], after: Anchor) -> Option<Change> {
        let agent = end.at.agent.clone()?;
        match &end.kind {
            EventKind::ModelFinished { .. }
            | EventKind::ModelRetry { .. }
            | EventKind::RunFinished { .. } => {
                let before: Vec<&Event> = own.iter().copied().filter(|event| event.seq < end.seq).collect();
                let entry = usize::try_from(calls_made(&before)).ok()?.checked_sub(1)?;
                Some(Change::Reply(agent, entry, after))
            }
            EventKind::ToolFinished { tool, .. } => {
                let mut calls = self.tried.plan.scripts.get(&agent)?.iter().flat_map(|entry| &entry.tools);
                let call = calls.find(|call| call.id == *tool)?;
                let ends = call.ends_after.is_some() && call.continues.is_none();
                (ends || is_own(&call.name)).then(|| Change::Call(agent, tool.clone(), after))
            }
            _ => None,
        }
    }
}

/// The agent's own events before another, or all of them.
fn own_before<'e>(agent: &AgentName, events: &'e [Event], end: Option<&Event>) -> Vec<&'e Event> {
    let seq = end.map_or(u64::MAX, |event| event.seq);
    events.iter().filter(|event| event.seq < seq && event.at.agent.as_ref() == Some(agent)).collect()
}

/// How many model calls there are among an agent's events.
fn calls_made(own: &[&Event]) -> u64 {
    own.iter().filter(|event| matches!(event.kind, EventKind::ModelStarted { .. })).count() as u64
}

/// The name of an event, if it is the first of that name: only that counts in a file. What was refused
/// is not in the file.
pub(super) fn unique(events: &[Event], event: &Event) -> Option<Anchor> {
    if matches!(event.kind, EventKind::MessageRefused { .. }) {
        return None;
    }
    let mut calls = 0;
    let own = events.iter().filter(|other| other.at.agent == event.at.agent && other.seq <= event.seq);
    let known = own.map(|other| {
        if let EventKind::ModelStarted { call, .. } = other.kind {
            calls = call;
        }
        (other.seq, Anchor::of(other, calls))
    });
    let mut known: Vec<(u64, Anchor)> = known.collect();
    let (_, wanted) = known.pop()?;
    known.iter().all(|(_, anchor)| *anchor != wanted).then_some(wanted)
}

/// Whether work ended there.
fn is_end(event: &Event) -> bool {
    match &event.kind {
        EventKind::ModelFinished { .. } | EventKind::ModelRetry { .. } => true,
        EventKind::ToolFinished { status, .. } => {
            matches!(status, ToolStatus::Completed | ToolStatus::Failed)
        }
        _ => false,
    }
}
