//! What waits for the person, the newest first.

use midturn_view::figures;
use midturn_view::inbox::{Need, What};
use ratatui::text::{Line, Span};

use super::text;
use crate::look::Tone;
use crate::state::State;

/// All of it, a line each, and how one goes to one.
pub(super) fn lines(state: &State, width: u16) -> Vec<Line<'static>> {
    let look = state.settings.look;
    if state.inbox.is_empty() {
        return vec![Line::styled("nothing waits for you", look.style(Tone::Quiet))];
    }
    let rows = state.inbox.iter().enumerate().map(|(at, need)| line(state, at, need, usize::from(width)));
    let mut lines: Vec<Line<'static>> = rows.collect();
    lines.push(Line::default());
    let says = "Up and Down choose, Enter goes there; /inbox NUMBER does, too.";
    lines.extend(text::plain(says, width.max(1), look.style(Tone::Quiet)));
    lines
}

fn line(state: &State, at: usize, need: &Need, width: usize) -> Line<'static> {
    let look = state.settings.look;
    let is_chosen = at == state.inbox_at();
    let (sign, tone) = match need.what {
        What::Asks => ("?", Tone::Asks),
        What::Failed | What::Limit | What::Conflict => ("!", Tone::Bad),
        What::Ended => ("-", Tone::Plain),
    };
    let left = format!("{}{:>2} {sign} ", if is_chosen { ">" } else { " " }, at + 1);
    let age = need.since.map(|since| figures::clock(state.t().since(since))).unwrap_or_default();
    let room = width.saturating_sub(text::width(&left) + text::width(&age) + 2);
    let strong = look.style(if is_chosen { Tone::Strong } else { Tone::Plain });
    Line::from(vec![
        Span::styled(left, look.style(tone).patch(strong)),
        Span::styled(text::pad(&look.words(&need.line()), room, look), look.style(Tone::Plain).patch(strong)),
        Span::styled(format!("  {age}"), look.style(Tone::Quiet)),
    ])
}
