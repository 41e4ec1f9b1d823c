//! What `midturn watch` shows: lines for events, and what models and tools say as it comes,
//! line by line, since several speak at once. Pure: it prints nothing.

use std::collections::BTreeMap;

use midturn_core::rules::event::{Event, EventKind, LiveEvent, LiveKind};
use midturn_core::rules::id::AgentName;
use midturn_view::lines::{Lines, PRINTS, SAYS, THINKS, shown};
use midturn_view::words::{Line, Shown};

/// What is being said and not shown yet.
#[derive(Default)]
pub(super) struct View {
    speakers: BTreeMap<AgentName, Speaker>,
    /// What was shown of the session.
    pub(super) shown: Shown,
}

#[derive(Default)]
struct Speaker {
    text: Lines,
    thinking: Lines,
    output: Lines,
    /// Whether a part of the reply under way was shown: then its whole is not.
    has_spoken: bool,
}

impl View {
    /// `answers`: with what agents ask it is said what can be typed.
    pub(super) fn new(answers: bool) -> Self {
        Self { speakers: BTreeMap::new(), shown: Shown::new(answers) }
    }

    /// The lines for an event, before them the rest of what was being said.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut has_spoken = false;
        if let Some(name) = &event.at.agent
            && let Some(speaker) = self.speakers.get_mut(name)
        {
            lines = speaker.rest(name);
            has_spoken = speaker.has_spoken;
            if matches!(event.kind, EventKind::ModelFinished { .. } | EventKind::ModelInterrupted { .. }) {
                speaker.has_spoken = false;
            }
            if matches!(event.kind, EventKind::RunFinished { .. } | EventKind::AgentClosed {}) {
                self.speakers.remove(name);
            }
        }
        let whole = self.shown.event(event);
        let is_known = has_spoken && matches!(event.kind, EventKind::ModelFinished { .. });
        lines.extend(whole.filter(|_| !is_known));
        lines
    }

    /// The lines that a delta completes.
    pub(super) fn live(&mut self, event: &LiveEvent) -> Vec<Line> {
        let Some(name) = &event.at.agent else { return Vec::new() };
        let speaker = self.speakers.entry(name.clone()).or_default();
        let (mut lines, said, text, style) = match &event.kind {
            LiveKind::TextDelta { text } => {
                speaker.has_spoken = true;
                (shown(name, speaker.thinking.rest(), THINKS), &mut speaker.text, text, SAYS)
            }
            LiveKind::ThinkingDelta { text } => (Vec::new(), &mut speaker.thinking, text, THINKS),
            LiveKind::ToolOutput { text, .. } | LiveKind::SetupOutput { text } => {
                (Vec::new(), &mut speaker.output, text, PRINTS)
            }
            LiveKind::CallDelta { .. } => return Vec::new(),
        };
        lines.extend(shown(name, said.add(text), style));
        lines
    }

    /// All that was being said, when nothing comes any more.
    pub(super) fn rest(&mut self) -> Vec<Line> {
        let speakers = std::mem::take(&mut self.speakers);
        speakers.into_iter().flat_map(|(name, mut speaker)| speaker.rest(&name)).collect()
    }
}

impl Speaker {
    fn rest(&mut self, name: &AgentName) -> Vec<Line> {
        let mut lines = shown(name, self.thinking.rest(), THINKS);
        lines.extend(shown(name, self.text.rest(), SAYS));
        lines.extend(shown(name, self.output.rest(), PRINTS));
        lines
    }
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::compaction::Purpose;
    use midturn_core::rules::conversation::Usage;
    use midturn_core::rules::event::{Place, VERSION};
    use midturn_core::rules::id::CallId;
    use midturn_core::rules::time::Micros;

    use super::*;

    fn at(name: &str) -> Place {
        Place::of(&AgentName::new(name).unwrap(), 1, 1)
    }

    fn live(view: &mut View, name: &str, kind: LiveKind) -> Vec<String> {
        let event = LiveEvent { v: VERSION, seq: 1, n: 1, t: Micros(0), at: at(name), kind };
        view.live(&event).into_iter().map(|(_, line)| line).collect()
    }

    fn says(view: &mut View, name: &str, text: &str) -> Vec<String> {
        live(view, name, LiveKind::TextDelta { text: text.into() })
    }

    fn finished(view: &mut View, name: &str, text: &str) -> Vec<String> {
        let kind = EventKind::ModelFinished {
            stop_reason: "end_turn".into(),
            usage: Usage::default(),
            text: text.into(),
            thinking: vec![],
            tools: vec![],
            purpose: Purpose::Turn,
        };
        let event = Event { v: VERSION, seq: 2, t: Micros(0), at: at(name), kind };
        view.event(&event).into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn several_that_speak_at_once_are_shown_line_by_line() {
        let mut view = View::default();
        let thinks = LiveKind::ThinkingDelta { text: "Hm.".into() };
        assert!(live(&mut view, "a", thinks).is_empty());
        assert_eq!(says(&mut view, "a", "First li"), ["a ~ Hm."]);
        assert!(says(&mut view, "b", "Other").is_empty());
        assert_eq!(says(&mut view, "a", "ne\n\nSecond"), ["a | First line"]);
        let prints = LiveKind::ToolOutput { tool: CallId::new("c"), text: "\u{1b}[3".into() };
        assert!(live(&mut view, "b", prints).is_empty());
        let prints = LiveKind::ToolOutput { tool: CallId::new("c"), text: "1mred\r\n".into() };
        assert_eq!(live(&mut view, "b", prints), ["b $ red"]);
        assert_eq!(finished(&mut view, "a", "First line\n\nSecond"), ["a | Second"]);
        assert_eq!(view.rest().len(), 1, "b has not ended its line");
    }

    #[test]
    fn a_reply_that_came_as_a_whole_is_shown_in_short() {
        let mut view = View::default();
        assert_eq!(finished(&mut view, "a", "One\nTwo"), ["a: One…"]);
        says(&mut view, "a", "x");
        assert_eq!(finished(&mut view, "a", "x"), ["a | x"]);
        assert_eq!(finished(&mut view, "a", "One"), ["a: One"], "the next reply is another one");
    }

    #[test]
    fn a_line_without_an_end_is_broken_between_words() {
        let mut view = View::default();
        let lines = says(&mut view, "a", &"word ".repeat(41));
        assert_eq!(
            lines,
            [format!("a | {}", "word ".repeat(20).trim()), format!("a | {}", "word ".repeat(20).trim())]
        );
        assert_eq!(says(&mut view, "b", &"x".repeat(101)), [format!("b | {}", "x".repeat(100))]);
    }
}
