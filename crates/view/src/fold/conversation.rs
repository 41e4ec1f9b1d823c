//! An agent's conversation, bounded: the newest entries are kept, the older ones are counted.

use std::collections::VecDeque;
use std::sync::Arc;

use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::event::{CallRef, Event, EventKind};
use midturn_core::rules::id::{CallId, MessageId};
use midturn_core::rules::time::Micros;
use midturn_core::rules::view::{Agent, Message};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::entry::{Call, CallState, Entry, EntryKind, Injected, Letter};

/// How many entries are kept.
const ENTRIES_MAX: usize = 2_000;

/// How many bytes of their texts.
const BYTES_MAX: usize = 2 << 20;

/// What an agent and those who spoke with it have said, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    entries: VecDeque<Entry>,
    /// How many older ones there were.
    dropped: u64,
    /// What the entries weigh.
    bytes: usize,
}

impl Conversation {
    /// The entries that are kept, each with its number, which never changes.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (u64, &Entry)> + ExactSizeIterator {
        let first = self.dropped;
        self.entries.iter().enumerate().map(move |(place, entry)| (first + place as u64, entry))
    }

    /// The entry of that number.
    pub fn entry(&self, number: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(number.checked_sub(self.dropped)?).ok()?)
    }

    /// How many entries there were before those that are kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// An event of its agent, which is `agent` since.
    pub(super) fn event(&mut self, event: &Event, agent: &Agent) {
        match &event.kind {
            EventKind::ModelFinished { text, tools, purpose, .. } => {
                if *purpose == Purpose::Turn {
                    self.replied(event, text, tools);
                }
            }
            EventKind::ToolStarted { .. } | EventKind::ToolFinished { .. } => self.calls(event),
            EventKind::ApprovalResolved { tool, decision, by, reason } => {
                let word = (*decision, by.as_str().into(), reason.as_deref().map(Arc::from));
                self.change_call(event, tool, |call| call.word = Some(word));
            }
            EventKind::MessageInjected { messages, .. } => self.injected(event, messages, agent),
            EventKind::ModelRetry { attempt, error, wait } => {
                let kind = EntryKind::Retry { attempt: *attempt, error: error.as_str().into(), wait: *wait };
                self.retries(event, kind);
            }
            _ => {
                if let Some(kind) = simple(event, agent) {
                    self.add(event, kind);
                }
            }
        }
    }

    fn replied(&mut self, event: &Event, text: &str, tools: &[CallRef]) {
        if !text.trim().is_empty() {
            self.add(event, EntryKind::Reply { text: text.into(), cut: None });
        }
        for CallRef { id, name, input } in tools {
            self.add(event, waiting(id, name, input));
        }
        self.answered(event);
    }

    /// What came in before a whole reply is answered by it.
    fn answered(&mut self, event: &Event) {
        for entry in self.entries.iter_mut().rev() {
            match &mut entry.kind {
                EntryKind::Injected(injected) if injected.answered => return,
                EntryKind::Injected(injected) => {
                    injected.answered = true;
                    entry.changed = event.seq;
                }
                _ => {}
            }
        }
    }

    fn calls(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ToolStarted { tool, name, input, .. } => {
                let begins = |call: &mut Call| {
                    call.input.clone_from(input);
                    call.state = CallState::Running { since: event.t };
                };
                if !self.change_call(event, tool, begins) {
                    let EntryKind::Call(mut call) = waiting(tool, name, input) else { return };
                    call.state = CallState::Running { since: event.t };
                    self.add(event, EntryKind::Call(call));
                }
            }
            EventKind::ToolFinished { tool, name, status, bytes, output, .. } => {
                let ends = |call: &mut Call| {
                    let took = match call.state {
                        CallState::Running { since } => Some(event.t.since(since)),
                        CallState::Waiting | CallState::Ended { .. } => None,
                    };
                    let output = output.as_str().into();
                    call.state = CallState::Ended { status: *status, took, bytes: *bytes, output };
                };
                if !self.change_call(event, tool, ends) {
                    let EntryKind::Call(mut call) = waiting(tool, name, &Value::Null) else { return };
                    ends(&mut call);
                    self.add(event, EntryKind::Call(call));
                }
            }
            _ => {}
        }
    }

    /// Changes the last call of that id that has not ended. `false`: there is none.
    fn change_call(&mut self, event: &Event, id: &CallId, change: impl FnOnce(&mut Call)) -> bool {
        for entry in self.entries.iter_mut().rev() {
            let before = entry.kind.weight();
            let EntryKind::Call(call) = &mut entry.kind else { continue };
            // Calls end in their run, and of the run before none is open.
            if entry.run < event.at.run.unwrap_or(entry.run) {
                return false;
            }
            if call.id == *id && !matches!(call.state, CallState::Ended { .. }) {
                change(call);
                entry.changed = event.seq;
                self.bytes = self.bytes + entry.kind.weight() - before;
                self.forget();
                return true;
            }
        }
        false
    }

    fn injected(&mut self, event: &Event, ids: &[MessageId], agent: &Agent) {
        let EventKind::MessageInjected { point, text, skipped, interrupted, .. } = &event.kind else {
            return;
        };
        let letters = letters(ids, text, agent, event.t);
        let injected = Injected {
            letters,
            point: *point,
            after: self.last_tool(event),
            skipped: skipped.len(),
            interrupted: interrupted.len(),
            answered: false,
        };
        self.add(event, EntryKind::Injected(injected));
    }

    /// The tool that had the last word in this turn.
    fn last_tool(&self, event: &Event) -> Option<Arc<str>> {
        let calls = self.entries.iter().rev().filter_map(|entry| match &entry.kind {
            EntryKind::Call(call) => Some((entry, call)),
            _ => None,
        });
        let is_here = |(entry, _): &(&Entry, &Call)| {
            Some(entry.run) == event.at.run && Some(entry.turn) == event.at.turn
        };
        let ran = |(_, call): &(&Entry, &Call)| matches!(&call.state, CallState::Ended { took: Some(_), .. });
        calls.take_while(is_here).find(ran).map(|(_, call)| call.name.clone())
    }

    fn retries(&mut self, event: &Event, kind: EntryKind) {
        match self.entries.back_mut() {
            Some(last)
                if matches!(last.kind, EntryKind::Retry { .. }) && Some(last.turn) == event.at.turn =>
            {
                self.bytes = self.bytes + kind.weight() - last.kind.weight();
                (last.kind, last.changed, last.t) = (kind, event.seq, event.t);
            }
            _ => self.add(event, kind),
        }
    }

    fn add(&mut self, event: &Event, kind: EntryKind) {
        self.bytes += kind.weight();
        let (run, turn) = (event.at.run.unwrap_or_default(), event.at.turn.unwrap_or_default());
        self.entries.push_back(Entry { seq: event.seq, changed: event.seq, t: event.t, run, turn, kind });
        self.forget();
    }

    /// Forgets the oldest of what is too much, but never the newest.
    fn forget(&mut self) {
        while self.entries.len() > ENTRIES_MAX || (self.bytes > BYTES_MAX && self.entries.len() > 1) {
            if let Some(oldest) = self.entries.pop_front() {
                self.bytes -= oldest.kind.weight();
                self.dropped += 1;
            }
        }
    }
}

/// What an event that changes nothing that was there adds.
fn simple(event: &Event, agent: &Agent) -> Option<EntryKind> {
    Some(match &event.kind {
        EventKind::AgentSpawned { prompt: Some(prompt), .. } => EntryKind::Prompt { text: prompt.clone() },
        EventKind::ModelInterrupted { reason, text, .. } if !text.trim().is_empty() => {
            EntryKind::Reply { text: text.as_str().into(), cut: Some(*reason) }
        }
        EventKind::MessageReturned { message, reason } => {
            let known = agent.past.back().filter(|known| known.id == *message)?;
            EntryKind::Returned { letter: letter(known, event.t), reason: *reason }
        }
        EventKind::StopRequested { by, reason, .. } => {
            EntryKind::Stop { by: by.as_str().into(), reason: *reason }
        }
        EventKind::LimitRaised { by, limits } => {
            EntryKind::Limit { by: by.as_str().into(), limits: limits.clone() }
        }
        EventKind::Compacted { messages, tokens } => {
            EntryKind::Compacted { messages: *messages, tokens: *tokens }
        }
        EventKind::RunFinished { outcome, error, turns, .. } => {
            EntryKind::End { outcome: *outcome, error: error.clone(), turns: *turns }
        }
        EventKind::AgentClosed {} => EntryKind::Closed,
        _ => return None,
    })
}

fn waiting(id: &CallId, name: &Arc<str>, input: &Value) -> EntryKind {
    let (id, name, input) = (id.clone(), name.clone(), input.clone());
    EntryKind::Call(Call { id, name, input, state: CallState::Waiting, word: None })
}

/// The messages of these ids, which have just left the mailbox in this order. Ids are unique per sender
/// only, so a message is known by its place as well.
fn letters(ids: &[MessageId], text: &Arc<str>, agent: &Agent, now: Micros) -> Vec<Letter> {
    let mut left = agent.past.iter().rev().peekable();
    let known = |id: &MessageId| left.next_if(|message| message.id == *id).map(|known| letter(known, now));
    let known: Vec<Option<Letter>> = ids.iter().rev().map(known).collect();
    // Of mail that nothing was told of there is the text of all of it together: the first has it.
    let mut text = known.iter().all(Option::is_none).then(|| text.clone());
    let all = ids.iter().zip(known.into_iter().rev());
    all.map(|(id, known)| known.unwrap_or_else(|| unknown(id, text.take().unwrap_or_default()))).collect()
}

fn letter(message: &Message, now: Micros) -> Letter {
    let Message { id, from, urgency, text, since, state: _ } = message;
    Letter {
        id: id.clone(),
        from: from.as_str().into(),
        urgency: Some(*urgency),
        text: text.clone(),
        waited: since.map(|since| now.since(since)),
    }
}

/// A message that nothing was told of.
fn unknown(id: &MessageId, text: Arc<str>) -> Letter {
    Letter { id: id.clone(), from: "".into(), urgency: None, text, waited: None }
}
