//! Where a run was when its process ended, and how its turn is closed.
//!
//! It reads the record and nothing else: what is not recorded did not happen, and what may
//! have happened is said to be unknown (semantics.md, section 4). No call runs again by itself.

use std::sync::Arc;

use super::conversation::{Reply, Usage};
use super::event::{Event, EventKind, Halt};
use super::id::{CallId, RunId, TurnId};
use super::mail::Sender;
use super::record::{Line, Open};

/// A run whose end is not recorded.
#[derive(Debug)]
pub struct OpenRun {
    /// Its number.
    pub run: RunId,
    /// The turn it was in; 0 before the first.
    pub turn: TurnId,
    /// What was under way.
    pub left: Left,
    /// What its calls have cost so far.
    pub usage: Usage,
    /// Who had stopped it.
    pub stopped_by: Option<Sender>,
}

/// What was under way when the process ended.
#[derive(Debug)]
pub enum Left {
    /// It had not begun: it was stopped before.
    NotBegun,
    /// Nothing yet: no model was called.
    Start,
    /// A model call: what it had said is lost.
    Calling,
    /// Nothing: the next turn was about to begin.
    Between,
    /// A reply without calls is recorded.
    Replied(Arc<Reply>),
    /// A turn's calls; those that ended have their results.
    Tools {
        /// The reply that asked for them, and the results.
        open: Open,
        /// The calls that had started.
        started: Vec<CallId>,
    },
}

/// Finds where a run was: `open` is its turn without all results, `last` the last line of
/// its record, `tail` the events of its last turn.
pub fn left(open: Option<Open>, last: Option<&Line>, tail: &[Event]) -> Left {
    match (open, last) {
        (Some(open), _) => Left::Tools { open, started: started(tail) },
        (None, Some(Line::Reply(reply))) => Left::Replied(reply.clone()),
        (None, _) if turn(tail) == 0 && !has_begun(tail) => Left::NotBegun,
        (None, _) => between(tail),
    }
}

fn has_begun(tail: &[Event]) -> bool {
    tail.iter().any(|event| matches!(event.kind, EventKind::RunStarted { .. }))
}

fn started(tail: &[Event]) -> Vec<CallId> {
    let started = tail.iter().filter_map(|event| match &event.kind {
        EventKind::ToolStarted { tool, .. } => Some(tool.clone()),
        _ => None,
    });
    started.collect()
}

/// Nothing of a turn's calls is open: was a model called, and had it ended?
fn between(tail: &[Event]) -> Left {
    let last = tail.iter().rev().find_map(|event| match &event.kind {
        EventKind::ModelStarted { .. } => Some(Left::Calling),
        EventKind::ModelFinished { .. }
        | EventKind::ModelInterrupted { .. }
        | EventKind::ModelRetry { .. }
        | EventKind::Compacted { .. } => Some(Left::Between),
        // No other kind begins a model call or ends it.
        _ => None,
    });
    last.unwrap_or(Left::Start)
}

/// The turn that a run was in.
pub fn turn(tail: &[Event]) -> TurnId {
    tail.iter().filter_map(|event| event.at.turn).max().unwrap_or(0)
}

/// Who stopped the run first, and why; a close that came later closes the agent. A shutdown stops
/// it for the next start to go on with, so whoever meant it to stop comes before.
pub fn stopped_by(tail: &[Event]) -> Option<(Sender, Halt)> {
    let mut stops = tail.iter().filter_map(|event| match &event.kind {
        EventKind::StopRequested { by, reason, .. } => Some((Sender::of_word(by), *reason)),
        _ => None,
    });
    let first = stops.next()?;
    match first.1 {
        Halt::Shutdown => Some(stops.find(|(_, why)| *why != Halt::Shutdown).unwrap_or(first)),
        Halt::Stop | Halt::Supersede | Halt::Close => Some(first),
    }
}
