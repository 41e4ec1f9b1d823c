//! What a person is asked: all of it, and the keys that answer it.

use midturn_core::rules::view::Ask;
use midturn_view::clean::one_line;
use midturn_view::words::{asked, whole as whole_line};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{call, put, text};
use crate::keys::Action;
use crate::layouts::Lines;
use crate::look::Tone;
use crate::state::State;

/// How many lines the request has, of at most so many: who asks, what, and the keys.
pub(super) fn height(state: &State, width: u16, most: u16) -> u16 {
    let Some(ask) = state.ask() else { return 0 };
    if most < 3 {
        return 1;
    }
    let lines = body(state, ask, width).len();
    u16::try_from(lines + 2).unwrap_or(u16::MAX).min(most)
}

/// All that is asked for, laid out once: it may be long, and is looked at several times for a frame.
fn body(state: &State, ask: &Ask, width: u16) -> Lines {
    let of = (ask.agent.clone(), ask.tool.clone(), ask.since, width);
    state.layouts.asked(of, || {
        let inner = width.saturating_sub(2).max(1);
        let lines = call::whole(&ask.name, &ask.input, inner, state.settings.look);
        lines.into_iter().map(|line| super::indented(line, 2, width)).collect()
    })
}

/// Draws the request.
pub(super) fn draw(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let Some(ask) = state.ask() else { return };
    let look = state.settings.look;
    let width = area.width;
    if area.height < 3 {
        let gist = asked(&ask.name, &ask.input);
        let line = format!("{} asks ({} yes): {gist}", ask.agent, state.key(Action::Once));
        return put(
            frame,
            area,
            vec![Line::styled(
                text::cut(&look.words(&line), usize::from(width), look),
                look.style(Tone::Asks),
            )],
        );
    }
    let more = state.session.view().open_asks().len() - 1;
    let more = if more == 0 { String::new() } else { format!(" · {more} more ask") };
    let mut lines = vec![super::ruled(
        look,
        Tone::Asks,
        &format!("{} asks: {}{more}", ask.agent, one_line(&ask.name)),
        width,
    )];
    let body = body(state, ask, width);
    let room = usize::from(area.height) - 2;
    let hidden = body.len().saturating_sub(room);
    let shown = if hidden == 0 { room } else { room - 1 };
    let left_out = body.len().saturating_sub(shown);
    lines.extend(body.iter().take(shown).cloned());
    if hidden > 0 {
        let says = format!("  … {left_out} more lines: {} shows all of it", state.key(Action::OpenCall));
        lines.push(Line::styled(
            text::cut(&look.words(&says), usize::from(width), look),
            look.style(Tone::Asks),
        ));
    }
    lines.push(Line::styled(
        text::cut(&look.words(&keys(state, ask)), usize::from(width), look),
        look.style(Tone::Asks),
    ));
    put(frame, area, lines);
}

fn keys(state: &State, ask: &Ask) -> String {
    let (once, always, no) = (state.key(Action::Once), state.key(Action::Always), state.key(Action::No));
    format!("{once} once   {no} no   /no REASON   {always} in this session: {}", whole_line(&ask.always))
}

/// The request, all of it.
pub(super) fn whole(state: &State, width: u16) -> Vec<Line<'static>> {
    let Some(ask) = state.ask() else { return Vec::new() };
    let look = state.settings.look;
    let mut lines = Vec::clone(&body(state, ask, width));
    lines.push(Line::default());
    lines.extend(text::plain(&look.words(&keys(state, ask)), width.max(1), look.style(Tone::Asks)));
    lines
}
