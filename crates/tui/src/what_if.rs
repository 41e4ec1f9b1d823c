//! What if: which message of the timeline is chosen, how far it is moved, and what would have come of that. Whoever plays
//! it is asked by [`update`](crate::update).

use std::fmt;

use midturn_core::rules::event::Event;
use midturn_core::rules::id::MessageId;
use midturn_view::timeline::{Letter, Timeline};
use midturn_view::what_if;
use midturn_wire::replay;

/// No message is moved farther, in microseconds: an hour.
pub const FARTHEST: i64 = 3_600_000_000;

/// What is asked of a timeline.
#[derive(Debug, Default)]
pub struct WhatIf {
    /// The message that is chosen.
    pub chosen: Option<MessageId>,
    /// How far it is moved, in microseconds.
    pub by: i64,
    /// What is being played: one at a time, also where nobody waits for it any more.
    pub asked: Option<Shift>,
    /// Whether somebody waits for it.
    pub is_awaited: bool,
    /// What came of it.
    pub played: Option<(Shift, Box<Played>)>,
    /// How often something came of it.
    pub plays: u64,
}

/// A message, and how far it is moved, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    /// The message.
    pub message: MessageId,
    /// How far.
    pub by: i64,
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.message, what_if::words(self.by))
    }
}

/// What happened, and what would have.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// As it was.
    pub before: Timeline,
    /// With the message moved.
    pub after: Timeline,
    /// What would have come out otherwise, for people.
    pub changes: Vec<String>,
    /// What would not have been done, for people.
    pub spared: Vec<String>,
}

impl Played {
    /// What whoever played it says. Events that this version doesn't know are left out, as they are everywhere.
    pub fn of(played: &replay::Played) -> Self {
        let replay::Played { before, after, changes, spared, .. } = played;
        Self {
            before: timeline(before),
            after: timeline(after),
            changes: what_if::changes(changes),
            spared: what_if::spared(spared.calls, &spared.files, spared.tokens),
        }
    }
}

fn timeline(events: &replay::Events) -> Timeline {
    let known = events.events.iter().filter_map(|event| serde_json::from_str(event.get()).ok());
    Timeline::of(known.collect::<Vec<Event>>().iter())
}

impl WhatIf {
    /// The chosen message, as this timeline has it.
    pub fn message<'a>(&self, timeline: &'a Timeline) -> Option<&'a Letter> {
        let chosen = self.chosen.as_ref()?;
        timeline.messages().find(|letter| letter.id == *chosen)
    }

    /// Chooses the next message, or the one before; of several to whom one goes it is one. `false`: there is none.
    pub(crate) fn choose(&mut self, timeline: &Timeline, next: bool) -> bool {
        let at = self.message(timeline).map(|letter| letter.sent);
        let is_other = |letter: &&Letter| Some(&letter.id) != self.chosen.as_ref();
        let found = match (next, at) {
            (true, Some(at)) => timeline.messages().filter(is_other).find(|letter| letter.sent > at),
            (true, None) => timeline.messages().next(),
            (false, Some(at)) => timeline.messages().rev().filter(is_other).find(|letter| letter.sent < at),
            (false, None) => timeline.messages().next_back(),
        };
        let Some(id) = found.map(|letter| letter.id.clone()) else { return false };
        (self.chosen, self.by, self.played, self.is_awaited) = (Some(id), 0, None, false);
        true
    }

    /// How far the chosen message would be moved.
    pub(crate) fn shift(&self) -> Option<Shift> {
        Some(Shift { message: self.chosen.clone()?, by: self.by })
    }

    /// One step back: from what was played to the session, then from the message. `false`: there is nothing to go back from.
    pub(crate) fn goes_back(&mut self) -> bool {
        self.is_awaited = false;
        self.played.take().is_some() || {
            self.by = 0;
            self.chosen.take().is_some()
        }
    }
}
