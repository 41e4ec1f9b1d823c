//! Deltas, each once: who takes a stream up again gets what was said so far in one piece
//! (docs/protocol.md, "Events"), and most of that it had before. Pure.

use std::collections::BTreeMap;

use midturn_core::rules::event::{Event, EventKind, LiveEvent, LiveKind};
use midturn_core::rules::id::{AgentName, CallId};

/// So much of one text is remembered, in bytes. Of a longer one, what comes in one piece after
/// a break is told again as a whole.
const REMEMBERED: usize = 1 << 20;

/// What was said so far and is not recorded yet.
#[derive(Debug, Default)]
pub struct Deltas {
    agents: BTreeMap<AgentName, BTreeMap<What, Said>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Text,
    Thinking,
    Output(CallId),
}

#[derive(Debug, Default)]
struct Said {
    /// The number of the last delta.
    n: u64,
    text: String,
    too_long: bool,
    /// The next delta is what was said so far, in one piece.
    rejoined: bool,
}

impl Deltas {
    /// The stream was taken up again.
    pub fn rejoined(&mut self) {
        for said in self.agents.values_mut().flat_map(BTreeMap::values_mut) {
            said.rejoined = true;
        }
    }

    /// What of a delta was not told before.
    pub fn rest(&mut self, mut event: LiveEvent) -> Option<LiveEvent> {
        let Some(agent) = event.at.agent.clone() else { return Some(event) };
        let (what, text) = match &mut event.kind {
            LiveKind::TextDelta { text } => (What::Text, text),
            LiveKind::ThinkingDelta { text } => (What::Thinking, text),
            LiveKind::ToolOutput { tool, text } => (What::Output(tool.clone()), text),
            // It says how far a call has come: told again it is no harm.
            LiveKind::CallDelta { .. } => return Some(event),
        };
        let said = self.agents.entry(agent).or_default().entry(what).or_default();
        if std::mem::take(&mut said.rejoined) {
            if event.n <= said.n {
                return None;
            }
            match text.strip_prefix(&said.text) {
                Some(rest) if !said.too_long => *text = rest.to_owned(),
                Some(_) | None => said.text.clear(),
            }
        }
        said.n = event.n;
        if said.text.len() + text.len() <= REMEMBERED {
            said.text.push_str(text);
        } else {
            said.too_long = true;
        }
        (!text.is_empty()).then_some(event)
    }

    /// What is recorded as a whole needs no remembering.
    pub fn recorded(&mut self, event: &Event) {
        let Some(name) = &event.at.agent else { return };
        match &event.kind {
            EventKind::ModelStarted { .. }
            | EventKind::ModelFinished { .. }
            | EventKind::ModelInterrupted { .. }
            | EventKind::ModelRetry { .. } => {
                if let Some(agent) = self.agents.get_mut(name) {
                    agent.retain(|what, _| matches!(what, What::Output(_)));
                }
            }
            EventKind::ToolFinished { tool, .. } => {
                if let Some(agent) = self.agents.get_mut(name) {
                    agent.remove(&What::Output(tool.clone()));
                }
            }
            EventKind::RunStarted { .. } | EventKind::RunFinished { .. } | EventKind::AgentClosed {} => {
                self.agents.remove(name);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::compaction::Purpose;
    use midturn_core::rules::event::{Place, VERSION};
    use midturn_core::rules::time::Micros;

    use super::*;

    fn at() -> Place {
        Place::of(&AgentName::new("w").unwrap(), 1, 1)
    }

    fn said(deltas: &mut Deltas, n: u64, text: &str) -> Option<String> {
        let kind = LiveKind::TextDelta { text: text.into() };
        let event = LiveEvent { v: VERSION, seq: 1, n, t: Micros(0), at: at(), kind };
        match deltas.rest(event)?.kind {
            LiveKind::TextDelta { text } => Some(text),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn after_a_break_only_what_is_new_is_told() {
        let mut deltas = Deltas::default();
        for (n, text, rejoined, expected) in [
            (1, "a ", false, Some("a ")),
            (2, "a ", false, Some("a ")),
            (2, "a a ", true, None),
            (4, "a a b ", true, Some("b ")),
            (5, "a a b c", false, Some("a a b c")),
            (9, "something else", true, Some("something else")),
            (10, "something elsewhere", true, Some("where")),
        ] {
            if rejoined {
                deltas.rejoined();
            }
            assert_eq!(said(&mut deltas, n, text).as_deref(), expected, "{n}");
        }
    }

    #[test]
    fn the_next_reply_has_nothing_to_do_with_the_last() {
        let mut deltas = Deltas::default();
        said(&mut deltas, 1, "Hello");
        let kind = EventKind::ModelStarted { call: 2, messages: 1, purpose: Purpose::Turn };
        deltas.recorded(&Event { v: VERSION, seq: 2, t: Micros(0), at: at(), kind });
        deltas.rejoined();
        assert_eq!(said(&mut deltas, 2, "Hello again").as_deref(), Some("Hello again"));
    }
}
