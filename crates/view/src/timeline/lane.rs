//! What is under way in one agent's lane, and in which row.

use std::collections::BTreeMap;

use midturn_core::rules::id::{AgentName, CallId, MessageId};

use super::parts::Moment;

/// How many things of one lane are drawn below each other.
pub(super) const ROWS: usize = 3;

/// How many things are followed at a time.
const OPEN_MAX: usize = 256;

/// What something under way is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Model,
    Retry,
    Ask(CallId),
    Call(CallId),
}

/// An agent's lane.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lane {
    pub(super) name: AgentName,
    /// How many agents are above it.
    pub(super) depth: usize,
    open: Vec<Open>,
    /// The messages that wait, each with the event that told of it.
    pub(super) mail: BTreeMap<MessageId, u64>,
}

#[derive(Clone, Debug, PartialEq)]
struct Open {
    key: Key,
    /// The event that began it.
    from: u64,
    /// None: the rows are full.
    row: Option<usize>,
}

impl Lane {
    pub(super) fn new(name: AgentName, depth: usize) -> Self {
        Self { name, depth, open: Vec::new(), mail: BTreeMap::new() }
    }

    /// The row of what begins; none while there are others in all of them, or too many beside them.
    pub(super) fn opens(&mut self, key: Key, from: Moment) -> Option<usize> {
        if self.open.len() >= OPEN_MAX {
            return None;
        }
        let row = (0..ROWS).find(|row| self.open.iter().all(|open| open.row != Some(*row)));
        self.open.push(Open { key, from: from.order, row });
        row
    }

    pub(super) fn is_open(&self, key: &Key) -> bool {
        self.open.iter().any(|open| open.key == *key)
    }

    /// What has the last row.
    pub(super) fn last_row(&self) -> Option<u64> {
        self.open.iter().find(|open| open.row == Some(ROWS - 1)).map(|open| open.from)
    }

    /// It has ended: the bar that began it, if it has one.
    pub(super) fn closes(&mut self, key: &Key) -> Option<u64> {
        let at = self.open.iter().rposition(|open| open.key == *key)?;
        let open = self.open.remove(at);
        open.row.map(|_| open.from)
    }

    /// Nothing goes on: the bars of what did.
    pub(super) fn rests(&mut self) -> Vec<u64> {
        drawn(std::mem::take(&mut self.open))
    }

    /// What ends with its process and is told by no event: the bars of that.
    pub(super) fn loses(&mut self) -> Vec<u64> {
        let all = std::mem::take(&mut self.open);
        let (calls, lost): (Vec<Open>, _) =
            all.into_iter().partition(|open| matches!(open.key, Key::Call(_)));
        self.open = calls;
        drawn(lost)
    }
}

/// The bars of those that have one.
fn drawn(all: Vec<Open>) -> Vec<u64> {
    all.into_iter().filter(|open| open.row.is_some()).map(|open| open.from).collect()
}
