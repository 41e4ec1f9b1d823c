//! What an export is made of while its orders are still being found: a scenario, and of its
//! items who they are about and when they were done.

use std::collections::HashMap;
use std::sync::Arc;

use midturn_core::engine::scripted::{EndsAfter, ScriptedCall, ScriptedReply};
use midturn_core::engine::tools::is_own;
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::mail::Sender;
use midturn_core::rules::time::{Micros, Span};

use crate::error::Place;
use crate::scenario::{Act, Anchor, Item, Scenario, When, beginning};

/// The time of what never ends by itself: it was cut, or lost with its process.
pub(super) const NEVER: Span = Span::secs(1_000_000_000);

/// A session, as a scenario has to play it. What ends by itself does so at its time since the
/// session began, or after the event that it was ordered behind.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Without scripts and items.
    pub(super) frame: Scenario,
    pub(super) scripts: HashMap<AgentName, Vec<ScriptedReply>>,
    /// In the order in which they came.
    pub(super) items: Vec<Done>,
}

/// Something that was done from outside.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) item: Item,
    /// Whose events it follows.
    pub(super) agent: Option<AgentName>,
    /// When it was done, and the event that tells of it.
    pub(super) at: Micros,
    pub(super) seq: u64,
    /// Of a message: the last event of its receivers before it in its instant.
    pub(super) behind: u64,
}

impl Plan {
    /// The scenario to play.
    pub(super) fn scenario(&self) -> Scenario {
        let mut scenario = self.frame.clone();
        for agent in &mut scenario.agents {
            if agent.model.is_some() {
                agent.model = self.scripts.get(&agent.name).map(|script| Arc::from(script.as_slice()));
            }
        }
        scenario.items = self.items.iter().map(|done| done.item.clone()).collect();
        scenario
    }
}

/// A change that brings a plan nearer to the session.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// A model call ends behind an event.
    Reply(AgentName, usize, Anchor),
    /// A tool call does.
    Call(AgentName, CallId, Anchor),
    /// A tool call can't be aborted.
    Outlives(AgentName, CallId),
    /// The item of that number comes at another time.
    Comes(u64, When),
    /// The same, and stands right behind the item of the other number.
    Behind(u64, When, u64),
    /// An agent is resumed, which no event tells of: who, when, at what time, and the number of the
    /// event before which it was.
    Resumes(AgentName, When, Micros, u64),
}

impl Plan {
    /// Makes changes. `false`: all is as it was, or there is nothing of the kind.
    pub(super) fn change(&mut self, changes: &[Change]) -> bool {
        let mut changed = false;
        for change in changes {
            changed |= self.changed(change);
        }
        changed
    }

    fn changed(&mut self, change: &Change) -> bool {
        match change {
            Change::Reply(agent, entry, after) => {
                let entry = self.scripts.get_mut(agent).and_then(|script| script.get_mut(*entry));
                // What was cut does not end by itself.
                let end = entry.map(|entry| &mut entry.ends_after).filter(|end| end.is_some());
                end.is_some_and(|end| set(end, ends_after(after.clone())))
            }
            Change::Call(agent, id, after) => {
                let call =
                    self.call(agent, id).filter(|call| call.ends_after.is_some() || is_own(&call.name));
                call.is_some_and(|call| set(&mut call.ends_after, ends_after(after.clone())))
            }
            Change::Outlives(agent, id) => {
                self.call(agent, id).is_some_and(|call| set(&mut call.abortable, false))
            }
            Change::Comes(seq, when) => {
                let done = self.items.iter_mut().find(|done| done.seq == *seq);
                done.is_some_and(|done| set(&mut done.item.when, when.clone()))
            }
            Change::Behind(seq, when, other) => self.moved(*seq, when, *other),
            Change::Resumes(agent, when, at, seq) => {
                let act = Act::Resume { agent: Some(agent.clone()), by: Sender::User };
                let item = Item { id: None, when: when.clone(), act, place: Place::START };
                let place = self.items.iter().position(|done| done.seq >= *seq && done.at >= *at);
                let place = place.unwrap_or(self.items.len());
                let done = Done { item, agent: Some(agent.clone()), at: *at, seq: *seq, behind: 0 };
                self.items.insert(place, done);
                true
            }
        }
    }

    fn moved(&mut self, seq: u64, when: &When, other: u64) -> bool {
        let place = |items: &[Done], seq| items.iter().position(|done| done.seq == seq);
        let Some(from) = place(&self.items, seq) else { return false };
        let mut done = self.items.remove(from);
        let changed = set(&mut done.item.when, when.clone());
        let to = place(&self.items, other).map_or(from, |other| other + 1);
        self.items.insert(to, done);
        changed || to != from
    }

    fn call(&mut self, agent: &AgentName, id: &CallId) -> Option<&mut ScriptedCall> {
        let mut calls = self.scripts.get_mut(agent)?.iter_mut().flat_map(|entry| &mut entry.tools);
        calls.find(|call| call.id == *id).map(Arc::make_mut)
    }
}

/// Sets a value. `false`: it was so.
fn set<T: PartialEq>(value: &mut T, to: T) -> bool {
    let was = std::mem::replace(value, to);
    was != *value
}

/// An end at that time since the session began.
pub(super) fn ends_at(at: Micros) -> Option<EndsAfter> {
    Some(EndsAfter { anchor: beginning(), plus: Span(at.0), at: (1, 1) })
}

/// An end in the round behind that event, or in its own where the round is not that far.
pub(super) fn ends_after(anchor: Anchor) -> Option<EndsAfter> {
    Some(EndsAfter { anchor, plus: Span::ZERO, at: (1, 1) })
}

/// In the round behind that event.
pub(super) fn behind(anchor: Anchor) -> When {
    When::After(anchor, Span::ZERO)
}
