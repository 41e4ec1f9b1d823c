//! What an export is made of while its orders are still being found: a scenario, and of its
//! items who they are about and when they were done.

use std::collections::HashMap;
use std::sync::Arc;

use midturn_core::engine::scripted::{EndsAfter, ScriptedReply};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::time::{Micros, Span};

use crate::scenario::{Anchor, Item, Scenario, When};

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

/// The event with which a session begins.
pub(super) fn beginning() -> Anchor {
    Anchor { agent: None, event: "session_started", id: None }
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
