//! The inbox: what waits for the person, what of it is told now, and where choosing one leads.

use crossterm::event::KeyCode;
use midturn_core::rules::id::AgentName;
use midturn_view::clean::one_line;
use midturn_view::inbox::{Need, needs, newest_first};
use midturn_wire::work::Conflict;

use crate::effect::Effect;
use crate::look::Tone;
use crate::settings::Notify;
use crate::state::{Looked, Pane, Standing, State};

/// Of no event: what waits has changed, and none has told.
pub(super) const NONE: u64 = u64::MAX;

/// What follows for the inbox from whatever happened.
pub(super) fn settle(state: &mut State, effects: &mut Vec<Effect>) {
    let seq = state.session.view().seq();
    if state.is_loading() || seq == state.inbox_seq {
        return;
    }
    // What was there when it was opened is on the screen, which somebody has just opened.
    let looks = state.inbox_seq == 0 && state.opening.last_seq > 0 || is_looked_at(state);
    state.inbox_seq = seq;
    if matches!(state.standing, Standing::Stored(_)) {
        // It is read, and nobody in it waits.
        return state.inbox.clear();
    }
    state.inbox = newest_first(needs(state.session.view()).into_iter().chain(conflicts(state)));
    let news: Vec<Need> = state.told.news(&state.inbox, looks).into_iter().cloned().collect();
    if !news.is_empty() {
        effects.push(Effect::Tell(news));
    }
    let title = title(state);
    if state.settings.notify != Notify::Off && state.title.as_ref() != Some(&title) {
        state.title = Some(title.clone());
        effects.push(Effect::Title(title));
    }
}

/// The merges that would not go, of those who rest: who works may be about to mend it.
fn conflicts(state: &State) -> Vec<Need> {
    let rests = |name: &AgentName| {
        state.session.view().agent(name).is_some_and(|agent| !agent.is_working() && !agent.is_closed)
    };
    let torn = state.facts.iter().filter(|(name, _)| rests(name));
    torn.filter_map(|(name, facts)| {
        let Conflict { run, since, files } = facts.conflict.as_ref()?;
        Some(Need::conflict(name, *run, *since, files))
    })
    .collect()
}

fn is_looked_at(state: &State) -> bool {
    match state.looked {
        Looked::Yes => true,
        Looked::No => false,
        Looked::Unsure => !state.settings.notify_unsure,
    }
}

/// The window's title: how many wait, and the task.
fn title(state: &State) -> String {
    let waiting = match state.inbox.len() {
        0 => String::new(),
        count => format!("({count}) "),
    };
    one_line(&format!("{waiting}midturn: {}", state.opening.title))
}

/// A key where nothing is typed and the inbox is open. `false`: it is not for the inbox.
pub(super) fn pressed(state: &mut State, code: KeyCode) -> bool {
    let at = state.inbox_at();
    match code {
        KeyCode::Up => choose(state, at.saturating_sub(1)),
        KeyCode::Down => choose(state, at + 1),
        KeyCode::Enter => go(state, at),
        _ => return false,
    }
    true
}

fn choose(state: &mut State, at: usize) {
    if let Some(need) = state.inbox.get(at) {
        state.inbox_chosen = Some(need.id.clone());
    }
}

/// Opens the inbox, or goes to what has this number in it, from 1.
pub(super) fn act(state: &mut State, words: &str) {
    if words.is_empty() {
        state.inbox_chosen = None;
        return state.show(Pane::Inbox);
    }
    match words.parse::<usize>().ok().and_then(|number| number.checked_sub(1)) {
        Some(at) if at < state.inbox.len() => go(state, at),
        _ => state.say(Tone::Bad, format!("nothing in the inbox has the number `{}`", one_line(words))),
    }
}

/// Looks at who waits.
fn go(state: &mut State, at: usize) {
    if let Some(agent) = state.inbox.get(at).map(|need| need.agent.clone()) {
        state.choose(&agent);
        state.pane = Pane::Talk;
        state.pane_top = 0;
    }
}

impl State {
    /// Which one of the inbox is chosen: it stays that one while others come and go.
    pub(crate) fn inbox_at(&self) -> usize {
        let chosen = self.inbox_chosen.as_ref();
        self.inbox.iter().position(|need| Some(&need.id) == chosen).unwrap_or(0)
    }
}
