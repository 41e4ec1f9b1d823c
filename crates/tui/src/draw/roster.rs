//! Who is there, who needs somebody first, and what each does.

use midturn_core::rules::id::AgentName;
use midturn_core::rules::view::Agent;
use midturn_view::agents::{self, Class};
use midturn_view::figures;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{put, text};
use crate::look::Tone;
use crate::state::State;

/// The widest that a name is shown.
const NAME_MAX: usize = 16;

/// Draws the rows that have room: those that need somebody, and the chosen one.
pub(super) fn draw(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let height = usize::from(area.height);
    if height == 0 {
        return;
    }
    let rows: Vec<&AgentName> = state.order.rows().map(|(name, _)| name).collect();
    let chosen = rows.iter().position(|name| Some(*name) == state.chosen.as_ref()).unwrap_or(0);
    let hidden = rows.len().saturating_sub(height);
    let shown = if hidden == 0 { height } else { height - 1 };
    let first = (chosen + 1).saturating_sub(shown).min(rows.len().saturating_sub(shown));
    let longest = rows.iter().map(|name| name.as_str().len()).max().unwrap_or(0).min(NAME_MAX);
    let rows_shown = rows.iter().skip(first).take(shown);
    let mut lines: Vec<Line<'static>> =
        rows_shown.map(|name| row(state, name, longest, area.width)).collect();
    if hidden > 0 {
        let look = state.settings.look;
        let more = look.words(&format!("   … {} more agents: Tab shows the next", rows.len() - shown));
        lines.push(Line::styled(text::cut(&more, usize::from(area.width), look), look.style(Tone::Quiet)));
    }
    put(frame, area, lines);
}

fn row(state: &State, name: &AgentName, longest: usize, width: u16) -> Line<'static> {
    let look = state.settings.look;
    let Some(agent) = state.session.view().agent(name) else { return Line::default() };
    let class = state.class_of(name, agent);
    let is_chosen = state.chosen.as_ref() == Some(name);
    let doing = agents::doing(agent, state.ask_of(name), state.t());
    let clock = doing.since.map(|since| figures::clock(state.t().since(since))).unwrap_or_default();
    let figures = figures(state, name, agent, &clock, width);
    let mark = if is_chosen { ">" } else { " " };
    let name = text::pad(name.as_str(), longest, look);
    let left = format!("{mark}{} {name}  ", class.sign());
    let room = usize::from(width).saturating_sub(text::width(&left) + text::width(&figures) + 1);
    let words = text::pad(&look.words(&doing.words), room, look);
    let strong = if is_chosen { Tone::Strong } else { Tone::Plain };
    let all = vec![
        Span::styled(left, look.style(tone(class)).patch(look.style(strong))),
        Span::styled(words, look.style(if is_chosen { Tone::Strong } else { tone_of_words(class) })),
        Span::styled(format!(" {figures}"), look.style(Tone::Quiet)),
    ];
    fitted(all, usize::from(width), look)
}

/// Spans within a width, from the left on.
fn fitted(spans: Vec<Span<'static>>, width: usize, look: crate::look::Look) -> Line<'static> {
    let mut left = width;
    let mut kept = Vec::new();
    for span in spans {
        let shown = text::cut(&span.content, left, look);
        left -= text::width(&shown).min(left);
        kept.push(Span::styled(shown, span.style));
    }
    Line::from(kept)
}

/// How long, how much mail, how many tokens: in columns, as many as the width allows.
fn figures(state: &State, name: &AgentName, agent: &Agent, clock: &str, width: u16) -> String {
    let tokens = match agent.usage.total() {
        0 => String::new(),
        tokens => figures::count(tokens),
    };
    let mail = match agent.queue.len() {
        0 => String::new(),
        count if width >= 60 => format!("mail {count}"),
        count => format!("m{count}"),
    };
    let cost = state.facts.get(name).and_then(|facts| facts.cost).filter(|_| width >= 110);
    let cost = cost.map(|cost| format!(" {:>6}", format!("${cost}"))).unwrap_or_default();
    match width {
        0..30 => mail,
        30..60 => format!("{clock:>6} {mail:>3}"),
        60.. => format!("{clock:>7}  {mail:>7} {tokens:>6}{cost}"),
    }
}

fn tone(class: Class) -> Tone {
    match class {
        Class::Asks => Tone::Asks,
        Class::Failed => Tone::Bad,
        Class::Works => Tone::Good,
        Class::Stopped => Tone::Cut,
        Class::Waits | Class::Idle => Tone::Plain,
        Class::Closed => Tone::Quiet,
    }
}

fn tone_of_words(class: Class) -> Tone {
    match class {
        Class::Asks => Tone::Asks,
        Class::Failed => Tone::Bad,
        Class::Works | Class::Waits => Tone::Plain,
        Class::Stopped | Class::Idle | Class::Closed => Tone::Quiet,
    }
}
