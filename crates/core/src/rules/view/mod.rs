//! The one fold of a session: its events in, what can be seen of it out. Whoever shows, counts
//! or traces a session reads it here and keeps no account of its own.
//!
//! What is told twice, or belongs to a run that is over, changes nothing, so it may be given
//! whatever a stream brings. It knows no prices and no clock: it is told what time it is.

mod agent;
mod said;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conversation::Usage;
use super::event::{Event, EventKind, LiveEvent};
use super::id::{AgentName, CallId};
use super::limits::{Money, Prices};
use super::time::Micros;

pub use self::agent::{Agent, Call, Message, Request, Stop};
pub use self::said::Said;

/// How many agents of a session are followed, closed ones included.
const AGENTS_MAX: usize = 16_384;

/// How many waiting messages of a session are followed: 64 full mailboxes.
const WAITING_MAX: usize = 65_536;

/// How many requests for a person's word are followed: more than a session has.
const ASKS_MAX: usize = 4_096;

/// A session as far as it was told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// The number of the last event.
    seq: u64,
    /// What time it is.
    t: Micros,
    /// Boxed: a node of the map has room for eleven, and most sessions have few.
    agents: BTreeMap<AgentName, Box<Agent>>,
    /// In the order in which they were told.
    asks: Vec<Ask>,
    /// How many messages wait in all mailboxes.
    waiting: usize,
}

/// A request for a person's word on a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// Who asks.
    pub agent: AgentName,
    /// The call.
    pub tool: CallId,
    /// The tool.
    pub name: Arc<str>,
    /// Its arguments.
    pub input: Value,
    /// The rule that "always" stands for.
    pub always: Arc<str>,
    /// By when it was asked. A model may use a call's id again: what is asked about such a call
    /// later is another request.
    pub since: Micros,
}

impl Ask {
    fn is_about(&self, agent: &AgentName, tool: &CallId) -> bool {
        self.agent == *agent && self.tool == *tool
    }
}

impl View {
    /// A session as it was when the event of this number was its last.
    pub fn snapshot(seq: u64, t: Micros, agents: impl IntoIterator<Item = (AgentName, Agent)>) -> Self {
        let agents = agents.into_iter().map(|(name, agent)| (name, Box::new(agent)));
        let agents: BTreeMap<_, _> = agents.take(AGENTS_MAX).collect();
        let waiting = agents.values().map(|agent| agent.queue.len()).sum();
        Self { seq, t, agents, asks: Vec::new(), waiting }
    }

    /// A request that was open before the first event that is told.
    pub fn asked(&mut self, ask: Ask) {
        // An event may tell of it, too: whoever was shown both has seen the later one.
        if let Some(known) = self.asks.iter_mut().find(|known| known.is_about(&ask.agent, &ask.tool)) {
            *known = ask;
        } else if self.asks.len() < ASKS_MAX {
            self.asks.push(ask);
        }
    }

    /// The next event. `false`: it changes nothing, for it was told before, is of a run that is
    /// over, or is more than is followed.
    pub fn event(&mut self, event: &Event) -> bool {
        if event.seq <= self.seq {
            return false;
        }
        self.seq = event.seq;
        self.now(event.t);
        let Some(name) = &event.at.agent else {
            if let EventKind::SessionResumed { .. } = &event.kind {
                // The process that asked and called is gone, and its requests with it.
                self.agents.values_mut().for_each(|agent| agent.rests());
                self.asks.clear();
            }
            return true;
        };
        let is_too_much =
            matches!(event.kind, EventKind::MessageQueued { .. }) && self.waiting >= WAITING_MAX;
        // What is refused may be for names that nobody has.
        if is_too_much || matches!(event.kind, EventKind::MessageRefused { .. }) {
            return false;
        }
        let Some(agent) = self.entry(name) else { return false };
        let before = agent.queue.len();
        let changes = agent.event(event);
        let after = agent.queue.len();
        self.waiting = (self.waiting + after).saturating_sub(before);
        if changes {
            self.asks(name, event);
        }
        changes
    }

    fn asks(&mut self, name: &AgentName, event: &Event) {
        match &event.kind {
            EventKind::ApprovalRequested { tool, name: called, input, always } => self.asked(Ask {
                agent: name.clone(),
                tool: tool.clone(),
                name: called.clone(),
                input: input.clone(),
                always: always.clone(),
                since: event.t,
            }),
            EventKind::ApprovalResolved { tool, .. } => self.asks.retain(|ask| !ask.is_about(name, tool)),
            EventKind::RunStarted { .. } | EventKind::RunFinished { .. } | EventKind::AgentClosed {} => {
                self.asks.retain(|ask| ask.agent != *name);
            }
            _ => {}
        }
    }

    /// Something is said that is recorded as a whole later: from which byte on its text is new.
    /// `None`: nothing of it is.
    pub fn live(&mut self, event: &LiveEvent) -> Option<usize> {
        let Some(agent) = event.at.agent.as_ref().and_then(|name| self.entry(name)) else { return Some(0) };
        match event.at.run {
            Some(run) if agent.is_over(run) => None,
            Some(_) | None => agent.said.live(event),
        }
    }

    /// The same, and what of it was not told before.
    pub fn rest(&mut self, mut event: LiveEvent) -> Option<LiveEvent> {
        let known = self.live(&event)?;
        if let Some(text) = event.kind.text_mut() {
            text.drain(..known);
        }
        Some(event)
    }

    /// The stream was lost and taken up again: of what is being said, all of it comes next, each
    /// in one piece.
    pub fn rejoined(&mut self) {
        self.agents.values_mut().for_each(|agent| agent.said.rejoined());
    }

    /// It is so late now.
    pub fn now(&mut self, t: Micros) {
        self.t = self.t.max(t);
    }

    /// The number of the last event.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// What time it is, as far as it was told.
    pub fn t(&self) -> Micros {
        self.t
    }

    /// An agent.
    pub fn agent(&self, name: &AgentName) -> Option<&Agent> {
        self.agents.get(name).map(Box::as_ref)
    }

    /// All agents, by name.
    pub fn agents(&self) -> impl Iterator<Item = (&AgentName, &Agent)> {
        self.agents.iter().map(|(name, agent)| (name, agent.as_ref()))
    }

    /// What a person is asked, in the order in which it was told.
    pub fn open_asks(&self) -> &[Ask] {
        &self.asks
    }

    /// How many messages wait in all mailboxes.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// What all whole replies that were told have used.
    pub fn usage(&self) -> Usage {
        let mut all = Usage::default();
        self.agents.values().for_each(|agent| all.add(agent.usage));
        all
    }

    /// What they cost, by the prices of each agent's model.
    pub fn cost(&self, prices: impl Fn(Option<&str>) -> Prices) -> Money {
        let costs = self.agents.values().map(|agent| prices(agent.model.as_deref()).cost(&agent.usage));
        costs.fold(Money::ZERO, Money::plus)
    }

    fn entry(&mut self, name: &AgentName) -> Option<&mut Agent> {
        let is_full = self.agents.len() >= AGENTS_MAX;
        match self.agents.entry(name.clone()) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(_) if is_full => None,
            Entry::Vacant(new) => Some(new.insert(Box::default())),
        }
    }
}
