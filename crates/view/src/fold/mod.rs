//! A session as people read it: core's one fold of it, and beside that each agent's conversation,
//! entry by entry (faces.md, section 1). What core's fold takes for stale changes nothing here.

mod conversation;
mod entry;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use midturn_core::rules::event::{Event, EventKind, LiveEvent};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::view::View;
use serde::{Deserialize, Serialize};

use crate::timeline::Timeline;

pub use self::conversation::Conversation;
pub use self::entry::{Call, CallState, Entry, EntryKind, Injected, Letter};

/// A session as far as it was told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Who is there and what is under way.
    view: View,
    conversations: BTreeMap<AgentName, Conversation>,
    /// Whoever compares what is drawn of it compares pictures.
    #[serde(skip)]
    pub(crate) timeline: Timeline,
}

impl Session {
    /// The next event. `false`: it changes nothing, for it was told before or is of a run that is over.
    pub fn event(&mut self, event: &Event) -> bool {
        // What was refused is nothing to an agent, and something to whoever wrote it.
        let is_refused =
            matches!(event.kind, EventKind::MessageRefused { .. }) && event.seq > self.view.seq();
        let counts = self.view.event(event);
        if counts || is_refused {
            self.timeline.event(event);
        }
        if !counts {
            return false;
        }
        if let Some(name) = &event.at.agent
            && let Some(agent) = self.view.agent(name)
        {
            self.conversations.entry(name.clone()).or_default().event(event, agent);
        }
        true
    }

    /// Something is said that is recorded as a whole later. `false`: it was told before.
    pub fn live(&mut self, event: &LiveEvent) -> bool {
        self.view.live(event).is_some()
    }

    /// The stream was lost and taken up again (see [`View::rejoined`]).
    pub fn rejoined(&mut self) {
        self.view.rejoined();
    }

    /// Core's fold of it.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Who did what when.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// What an agent and those who spoke with it have said. None of an agent that nothing was told of.
    pub fn conversation(&self, agent: &AgentName) -> Option<&Conversation> {
        self.conversations.get(agent)
    }
}
