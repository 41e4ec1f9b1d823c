//! What a replay leaves behind: the events in order, what each model call was given, and what
//! was found wrong on the way. Expectations read it; nothing writes to it once the replay has
//! ended.

use midturn_core::engine::ports::Observer;
use midturn_core::engine::scripted::PromptRecord;
use midturn_core::rules::event::Event;
use parking_lot::Mutex;

/// Everything that expectations are checked against.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The events, in order.
    pub events: Vec<Event>,
    /// What the model calls were given, in order.
    pub prompts: Vec<PromptRecord>,
    /// Broken invariants of prompts (semantics.md, section 10), as they were found.
    pub breaches: Vec<String>,
    /// Items that could not be done: who asked for what, and why not.
    pub remarks: Vec<String>,
    /// Why it ended early, if it did: an instant that never ends.
    pub stuck: Option<String>,
}

/// Keeps events in memory. Bounded by the replay itself, whose rounds and scripts are.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    events: Mutex<Vec<Event>>,
}

impl Recorder {
    /// The events so far; the recorder is empty afterwards.
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.lock())
    }
}

impl Observer for Recorder {
    fn event(&self, event: &Event) {
        self.events.lock().push(event.clone());
    }
}
