//! Orders: what is played is held against what was recorded, and where a step came too early
//! in the replay, it is made to wait for what was before it in the session.
//!
//! Times are taken as they were measured. They leave open what came between the end of a
//! piece of work and the look at the mailbox behind it: in a session that takes a commit and a
//! task's waking, in a replay nothing. The engine says what that comes to. What an agent did
//! first that it does not do in the replay shows which arrival was not there yet, or was there
//! too early; the end before it then follows that arrival, or the other way round.

use std::sync::Arc;

use midturn_core::engine::scripted::{EndsAfter, ScriptedCall};
use midturn_core::engine::tools::is_own;
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::{ReturnReason, Sender};
use midturn_core::rules::time::{Micros, Span};

use super::difference::{Difference, anchor, arrival, first, is_arrival};
use super::plan::{Done, Plan, behind, ends_after};
use crate::error::Place;
use crate::scenario::{Act, Anchor, Item, When};

/// What can be made to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hold {
    Entry(AgentName, usize),
    Call(AgentName, usize, usize),
    Item(usize),
}

/// A plan that is brought into the order of the session.
pub(super) struct Ordering<'p> {
    pub(super) plan: Plan,
    told: &'p [Event],
    /// What was said to wait for what: nothing is said twice.
    said: Vec<(Hold, Anchor)>,
}

impl<'p> Ordering<'p> {
    pub(super) fn new(plan: Plan, told: &'p [Event]) -> Self {
        Self { plan, told, said: Vec::new() }
    }

    /// Orders one thing more, so that the replay comes nearer to the session. `false`: they agree, or
    /// nothing more can be said.
    pub(super) fn improve(&mut self, played: &[Event]) -> bool {
        let Some(difference) = first(&self.plan, self.told, played) else { return false };
        self.outlives(&difference)
            || self.comes_too_late(&difference, played)
            || self.resumes(&difference)
            || self.comes_too_early(&difference, played)
            || self.stays(&difference, played)
    }

    /// What the agent had seen and sees too late: the end before the look waits for it.
    fn comes_too_late(&mut self, difference: &Difference<'_>, played: &[Event]) -> bool {
        let Some(late) = difference.late else { return false };
        let own = own_before(&difference.agent, played, difference.until);
        let began = own.iter().rposition(|event| matches!(event.kind, EventKind::RunStarted { .. }));
        let began = began.unwrap_or(0);
        let last = own[began.min(own.len())..].iter().rev().find(|event| is_end(event));
        match (last.and_then(|last| self.hold_of(last, &own)), unique(self.told, late)) {
            (Some(hold), Some(after)) => {
                self.comes_at_its_time(late, &difference.agent);
                self.waits(hold, after)
            }
            // Nothing holds the look up: the message has to come sooner.
            _ if last.is_some() => self.comes_sooner(late, &own),
            _ => self.comes_with_the_run(late, &own[..began]),
        }
    }

    /// What a step waits for does not itself wait for that agent's steps.
    fn comes_at_its_time(&mut self, event: &Event, agent: &AgentName) {
        if let Some(index) = self.item_of(event) {
            let done = &mut self.plan.items[index];
            if matches!(&done.item.when, When::After(anchor, _) if anchor.agent.as_ref() == Some(agent)) {
                done.item.when = When::At(done.at);
            }
        }
    }

    fn comes_sooner(&mut self, late: &Event, own: &[&Event]) -> bool {
        let Some(index) = self.item_of(late) else { return false };
        let mut steps = own.iter().rev().filter(|event| !is_arrival(&event.kind));
        let started = steps.find(|event| !matches!(event.kind, EventKind::ToolFinished { .. }));
        let after = started.and_then(|event| anchor(event, calls_made(own)));
        after.is_some_and(|after| self.waits(Hold::Item(index), after))
    }

    /// A run begins in the round of what begins it: what came before its first step comes then, too.
    fn comes_with_the_run(&mut self, late: &Event, before: &[&Event]) -> bool {
        let Some(index) = self.item_of(late) else { return false };
        let woke = before.iter().rev().take_while(|event| is_arrival(&event.kind));
        let waker = woke.filter(|event| matches!(event.kind, EventKind::MessageQueued { .. })).last();
        let (when, place) = match waker.map(|waker| self.item_of(waker)) {
            Some(Some(waker)) => (self.plan.items[waker].item.when.clone(), waker),
            Some(None) => return false,
            None => {
                let spawned = before.iter().find(|e| matches!(e.kind, EventKind::AgentSpawned { .. }));
                let Some(spawned) = spawned else { return false };
                let at_once = spawned.t == Micros(0);
                let when = anchor(spawned, 0).filter(|_| !at_once).map_or(When::At(spawned.t), behind);
                (when, index)
            }
        };
        self.moved(index, when, if place < index { place + 1 } else { place })
    }

    /// An item comes at another time, and stands at another place among all.
    fn moved(&mut self, index: usize, when: When, place: usize) -> bool {
        let mut done = self.plan.items.remove(index);
        let changed = done.item.when != when || place != index;
        done.item.when = when;
        self.plan.items.insert(place, done);
        changed
    }

    /// What the agent sees that it had not seen: what caused it waits for what the agent did.
    fn comes_too_early(&mut self, difference: &Difference<'_>, played: &[Event]) -> bool {
        let (Some(early), Some(was)) = (difference.early, difference.from) else { return false };
        use ReturnReason::{Stopped, Superseded};
        if let EventKind::MessageReturned { message, reason: Stopped | Superseded } = &early.kind {
            return self.comes_behind_the_stop(&difference.agent, message, early);
        }
        let Some(after) = unique(self.told, was) else { return false };
        let mut event = early;
        // Each cause is earlier than what it causes.
        for _ in 0..played.len() {
            if let Some(index) = self.item_of(event) {
                return self.waits(Hold::Item(index), after);
            }
            let Some(causer) = self.causer(event) else { return false };
            let own = own_before(&causer, played, Some(event));
            let moved = |other: &&&Event| is_end(other) || arrival(other, 0).is_some();
            let Some(last) = own.iter().rev().find(moved) else { return false };
            match self.hold_of(last, &own) {
                Some(hold) => return self.waits(hold, after),
                None if arrival(last, 0).is_some() => event = last,
                None => return false,
            }
        }
        false
    }

    /// What a stop gave back and had not: it came behind it, in its round.
    fn comes_behind_the_stop(&mut self, agent: &AgentName, message: &MessageId, returned: &Event) -> bool {
        let items = &self.plan.items;
        let sends =
            |done: &Done| matches!(done.item.act, Act::Send(_)) && done.item.id.as_ref() == Some(message);
        let stops = |done: &Done| {
            let is_stop = matches!(done.item.act, Act::Stop { .. } | Act::Supersede { .. });
            is_stop && done.agent.as_ref() == Some(agent) && done.at <= returned.t.after(Span::millis(1))
        };
        match (items.iter().position(sends), items.iter().rposition(stops)) {
            (Some(sent), Some(stop)) if sent < stop => {
                self.moved(sent, self.plan.items[stop].item.when.clone(), stop)
            }
            _ => false,
        }
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
        self.plan.scripts.keys().find(|agent| agent.as_str() == name).cloned()
    }

    /// A call that was cut in the replay and went on in the session: it could not be aborted.
    fn outlives(&mut self, difference: &Difference<'_>) -> bool {
        let Some((is, EventKind::ToolFinished { tool, .. })) = difference.is.map(|is| (is, &is.kind)) else {
            return false;
        };
        if is_end(is) || difference.early.is_some() {
            return false;
        }
        let script = self.plan.scripts.get_mut(&difference.agent);
        let calls = script.into_iter().flatten().flat_map(|entry| &mut entry.tools).map(Arc::make_mut);
        let outlived = |call: &&mut ScriptedCall| {
            let end = call.ends_after.as_ref().filter(|end| end.anchor.agent.is_none());
            let more = call.continues.unwrap_or_default();
            call.id == *tool && end.is_some_and(|end| end.plus.0 + more.0 > is.t.0)
        };
        calls.filter(outlived).any(|call| std::mem::replace(&mut call.abortable, false))
    }

    /// A reply that was cut in the replay and was whole in the session: it ended in that instant.
    fn stays(&mut self, difference: &Difference<'_>, played: &[Event]) -> bool {
        let (Some(was), Some(is)) = (difference.was, difference.is) else { return false };
        if !matches!(was.kind, EventKind::ModelFinished { .. }) {
            return false;
        }
        let own = own_before(&difference.agent, played, Some(is));
        let cut = own.iter().rev().find(|event| arrival(event, 0).is_some());
        let after = cut.and_then(|cut| unique(played, cut));
        match (after, usize::try_from(calls_made(&own)).ok().and_then(|calls| calls.checked_sub(1))) {
            (Some(after), Some(entry)) => self.waits(Hold::Entry(difference.agent.clone(), entry), after),
            _ => false,
        }
    }

    /// A run that began, and nothing in the replay began it then.
    fn resumes(&mut self, difference: &Difference<'_>) -> bool {
        let begins = |was: &&Event| {
            matches!(was.kind, EventKind::RunStarted { .. }) && difference.is.is_none_or(|is| is.t > was.t)
        };
        let Some(was) = difference.was.filter(begins) else { return false };
        let agent = Some(difference.agent.clone());
        let known = |done: &Done| {
            matches!(done.item.act, Act::Resume { .. }) && done.at == was.t && done.agent == agent
        };
        if self.plan.items.iter().any(known) {
            return false;
        }
        let act = Act::Resume { agent: agent.clone(), by: Sender::User };
        let item = Item { id: None, when: When::At(was.t), act, place: Place::START };
        let place = self.plan.items.partition_point(|done| done.at <= was.t);
        self.plan.items.insert(place, Done { item, agent, at: was.t, seq: was.seq, behind: 0 });
        true
    }

    /// The item that something came of.
    fn item_of(&self, event: &Event) -> Option<usize> {
        let agent = event.at.agent.as_ref();
        let of = |done: &Done| match (&event.kind, &done.item.act) {
            (EventKind::SessionResumed { .. }, act) => act.ends_process() && done.at <= event.t,
            (EventKind::MessageQueued { message, .. }, Act::Send(_) | Act::Supersede { .. }) => {
                done.item.id.as_ref() == Some(message)
            }
            (EventKind::MessageReturned { message, .. }, Act::Withdraw { message: of, .. }) => message == of,
            (
                EventKind::StopRequested { .. },
                Act::Stop { .. } | Act::Supersede { .. } | Act::Close { .. },
            ) => done.agent.as_ref() == agent && done.at <= event.t,
            _ => false,
        };
        self.plan.items.iter().rposition(of)
    }

    /// What ended there by itself, if a file can hold that up.
    fn hold_of(&self, end: &Event, own: &[&Event]) -> Option<Hold> {
        let agent = end.at.agent.clone()?;
        let script = self.plan.scripts.get(&agent)?;
        match &end.kind {
            EventKind::ModelFinished { .. }
            | EventKind::ModelRetry { .. }
            | EventKind::RunFinished { .. } => {
                let before: Vec<&Event> = own.iter().copied().filter(|event| event.seq < end.seq).collect();
                let entry = usize::try_from(calls_made(&before)).ok()?.checked_sub(1)?;
                Some(Hold::Entry(agent, entry))
            }
            EventKind::ToolFinished { tool, .. } => {
                let entry = script.iter().position(|e| e.tools.iter().any(|call| call.id == *tool))?;
                let place = script[entry].tools.iter().position(|call| call.id == *tool)?;
                let call = &script[entry].tools[place];
                let ends = call.ends_after.is_some() && call.continues.is_none() && !is_own(&call.name);
                ends.then_some(Hold::Call(agent, entry, place))
            }
            _ => None,
        }
    }

    fn waits(&mut self, hold: Hold, after: Anchor) -> bool {
        let order = (hold.clone(), after.clone());
        if self.said.contains(&order) {
            return false;
        }
        self.said.push(order);
        let end: Option<&mut Option<EndsAfter>> = match hold {
            Hold::Item(index) => {
                let when = std::mem::replace(&mut self.plan.items[index].item.when, behind(after.clone()));
                return when != behind(after);
            }
            Hold::Entry(agent, entry) => {
                let script = self.plan.scripts.get_mut(&agent);
                script.and_then(|script| script.get_mut(entry)).map(|entry| &mut entry.ends_after)
            }
            Hold::Call(agent, entry, place) => {
                let script = self.plan.scripts.get_mut(&agent);
                let call = script.and_then(|script| script.get_mut(entry)?.tools.get_mut(place));
                call.map(|call| &mut Arc::make_mut(call).ends_after)
            }
        };
        // What was cut does not end by itself.
        let Some(end) = end.filter(|end| end.is_some()) else { return false };
        let waited = std::mem::replace(end, ends_after(after));
        waited != *end
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

/// The name of an event, if it is the first of that name: only that counts in a file.
fn unique(events: &[Event], event: &Event) -> Option<Anchor> {
    let mut calls = 0;
    let own = events.iter().filter(|other| other.at.agent == event.at.agent && other.seq <= event.seq);
    let known: Vec<(u64, Option<Anchor>)> = own
        .map(|other| {
            if let EventKind::ModelStarted { call, .. } = other.kind {
                calls = call;
            }
            (other.seq, anchor(other, calls))
        })
        .collect();
    let (_, wanted) = known.last()?;
    let first = known.iter().find(|(_, anchor)| anchor == wanted)?;
    wanted.clone().filter(|_| first.0 == event.seq)
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
