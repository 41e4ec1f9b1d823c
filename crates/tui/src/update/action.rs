//! What each action does.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use midturn_client::Said;
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::Urgency;

use super::{TWICE, inbox, review, send, what_if};
use crate::composer::Composer;
use crate::effect::Effect;
use crate::keys::{Action, Key, limits};
use crate::look::Tone;
use crate::state::{Completing, Pane, REST, Scroll, Standing, State};

/// Does what a key asks for.
pub(super) fn act(state: &mut State, action: Action, key: KeyEvent) -> Vec<Effect> {
    if let Some(effects) = review::act(state, action, key) {
        return effects;
    }
    match action {
        Action::Send if state.moves_message() => what_if::plays(state),
        Action::Send => send::entered(state),
        // Where Shift+Enter is a newline elsewhere, the first one must not send half a sentence.
        Action::Sooner if is_shift_enter(key) && !state.shift_enter_told => asks_shift_enter(state),
        Action::Sooner | Action::Now | Action::Later | Action::Instead => with_words(state, action, ""),
        // A draft's `?` is a letter, and `/` at its beginning opens the list of actions by itself.
        Action::Help if types(key) && !state.composer.is_empty() => typed_key(state, key),
        Action::Palette if types(key) => typed_key(state, key),
        // These are the draft's, but where something is played back or moved and nothing is typed.
        _ if is_bare(key) && state.is_the_drafts(action) => typed_key(state, key),
        // Who is at the end already means the draft's.
        Action::End if key.code == KeyCode::End && key.modifiers.is_empty() && state.follows() => {
            typed_key(state, key)
        }
        Action::End if key.code == KeyCode::End && key.modifiers.is_empty() && state.writes_beside_diff() => {
            typed_key(state, key)
        }
        // As in a shell: the end of input where there is none, a letter less where there is.
        Action::Leave if is_ctrl_d(key) && !state.composer.is_empty() => typed_key(state, key),
        Action::Leave => clears_or_leaves(state, key),
        other => with_words(state, other, ""),
    }
}

fn typed_key(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    super::edit(state, key);
    Vec::new()
}

/// Whether a key is one that a draft has a use for.
fn is_bare(key: KeyEvent) -> bool {
    (key.modifiers - KeyModifiers::SHIFT).is_empty()
}

fn is_ctrl_d(key: KeyEvent) -> bool {
    (key.code, key.modifiers) == (KeyCode::Char('d'), KeyModifiers::CONTROL)
}

fn is_shift_enter(key: KeyEvent) -> bool {
    (key.code, key.modifiers) == (KeyCode::Enter, KeyModifiers::SHIFT)
}

/// Whether a key writes a character.
pub(super) fn types(key: KeyEvent) -> bool {
    matches!(key.code, KeyCode::Char(_)) && is_bare(key)
}

fn asks_shift_enter(state: &mut State) -> Vec<Effect> {
    state.shift_enter_told = true;
    let newline = state.key(Action::Newline);
    let says = format!(
        "nothing was sent: Shift+Enter sends sooner, from its next press on. {newline} is a newline; \
         `soon = \"ctrl+s\"` and `newline = \"shift+enter\"` under `[terminal.keys]` make it one"
    );
    state.say(Tone::Asks, says);
    Vec::new()
}

/// Does what an action asks for, with the words that stood behind its name.
pub(super) fn with_words(state: &mut State, action: Action, words: &str) -> Vec<Effect> {
    match action {
        Action::Send => send::draft(state, None, words),
        Action::Sooner => send::draft(state, Some(Urgency::NextBoundary), words),
        Action::Now => send::draft(state, Some(Urgency::Urgent), words),
        Action::Later => send::draft(state, Some(Urgency::FollowUp), words),
        Action::Instead => send::instead(state, words),
        Action::Level => level(state),
        Action::Comment => review::comment(state, words),
        Action::SendComments => review::send_all(state, state.level),
        Action::Once => answer(state, Said::Once),
        Action::Always => answer(state, Said::Always(None)),
        Action::No => answer(state, Said::No((!words.is_empty()).then(|| words.to_owned()))),
        Action::Stop => closes_or_stops(state),
        Action::Resume => of_chosen(state, Effect::Resume),
        Action::Limit => limit(state, words),
        Action::EditQueued => send::take_back(state, true, words),
        Action::Withdraw => send::take_back(state, false, words),
        Action::SoonerQueued => send::sooner(state, words),
        Action::Editor => vec![Effect::Editor(state.composer.text())],
        Action::Copy => copy(state),
        Action::Suspend => suspend(state),
        Action::Redraw => vec![Effect::Redraw],
        Action::Leave | Action::Quit => {
            state.leaves = true;
            Vec::new()
        }
        Action::Diff => diff(state),
        Action::Shift => what_if::shift(state, words),
        _ => {
            looks(state, action, words);
            Vec::new()
        }
    }
}

/// What only changes where one looks.
fn looks(state: &mut State, action: Action, words: &str) {
    match action {
        Action::Newline => super::typed(state, Composer::newline),
        Action::History => history(state),
        Action::Agent => {
            match AgentName::new(words).ok().filter(|name| state.session.view().agent(name).is_some()) {
                Some(name) => state.choose(&name),
                None => state.say(Tone::Bad, format!("there is no agent `{words}`")),
            }
        }
        Action::AgentAt(place) => {
            let named = state.order.rows().nth(usize::from(place) - 1).map(|(name, _)| name.clone());
            named.iter().for_each(|name| state.choose(name));
        }
        Action::NextAgent => state.choose_next(1),
        Action::PreviousAgent => state.choose_next(-1),
        Action::OpenCall => state.open_call(),
        Action::PageUp => state.scroll_by(-state.page()),
        Action::PageDown => state.scroll_by(state.page()),
        Action::Top => state.scroll_to_top(),
        Action::End => state.scroll_to_end(),
        Action::Plan => state.show(Pane::Plan),
        Action::Timeline => {
            state.show(Pane::Timeline);
            // What happens now stands at its end.
            state.pane_top = usize::MAX;
        }
        Action::NextMessage => what_if::choose(state, true),
        Action::PreviousMessage => what_if::choose(state, false),
        Action::Play | Action::Step | Action::Back | Action::Faster | Action::Slower | Action::To => {
            super::playing::act(state, action, words);
        }
        Action::Inbox => inbox::act(state, words),
        Action::Help => state.show(Pane::Help),
        Action::Palette => palette(state),
        Action::Bare => state.bare = !state.bare,
        _ => {}
    }
}

/// Offers what was sent before and has in it what is typed, the newest first; again: the one before.
fn history(state: &mut State) {
    if state.composer.search(&state.composer.text()).is_empty() {
        return state.say(Tone::Quiet, "nothing that was sent before has this in it");
    }
    let before = state.completing;
    let chosen = if before.searching { before.chosen + 1 } else { 0 };
    state.completing = Completing { chosen, searching: true, ..Completing::default() };
}

/// The list of all actions, which is there behind a `/`.
fn palette(state: &mut State) {
    if state.composer.is_empty() {
        super::typed(state, |composer| composer.paste("/"));
    } else {
        state.say(Tone::Quiet, "the list of actions opens with / where nothing is typed");
    }
}

fn clears_or_leaves(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    if !state.composer.is_empty() {
        state.composer.clear();
        state.keep_drafts();
        return Vec::new();
    }
    if state.leave_asked.is_some_and(|asked| state.now.since(asked) < TWICE) {
        state.leaves = true;
        return Vec::new();
    }
    state.leave_asked = Some(state.now);
    let working = state.session.view().agents().filter(|(_, agent)| agent.is_working()).count();
    let stops = match (&state.standing, working) {
        (Standing::Ours, 0) => String::new(),
        (Standing::Ours, 1) => ", and stops the agent that is at work".to_owned(),
        (Standing::Ours, count) => format!(", and stops {count} agents that are at work"),
        _ => "; the agents go on".to_owned(),
    };
    let pressed = Key::of(key).map_or_else(String::new, Key::shown);
    state.say(Tone::Asks, format!("{pressed} again leaves{stops}"));
    Vec::new()
}

/// Esc closes what is open first, and stops somebody only then.
fn closes_or_stops(state: &mut State) -> Vec<Effect> {
    if state.bare {
        state.bare = false;
        return Vec::new();
    }
    if state.pane == Pane::Timeline && state.what_if.goes_back() {
        state.notice = None;
        return Vec::new();
    }
    if state.pane != Pane::Talk {
        state.show(Pane::Talk);
        return Vec::new();
    }
    stop(state)
}

/// Stops the agent that one looks at.
fn stop(state: &mut State) -> Vec<Effect> {
    let Some((name, agent)) = state.agent() else { return Vec::new() };
    if !state.is_live() {
        return not_live(state);
    }
    let queued = agent.queue.iter().filter(|message| state.is_ours(name, &message.id));
    let queued = queued.map(|message| (message.id.clone(), message.text.to_string()));
    // What was sent before Esc was pressed is there before the stop is.
    let sending = state.sending.iter().filter(|message| message.to == *name);
    let sending = sending.map(|message| (message.id.clone(), message.text.clone()));
    let mut ours: Vec<(MessageId, String)> = queued.chain(sending).collect();
    let mut seen = BTreeSet::new();
    ours.retain(|(id, _)| seen.insert(id.clone()));
    vec![Effect::Stop { agent: name.clone(), ours }]
}

/// Says why nothing can be done.
pub(super) fn not_live(state: &mut State) -> Vec<Effect> {
    let says = match &state.standing {
        Standing::Stored(why) | Standing::Lost(why) => why.clone(),
        Standing::Ours | Standing::Theirs => return Vec::new(),
    };
    state.say(Tone::Bad, says);
    Vec::new()
}

fn of_chosen(state: &mut State, effect: impl FnOnce(AgentName) -> Effect) -> Vec<Effect> {
    match state.chosen.clone() {
        Some(_) if !state.is_live() => not_live(state),
        Some(name) => vec![effect(name)],
        None => Vec::new(),
    }
}

fn level(state: &mut State) -> Vec<Effect> {
    state.level = match state.level {
        None => Some(Urgency::AfterTools),
        Some(Urgency::AfterTools) => Some(Urgency::NextBoundary),
        Some(Urgency::NextBoundary) => Some(Urgency::Urgent),
        Some(Urgency::Urgent) => Some(Urgency::FollowUp),
        Some(Urgency::FollowUp) => None,
    };
    Vec::new()
}

/// Answers the request that is drawn, and no other.
fn answer(state: &mut State, said: Said) -> Vec<Effect> {
    if !state.is_live() {
        return not_live(state);
    }
    let Some(drawn) = state.drawn.clone() else {
        state.say(Tone::Quiet, "nobody asks for anything now");
        return Vec::new();
    };
    if state.now.since(drawn.drawn) < REST {
        state.say(Tone::Asks, "not answered: the request has only just come; read it and press again");
        return Vec::new();
    }
    state.notice = None;
    vec![Effect::Answer { agent: drawn.agent, call: drawn.call, since: drawn.since, said }]
}

fn limit(state: &mut State, words: &str) -> Vec<Effect> {
    let (agent, words) = match words.strip_prefix("all ") {
        Some(words) => (None, words),
        None => (state.chosen.clone(), words),
    };
    match limits(words) {
        Ok(limits) if state.is_live() => vec![Effect::Limit(agent, limits)],
        Ok(_) => not_live(state),
        Err(error) => {
            state.say(Tone::Bad, error.to_string());
            Vec::new()
        }
    }
}

fn copy(state: &mut State) -> Vec<Effect> {
    let text = state.agent().map(|(_, agent)| agent.text.to_string()).filter(|text| !text.is_empty());
    match text {
        Some(text) => vec![Effect::Copy(text)],
        None => {
            state.say(Tone::Quiet, "there is no answer to copy yet");
            Vec::new()
        }
    }
}

fn suspend(state: &mut State) -> Vec<Effect> {
    if state.standing == Standing::Ours {
        // The agents live in this process: it would hold them, too.
        let says = "not suspended: the agents live in this process and would stand still. `midturn attach` in \
                    another terminal, or a run under `midturn serve`, can be suspended";
        state.say(Tone::Asks, says);
        return Vec::new();
    }
    vec![Effect::Suspend]
}

fn diff(state: &mut State) -> Vec<Effect> {
    if matches!(state.pane, Pane::Diff(_)) {
        state.show(Pane::Talk);
        return Vec::new();
    }
    let Some(name) = state.chosen.clone() else { return Vec::new() };
    if !state.opening.can_ask {
        state.say(Tone::Bad, "what it changed is not known here: no running Midturn is there to ask git");
        return Vec::new();
    }
    state.show(Pane::Diff(None));
    vec![Effect::Diff(name)]
}

impl State {
    /// Looks at an agent, and writes to it.
    pub fn choose(&mut self, name: &AgentName) {
        if self.chosen.as_ref() != Some(name) {
            self.chosen = Some(name.clone());
            self.composer.choose(name);
            self.completing = Completing::default();
            self.show(Pane::Talk);
        }
    }

    fn choose_next(&mut self, step: isize) {
        let rows: Vec<_> = self.order.rows().map(|(name, _)| name.clone()).collect();
        let Some(place) = rows.iter().position(|name| Some(name) == self.chosen.as_ref()) else { return };
        let next = (place as isize + step).rem_euclid(rows.len() as isize);
        if let Some(name) = rows.get(next.unsigned_abs()) {
            self.choose(name);
        }
    }

    /// Shows something in the conversation's place; the same again shows the conversation.
    pub(super) fn show(&mut self, pane: Pane) {
        self.composer.leave_note();
        self.pane = if self.pane == pane { Pane::Talk } else { pane };
        self.pane_top = 0;
    }

    /// How far a page scrolls: two lines of the old one stay.
    fn page(&self) -> isize {
        (crate::draw::areas(self).pane.height as isize - 2).max(1)
    }

    /// Scrolls: down is more.
    pub(super) fn scroll_by(&mut self, lines: isize) {
        if self.goes(lines) {
            return;
        }
        if self.pane != Pane::Talk {
            // At its end it is as far down as can be.
            let top = self.pane_top.min(crate::draw::last_top(self));
            self.pane_top = top.saturating_add_signed(lines);
            return;
        }
        let scroll = crate::draw::talk::scrolled(self, lines);
        if let Some(looking) = self.looking_mut() {
            looking.scroll = scroll;
        }
    }

    fn scroll_to_top(&mut self) {
        if self.goes(isize::MIN) {
            return;
        }
        self.pane_top = 0;
        let conversation = self.chosen.as_ref().and_then(|name| self.session.conversation(name));
        let ends = conversation.and_then(|all| Some((all.entries().next()?.0, all.entries().next_back()?.0)));
        if let (Some((entry, seen)), Some(looking)) = (ends, self.looking_mut()) {
            looking.scroll = Scroll::At { entry, line: 0, seen };
        }
    }

    /// Whether one looks at the conversation's end.
    fn follows(&self) -> bool {
        self.pane == Pane::Talk && self.looking().scroll == Scroll::End
    }

    /// Whether something is typed while a diff is looked at: the end is the text's then.
    fn writes_beside_diff(&self) -> bool {
        matches!(self.pane, Pane::Diff(_)) && !self.composer.is_empty()
    }

    fn scroll_to_end(&mut self) {
        if self.goes(isize::MAX) {
            return;
        }
        self.pane = Pane::Talk;
        if let Some(looking) = self.looking_mut() {
            looking.scroll = Scroll::End;
        }
    }

    /// Opens the last call that one sees, or closes it; what a person is asked comes first.
    fn open_call(&mut self) {
        if self.drawn.is_some() && matches!(self.pane, Pane::Talk | Pane::Ask) {
            self.show(Pane::Ask);
            return;
        }
        if let Some(number) = crate::draw::talk::last_call(self)
            && let Some(looking) = self.looking_mut()
            && !looking.open.remove(&number)
        {
            looking.open.insert(number);
        }
    }
}
