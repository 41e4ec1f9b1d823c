//! Who did what when: the whole of it in the conversation's place, and its end beside a wide screen's conversation.

use std::ops::Range;

use midturn_core::rules::id::MessageId;
use midturn_core::rules::time::{Micros, Span};
use midturn_view::strip::{self, LineKind};
use midturn_view::what_if;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span as Piece};

use super::text;
use crate::layouts::Lines;
use crate::look::{Look, Tone};
use crate::state::State;
use crate::what_if::{Played, Shift};

/// How far back what stands beside the conversation reaches.
const BESIDE: Span = Span::secs(60);

/// All of it, or what was played and what would have been: laid out once for each second, and anew after an event.
pub(crate) fn whole(state: &State, width: u16) -> Lines {
    let (asked, look) = (&state.what_if, state.settings.look);
    let plays = asked.played.as_ref().map(|_| asked.plays);
    let of = (state.session.view().seq(), second(state), width, asked.chosen.clone(), plays);
    state.layouts.timeline(of, || match &asked.played {
        Some((shift, played)) => both(look, shift, played, width),
        None => alone(state, width),
    })
}

/// In which of its lines the chosen message stands first.
pub(crate) fn row_of_chosen(state: &State) -> Option<usize> {
    let width = super::areas(state).pane.width;
    strips(state, width).iter().position(|line| line.chosen.is_some())
}

/// The last minute, as much of it as has room; nothing where nothing happened.
pub(crate) fn beside(state: &State, width: u16) -> Lines {
    let look = state.settings.look;
    let now = second(state);
    state.layouts.beside((state.session.view().seq(), now, width), || {
        let from = Micros(now.since(Micros(BESIDE.0)).0);
        let picture = state.session.timeline().picture(from, now);
        let mut lines = vec![super::ruled(look, Tone::Quiet, "timeline, 1 min", width)];
        let last = strip::last(&picture, usize::from(width));
        lines.extend(last.into_iter().map(|line| drawn(look, line, width)));
        lines
    })
}

/// The second that it is in the session: what goes on grows once in each, as clocks do.
fn second(state: &State) -> Micros {
    let now = state.t().0;
    Micros(now - now % 1_000_000).max(state.session.view().t())
}

/// The timeline of the session.
fn alone(state: &State, width: u16) -> Vec<Line<'static>> {
    let look = state.settings.look;
    let lines = strips(state, width);
    if lines.is_empty() {
        return vec![Line::styled("nothing has happened yet", look.style(Tone::Quiet))];
    }
    lines.into_iter().map(|line| drawn(look, line, width)).collect()
}

fn strips(state: &State, width: u16) -> Vec<strip::Line> {
    let picture = state.session.timeline().picture(Micros::default(), second(state));
    if picture.lanes.is_empty() {
        return Vec::new();
    }
    let chosen = state.what_if.chosen.as_ref().map(MessageId::as_str);
    let mut lines = strip::lines(&picture, usize::from(width), chosen);
    if picture.left_out > 0 {
        let says = format!("{} calls before these are not drawn", picture.left_out);
        lines.insert(0, strip::Line::of(LineKind::Time, says));
    }
    lines
}

/// What would have been spared; then what happened, what would have, and what would have come out otherwise.
fn both(look: Look, shift: &Shift, played: &Played, width: u16) -> Vec<Line<'static>> {
    let said = |says: &String, tone| text::plain(says, width.max(1), look.style(tone));
    let mut lines: Vec<Line<'static>> =
        played.spared.iter().flat_map(|says| said(says, Tone::Strong)).collect();
    let parts = [(what_if::AS_IT_WAS.to_owned(), &played.before), (what_if::moved(shift.by), &played.after)];
    for (head, timeline) in parts {
        lines.push(super::ruled(look, Tone::Quiet, &head, width));
        let picture = timeline.picture(Micros::default(), Micros::default());
        let strips = strip::lines(&picture, usize::from(width), Some(shift.message.as_str()));
        lines.extend(strips.into_iter().map(|line| drawn(look, line, width)));
    }
    lines.push(super::ruled(look, Tone::Quiet, "", width));
    lines.extend(played.changes.iter().flat_map(|says| said(says, Tone::Plain)));
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
    let words = text::cut(&words, room, look);
    let style = look.style(tone);
    let mut pieces = vec![Piece::styled(line.name, look.style(Tone::Strong))];
    let of = |from: usize, to: usize| -> String {
        words.chars().skip(from).take(to.saturating_sub(from)).collect()
    };
    match line.chosen {
        None => pieces.push(Piece::styled(words, style)),
        Some(Range { start, end }) => {
            let chosen = style.add_modifier(Modifier::BOLD | Modifier::REVERSED);
            pieces.push(Piece::styled(of(0, start), style));
            pieces.push(Piece::styled(of(start, end), chosen));
            pieces.push(Piece::styled(of(end, usize::MAX), style));
        }
    }
    Line::from(pieces)
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
