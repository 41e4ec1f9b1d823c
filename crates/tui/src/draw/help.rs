//! The plan, and all keys and actions.

use midturn_core::rules::event::PlanStatus;
use midturn_view::clean::one_line;
use ratatui::text::{Line, Span};

use super::text;
use crate::keys::TABLE;
use crate::look::Tone;
use crate::state::State;

/// How many lines the chosen agent's plan has beside the conversation.
pub(super) fn plan_height(state: &State) -> u16 {
    let steps = state.agent().map_or(0, |(_, agent)| agent.plan.len());
    if steps == 0 { 0 } else { u16::try_from(steps + 1).unwrap_or(u16::MAX) }
}

/// The chosen agent's plan.
pub(super) fn plan(state: &State, width: u16) -> Vec<Line<'static>> {
    let look = state.settings.look;
    let Some((_, agent)) = state.agent() else { return Vec::new() };
    let mut lines = vec![super::ruled(look, Tone::Quiet, "plan", width)];
    if agent.plan.is_empty() {
        lines.push(Line::styled("the agent has made no plan", look.style(Tone::Quiet)));
    }
    for step in &agent.plan {
        let (mark, tone) = match step.status {
            PlanStatus::Completed => ("x", Tone::Quiet),
            PlanStatus::InProgress => (">", Tone::Strong),
            PlanStatus::Pending => ("-", Tone::Plain),
            PlanStatus::Skipped => ("/", Tone::Cut),
        };
        let step = format!(" {mark} {}", one_line(&step.text));
        lines.push(Line::styled(text::cut(&step, usize::from(width), look), look.style(tone)));
    }
    lines
}

/// All keys and actions: each its keys, its word, and what it does.
pub(super) fn keys(state: &State, width: u16) -> Vec<Line<'static>> {
    let look = state.settings.look;
    let shown = |row: &crate::keys::Row| {
        let keys: Vec<String> =
            state.settings.keys.keys_of(row.action).iter().map(|key| key.shown()).collect();
        let left = text::pad(&format!("{}  ", keys.join(", ")), 26, look);
        let word = text::pad(&row.written(), 22, look);
        let help = text::plain(row.help, width.saturating_sub(49).max(20), look.style(Tone::Plain));
        let mut lines = help.into_iter();
        let first = lines.next().unwrap_or_default();
        let mut all = vec![
            Span::styled(left, look.style(Tone::Strong)),
            Span::styled(word + " ", look.style(Tone::Quiet)),
        ];
        all.extend(first.spans);
        let rest = lines.map(move |line| super::indented(line, 49, width));
        std::iter::once(Line::from(all)).chain(rest).collect::<Vec<_>>()
    };
    let mut lines: Vec<Line<'static>> = TABLE.iter().flat_map(shown).collect();
    lines.push(Line::default());
    for says in ESC {
        lines.extend(text::plain(says, width.max(1), look.style(Tone::Quiet)));
    }
    lines
}

/// What terminals do with keys that a person may wonder about.
const ESC: &[&str] = &[
    "In tmux Esc comes late, and Esc with Enter right after it as Alt+Enter: `set -sg escape-time 10` helps.",
    "Shift+Enter comes as Enter where a terminal tells no keys apart: Ctrl+S is the same, and Alt+U switches visibly.",
    "Names after @ at a draft's beginning say whom it is for. A draft that begins with // is a text that begins with /.",
];
