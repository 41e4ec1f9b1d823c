//! The session in a line, whom one looks at in a line, and how much came below.

use midturn_core::rules::event::PlanStatus;
use midturn_core::rules::limits::Money;
use midturn_view::agents::Class;
use midturn_view::clean::one_line;
use midturn_view::figures;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{put, ruled, text};
use crate::keys::Action;
use crate::look::{Tone, dollars};
use crate::state::{Pane, Standing, State};

/// Draws the session: its task, who works, who asks, what it cost.
pub(super) fn draw(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let look = state.settings.look;
    let right = counts(state);
    let width = usize::from(area.width);
    let room = width.saturating_sub(text::width(&right) + 12);
    let title = text::pad(&one_line(&state.opening.title), room, look);
    let line = Line::from(vec![
        Span::styled(" midturn  ", look.style(Tone::Strong)),
        Span::styled(title, look.style(Tone::Plain)),
        Span::styled(
            text::cut(&format!("  {right}"), width.saturating_sub(10 + room), look),
            look.style(Tone::Quiet),
        ),
    ]);
    put(frame, area, vec![line]);
}

fn counts(state: &State) -> String {
    let view = state.session.view();
    let mut counts = (0, 0, 0, 0);
    for (name, agent) in view.agents() {
        counts.0 += 1;
        match state.class_of(name, agent) {
            Class::Works => counts.1 += 1,
            Class::Asks => counts.2 += 1,
            Class::Failed => counts.3 += 1,
            Class::Waits | Class::Idle | Class::Stopped | Class::Closed => {}
        }
    }
    let (all, work, asks, failed) = counts;
    let mut parts = vec![if all == 1 { "1 agent".to_owned() } else { format!("{all} agents") }];
    parts.extend(
        [(work, ["works", "work"]), (asks, ["asks", "ask"]), (failed, ["failed"; 2])]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, [one, many])| format!("{count} {}", if count == 1 { one } else { many })),
    );
    if !state.inbox.is_empty() && state.size.width >= 60 {
        parts.push(format!("inbox {}", state.inbox.len()));
    }
    let tokens = view.usage().total();
    if tokens > 0 && state.size.width >= 100 {
        parts.push(format!("{} tokens", figures::count(tokens)));
    }
    let costs = state.facts.values().filter_map(|facts| facts.cost);
    if let Some(cost) = costs.reduce(Money::plus) {
        let is_about = state.facts.values().any(|facts| facts.cost.is_some() && facts.is_about);
        parts.push(dollars(cost, is_about));
    }
    if state.is_loading() {
        parts.push("loading".to_owned());
    }
    match state.standing {
        Standing::Stored(_)
            if let Some(player) = &state.player
                && player.is_whole()
                && !player.is_at_end() =>
        {
            parts.push(player.says());
        }
        Standing::Stored(_) => parts.push("stored".to_owned()),
        Standing::Lost(_) => parts.push("LOST".to_owned()),
        Standing::Ours | Standing::Theirs => {}
    }
    parts.join("  ")
}

/// Draws whom one looks at, and what of them.
pub(super) fn title(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let look = state.settings.look;
    let Some((name, agent)) = state.agent() else {
        let words = if state.is_live() { "waits for the first agent" } else { "no agent" };
        return put(frame, area, vec![ruled(look, Tone::Quiet, words, area.width)]);
    };
    let mut parts = vec![name.to_string()];
    match &state.pane {
        Pane::Talk => {}
        Pane::Plan => parts.push("plan".to_owned()),
        Pane::Diff(_) => parts.push("diff".to_owned()),
        Pane::Ask => parts.push("what is asked".to_owned()),
        Pane::Inbox => parts.push("inbox".to_owned()),
        Pane::Help => parts.push("keys and actions".to_owned()),
        Pane::Timeline if state.what_if.played.is_some() => parts.push("what if".to_owned()),
        Pane::Timeline => parts.push("timeline of all".to_owned()),
    }
    if state.pane == Pane::Talk {
        if agent.run > 0 {
            parts.push(format!("run {} turn {}", agent.run, agent.turn));
        }
        let done = agent.plan.iter().filter(|step| step.status == PlanStatus::Completed).count();
        if !agent.plan.is_empty() {
            parts.push(format!("plan {done}/{}", agent.plan.len()));
        }
        let facts = state.facts.get(name);
        if let Some((used, limit)) = facts.and_then(|facts| Some((facts.context.used, facts.context.limit?)))
        {
            parts.push(format!("ctx {}%", used.saturating_mul(100) / limit.max(1)));
        }
        parts
            .extend(facts.and_then(|facts| facts.limit.clone()).map(|limit| format!("at its limit {limit}")));
        parts.extend(facts.and_then(|facts| facts.branch.as_deref()).map(one_line));
    } else {
        let goes_back = state.pane == Pane::Timeline && state.what_if.chosen.is_some();
        parts.push(format!("{} {}", state.key(Action::Stop), if goes_back { "goes back" } else { "closes" }));
    }
    put(frame, area, vec![ruled(look, Tone::Strong, &parts.join(" · "), area.width)]);
}

/// Says over the last line of the conversation how much came below it.
pub(super) fn below(state: &State, frame: &mut Frame<'_>, area: Rect, count: u64) {
    if !matches!(state.looking().scroll, crate::state::Scroll::At { .. }) || area.height < 2 {
        return;
    }
    let look = state.settings.look;
    let what = if count == 0 { "more".to_owned() } else { format!("{count} new") };
    let says = format!("{what} below: {} follows", state.key(Action::End));
    let says = text::cut(&format!(" {says} "), usize::from(area.width), look);
    let width = text::width(&says) as u16;
    let place = Rect::new(area.right().saturating_sub(width), area.bottom() - 1, width, 1);
    put(frame, place, vec![Line::styled(says, look.style(Tone::Mail))]);
}
