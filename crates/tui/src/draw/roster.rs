//! Who is there, who needs somebody first, and what each does.

use midturn_core::rules::id::AgentName;
use midturn_core::rules::time::Micros;
use midturn_core::rules::view::Agent;
use midturn_view::agents::{self, Class};
use midturn_view::figures;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{put, text};
use crate::keys::Action;
use crate::look::Tone;
use crate::state::{Facts, State};

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
    let shown_rows: Vec<Row<'_>> =
        rows.iter().skip(first).take(shown).filter_map(|name| Row::of(state, name, area.width)).collect();
    let figures = columns(&shown_rows.iter().map(|row| row.figures.clone()).collect::<Vec<_>>());
    let both = shown_rows.iter().zip(figures);
    let mut lines: Vec<Line<'static>> =
        both.map(|(row, figures)| line(state, row, &figures, longest, area.width)).collect();
    if hidden > 0 {
        let look = state.settings.look;
        let (count, key) = (rows.len() - shown, state.key(Action::NextAgent));
        let more = look.words(&format!("   … {count} more agents: {key} shows the next"));
        lines.push(Line::styled(text::cut(&more, usize::from(area.width), look), look.style(Tone::Quiet)));
    }
    put(frame, area, lines);
}

/// An agent's row.
struct Row<'a> {
    name: &'a AgentName,
    class: Class,
    doing: String,
    figures: Figures,
}

impl<'a> Row<'a> {
    fn of(state: &State, name: &'a AgentName, width: u16) -> Option<Self> {
        let agent = state.session.view().agent(name)?;
        let doing = agents::doing(agent, state.ask_of(name), state.t());
        let figures = figures_of(state, name, agent, doing.since, width);
        Some(Self { name, class: state.class_of(name, agent), doing: doing.words, figures })
    }
}

fn line(state: &State, row: &Row<'_>, figures: &str, longest: usize, width: u16) -> Line<'static> {
    let look = state.settings.look;
    let is_chosen = state.chosen.as_ref() == Some(row.name);
    let mark = if is_chosen { ">" } else { " " };
    let name = text::pad(row.name.as_str(), longest, look);
    let left = format!("{mark}{} {name}  ", row.class.sign());
    let room = usize::from(width).saturating_sub(text::width(&left) + text::width(figures));
    let words = text::pad(&look.words(&row.doing), room, look);
    let strong = look.style(if is_chosen { Tone::Strong } else { Tone::Plain });
    let all = vec![
        Span::styled(left, look.style(tone(row.class)).patch(strong)),
        Span::styled(words, look.style(tone_of_words(row.class)).patch(strong)),
        Span::styled(figures.to_owned(), look.style(Tone::Quiet)),
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

/// How long, how much mail, how many tokens, what it cost.
type Figures = [String; 4];

fn figures_of(state: &State, name: &AgentName, agent: &Agent, since: Option<Micros>, width: u16) -> Figures {
    let clock = since.map(|since| figures::clock(state.t().since(since))).unwrap_or_default();
    let mail = match agent.queue.len() {
        0 => String::new(),
        count if width >= 60 => format!("mail {count}"),
        count => format!("m{count}"),
    };
    let tokens = Some(agent.usage.total()).filter(|tokens| *tokens > 0 && width >= 40);
    let cost = state.facts.get(name).filter(|_| width >= 90).and_then(Facts::money);
    [clock, mail, tokens.map(figures::count).unwrap_or_default(), cost.unwrap_or_default()]
}

/// Figures in columns, each as wide as its widest: what nobody has takes no room.
fn columns(all: &[Figures]) -> Vec<String> {
    let widest: [usize; 4] =
        std::array::from_fn(|column| all.iter().map(|row| text::width(&row[column])).max().unwrap_or(0));
    let line = |row: &Figures| {
        let cells = row.iter().zip(widest).filter(|(_, width)| *width > 0);
        cells.map(|(cell, width)| format!("  {cell:>width$}")).collect::<String>()
    };
    all.iter().map(line).collect()
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
