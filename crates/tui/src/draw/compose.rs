//! Around what is typed: what waits to be read, to whom it goes and how soon that acts, what becomes of
//! it, and the keys.

use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::{Role, Urgency};
use midturn_core::rules::view::{Agent, Message};
use midturn_view::clean::one_line;
use midturn_view::fold::EntryKind;
use midturn_view::mail;
use midturn_view::what_if;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Areas, put, ruled, text};
use crate::composer::completion::addressee;
use crate::keys::{Action, Draft, read, row_of};
use crate::look::Tone;
use crate::state::{Pane, Standing, State};

/// How many waiting messages are shown; of more the newest.
const QUEUE_MAX: usize = 4;

/// How many words the completion offers at a time.
const OFFERED: usize = 8;

/// How many lines the queue has.
pub(super) fn queue_height(state: &State, height: u16) -> u16 {
    let count = state.agent().map_or(0, |(_, agent)| agent.queue.len());
    let most = match height {
        0..10 => 0,
        10..20 => 2,
        20.. => QUEUE_MAX,
    };
    count.min(most) as u16
}

/// Draws what waits for the agent.
pub(super) fn queue(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let (Some((name, agent)), height) = (state.agent(), usize::from(area.height)) else { return };
    if height == 0 {
        return;
    }
    let hidden = agent.queue.len().saturating_sub(height);
    let shown = agent.queue.iter().enumerate().skip(hidden);
    let lines = shown.map(|(place, message)| waiting(state, name, place, hidden, message, area.width));
    put(frame, area, lines.collect());
}

fn waiting(
    state: &State,
    to: &AgentName,
    place: usize,
    hidden: usize,
    message: &Message,
    width: u16,
) -> Line<'static> {
    let look = state.settings.look;
    let head = if place == hidden { "queued" } else { "" };
    let whose = if state.is_ours(to, &message.id) { String::new() } else { format!("{}: ", sender(message)) };
    let said = format!(
        "{head:<6} {:>2}  {}  {whose}{}",
        place + 1,
        look.words(&format!("{} {}", mail::sign(message.urgency), mail::level(message.urgency))),
        one_line(&message.text.trim().replace('\n', " "))
    );
    Line::styled(text::cut(&said, usize::from(width), look), look.style(Tone::Mail))
}

fn sender(message: &Message) -> String {
    if message.from == "user" { "another terminal".to_owned() } else { one_line(&message.from) }
}

/// How soon what is typed acts: as the switch says, else as the receiver's default has it.
fn urgency(state: &State, agent: &Agent) -> Urgency {
    state.level.unwrap_or(match agent.role {
        Some(Role::Lead) => Urgency::AfterTools,
        Some(Role::Subagent) | None => Urgency::NextBoundary,
    })
}

/// Draws to whom one writes.
pub(super) fn to(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let look = state.settings.look;
    let Some((name, agent)) = receiver(state) else {
        return put(frame, area, vec![ruled(look, Tone::Quiet, "", area.width)]);
    };
    if let Some(comment) = state.composer.noting() {
        let head = format!("comment on {} · {} keeps it", comment.whereabouts(), state.key(Action::Send));
        return put(frame, area, vec![ruled(look, Tone::Strong, &head, area.width)]);
    }
    let mut head = match state.standing {
        Standing::Stored(_) => format!("{name} · read only"),
        _ => format!("to {name} · {} ({})", urgency(state, agent).as_str(), state.key(Action::Level)),
    };
    match state.composer.stacked() {
        0 => {}
        1 => head.push_str(" · 1 more draft"),
        count => head.push_str(&format!(" · {count} more drafts")),
    }
    put(frame, area, vec![ruled(look, Tone::Strong, &head, area.width)]);
}

/// What stands where nothing is typed yet.
pub(super) fn placeholder(state: &State) -> String {
    match &state.chosen {
        Some(_) if state.composer.noting().is_some() => "What is to be different here?".to_owned(),
        Some(name) if !is_stored(state) => format!("Write to {name}"),
        _ => String::new(),
    }
}

fn is_stored(state: &State) -> bool {
    matches!(state.standing, Standing::Stored(_))
}

/// How many lines there are for what is to be said: one at least, where there is room.
pub(super) fn status_height(state: &State, width: u16, height: u16) -> u16 {
    let needed = status_lines(state, width).len().max(1) as u16;
    match height {
        0..3 => 0,
        3..12 => 1,
        12.. => needed.min(3),
    }
}

fn status_lines(state: &State, width: u16) -> Vec<Line<'static>> {
    let look = state.settings.look;
    let (tone, says) = says(state);
    text::plain(&look.words(&says), width.max(1), look.style(tone))
}

/// Draws what becomes of what was sent, or what is to be said.
pub(super) fn status(state: &State, frame: &mut Frame<'_>, area: Rect) {
    put(frame, area, status_lines(state, area.width).into_iter().take(usize::from(area.height)).collect());
}

fn says(state: &State) -> (Tone, String) {
    if let Some(notice) = &state.notice {
        return (notice.tone, notice.text.clone());
    }
    if let Some(says) = message_says(state) {
        return (Tone::Mail, says);
    }
    // Who writes wants to know what will become of that; what became of the last message stands above, too.
    if let Some(says) = comments_say(state) {
        return (Tone::Quiet, says);
    }
    if !state.composer.is_empty() && state.is_live() {
        return (Tone::Quiet, promise(state));
    }
    if let Standing::Stored(why) = &state.standing {
        return (Tone::Quiet, why.clone());
    }
    let fate = state.agent().and_then(|(name, agent)| fate(state, name, agent));
    fate.unwrap_or((Tone::Quiet, String::new()))
}

/// The message of the timeline that is chosen, and what can be done with it.
fn message_says(state: &State) -> Option<String> {
    let (asked, timeline) = (&state.what_if, state.session.timeline());
    let letter = asked.message(timeline).filter(|_| state.pane == Pane::Timeline)?;
    let says = timeline.says(letter);
    if asked.asked.is_some() && asked.is_awaited {
        return Some(format!("{} {says}", what_if::PLAYING));
    }
    let key = |action| state.key(action);
    Some(match asked.by {
        0 => format!("{says} · {} moves it later, {} sooner", key(Action::Step), key(Action::Back)),
        by => format!("Moved by {} ({} plays): {says}", what_if::words(by), key(Action::Send)),
    })
}

/// What will become of the comments on the diff that is looked at.
fn comments_say(state: &State) -> Option<String> {
    let is_noting = state.composer.noting().is_some();
    let is_free = state.composer.is_empty() && matches!(state.pane, Pane::Diff(_));
    let count = state.composer.comments().count() + usize::from(is_noting);
    if count == 0 || !(is_noting || is_free) || !state.is_live() {
        return None;
    }
    let (_, agent) = state.agent()?;
    let promise = mail::promise(urgency(state, agent), agent);
    let what = if count == 1 { "the comment".to_owned() } else { format!("{count} comments") };
    Some(format!("{promise} · {} sends {what}", state.key(Action::SendComments)))
}

/// What will become of what is typed.
fn promise(state: &State) -> String {
    let Some((_, agent)) = receiver(state) else { return String::new() };
    match read(&state.composer.text()) {
        Ok(Draft::Text(_)) => mail::promise(urgency(state, agent), agent).to_owned(),
        Ok(Draft::Command(action, _)) => row_of(action).map(|row| row.help.to_owned()).unwrap_or_default(),
        // It is not typed to its end yet.
        Err(_) => String::new(),
    }
}

/// Who gets what is typed: the one whom it names at its beginning, else the one that one looks at.
fn receiver(state: &State) -> Option<(AgentName, &Agent)> {
    let view = state.session.view();
    let agents: Vec<AgentName> = view.agents().map(|(name, _)| name.clone()).collect();
    let named = addressee(&state.composer.text(), &agents).map(|addressed| addressed.agent);
    let name = named.or_else(|| state.chosen.clone())?;
    let agent = view.agent(&name)?;
    Some((name, agent))
}

/// What became of the last message of ours to this agent.
fn fate(state: &State, name: &AgentName, agent: &Agent) -> Option<(Tone, String)> {
    let last = state.last.get(name)?;
    if let Some(waiting) = agent.queue.iter().find(|message| message.id == *last) {
        let words = mail::waits(waiting.urgency, agent);
        let command = if words == mail::WHEN_IT_RUNS { " (/resume)" } else { "" };
        return Some((Tone::Mail, format!("{words}{command}")));
    }
    let conversation = state.session.conversation(name)?;
    conversation.entries().rev().find_map(|(_, entry)| match &entry.kind {
        EntryKind::Injected(injected) if injected.letters.iter().any(|letter| letter.id == *last) => {
            Some((Tone::Good, mail::injected(injected)))
        }
        EntryKind::Returned { letter, reason } if letter.id == *last => {
            Some((Tone::Cut, mail::returned(*reason).to_owned()))
        }
        _ => None,
    })
}

/// The keys that are shown, with a word each.
const SHOWN: &[(Action, &str)] = &[
    (Action::Send, "send"),
    (Action::Sooner, "sooner"),
    (Action::Now, "now"),
    (Action::Later, "later"),
    (Action::Stop, "stop"),
    (Action::NextAgent, "agent"),
    (Action::OpenCall, "open"),
];

/// The same while a diff is looked at.
const SHOWN_DIFF: &[(Action, &str)] = &[
    (Action::Comment, "comment"),
    (Action::SendComments, "send comments"),
    (Action::Level, "how soon"),
    (Action::Diff, "close"),
    (Action::NextAgent, "agent"),
];

/// The same while the timeline is looked at.
const SHOWN_TIMELINE: &[(Action, &str)] = &[
    (Action::PreviousMessage, "message before"),
    (Action::NextMessage, "next message"),
    (Action::PageUp, "back"),
    (Action::Timeline, "close"),
];

/// The same while a message of it is chosen.
const SHOWN_MESSAGE: &[(Action, &str)] = &[
    (Action::PreviousMessage, "before"),
    (Action::NextMessage, "next"),
    (Action::Back, "sooner"),
    (Action::Step, "later"),
    (Action::Send, "play"),
];

/// The same where nobody is there to be written to.
const SHOWN_STORED: &[(Action, &str)] = &[
    (Action::NextAgent, "agent"),
    (Action::PageUp, "back"),
    (Action::OpenCall, "open"),
    (Action::Leave, "leave"),
];

/// Draws the keys: as many as fit, each whole.
pub(super) fn keys(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let look = state.settings.look;
    let mut line = String::new();
    let (last, most) = (state.key(Action::Help) + " keys", usize::from(area.width));
    let all = match &state.pane {
        Pane::Timeline if state.what_if.chosen.is_some() => SHOWN_MESSAGE,
        Pane::Timeline => SHOWN_TIMELINE,
        _ if is_stored(state) => SHOWN_STORED,
        Pane::Diff(Some(Ok(_))) => SHOWN_DIFF,
        _ => SHOWN,
    };
    for (action, word) in all {
        let shown = format!("{} {word}  ", state.key(*action).replace("Ctrl+", "^"));
        if text::width(&line) + text::width(&shown) + text::width(&last) <= most {
            line.push_str(&shown);
        }
    }
    line.push_str(&last);
    put(frame, area, vec![Line::styled(text::cut(&line, most, look), look.style(Tone::Quiet))]);
}

/// Draws what the word that is typed may become, over what stands above it.
pub(super) fn completion(state: &State, frame: &mut Frame<'_>, areas: &Areas) {
    let Some(completion) = state.completion() else { return };
    let look = state.settings.look;
    let (items, chosen) = (completion.items, completion.chosen);
    let (top, bottom) = room(areas);
    let shown = items.len().min(OFFERED).min(usize::from(bottom.saturating_sub(top)));
    let first = (chosen + 1).saturating_sub(shown);
    let width = areas.compose.width;
    let area = Rect::new(0, bottom - shown as u16, width, shown as u16);
    let lines = items.iter().enumerate().skip(first).take(shown).map(|(at, item)| {
        let mark = if at == chosen { ">" } else { " " };
        let word = format!("{mark} {:<16} ", item.word);
        let tone = if at == chosen { Tone::Strong } else { Tone::Plain };
        let help = text::cut(&item.help, usize::from(width).saturating_sub(text::width(&word)), look);
        Line::from(vec![
            Span::styled(text::cut(&word, usize::from(width), look), look.style(tone)),
            Span::styled(help, look.style(Tone::Quiet)),
        ])
    });
    put(frame, area, lines.collect());
}

/// Where the completion may stand: below whom one looks at, and above what is asked.
fn room(areas: &Areas) -> (u16, u16) {
    let bottom = if areas.ask.height > 0 { areas.ask.y } else { areas.to.y.min(areas.compose.y) };
    (areas.title.bottom(), bottom)
}

impl State {
    /// The key of an action as it is shown, or its word where it has none.
    pub(crate) fn key(&self, action: Action) -> String {
        let key = self.settings.keys.keys_of(action).first().map(|key| key.shown());
        key.unwrap_or_else(|| row_of(action).map(|row| format!("/{}", row.name)).unwrap_or_default())
    }
}
