//! What was said so far of what is not recorded yet: who joins in the middle of a reply gets
//! it in one piece (scenarios.md, section 4).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use midturn_core::rules::event::{Event, EventKind, LiveEvent, LiveKind, Place, VERSION};
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::time::Micros;

use super::frame;
use super::sent::Sent;

/// So much of one reply's text, and of one reply's thinking, is kept; the newest, in bytes.
const TEXT: usize = 1024 * 1024;

/// So much of one call's output is kept; the newest, in bytes.
const OUTPUT: usize = 64 * 1024;

/// What all agents have said so far.
#[derive(Default)]
pub(super) struct SoFar {
    agents: BTreeMap<AgentName, Said>,
    sent: BTreeMap<AgentName, Sent>,
}

/// What one agent has said so far, and where it is.
#[derive(Default)]
struct Said {
    at: Place,
    t: Micros,
    n: u64,
    text: String,
    thinking: String,
    /// The calls of the reply: the tool, and how many bytes of its arguments have come.
    calls: BTreeMap<CallId, (Arc<str>, u64)>,
    output: BTreeMap<CallId, String>,
}

impl SoFar {
    /// Something was said.
    pub(super) fn live(&mut self, event: &LiveEvent) {
        let Some(agent) = &event.at.agent else { return };
        let said = self.agents.entry(agent.clone()).or_default();
        said.at = event.at.clone();
        (said.t, said.n) = (event.t, event.n);
        match &event.kind {
            LiveKind::TextDelta { text } => append(&mut said.text, text, TEXT),
            LiveKind::ThinkingDelta { text } => append(&mut said.thinking, text, TEXT),
            LiveKind::ToolOutput { tool, text } => {
                append(said.output.entry(tool.clone()).or_default(), text, OUTPUT);
            }
            LiveKind::CallDelta { tool, name, bytes } => {
                said.calls.insert(tool.clone(), (name.clone(), *bytes));
            }
        }
    }

    /// Something was recorded: what it says as a whole is no longer kept here.
    pub(super) fn recorded(&mut self, event: &Event) {
        let Some(agent) = &event.at.agent else { return };
        match &event.kind {
            EventKind::MessageQueued { .. } => {
                self.sent.entry(agent.clone()).or_default().recorded(&event.kind)
            }
            kind => {
                if let Some(sent) = self.sent.get_mut(agent) {
                    sent.recorded(kind);
                }
            }
        }
        let Some(said) = self.agents.get_mut(agent) else { return };
        match &event.kind {
            EventKind::ModelStarted { .. }
            | EventKind::ModelFinished { .. }
            | EventKind::ModelInterrupted { .. }
            | EventKind::ModelRetry { .. } => {
                said.text.clear();
                said.thinking.clear();
                said.calls.clear();
            }
            EventKind::ToolFinished { tool, .. } => {
                said.output.remove(tool);
            }
            EventKind::RunStarted { .. } | EventKind::RunFinished { .. } | EventKind::AgentClosed {} => {
                self.agents.remove(agent);
            }
            _ => {}
        }
    }

    /// What was sent to an agent and is not in its conversation yet.
    pub(super) fn sent(&self, agent: &AgentName) -> Sent {
        self.sent.get(agent).cloned().unwrap_or_default()
    }

    /// One frame for each text and each call that is under way, of one agent or of all.
    pub(super) fn frames(&self, seq: u64, only: Option<&AgentName>) -> Vec<(AgentName, Bytes)> {
        let wanted = self.agents.iter().filter(|(name, _)| only.is_none_or(|only| only == *name));
        wanted
            .flat_map(|(name, said)| said.frames(seq).into_iter().map(|frame| (name.clone(), frame)))
            .collect()
    }
}

impl Said {
    fn frames(&self, seq: u64) -> Vec<Bytes> {
        let texts = [(&self.thinking, false), (&self.text, true)].into_iter();
        let texts = texts.filter(|(text, _)| !text.is_empty()).map(|(text, spoken)| match spoken {
            true => LiveKind::TextDelta { text: text.clone() },
            false => LiveKind::ThinkingDelta { text: text.clone() },
        });
        let calls = self.calls.iter().map(|(tool, (name, bytes))| LiveKind::CallDelta {
            tool: tool.clone(),
            name: name.clone(),
            bytes: *bytes,
        });
        let output = self.output.iter();
        let output =
            output.map(|(tool, text)| LiveKind::ToolOutput { tool: tool.clone(), text: text.clone() });
        texts.chain(calls).chain(output).filter_map(|kind| self.frame(seq, kind)).collect()
    }

    fn frame(&self, seq: u64, kind: LiveKind) -> Option<Bytes> {
        frame_of(&LiveEvent { v: VERSION, seq, n: self.n, t: self.t, at: self.at.clone(), kind })
    }
}

/// The frame of a live event; none if it is no JSON, which no event is.
pub(super) fn frame_of(event: &LiveEvent) -> Option<Bytes> {
    let json = serde_json::to_string(event);
    json.inspect_err(|error| tracing::error!(%error, "a live event is no JSON"))
        .ok()
        .map(|json| frame::live(event.kind.type_name(), &json))
}

/// Appends, and forgets the oldest of what is too much.
fn append(kept: &mut String, text: &str, most: usize) {
    kept.push_str(text);
    if kept.len() > most {
        let mut cut = kept.len() - most;
        while !kept.is_char_boundary(cut) {
            cut += 1;
        }
        kept.drain(..cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_loses_its_oldest_characters_whole() {
        let mut kept = String::new();
        append(&mut kept, "aé", 4);
        append(&mut kept, "bc", 4);
        assert_eq!(kept, "ébc");
        // A byte too many, which takes a character of two with it.
        append(&mut kept, "d", 4);
        assert_eq!(kept, "bcd");
    }
}
