//! Who did what when: the whole of it in the conversation's place, and its end beside a wide screen's conversation.

use midturn_core::rules::time::{Micros, Span};
use midturn_view::strip::{self, LineKind};
use ratatui::text::{Line, Span as Piece};

use super::text;
use crate::look::{Look, Tone};
use crate::state::State;

/// How far back what stands beside the conversation reaches.
const BESIDE: Span = Span::secs(60);

/// All of it.
pub(super) fn whole(state: &State, width: u16) -> Vec<Line<'static>> {
    let picture = state.session.timeline().picture(Micros::default(), state.t());
    let look = state.settings.look;
    if picture.lanes.is_empty() {
        return vec![Line::styled("nothing has happened yet", look.style(Tone::Quiet))];
    }
    let mut lines = strip::lines(&picture, usize::from(width));
    if picture.left_out > 0 {
        let says = format!("{} calls before these are not drawn", picture.left_out);
        lines.insert(0, strip::Line { kind: LineKind::Time, name: String::new(), text: says });
    }
    lines.into_iter().map(|line| drawn(look, line, width)).collect()
}

/// The last minute, as much of it as has room; nothing where nothing happened.
pub(super) fn beside(state: &State, width: u16, height: u16) -> Vec<Line<'static>> {
    let look = state.settings.look;
    let from = Micros(state.t().since(Micros(BESIDE.0)).0);
    let picture = state.session.timeline().picture(from, state.t());
    let mut lines = vec![super::ruled(look, Tone::Quiet, "timeline, 1 min", width)];
    lines.extend(strip::last(&picture, usize::from(width)).into_iter().map(|line| drawn(look, line, width)));
    lines.truncate(usize::from(height));
    lines
}

fn drawn(look: Look, line: strip::Line, width: u16) -> Line<'static> {
    let tone = match line.kind {
        LineKind::Time | LineKind::Between => Tone::Quiet,
        LineKind::Mail => Tone::Mail,
        LineKind::Work => Tone::Plain,
    };
    let words = if look.unicode { line.text } else { ascii(&line.text) };
    let room = usize::from(width).saturating_sub(text::width(&line.name));
    Line::from(vec![
        Piece::styled(line.name, look.style(Tone::Strong)),
        Piece::styled(text::cut(&words, room, look), look.style(tone)),
    ])
}

/// What stands for signs in ASCII, each as wide as it.
fn ascii(text: &str) -> String {
    let stands_in = |c: char| match c {
        '═' => '=',
        '╌' | '┄' | '─' => '-',
        '·' => '.',
        '›' => '>',
        '⫽' => '/',
        '⊘' => '0',
        '■' | '□' => '#',
        '✓' => 'v',
        '✕' => 'x',
        '▲' => '^',
        '‖' => '|',
        '…' => '~',
        c if c.is_ascii() => c,
        _ => '?',
    };
    text.chars().map(stands_in).collect()
}
