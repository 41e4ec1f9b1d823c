//! What an input changes, and what is to be done for it. Pure: time is told, and nothing is waited for.

mod action;
mod done;
mod inbox;
mod playing;
mod review;
mod send;
#[cfg(test)]
mod tests;
mod told;
mod what_if;

use crossterm::event::{KeyCode, KeyEvent};
use midturn_client::events::Told;
use midturn_core::rules::time::{Micros, Span};
use midturn_view::clean::one_line;
use ratatui::layout::Size;

use crate::composer::completion::{Completion, Item};
use crate::composer::{Composer, TooLong};
use crate::effect::{Done, Effect};
use crate::keys::{Action, matching};
use crate::look::Tone;
use crate::older::Older;
use crate::state::{Completing, Drawn, Looked, NOTICE, Pane, SAVE_AFTER, Scroll, State};

/// How soon what events don't say is asked for again.
const FACTS_EVERY: Span = Span::secs(2);

/// How often clocks on the screen move.
const SECOND: Span = Span::secs(1);

/// Within which time a second Ctrl+C leaves.
const TWICE: Span = Span::secs(3);

/// How many characters of a message that was sent the search shows.
const SHOWN_MAX: usize = 256;

/// Something that happened.
#[derive(Debug)]
pub enum Input {
    /// A key.
    Key(KeyEvent),
    /// A text that was pasted.
    Paste(String),
    /// The wheel: so many lines, down is more.
    Wheel(i16),
    /// Another size.
    Resize(Size),
    /// Somebody looks at the terminal now, or no longer.
    Looked(bool),
    /// Something was told of the session.
    Told(Told),
    /// Something was done.
    Done(Done),
    /// Time goes by.
    Tick,
}

/// Takes an input at this time, and says what is to be done.
pub fn update(state: &mut State, input: Input, now: Micros) -> Vec<Effect> {
    state.now = now;
    let mut effects = match input {
        Input::Key(key) => key_pressed(state, key),
        Input::Paste(text) => pasted(state, &text),
        Input::Wheel(lines) => {
            state.scroll_by(isize::from(lines));
            Vec::new()
        }
        Input::Resize(size) => {
            state.size = size;
            Vec::new()
        }
        Input::Looked(is) => {
            state.looked = if is { Looked::Yes } else { Looked::No };
            Vec::new()
        }
        Input::Told(told) => told::told(state, told),
        Input::Done(done) => done::done(state, done),
        Input::Tick => Vec::new(),
    };
    settle(state, &mut effects);
    effects
}

/// What follows from whatever happened.
fn settle(state: &mut State, effects: &mut Vec<Effect>) {
    playing::shows_due(state);
    choose_somebody(state);
    order(state);
    draw_ask(state);
    inbox::settle(state, effects);
    if state.notice.as_ref().is_some_and(|notice| state.now.since(notice.since) >= NOTICE) {
        state.notice = None;
    }
    if state.is_live() && facts_due(state).is_some_and(|due| state.now >= due) {
        state.asked = (state.now, false);
        effects.push(Effect::Agents);
    }
    effects.extend(wants_older(state));
    if state.save_at.is_some_and(|due| state.now >= due) {
        state.save_at = None;
        effects.extend(state.composer.unsaved().map(Effect::Save));
    }
}

/// Who looks at the first entry that there is wants those before it, too.
fn wants_older(state: &mut State) -> Option<Effect> {
    let name = state.chosen.clone()?;
    let looked = match state.looking().scroll {
        Scroll::At { entry, .. } => entry,
        Scroll::End => return None,
    };
    let conversation = state.session.conversation(&name)?;
    let (forgotten, first) = (conversation.dropped(), conversation.entries().next()?.1.seq);
    if forgotten == 0 || !state.opening.can_ask {
        return None;
    }
    if state.older_of(&name).is_none() {
        state.older = Some(Older::new(name.clone(), forgotten, first));
    }
    let older = state.older.as_mut()?;
    let is_wanted = looked <= forgotten - (older.entries().len() as u64).min(forgotten);
    let before = older.before.filter(|_| is_wanted && !older.is_asked)?;
    older.is_asked = true;
    Some(Effect::Older(name, before))
}

fn order(state: &mut State) {
    let all: Vec<_> =
        state.session.view().agents().map(|(name, agent)| (name, state.class_of(name, agent))).collect();
    state.order.told(all);
}

/// Somebody is looked at as soon as there is anybody: the lead, who is the first.
fn choose_somebody(state: &mut State) {
    if state.chosen.is_some() {
        return;
    }
    let first = state.session.view().agents().find(|(_, agent)| agent.parent.is_none());
    if let Some((name, _)) = first {
        let name = name.clone();
        state.choose(&name);
    }
}

/// Keeps in mind which request is drawn, and since when: a key answers that one only.
fn draw_ask(state: &mut State) {
    let Some((agent, call, since)) = state.ask().map(|ask| (ask.agent.clone(), ask.tool.clone(), ask.since))
    else {
        state.drawn = None;
        if state.pane == Pane::Ask {
            state.pane = Pane::Talk;
        }
        return;
    };
    let is_it = |drawn: &Drawn| drawn.agent == agent && drawn.call == call && drawn.since == since;
    if !state.drawn.as_ref().is_some_and(is_it) {
        state.drawn = Some(Drawn { agent, call, since, drawn: state.now });
    }
}

fn facts_due(state: &State) -> Option<Micros> {
    let (asked, is_due) = state.asked;
    (is_due && !state.is_loading()).then(|| asked.after(FACTS_EVERY))
}

/// When something changes without an input. `None`: nothing does, and nobody has to wake.
pub fn wakes_at(state: &State) -> Option<Micros> {
    let is_working = state.session.view().agents().any(|(_, agent)| agent.is_working());
    let clocks = (state.is_live() && is_working).then(|| state.now.after(SECOND));
    let notice = state.notice.as_ref().map(|notice| notice.since.after(NOTICE));
    let facts = facts_due(state).filter(|_| state.is_live());
    let playing = state.player.as_ref().and_then(|player| player.wakes_at());
    [clocks, notice, facts, state.save_at, playing].into_iter().flatten().min()
}

fn pasted(state: &mut State, text: &str) -> Vec<Effect> {
    typed(state, |composer| composer.paste(text));
    Vec::new()
}

/// Changes the draft, which is kept on disk soon.
fn typed(state: &mut State, change: impl FnOnce(&mut Composer) -> Result<(), TooLong>) {
    if let Err(why) = change(&mut state.composer) {
        state.say(Tone::Bad, why.to_string());
    }
    state.completing = Completing { searching: state.completing.searching, ..Completing::default() };
    state.keep_drafts();
}

fn key_pressed(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    if key.is_release() || state.completes(key) {
        return Vec::new();
    }
    let is_plain = key.modifiers.is_empty() && state.composer.is_empty();
    if state.pane == Pane::Inbox && is_plain && inbox::pressed(state, key.code) {
        return Vec::new();
    }
    let action = state.settings.keys.action(key);
    if action != Some(Action::Leave) {
        state.leave_asked = None;
    }
    match action {
        Some(action) => {
            state.completing.searching &= action == Action::History;
            action::act(state, action, key)
        }
        None => {
            edit(state, key);
            Vec::new()
        }
    }
}

/// A key for the draft. Above its first row and below its last is what was sent before.
fn edit(state: &mut State, key: KeyEvent) {
    // Where nothing is typed the arrows go through the diff that is looked at.
    let step = match key.code {
        KeyCode::Up => -1,
        KeyCode::Down => 1,
        _ => 0,
    };
    let is_free = state.composer.noting().is_none() && state.composer.is_empty() && key.modifiers.is_empty();
    if step != 0 && is_free && state.goes(step) {
        return;
    }
    let mut done = false;
    typed(state, |composer| {
        done = composer.edit(key);
        Ok(())
    });
    let looked = match key.code {
        KeyCode::Up if !done && key.modifiers.is_empty() => state.composer.history_older(),
        KeyCode::Down if !done && key.modifiers.is_empty() => state.composer.history_newer(),
        _ => false,
    };
    // What was sent before may be an action: its list would take the next arrow.
    state.completing.closed |= looked;
}

impl State {
    /// The drafts are kept on disk soon: not for every key.
    pub(crate) fn keep_drafts(&mut self) {
        self.save_at.get_or_insert(self.now.after(SAVE_AFTER));
    }

    /// A key for the completion that is open, if one is.
    fn completes(&mut self, key: KeyEvent) -> bool {
        if !key.modifiers.is_empty() && key.code != KeyCode::BackTab {
            return false;
        }
        let Some(mut completion) = self.completion() else { return false };
        match key.code {
            KeyCode::Tab => self.takes(&completion),
            KeyCode::Enter if self.completing.moved || self.completing.searching => self.takes(&completion),
            KeyCode::Esc => self.completing = Completing { closed: true, ..Completing::default() },
            KeyCode::Down => completion.next(),
            KeyCode::Up | KeyCode::BackTab => completion.previous(),
            _ => return false,
        }
        if matches!(key.code, KeyCode::Down | KeyCode::Up | KeyCode::BackTab) {
            self.completing = Completing { chosen: completion.chosen, moved: true, ..self.completing };
        }
        true
    }

    /// What is chosen in the list takes the place of what was typed of it; undo brings that back.
    fn takes(&mut self, completion: &Completion) {
        if !self.completing.searching {
            return typed(self, |composer| composer.accept(completion));
        }
        let found = self.composer.search(&self.composer.text());
        let text = found.get(completion.chosen).map(|text| (*text).to_owned()).unwrap_or_default();
        typed(self, |composer| composer.editor(&text));
        self.completing = Completing { closed: true, ..Completing::default() };
    }

    /// What the word that is being typed may become.
    pub(crate) fn completion(&self) -> Option<Completion> {
        if self.completing.closed || self.composer.noting().is_some() {
            return None;
        }
        let mut completion = match self.completing.searching {
            true => self.found()?,
            false => self.word()?,
        };
        completion.chosen = self.completing.chosen.min(completion.items.len() - 1);
        Some(completion)
    }

    fn word(&self) -> Option<Completion> {
        let agents: Vec<_> = self.session.view().agents().map(|(name, _)| name.clone()).collect();
        let actions: Vec<_> = matching("").map(|row| (row.name, row.help)).collect();
        self.composer.completion(&agents, &actions)
    }

    /// What was sent before and has in it what is typed, each on a line.
    fn found(&self) -> Option<Completion> {
        let found = self.composer.search(&self.composer.text());
        let item = |text: &&str| Item { word: one_line(&short(text)), help: String::new() };
        let items: Vec<Item> = found.iter().map(item).collect();
        (!items.is_empty()).then_some(Completion { items, chosen: 0 })
    }
}

/// As much of a text as a line may show.
fn short(text: &str) -> String {
    text.chars().take(SHOWN_MAX).collect()
}
