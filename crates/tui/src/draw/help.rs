//! The plan, and all keys and actions.

use midturn_core::rules::event::PlanStatus;
use midturn_view::clean::one_line;
use ratatui::text::{Line, Span};

use super::text;
use crate::keys::{Action, Row, TABLE};
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
    let mut lines: Vec<Line<'static>> = TABLE.iter().flat_map(|row| key(state, row, width)).collect();
    lines.push(Line::default());
    for says in told_of(state) {
        lines.extend(text::plain(&says, width.max(1), look.style(Tone::Quiet)));
    }
    lines
}

/// From this width on what a key does stands beside it, else below.
const BESIDE: u16 = 70;

/// Where it stands then: behind the key, and behind the word.
const COLUMNS: (usize, usize) = (26, 23);

fn key(state: &State, row: &Row, width: u16) -> Vec<Line<'static>> {
    let look = state.settings.look;
    let is_beside = width >= BESIDE;
    let keys: Vec<String> = state.settings.keys.keys_of(row.action).iter().map(|key| key.shown()).collect();
    let (mut keys, mut word) = (keys.join(", "), row.written());
    if is_beside {
        keys = text::pad(&(keys + "  "), COLUMNS.0, look);
        word = text::pad(&(word + " "), COLUMNS.1, look);
    } else if !keys.is_empty() {
        keys += "  ";
    }
    let head =
        vec![Span::styled(keys, look.style(Tone::Strong)), Span::styled(word, look.style(Tone::Quiet))];
    let indent = if is_beside { (COLUMNS.0 + COLUMNS.1) as u16 } else { 4 };
    let mut help =
        text::plain(row.help, width.saturating_sub(indent).max(1), look.style(Tone::Plain)).into_iter();
    let mut lines = if is_beside {
        let first = help.next().map(|line| line.spans).unwrap_or_default();
        vec![Line::from([head, first].concat())]
    } else {
        text::wrap(head, width.max(1), "  ")
    };
    lines.extend(help.map(|line| super::indented(line, indent, width)));
    lines
}

/// What terminals do with keys that a person may wonder about: of those that hold.
fn told_of(state: &State) -> Vec<String> {
    let held = |action| state.settings.keys.keys_of(action).iter().map(|key| key.shown());
    let mut says = Vec::new();
    if held(Action::Stop).any(|key| key == "Esc") {
        says.push("In tmux Esc comes late, and Esc with Enter right after it as Alt+Enter: `set -sg escape-time 10` helps.".to_owned());
    }
    if held(Action::Sooner).any(|key| key == "Shift+Enter") && held(Action::Send).any(|key| key == "Enter") {
        let (same, level) = (state.key(Action::Sooner), state.key(Action::Level));
        says.push(format!(
            "Shift+Enter comes as Enter where a terminal tells no keys apart: {same} is the same, and {level} switches visibly."
        ));
    }
    says.push("Names after @ at a draft's beginning say whom it is for. A draft that begins with // is a text that begins with /.".to_owned());
    says
}
