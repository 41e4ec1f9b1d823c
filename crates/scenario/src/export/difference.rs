//! Where a replay differs from the session: the first step that an agent does otherwise than it
//! did, and what had not come to it by then, or had come too soon.

use std::collections::HashSet;

use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::AgentName;

use super::plan::Plan;

/// Whether something came to the agent, and is no step of its own.
pub(super) fn is_arrival(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::MessageQueued { .. }
            | EventKind::MessageReturned { .. }
            | EventKind::MessageRefused { .. }
            | EventKind::StopRequested { .. }
            | EventKind::LimitRaised { .. }
            | EventKind::SessionStarted { .. }
            | EventKind::SessionResumed { .. }
            | EventKind::ApprovalResolved { .. }
            | EventKind::PlanUpdated { .. }
            | EventKind::AgentClosed {}
    )
}

/// What a session and its replay have to agree in; `None` for what may differ.
fn step(event: &Event) -> Option<String> {
    let what = match &event.kind {
        EventKind::RunStarted { .. } | EventKind::Compacted { .. } => String::new(),
        EventKind::ModelFinished { purpose, .. } => format!("{purpose:?}"),
        EventKind::ToolStarted { tool, .. } | EventKind::ApprovalRequested { tool, .. } => tool.to_string(),
        EventKind::ToolFinished { tool, status, .. } => format!("{tool} {status:?}"),
        EventKind::MessageInjected { messages, point, skipped, interrupted, .. } => {
            format!("{messages:?} {point:?} {:?} {skipped:?} {interrupted:?}", event.at.turn)
        }
        EventKind::ApprovalResolved { tool, decision, .. } => format!("{tool} {decision:?}"),
        EventKind::RunFinished { outcome, turns, .. } => format!("{outcome:?} {turns}"),
        // A call that was cut before the request went out begins in a replay; its cut is told otherwise.
        _ => return None,
    };
    Some(format!("{} {:?} {what}", event.kind.type_name(), event.at.run))
}

/// An arrival, by what it is.
pub(super) type Came = (&'static str, String);

pub(super) fn arrival(event: &Event, lives: u64) -> Option<Came> {
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
pub(super) struct Difference<'e> {
    pub(super) agent: AgentName,
    /// What it did in the session, and in the replay; none where it did nothing any more.
    pub(super) was: Option<&'e Event>,
    pub(super) is: Option<&'e Event>,
    /// What came to it before that in the session, and not in the replay.
    pub(super) late: Option<&'e Event>,
    /// The other way round.
    pub(super) early: Option<&'e Event>,
    /// The step in the replay before which the one had to come, and the step in the session behind which the other.
    pub(super) until: Option<&'e Event>,
    pub(super) from: Option<&'e Event>,
}

/// How far a replay is as the session was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reach {
    /// The number of the session's first event that the replay does not have.
    to: u64,
    /// In how many steps its agents agree with the session before each does something else.
    steps: usize,
}

impl Reach {
    pub(super) fn of(plan: &Plan, told: &[Event], played: &[Event]) -> Self {
        let mut reach = Self { to: u64::MAX, steps: 0 };
        for agent in &plan.frame.agents {
            let parting = parting(&agent.name, told, played);
            reach.steps += parting.agreed;
            let to = match (parting.was, parting.is) {
                (Some(was), _) => was.seq,
                (None, Some(is)) => told.iter().find(|event| event.t > is.t).map_or(u64::MAX - 1, |e| e.seq),
                (None, None) => u64::MAX,
            };
            reach.to = reach.to.min(to);
        }
        reach
    }
}

/// How a replay differs from the session: the difference that shows first.
pub(super) fn first<'e>(plan: &Plan, told: &'e [Event], played: &'e [Event]) -> Option<Difference<'e>> {
    let agents = plan.frame.agents.iter();
    let differences = agents.filter_map(|agent| of_agent(&agent.name, told, played));
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

/// Where an agent's steps in a replay part from those in the session.
#[derive(Default)]
struct Parting<'e> {
    /// The last step in which they agree, there and here, and how many there are.
    same: Option<(&'e Event, &'e Event)>,
    agreed: usize,
    was: Option<&'e Event>,
    is: Option<&'e Event>,
}

fn parting<'e>(name: &AgentName, told: &'e [Event], played: &'e [Event]) -> Parting<'e> {
    let (mut was, mut is) = (steps(name, told).into_iter(), steps(name, played).into_iter());
    let mut parting = Parting::default();
    loop {
        match (was.next(), is.next()) {
            (Some((event, was)), Some((other, is))) if was == is && !begins_late(event, other) => {
                (parting.same, parting.agreed) = (Some((event, other)), parting.agreed + 1);
            }
            (was, is) => {
                (parting.was, parting.is) = (was.map(|(event, _)| event), is.map(|(event, _)| event));
                return parting;
            }
        }
    }
}

fn steps<'e>(name: &AgentName, events: &'e [Event]) -> Vec<(&'e Event, String)> {
    let own = events.iter().filter(|event| event.at.agent.as_ref() == Some(name));
    let mut steps: Vec<(&Event, String)> = own.filter_map(|event| Some((event, step(event)?))).collect();
    // In which order calls end between two other steps is nobody's concern.
    let is_end = |(event, _): &(&Event, String)| matches!(event.kind, EventKind::ToolFinished { .. });
    for ends in steps.chunk_by_mut(|one, other| is_end(one) && is_end(other)) {
        ends.sort_by(|(_, one), (_, other)| one.cmp(other));
    }
    steps
}

fn of_agent<'e>(name: &AgentName, told: &'e [Event], played: &'e [Event]) -> Option<Difference<'e>> {
    let Parting { same, was, is, .. } = parting(name, told, played);
    was.or(is)?;
    let (there, here) = (before(name, told, was), before(name, played, is));
    let (mut late, mut early) = (missing(&there, &here), missing(&here, &there));
    let (mut until, mut from) = (is, was);
    if let (None, None, Some((same, agreed))) = (late, early, same) {
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
