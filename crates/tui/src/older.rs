//! What the fold no longer holds of a conversation: read back page by page, from the interface's log, when
//! somebody scrolls to it.

use midturn_core::rules::event::Event;
use midturn_core::rules::id::AgentName;
use midturn_view::fold::{Call, CallState, Entry, EntryKind, Session};
use serde_json::Value;

/// How many entries are kept of what was read back, so that whoever scrolls for hours stays bounded.
const ENTRIES_MAX: usize = 20_000;

/// The older part of one agent's conversation.
#[derive(Debug)]
pub struct Older {
    /// Whose.
    pub agent: AgentName,
    /// How many entries the fold had forgotten when it was begun: if it forgets more, there is a gap.
    pub forgotten: u64,
    /// Before which event the next page is asked for; `None`: there is none.
    pub before: Option<u64>,
    /// Whether it was asked for.
    pub is_asked: bool,
    entries: Vec<Entry>,
}

impl Older {
    /// Nothing is read back yet; the first entry that the fold holds began with this event.
    pub fn new(agent: AgentName, forgotten: u64, first: u64) -> Self {
        Self { agent, forgotten, before: Some(first), is_asked: false, entries: Vec::new() }
    }

    /// The events before what is here, and before which one the next page is asked for.
    pub fn page(&mut self, events: &[Event], before: Option<u64>) {
        let mut session = Session::default();
        events.iter().for_each(|event| _ = session.event(event));
        let conversation = session.conversation(&self.agent);
        let page = conversation.into_iter().flat_map(|all| all.entries()).map(|(_, entry)| entry.clone());
        let later = std::mem::take(&mut self.entries);
        self.entries = joined(page.collect(), later);
        self.before = before.filter(|_| self.entries.len() < ENTRIES_MAX);
        self.is_asked = false;
    }

    /// The entries that were read back, the oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// Two parts as one: a call that begins in the first may have its end in the second, where nothing was known of it.
fn joined(mut first: Vec<Entry>, mut later: Vec<Entry>) -> Vec<Entry> {
    let open = first.iter_mut().filter_map(|entry| match &mut entry.kind {
        EntryKind::Call(call) if !matches!(call.state, CallState::Ended { .. }) => Some(call),
        _ => None,
    });
    for call in open {
        let is_its_end = |other: &Call| other.id == call.id && other.input == Value::Null;
        let place =
            later.iter().position(|entry| matches!(&entry.kind, EntryKind::Call(end) if is_its_end(end)));
        if let Some(EntryKind::Call(end)) = place.map(|place| later.remove(place).kind) {
            call.state = end.state;
        }
    }
    first.append(&mut later);
    first
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use midturn_core::rules::conversation::ToolStatus;
    use midturn_core::rules::event::{EventKind, Place, VERSION};
    use midturn_core::rules::id::CallId;
    use midturn_core::rules::time::Micros;
    use serde_json::json;

    use super::*;

    fn name() -> AgentName {
        AgentName::new("w").unwrap()
    }

    fn event(seq: u64, kind: EventKind) -> Event {
        Event { v: VERSION, seq, t: Micros(seq), at: Place::of(&name(), 1, 1), kind }
    }

    fn started(seq: u64) -> Event {
        let input = json!({"command": "ls"});
        event(seq, EventKind::ToolStarted { tool: CallId::new("c"), name: "bash".into(), input, batch: 1 })
    }

    fn finished(seq: u64) -> Event {
        let (tool, status) = (CallId::new("c"), ToolStatus::Completed);
        let name: Arc<str> = "bash".into();
        event(
            seq,
            EventKind::ToolFinished { tool, name, status, is_error: false, bytes: 2, output: "ok".into() },
        )
    }

    #[test]
    fn pages_are_joined_in_order_and_a_call_across_two_of_them_is_one() {
        let mut older = Older::new(name(), 40, 100);
        older.page(&[finished(60), event(61, EventKind::AgentClosed {})], Some(60));
        assert_eq!((older.entries().len(), older.before), (2, Some(60)));
        older.page(&[started(50)], None);
        let [call, closed] = older.entries() else { panic!("{:?}", older.entries()) };
        let EntryKind::Call(call) = &call.kind else { panic!("{call:?}") };
        assert_eq!(call.input, json!({"command": "ls"}));
        assert!(matches!(&call.state, CallState::Ended { status: ToolStatus::Completed, .. }), "{call:?}");
        assert_eq!((&closed.kind, older.before), (&EntryKind::Closed, None));
    }

    #[test]
    fn no_more_is_asked_for_than_is_kept() {
        let mut older = Older::new(name(), 90_000, 100_000);
        for page in (0..30).rev() {
            let events: Vec<Event> =
                (0..1_000).map(|at| event(1 + page * 1_000 + at, EventKind::AgentClosed {})).collect();
            older.page(&events, Some(page * 1_000));
            if older.before.is_none() {
                break;
            }
        }
        assert_eq!((older.entries().len(), older.before), (ENTRIES_MAX, None));
    }
}
