//! The same events in the names of seed 004: `text`, `tool_call`, `tool_result`,
//! `soft_interrupt_injected`, `interrupted`, `error`, `done`, each with its `stream_run_id`; and
//! `approval_requested`, `approval_resolved`, which that seed does not have.

use bytes::{Bytes, BytesMut};
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::InterruptReason;
use midturn_core::rules::event::{Event, EventKind, Outcome};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::sent::Sent;
use super::{Item, frame};

/// What a client of one agent's stream was told so far.
#[derive(Default)]
pub(crate) struct SeedView {
    /// How many bytes of the reply's text.
    said: usize,
    /// The call under way is for a summary.
    is_apart: bool,
    /// That the run was interrupted for good.
    interrupted: bool,
    /// Who asked for a stop.
    stopped_by: Option<String>,
    /// What is on its way to the agent.
    sent: Sent,
}

/// As much of a delta as is needed here.
#[derive(Deserialize)]
struct Delta {
    run: Option<u64>,
    #[serde(rename = "type")]
    kind: String,
    text: String,
}

type Told = Vec<(&'static str, Value)>;

impl SeedView {
    /// The view of an agent to whom this is on its way.
    pub(super) fn of(sent: Sent) -> Self {
        Self { sent, ..Self::default() }
    }

    /// What was told of one run matters to no other.
    fn forget(&mut self) {
        *self = Self::of(std::mem::take(&mut self.sent));
    }

    /// The frames of an item, as one piece of bytes.
    pub(super) fn frame(&mut self, item: &Item) -> Option<Bytes> {
        let json = frame::json(&item.frame);
        if !item.stored {
            let delta = serde_json::from_slice::<Delta>(json).ok()?;
            return self.delta(&delta);
        }
        let event = serde_json::from_slice::<Event>(json);
        let event = event.inspect_err(|error| tracing::error!(%error, "a recorded event can't be read"));
        let event = event.ok()?;
        let run = event.at.run.unwrap_or_default();
        let told = self.event(&event.kind);
        self.sent.recorded(&event.kind);
        Some(frames(event.seq, run, told?))
    }

    fn delta(&mut self, delta: &Delta) -> Option<Bytes> {
        if delta.kind != "text_delta" {
            return None;
        }
        self.said += delta.text.len();
        let run = delta.run.unwrap_or_default();
        Some(frame::live("text", &with_run(run, json!({"text": delta.text}))))
    }

    /// What an event is in seed 004's names. `Some` of nothing moves the client on silently:
    /// it has heard that text piece by piece.
    fn event(&mut self, kind: &EventKind) -> Option<Told> {
        match kind {
            EventKind::RunStarted { .. } => {
                self.forget();
                None
            }
            EventKind::ModelStarted { purpose, .. } => {
                (self.said, self.is_apart) = (0, !purpose.is_turn());
                None
            }
            EventKind::ModelRetry { .. } => {
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
                let content = self.sent.content(messages, text);
                let injected = json!({"messages": messages, "content": content, "point": point});
                Some(vec![("soft_interrupt_injected", injected)])
            }
            EventKind::StopRequested { by, .. } => {
                self.stopped_by = Some(by.clone());
                None
            }
            EventKind::RunFinished { outcome, error, .. } => Some(self.done(*outcome, error.as_deref())),
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
        let mut told = if self.is_apart { Vec::new() } else { self.rest(text) };
        // After an urgent message, or an error that is retried, the run goes on.
        self.interrupted = !matches!(reason, InterruptReason::MessageInterrupt | InterruptReason::Error);
        told.push(("interrupted", json!({"reason": reason})));
        told
    }

    fn done(&mut self, outcome: Outcome, error: Option<&str>) -> Told {
        let mut told = Vec::new();
        if outcome == Outcome::Stopped && !self.interrupted {
            let by_person = self.stopped_by.as_deref().is_none_or(|by| by == "user");
            let reason =
                if by_person { InterruptReason::UserCancelled } else { InterruptReason::StoppedByParent };
            told.push(("interrupted", json!({"reason": reason})));
        }
        if matches!(outcome, Outcome::Failed | Outcome::Limit) {
            told.push(("error", json!({"error": error.unwrap_or("it reached a limit")})));
        }
        told.push(("done", json!({"outcome": outcome})));
        self.forget();
        told
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

    fn event(view: &mut SeedView, kind: Value) -> Option<Vec<String>> {
        let kind = serde_json::from_value(kind).unwrap();
        Some(view.event(&kind)?.into_iter().map(|(name, data)| format!("{name} {data}")).collect())
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
        let mut view = SeedView::default();
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
            let told = event(&mut view, kind);
            let expected = expected.map(|told| told.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(told, expected);
        }
    }
}
