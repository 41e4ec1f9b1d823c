//! Orders: what is played is held against what was recorded, and where a step came too early
//! in the replay, it is made to wait for what was before it in the session.
//!
//! Times are taken as they were measured. They leave open what came between the end of a
//! piece of work and the look at the mailbox behind it: in a session that takes a commit and a
//! task's waking, in a replay nothing. The engine says what that comes to. What an agent did
//! first that it does not do in the replay shows which arrival was not there yet, or was there
//! too early; the end before it then follows that arrival, or the other way round.

use std::collections::HashSet;

use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::ReturnReason;
use midturn_core::rules::time::{Micros, Span};

use super::plan::{Act, Call, CallEnd, CallKind, EntryEnd, Item, Mark, Plan, When};

/// An event's name in a file, if it has one; `call` is the number of the agent's last model call.
pub(super) fn mark(event: &Event, call: u64) -> Option<Mark> {
    let id = match &event.kind {
        EventKind::ToolStarted { tool, .. }
        | EventKind::ToolFinished { tool, .. }
        | EventKind::ApprovalRequested { tool, .. }
        | EventKind::ApprovalResolved { tool, .. } => tool.to_string(),
        EventKind::MessageQueued { message, .. } | EventKind::MessageReturned { message, .. } => {
            message.to_string()
        }
        EventKind::MessageInjected { messages, .. } => messages.last()?.to_string(),
        EventKind::ModelStarted { .. }
        | EventKind::ModelFinished { .. }
        | EventKind::ModelInterrupted { .. }
        | EventKind::ModelRetry { .. } => call.to_string(),
        EventKind::RunStarted { .. } | EventKind::RunFinished { .. } => event.at.run?.to_string(),
        EventKind::AgentSpawned { .. } | EventKind::AgentClosed {} | EventKind::StopRequested { .. } => {
            "any".to_owned()
        }
        EventKind::LimitRaised { .. }
        | EventKind::Compacted { .. }
        | EventKind::SessionStarted { .. }
        | EventKind::SessionResumed { .. }
        | EventKind::MessageRefused { .. }
        | EventKind::PlanUpdated { .. } => return None,
    };
    Some(Mark { agent: event.at.agent.clone()?, event: event.kind.type_name(), id })
}

/// Whether something came to the agent, in the place of a step of its own.
pub(super) fn is_arrival(kind: &EventKind) -> bool {
    match kind {
        EventKind::MessageQueued { .. }
        | EventKind::MessageReturned { .. }
        | EventKind::StopRequested { .. }
        | EventKind::LimitRaised { .. }
        | EventKind::SessionResumed { .. }
        | EventKind::ApprovalResolved { .. }
        | EventKind::AgentClosed {} => true,
        EventKind::MessageRefused { .. }
        | EventKind::PlanUpdated { .. }
        | EventKind::SessionStarted { .. } => true,
        EventKind::AgentSpawned { .. }
        | EventKind::RunStarted { .. }
        | EventKind::ModelStarted { .. }
        | EventKind::ModelFinished { .. }
        | EventKind::ModelInterrupted { .. }
        | EventKind::ModelRetry { .. }
        | EventKind::ToolStarted { .. }
        | EventKind::ToolFinished { .. }
        | EventKind::MessageInjected { .. }
        | EventKind::ApprovalRequested { .. }
        | EventKind::Compacted { .. }
        | EventKind::RunFinished { .. } => false,
    }
}

/// What a session and its replay have to agree in; `None` for what may differ.
fn step(event: &Event) -> Option<String> {
    let what = match &event.kind {
        EventKind::RunStarted { .. } => String::new(),
        EventKind::ModelFinished { purpose, .. } => format!("{purpose:?}"),
        EventKind::ToolStarted { tool, .. } => tool.to_string(),
        EventKind::ToolFinished { tool, status, .. } => format!("{tool} {status:?}"),
        EventKind::MessageInjected { messages, point, skipped, interrupted, .. } => {
            format!("{messages:?} {point:?} {:?} {skipped:?} {interrupted:?}", event.at.turn)
        }
        EventKind::ApprovalRequested { tool, .. } => tool.to_string(),
        EventKind::ApprovalResolved { tool, decision, .. } => format!("{tool} {decision:?}"),
        EventKind::RunFinished { outcome, turns, .. } => format!("{outcome:?} {turns}"),
        EventKind::Compacted { .. } => String::new(),
        // A call that was cut before the request went out begins in a replay; its cut is told otherwise.
        _ => return None,
    };
    Some(format!("{} {:?} {what}", event.kind.type_name(), event.at.run))
}

/// An arrival, by what it is.
type Came = (&'static str, String);

fn arrival(event: &Event, lives: u64) -> Option<Came> {
    let id = match &event.kind {
        EventKind::SessionResumed { .. } => lives.to_string(),
        // Who had no room for it had it come all the same.
        EventKind::MessageQueued { message, from, .. } | EventKind::MessageRefused { message, from, .. } => {
            return Some(("message", format!("{from} {message}")));
        }
        EventKind::MessageReturned { message, reason } => format!("{message} {reason:?}"),
        EventKind::StopRequested { .. } => format!("{:?}", event.at.run),
        _ => return None,
    };
    Some((event.kind.type_name(), id))
}

/// Where an agent did something else in the replay than in the session.
struct Difference<'e> {
    agent: AgentName,
    /// What it did in the session, and in the replay; none where it did nothing any more.
    was: Option<&'e Event>,
    is: Option<&'e Event>,
    /// What came to it before that in the session, and not in the replay.
    late: Option<&'e Event>,
    /// The other way round.
    early: Option<&'e Event>,
    /// The step in the replay before which the one had to come, and the step in the session behind which the other.
    until: Option<&'e Event>,
    from: Option<&'e Event>,
}

/// How a replay differs from the session: the difference that shows first.
fn first<'e>(plan: &Plan, told: &'e [Event], played: &'e [Event]) -> Option<Difference<'e>> {
    let differences = plan.agents.iter().filter_map(|agent| of_agent(&agent.name, told, played));
    // What comes of a difference is never before it, in the replay.
    differences.min_by_key(|difference| {
        let (was, is) = (difference.was.map(|was| was.t), difference.is.map(|is| is.t));
        (was.into_iter().chain(is).min(), difference.is.map_or(u64::MAX, |is| is.seq))
    })
}

/// What came to an agent before an event of its own; where there is none, all of it.
fn before<'e>(name: &AgentName, events: &'e [Event], end: Option<&Event>) -> Vec<(&'e Event, Came)> {
    let seq = end.map_or(u64::MAX, |event| event.seq);
    let ours = |event: &&Event| event.at.agent.as_ref().is_none_or(|agent| agent == name);
    let ours = events.iter().filter(|event| event.seq < seq).filter(ours);
    let mut lives = 0;
    let came = ours.filter_map(|event| {
        lives += u64::from(matches!(event.kind, EventKind::SessionResumed { .. }));
        Some((event, arrival(event, lives)?))
    });
    came.collect()
}

/// What is among the one and not among the other.
fn missing<'e>(of: &[(&'e Event, Came)], from: &[(&'e Event, Came)]) -> Option<&'e Event> {
    let known: HashSet<&Came> = from.iter().map(|(_, came)| came).collect();
    // What is refused is not sent again, unless others took it.
    let here = of.iter().filter(|(event, _)| !matches!(event.kind, EventKind::MessageRefused { .. }));
    here.clone().find(|(_, came)| !known.contains(came)).map(|(event, _)| *event)
}

/// A run begins in a replay at the latest when it did in the session.
fn begins_late(was: &Event, is: &Event) -> bool {
    matches!(was.kind, EventKind::RunStarted { .. }) && is.t > was.t
}

fn of_agent<'e>(name: &AgentName, told: &'e [Event], played: &'e [Event]) -> Option<Difference<'e>> {
    let own = |events: &'e [Event]| events.iter().filter(|event| event.at.agent.as_ref() == Some(name));
    let steps = |events: &'e [Event]| {
        let mut steps: Vec<(&Event, String)> =
            own(events).filter_map(|event| Some((event, step(event)?))).collect();
        // In which order calls end between two other steps is nobody's concern.
        let is_end = |(event, _): &(&Event, String)| matches!(event.kind, EventKind::ToolFinished { .. });
        for ends in steps.chunk_by_mut(|one, other| is_end(one) && is_end(other)) {
            ends.sort_by(|(_, one), (_, other)| one.cmp(other));
        }
        steps.into_iter()
    };
    let (mut was, mut is) = (steps(told), steps(played));
    let (mut same, mut agreed) = (None, None);
    let (was, is) = loop {
        match (was.next(), is.next()) {
            (None, None) => return None,
            (Some((event, was)), Some((other, is))) if was == is && !begins_late(event, other) => {
                (same, agreed) = (Some(event), Some(other));
            }
            (was, is) => break (was.map(|(event, _)| event), is.map(|(event, _)| event)),
        }
    };
    let (there, here) = (before(name, told, was), before(name, played, is));
    let (mut late, mut early) = (missing(&there, &here), missing(&here, &there));
    let (mut until, mut from) = (is, was);
    if let (None, None, Some(same), Some(agreed)) = (late, early, same, agreed) {
        // It came on the other side of the last step in which they agree.
        let (there, here) = (before(name, told, Some(same)), before(name, played, Some(agreed)));
        (late, early) = (missing(&there, &here), missing(&here, &there));
        (until, from) = (Some(agreed), Some(same));
    }
    if let (Some(was), Some(is)) = (was, is)
        && matches!(was.kind, EventKind::RunFinished { .. })
        && was.at.run == is.at.run
        && was.at.turn < is.at.turn
    {
        // It was stopped before a call that the replay made.
        let stop =
            there.iter().rev().find(|(event, _)| matches!(event.kind, EventKind::StopRequested { .. }));
        (late, early, until) = (stop.map(|(event, _)| *event), None, Some(is));
    }
    Some(Difference { agent: name.clone(), was, is, late, early, until, from })
}

/// What can be made to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Hold {
    Entry(usize, usize),
    Call(usize, usize, usize),
    Item(usize),
}

/// A plan that is brought into the order of the session.
pub(super) struct Ordering<'p> {
    pub(super) plan: Plan,
    told: &'p [Event],
    /// What was said to wait for what: nothing is said twice.
    said: HashSet<(Hold, Mark)>,
}

impl<'p> Ordering<'p> {
    pub(super) fn new(plan: Plan, told: &'p [Event]) -> Self {
        Self { plan, told, said: HashSet::new() }
    }

    /// Orders one thing more, so that the replay comes nearer to the session. `None`: they agree;
    /// `false`: nothing more can be said.
    pub(super) fn improve(&mut self, played: &[Event]) -> Option<bool> {
        let difference = first(&self.plan, self.told, played)?;
        if std::env::var("EXPORT_TRACE").is_ok() {
            let show = |e: Option<&Event>| e.map(|e| serde_json::to_string(e).unwrap_or_default());
            eprintln!(
                "DIFF {} was {:?}\n  is {:?}\n  late {:?}\n  early {:?}",
                difference.agent,
                show(difference.was),
                show(difference.is),
                show(difference.late),
                show(difference.early)
            );
        }
        Some(
            self.outlives(&difference)
                || self.comes_too_late(&difference, played)
                || self.resumes(&difference)
                || self.comes_too_early(&difference, played)
                || self.stays(&difference, played),
        )
    }

    /// What the agent had seen and sees too late: the end before the look waits for it.
    fn comes_too_late(&mut self, difference: &Difference<'_>, played: &[Event]) -> bool {
        let Some(late) = difference.late else { return false };
        let until = difference.until.map_or(u64::MAX, |event| event.seq);
        let own = played.iter().filter(|event| event.seq < until);
        let own: Vec<&Event> =
            own.filter(|event| event.at.agent.as_ref() == Some(&difference.agent)).collect();
        let began = own.iter().rposition(|event| matches!(event.kind, EventKind::RunStarted { .. }));
        let last = own.iter().skip(began.unwrap_or(0)).rev().find(|event| is_end(event));
        let hold = last.and_then(|last| self.hold_of(last, &own));
        match (hold, unique(self.told, late)) {
            (Some(hold), Some(after)) => {
                self.comes_at_its_time(late, &difference.agent);
                self.waits(&hold, after)
            }
            // Nothing holds the look up: the message has to come sooner.
            _ if last.is_some() => self.comes_sooner(late, &own),
            _ => self.comes_with_the_run(late, &own[..began.unwrap_or(0)]),
        }
    }

    /// What a step waits for does not itself wait for that step.
    fn comes_at_its_time(&mut self, event: &Event, agent: &AgentName) {
        if let Some(Hold::Item(index)) = self.item_of(event) {
            let item = &mut self.plan.items[index];
            if matches!(&item.when, When::After(mark) if mark.agent == *agent) {
                item.when = When::At(item.at);
            }
        }
    }

    fn comes_sooner(&mut self, late: &Event, own: &[&Event]) -> bool {
        let Some(hold) = self.item_of(late) else { return false };
        let mut steps = own.iter().rev().filter(|event| !is_arrival(&event.kind));
        let started = steps.find(|event| !matches!(event.kind, EventKind::ToolFinished { .. }));
        let calls = own.iter().filter(|event| matches!(event.kind, EventKind::ModelStarted { .. })).count();
        let Some(mark) = started.and_then(|event| mark(event, calls as u64)) else { return false };
        self.waits(&hold, mark)
    }

    /// A run begins in the round of what begins it: what came before its first step comes then, too.
    fn comes_with_the_run(&mut self, late: &Event, before: &[&Event]) -> bool {
        let Some(Hold::Item(index)) = self.item_of(late) else { return false };
        let waker = before.iter().rev().take_while(|event| is_arrival(&event.kind));
        let waker = waker.filter(|event| matches!(event.kind, EventKind::MessageQueued { .. })).last();
        let (when, behind) = match waker.map(|waker| self.item_of(waker)) {
            Some(Some(Hold::Item(waker))) => (self.plan.items[waker].when.clone(), waker),
            Some(_) => return false,
            None => {
                let spawned = before.iter().find(|e| matches!(e.kind, EventKind::AgentSpawned { .. }));
                let Some(spawned) = spawned else { return false };
                let when = match spawned.t {
                    Micros(0) => Some(When::At(Micros(0))),
                    _ => mark(spawned, 0).map(When::After),
                };
                let Some(when) = when else { return false };
                (when, index)
            }
        };
        let mut item = self.plan.items.remove(index);
        let changed = std::mem::replace(&mut item.when, when.clone()) != when;
        self.plan.items.insert(if behind < index { behind + 1 } else { behind }, item);
        changed
    }

    /// What the agent sees that it had not seen: what caused it waits for what the agent did.
    fn comes_too_early(&mut self, difference: &Difference<'_>, played: &[Event]) -> bool {
        let (Some(early), Some(was)) = (difference.early, difference.from) else { return false };
        if let EventKind::MessageReturned {
            message,
            reason: ReturnReason::Stopped | ReturnReason::Superseded,
        } = &early.kind
        {
            return self.comes_behind_the_stop(&difference.agent, message.as_str(), early);
        }
        let Some(mark) = unique(self.told, was) else { return false };
        let mut event = early;
        // Each cause is earlier than what it causes.
        for _ in 0..played.len() {
            if let Some(hold) = self.item_of(event) {
                return self.waits(&hold, mark);
            }
            let Some(causer) = self.causer(event) else { return false };
            let own: Vec<&Event> = played
                .iter()
                .filter(|other| other.seq < event.seq && other.at.agent.as_ref() == Some(&causer))
                .collect();
            let moved = |other: &&&Event| is_end(other) || arrival(other, 0).is_some();
            let Some(last) = own.iter().rev().find(moved) else { return false };
            match self.hold_of(last, &own) {
                Some(hold) => return self.waits(&hold, mark),
                None if arrival(last, 0).is_some() => event = last,
                None => return false,
            }
        }
        false
    }

    /// What a stop gave back and had not: it came behind it, in its round.
    fn comes_behind_the_stop(&mut self, agent: &AgentName, message: &str, returned: &Event) -> bool {
        let items = &self.plan.items;
        let sends = |item: &Item| matches!(item.act, Act::Send(_)) && item.id.as_deref() == Some(message);
        let stops = |item: &Item| {
            let is_stop = matches!(item.act, Act::Stop { .. } | Act::Supersede { .. });
            is_stop && item.agent.as_ref() == Some(agent) && item.at <= returned.t.after(Span::millis(1))
        };
        let (Some(sent), Some(stop)) = (items.iter().position(sends), items.iter().rposition(stops)) else {
            return false;
        };
        if sent > stop {
            return false;
        }
        let mut item = self.plan.items.remove(sent);
        item.when = self.plan.items[stop - 1].when.clone();
        self.plan.items.insert(stop, item);
        true
    }

    /// The agent that sent what came.
    fn causer(&self, event: &Event) -> Option<AgentName> {
        let name = match &event.kind {
            EventKind::MessageQueued { message, from, .. } if from == "coordinator" => {
                message.as_str().split('#').next()?.to_owned()
            }
            EventKind::MessageQueued { from, .. } => from.clone(),
            EventKind::StopRequested { by, .. } => by.clone(),
            _ => return None,
        };
        self.plan.agents.iter().map(|agent| &agent.name).find(|agent| agent.as_str() == name).cloned()
    }

    /// A call that was cut in the replay and went on in the session: it could not be aborted.
    fn outlives(&mut self, difference: &Difference<'_>) -> bool {
        let (Some(is), Some(agent)) = (difference.is, self.place(&difference.agent)) else { return false };
        let EventKind::ToolFinished { tool, .. } = &is.kind else { return false };
        let calls = self.plan.agents[agent].entries.iter_mut().flat_map(|entry| &mut entry.calls);
        let mut calls = calls.filter(|call| call.kind == CallKind::Simulated && call.id == tool.as_str());
        let outlived = |call: &&mut Call| {
            matches!(&call.end, CallEnd::Natural { when: When::At(at), .. } if *at > is.t)
                && difference.early.is_none()
        };
        !is_end(is)
            && calls.next().filter(outlived).is_some_and(|call| std::mem::replace(&mut call.abortable, false))
    }

    /// What was cut in the replay and was not in the session.
    fn stays(&mut self, difference: &Difference<'_>, played: &[Event]) -> bool {
        let (Some(was), Some(is)) = (difference.was, difference.is) else { return false };
        let Some(agent) = self.place(&difference.agent) else { return false };
        match (&was.kind, &is.kind) {
            (EventKind::ModelFinished { .. }, _) => {
                let own: Vec<&Event> = played
                    .iter()
                    .filter(|event| event.seq < is.seq && event.at.agent.as_ref() == Some(&difference.agent))
                    .collect();
                let calls = own.iter().filter(|e| matches!(e.kind, EventKind::ModelStarted { .. })).count();
                let cut = own.iter().rev().find(|event| arrival(event, 0).is_some());
                let mark = cut.and_then(|cut| unique(played, cut));
                match (mark, calls.checked_sub(1)) {
                    (Some(mark), Some(entry)) => self.waits(&Hold::Entry(agent, entry), mark),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// A run that began, and nothing in the replay began it.
    fn resumes(&mut self, difference: &Difference<'_>) -> bool {
        let begins = |was: &&Event| {
            matches!(was.kind, EventKind::RunStarted { .. }) && difference.is.is_none_or(|is| is.t > was.t)
        };
        let Some(was) = difference.was.filter(begins) else { return false };
        let known = |item: &Item| {
            matches!(item.act, Act::Resume)
                && item.at == was.t
                && item.agent.as_ref() == Some(&difference.agent)
        };
        if self.plan.items.iter().any(known) {
            return false;
        }
        let (at, agent) = (was.t, Some(difference.agent.clone()));
        let index = self.plan.items.partition_point(|item| item.at <= at);
        self.plan.items.insert(
            index,
            Item { when: When::At(at), at, seq: was.seq, behind: 0, agent, id: None, act: Act::Resume },
        );
        true
    }

    fn place(&self, name: &AgentName) -> Option<usize> {
        self.plan.agents.iter().position(|agent| agent.name == *name)
    }

    /// The item that something came of.
    fn item_of(&self, event: &Event) -> Option<Hold> {
        if let EventKind::SessionResumed { .. } = event.kind {
            let ends = |item: &Item| matches!(item.act, Act::Crash { .. } | Act::ShutDown { .. });
            return self.plan.items.iter().rposition(|item| ends(item) && item.at <= event.t).map(Hold::Item);
        }
        let agent = event.at.agent.as_ref();
        let of = |item: &Item| match (&event.kind, &item.act) {
            (EventKind::MessageQueued { message, .. }, Act::Send(_) | Act::Supersede { .. }) => {
                item.id.as_deref() == Some(message.as_str())
            }
            (EventKind::MessageReturned { message, .. }, Act::Withdraw { message: other, .. }) => {
                message.as_str() == other
            }
            (
                EventKind::StopRequested { .. },
                Act::Stop { .. } | Act::Supersede { .. } | Act::Close { .. },
            ) => item.agent.as_ref() == agent && item.at <= event.t,
            _ => false,
        };
        self.plan.items.iter().rposition(of).map(Hold::Item)
    }

    /// What ended there by itself, if a file can hold that up.
    fn hold_of(&self, end: &Event, own: &[&Event]) -> Option<Hold> {
        let agent = self.place(end.at.agent.as_ref()?)?;
        match &end.kind {
            EventKind::ModelFinished { .. }
            | EventKind::ModelRetry { .. }
            | EventKind::RunFinished { .. } => {
                let before = own.iter().filter(|event| event.seq < end.seq);
                let calls = before.filter(|e| matches!(e.kind, EventKind::ModelStarted { .. })).count();
                Some(Hold::Entry(agent, calls.checked_sub(1)?))
            }
            EventKind::ToolFinished { tool, .. } => {
                let entries = self.plan.agents[agent].entries.iter().enumerate();
                let mut calls = entries
                    .flat_map(|(e, entry)| entry.calls.iter().enumerate().map(move |(c, call)| (e, c, call)));
                let (entry, place, _) = calls.find(|(_, _, call)| {
                    let ends = matches!(call.end, CallEnd::Natural { .. }) && call.continued.is_none();
                    call.id == tool.as_str() && call.kind == CallKind::Simulated && ends
                })?;
                Some(Hold::Call(agent, entry, place))
            }
            _ => None,
        }
    }

    fn waits(&mut self, hold: &Hold, mark: Mark) -> bool {
        let when = match hold {
            Hold::Item(index) => Some(&mut self.plan.items[*index].when),
            Hold::Entry(agent, entry) => {
                self.plan.agents[*agent].entries.get_mut(*entry).and_then(|entry| match &mut entry.end {
                    EntryEnd::Whole(when) | EntryEnd::Failed { when, .. } => Some(when),
                    EntryEnd::Open | EntryEnd::Cut { .. } | EntryEnd::Exhausted => None,
                })
            }
            Hold::Call(agent, entry, call) => {
                match &mut self.plan.agents[*agent].entries[*entry].calls[*call].end {
                    CallEnd::Natural { when, .. } => Some(when),
                    CallEnd::None | CallEnd::Cut { .. } | CallEnd::Given(_) => None,
                }
            }
        };
        if !self.said.insert((*hold, mark.clone())) {
            return false;
        }
        let after = When::After(mark);
        when.is_some_and(|when| std::mem::replace(when, after.clone()) != after)
    }
}

/// The name of an event, if it is the first of that name: only that counts in a file.
fn unique(events: &[Event], event: &Event) -> Option<Mark> {
    let mut calls = 0;
    let mut marks = events.iter().filter(|other| other.at.agent == event.at.agent).map(|other| {
        if let EventKind::ModelStarted { call, .. } = other.kind {
            calls = call;
        }
        (other.seq, mark(other, calls))
    });
    let known: Vec<(u64, Option<Mark>)> = marks.by_ref().take_while(|(seq, _)| *seq <= event.seq).collect();
    let (_, wanted) = known.last()?;
    let first = known.iter().find(|(_, mark)| mark == wanted)?;
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
