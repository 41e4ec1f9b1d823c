//! The screen, drawn from the state and from nothing else.

mod ask;
pub mod call;
mod compose;
pub mod diff;
mod entry;
mod head;
mod help;
mod inbox;
pub mod markdown;
mod roster;
mod table;
pub mod talk;
#[cfg(test)]
mod tests;
pub mod text;
pub(crate) mod timeline;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use crate::look::{Look, Tone};
use crate::state::{Pane, State};

/// From this width on the roster is a column.
const WIDE: (u16, u16) = (100, 24);

/// Where everything stands. What has no room has no height.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Areas {
    /// The task, counts and spend.
    pub head: Rect,
    /// Who is there.
    pub roster: Rect,
    /// The plan, beside a wide screen's conversation.
    pub side: Rect,
    /// The last minute's timeline, below it.
    pub timeline: Rect,
    /// Whom one looks at.
    pub title: Rect,
    /// The conversation, or what stands in its place.
    pub pane: Rect,
    /// What waits to be read.
    pub queue: Rect,
    /// What a person is asked.
    pub ask: Rect,
    /// To whom one writes, and how soon that acts.
    pub to: Rect,
    /// What is typed.
    pub compose: Rect,
    /// What becomes of it.
    pub status: Rect,
    /// The keys.
    pub keys: Rect,
}

/// Where everything stands. Whom one looks at, what asks, what is typed and what becomes of it are always there.
pub fn areas(state: &State) -> Areas {
    let (width, height) = (state.size.width, state.size.height);
    let mut bottom = height;
    let mut from_below = |lines: u16| {
        let lines = lines.min(bottom);
        bottom -= lines;
        Rect::new(0, bottom, width, lines)
    };
    if state.bare {
        let title = Rect::new(0, 0, width, height.min(1));
        let pane = Rect::new(0, title.height, width, height - title.height);
        return Areas { title, pane, ..Areas::default() };
    }
    let keys = from_below(u16::from(height >= 12));
    let status = from_below(compose::status_height(state, width, height));
    let compose = from_below(state.composer.height(width, (height / 3).clamp(1, 12)));
    let to = from_below(u16::from(height >= 8));
    let ask = from_below(ask::height(state, width, (height / 3).max(1)));
    let queue = from_below(compose::queue_height(state, height));
    let head = Rect::new(0, 0, width, u16::from(height >= 10));
    let top = head.height.min(bottom);
    // What is read and closed again has the whole width.
    let is_wide = width >= WIDE.0 && height >= WIDE.1 && matches!(state.pane, Pane::Talk | Pane::Plan);
    let (roster, [side, timeline], x) =
        if is_wide { column(state, top, bottom) } else { (rows(state, top, bottom), [Rect::ZERO; 2], 0) };
    let top = if is_wide { top } else { roster.bottom().max(top) };
    let title = Rect::new(x, top, width - x, bottom.saturating_sub(top).min(1));
    let top = top + title.height;
    let pane = Rect::new(x, top, width - x, bottom.saturating_sub(top));
    Areas { head, roster, side, timeline, title, pane, queue, ask, to, compose, status, keys }
}

/// The roster above the conversation: a quarter of the room at most.
fn rows(state: &State, top: u16, bottom: u16) -> Rect {
    let room = bottom.saturating_sub(top);
    let agents = u16::try_from(state.order.rows().count()).unwrap_or(u16::MAX);
    let most = if room < 8 { 0 } else { (room / 3).min(10) };
    Rect::new(0, top, state.size.width, agents.min(most))
}

/// The roster beside the conversation, the plan and the timeline below it, and where the conversation begins.
fn column(state: &State, top: u16, bottom: u16) -> (Rect, [Rect; 2], u16) {
    let width = (state.size.width / 3).clamp(38, 64);
    let room = bottom.saturating_sub(top);
    let agents = u16::try_from(state.order.rows().count()).unwrap_or(u16::MAX);
    let plan = help::plan_height(state).min(room / 2);
    let rows = agents.min(room - plan);
    let roster = Rect::new(0, top, width, rows);
    let plan = Rect::new(0, top + rows, width, plan);
    // One that shows fewer than two lanes shows nothing.
    let left = bottom.saturating_sub(plan.bottom());
    let timeline = Rect::new(0, plan.bottom(), width, if left < 4 { 0 } else { left });
    (roster, [plan, timeline], width + 3)
}

/// Draws the screen.
pub fn draw(state: &State, frame: &mut Frame<'_>) {
    let areas = areas(state);
    head::draw(state, frame, areas.head);
    roster::draw(state, frame, areas.roster);
    if areas.side.height > 0 {
        put(frame, areas.side, help::plan(state, areas.side.width));
    }
    if areas.timeline.height > 0 {
        let lines = timeline::beside(state, areas.timeline.width);
        put(frame, areas.timeline, lines.iter().take(usize::from(areas.timeline.height)).cloned().collect());
    }
    divider(state, frame, &areas);
    head::title(state, frame, areas.title);
    pane(state, frame, areas.pane);
    if state.bare {
        return;
    }
    compose::queue(state, frame, areas.queue);
    ask::draw(state, frame, areas.ask);
    compose::to(state, frame, areas.to);
    compose::status(state, frame, areas.status);
    compose::keys(state, frame, areas.keys);
    // The terminal may have become smaller since the size was told.
    let typed = areas.compose.intersection(frame.area());
    if !typed.is_empty() {
        state.composer.draw(frame, typed, state.settings.look, &compose::placeholder(state));
    }
    compose::completion(state, frame, &areas);
}

fn divider(state: &State, frame: &mut Frame<'_>, areas: &Areas) {
    if areas.title.x < 2 {
        return;
    }
    let look = state.settings.look;
    let height = areas.title.height + areas.pane.height;
    let lines = vec![Line::styled(look.sign("│", "|"), look.style(Tone::Quiet)); usize::from(height)];
    put(frame, Rect::new(areas.title.x - 2, areas.title.y, 1, height), lines);
}

fn pane(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let look = state.settings.look;
    let lines = match &state.pane {
        Pane::Talk => {
            let (lines, below) = talk::page(state, area.width, area.height);
            put(frame, area, lines);
            return head::below(state, frame, area, below);
        }
        Pane::Plan => help::plan(state, area.width),
        Pane::Inbox => inbox::lines(state, area.width),
        Pane::Help => help::keys(state, area.width),
        Pane::Timeline => {
            let lines = timeline::whole(state, area.width);
            let shown = lines.iter().skip(state.pane_top.min(last_top(state))).take(usize::from(area.height));
            return put(frame, area, shown.cloned().collect());
        }
        Pane::Ask => ask::whole(state, area.width),
        Pane::Diff(None) => {
            vec![Line::styled(look.words("asks git what was changed …"), look.style(Tone::Quiet))]
        }
        Pane::Diff(Some(Ok(changes))) => return put(frame, area, diff::page(state, changes, area)),
        Pane::Diff(Some(Err(why))) => text::plain(why, area.width.max(1), look.style(Tone::Bad)),
    };
    // A page that was scrolled past its end shows its last lines.
    let top = state.pane_top.min(lines.len().saturating_sub(usize::from(area.height)));
    put(frame, area, lines.into_iter().skip(top).collect());
}

/// How far down what stands in the conversation's place can be scrolled, where that is known without laying it out.
pub(crate) fn last_top(state: &State) -> usize {
    let area = areas(state).pane;
    match state.pane {
        Pane::Timeline => timeline::whole(state, area.width).len().saturating_sub(usize::from(area.height)),
        _ => usize::MAX,
    }
}

/// Puts lines into an area: they are as wide as it already.
fn put(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    let area = area.intersection(frame.area());
    if area.is_empty() {
        return;
    }
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines), area);
}

/// A heading across the width.
fn ruled(look: Look, tone: Tone, head: &str, width: u16) -> Line<'static> {
    let width = usize::from(width);
    let rule = look.sign("─", "-");
    let head = text::cut(&look.words(head), width.saturating_sub(6), look);
    let used = text::width(&head) + 4;
    let text = if head.is_empty() {
        rule.repeat(width)
    } else {
        format!("{rule}{rule} {head} {}", rule.repeat(width.saturating_sub(used)))
    };
    Line::styled(text::cut(&text, width, look), look.style(tone))
}

/// A heading that is never cut: one that is longer than the width goes on below.
fn heading(look: Look, tone: Tone, head: &str, width: u16) -> Vec<Line<'static>> {
    let words = look.words(head);
    if text::width(&words) + 6 <= usize::from(width) {
        return vec![ruled(look, tone, head, width)];
    }
    let rule = look.sign("──", "--");
    text::wrap(vec![Span::styled(format!("{rule} {words}"), look.style(tone))], width.max(1), "   ")
}

/// A line so many cells further right, if there is room.
fn indented(line: Line<'static>, by: u16, width: u16) -> Line<'static> {
    if width <= by {
        return line;
    }
    let mut spans = vec![Span::raw(" ".repeat(usize::from(by)))];
    spans.extend(line.spans.into_iter().map(|span| Span::styled(span.content, line.style.patch(span.style))));
    Line::from(spans)
}
