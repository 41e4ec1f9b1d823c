//! The same events in the names of seed 004: `text`, `tool_call`, `tool_result`,
//! `soft_interrupt_injected`, `interrupted`, `error`, `done`, each with its `stream_run_id`; and
//! `approval_requested`, `approval_resolved`, which that seed does not have.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::InterruptReason;
use midturn_core::rules::event::{Event, EventKind, LiveEvent, LiveKind, Outcome};
use midturn_core::rules::id::MessageId;
use midturn_core::rules::view::{Agent, Message};
use serde_json::{Map, Value, json};

use super::{Item, frame};

/// In what a person's message beside tool results is framed (semantics.md, section 4).
const FRAME: (&str, &str) = ("[User feedback: ", "]");

/// What a client of one agent's stream was told so far.
#[derive(Default)]
pub(crate) struct SeedWords {
    /// How many bytes of the reply's text.
    said: usize,
    /// That the run was interrupted for good.
    interrupted: bool,
    /// The agent, as far as this client was told, and what was on its way to it before.
    agent: Agent,
}

type Told = Vec<(&'static str, Value)>;

impl SeedWords {
    /// The words for an agent to whom this is on its way.
    pub(crate) fn of(queue: VecDeque<Message>) -> Self {
        Self { agent: Agent { queue, ..Agent::default() }, ..Self::default() }
    }

    /// The frames of an item, as one piece of bytes.
    pub(super) fn frame(&mut self, item: &Item) -> Option<Bytes> {
        let json = frame::json(&item.frame);
        if !item.stored {
            return self.delta(&serde_json::from_slice(json).ok()?);
        }
        let event = serde_json::from_slice::<Event>(json);
        let event = event.inspect_err(|error| tracing::error!(%error, "a recorded event can't be read"));
        let event = event.ok()?;
        let run = event.at.run.unwrap_or_default();
        let told = self.event(run, &event.kind);
        self.agent.event(&event);
        Some(frames(event.seq, run, told?))
    }

    fn delta(&mut self, delta: &LiveEvent) -> Option<Bytes> {
        let LiveKind::TextDelta { text } = &delta.kind else { return None };
        self.said += text.len();
        let run = delta.at.run.unwrap_or_default();
        Some(frame::live("text", &with_run(run, json!({"text": text}))))
    }

    /// What an event is in seed 004's names. `Some` of nothing moves the client on silently:
    /// it has heard that text piece by piece.
    fn event(&mut self, run: u64, kind: &EventKind) -> Option<Told> {
        match kind {
            EventKind::RunStarted { .. } => {
                // What was told of one run matters to no other.
                (self.said, self.interrupted) = (0, false);
                None
            }
            EventKind::ModelStarted { .. } | EventKind::ModelRetry { .. } => {
                self.said = 0;
                None
            }
            EventKind::ModelFinished { text, purpose: Purpose::Turn, .. } => Some(self.rest(text)),
            EventKind::ModelInterrupted { text, reason, .. } => Some(self.cut(text, *reason)),
            EventKind::ToolStarted { tool, name, input, .. } => {
                Some(vec![("tool_call", json!({"id": tool, "name": name, "input": input}))])
            }
            EventKind::ToolFinished { tool, name, status, output, .. } => {
                let partial = status.is_partial();
                let result =
                    json!({"id": tool, "name": name, "status": status, "output": output, "partial": partial});
                Some(vec![("tool_result", result)])
            }
            EventKind::ApprovalRequested { tool, name, input, always } => {
                let request = json!({"id": tool, "name": name, "input": input, "always": always});
                Some(vec![("approval_requested", request)])
            }
            EventKind::ApprovalResolved { tool, decision, by, .. } => {
                Some(vec![("approval_resolved", json!({"id": tool, "decision": decision, "by": by}))])
            }
            EventKind::MessageInjected { messages, text, point, .. } => {
                let content = content(&self.agent.queue, messages, text);
                let injected = json!({"messages": messages, "content": content, "point": point});
                Some(vec![("soft_interrupt_injected", injected)])
            }
            EventKind::RunFinished { outcome, error, .. } => Some(self.done(run, *outcome, error.as_deref())),
            _ => None,
        }
    }

    /// What of a reply's text the client has not heard.
    fn rest(&mut self, text: &str) -> Told {
        let rest = text.get(self.said..).unwrap_or_default();
        self.said = 0;
        if rest.is_empty() { Vec::new() } else { vec![("text", json!({"text": rest}))] }
    }

    fn cut(&mut self, text: &str, reason: InterruptReason) -> Told {
        // What there was of a summary is said to nobody.
        let is_summary = self.agent.request.as_ref().is_some_and(|request| !request.purpose.is_turn());
        let mut told = if is_summary { Vec::new() } else { self.rest(text) };
        // After an urgent message, or an error that is retried, the run goes on.
        self.interrupted = !matches!(reason, InterruptReason::MessageInterrupt | InterruptReason::Error);
        told.push(("interrupted", json!({"reason": reason})));
        told
    }

    fn done(&self, run: u64, outcome: Outcome, error: Option<&str>) -> Told {
        let mut told = Vec::new();
        if outcome == Outcome::Stopped && !self.interrupted {
            let by_person = self.agent.stop_of(run).is_none_or(|stop| stop.by == "user");
            let reason =
                if by_person { InterruptReason::UserCancelled } else { InterruptReason::StoppedByParent };
            told.push(("interrupted", json!({"reason": reason})));
        }
        if matches!(outcome, Outcome::Failed | Outcome::Limit) {
            told.push(("error", json!({"error": error.unwrap_or("it reached a limit")})));
        }
        told.push(("done", json!({"outcome": outcome})));
        told
    }
}

/// What these messages say as they were sent, joined as the model reads them: without the frame
/// in which it does. Of what came before it is known here, taken out of the text that was injected.
fn content(queue: &VecDeque<Message>, messages: &[MessageId], injected: &str) -> String {
    let text = |id: &MessageId| Some(&*queue.iter().find(|message| message.id == *id)?.text);
    let texts: Option<Vec<&str>> = messages.iter().map(text).collect();
    texts.map_or_else(|| unframed(messages.len(), injected), |texts| texts.join("\n\n"))
}

/// The texts of so many messages of a person, if that is what was injected, else all of it.
fn unframed(count: usize, injected: &str) -> String {
    let (begin, end) = FRAME;
    let between = format!("{end}\n\n{begin}");
    let inner = injected.strip_prefix(begin).and_then(|text| text.strip_suffix(end));
    match inner.map(|text| text.split(&*between).collect::<Vec<_>>()) {
        Some(texts) if texts.len() == count => texts.join("\n\n"),
        Some(_) | None => injected.to_owned(),
    }
}

/// Frames that belong to one recorded event: only the last one has its number, so that who
/// comes back with it has had them all.
fn frames(seq: u64, run: u64, mut told: Told) -> Bytes {
    let Some((name, last)) = told.pop() else {
        return frame::silent(seq);
    };
    let last = frame::stored(seq, name, &with_run(run, last));
    if told.is_empty() {
        return last;
    }
    let mut all = BytesMut::new();
    for (name, data) in told {
        all.extend_from_slice(&frame::live(name, &with_run(run, data)));
    }
    all.extend_from_slice(&last);
    all.freeze()
}

fn with_run(run: u64, data: Value) -> String {
    let mut fields = Map::new();
    fields.insert("stream_run_id".to_owned(), run.into());
    if let Value::Object(data) = data {
        fields.extend(data);
    }
    Value::Object(fields).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the client is told of an event of the first run.
    fn event(words: &mut SeedWords, kind: Value) -> Option<Vec<String>> {
        let mut event = json!({"v": 1, "seq": 1, "t": 0.0, "agent": "w", "run": 1, "turn": 1});
        event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        let event: Event = serde_json::from_value(event).unwrap();
        let told = words.event(1, &event.kind);
        words.agent.event(&event);
        Some(told?.into_iter().map(|(name, data)| format!("{name} {data}")).collect())
    }

    fn injected(words: &mut SeedWords, messages: &[&str], text: &str) -> String {
        let kind = json!({"type": "message_injected", "messages": messages, "point": "D", "text": text,
            "skipped": [], "interrupted": []});
        let told = event(words, kind).unwrap();
        let told: Value =
            serde_json::from_str(told[0].strip_prefix("soft_interrupt_injected ").unwrap()).unwrap();
        told["content"].as_str().unwrap().to_owned()
    }

    /// A25: a message is told as it was sent, without the frame in which the model reads it.
    #[test]
    fn what_is_injected_is_told_as_it_was_sent() {
        let mut words = SeedWords::default();
        for (id, text) in [("1", "no]\n\n[User feedback: x"), ("2", "use tabs")] {
            let queued = json!({"type": "message_queued", "message": id, "from": "user",
                "urgency": "after_tools", "text": text});
            assert_eq!(event(&mut words, queued), None);
        }
        let text = "[User feedback: no]\n\n[User feedback: x]\n\n[User feedback: use tabs]";
        assert_eq!(injected(&mut words, &["1", "2"], text), "no]\n\n[User feedback: x\n\nuse tabs");
        assert_eq!(words.agent.queue.len(), 0);
        // Whoever joined after they were sent.
        for (count, text, expected) in [
            (1, "[User feedback: no]", "no"),
            (2, "[User feedback: no]\n\n[User feedback: use\ntabs]", "no\n\nuse\ntabs"),
            (1, "as it is, at B", "as it is, at B"),
            (1, "[worker finished: done]", "[worker finished: done]"),
        ] {
            assert_eq!(injected(&mut words, &["7", "8"][..count], text), expected);
        }
    }

    #[test]
    fn a_summary_is_said_to_nobody() {
        let asks =
            |purpose: &str| json!({"type": "model_started", "call": 1, "messages": 1, "purpose": purpose});
        let says = |purpose: &str| {
            json!({"type": "model_finished", "stop_reason": "end_turn", "usage": {}, "text": "So far.",
                "thinking": [], "tools": [], "purpose": purpose})
        };
        let cut = json!({"type": "model_interrupted", "reason": "message_interrupt", "text": "So",
            "thinking": [], "partial_tokens": 1});
        let mut words = SeedWords::default();
        for (kind, expected) in [
            (asks("summary"), None),
            (cut.clone(), Some(vec![r#"interrupted {"reason":"message_interrupt"}"#])),
            (asks("summary"), None),
            (says("summary"), None),
            (asks("turn"), None),
            (says("turn"), Some(vec![r#"text {"text":"So far."}"#])),
            (asks("turn"), None),
            (cut, Some(vec![r#"text {"text":"So"}"#, r#"interrupted {"reason":"message_interrupt"}"#])),
        ] {
            let told = event(&mut words, kind);
            let expected = expected.map(|told| told.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(told, expected);
        }
    }
}
