//! What becomes of a draft: a message, a command, or a message that takes another's place. A draft that
//! isn't accepted comes back; nothing is sent twice.

use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::Urgency;

use super::action::{not_live, with_words};
use crate::composer::completion::{Addressed, addressee};
use crate::effect::{Effect, Outgoing};
use crate::keys::{Action, Draft, read};
use crate::look::Tone;
use crate::state::{SENDING_MAX, Scroll, State};

/// Enter: the draft is a command, or goes to the agent as soon as the switch says.
pub(super) fn entered(state: &mut State) -> Vec<Effect> {
    let text = state.composer.text();
    match read(&text) {
        Ok(Draft::Text(_)) => draft(state, state.level, ""),
        Ok(Draft::Command(action, words)) => command(state, action, words),
        Err(error) => {
            state.say(Tone::Bad, error.to_string());
            Vec::new()
        }
    }
}

/// A command's words are typed for it, and are gone when it is done.
fn command(state: &mut State, action: Action, words: &str) -> Vec<Effect> {
    let words = words.to_owned();
    if asks_the_session(action) && !words.is_empty() {
        let effects = with_words(state, action, &words);
        // What could not be done is still typed: a reason or a message is not written twice.
        if !effects.is_empty() {
            state.composer.sent();
            state.keep_drafts();
        }
        return effects;
    }
    state.composer.sent();
    state.keep_drafts();
    match level(action).filter(|_| words.is_empty()) {
        Some(level) => {
            state.level = level;
            Vec::new()
        }
        None => with_words(state, action, &words),
    }
}

/// Whether an action does nothing but ask the session for something, with words that a person made up.
fn asks_the_session(action: Action) -> bool {
    matches!(
        action,
        Action::No
            | Action::Limit
            | Action::Instead
            | Action::Sooner
            | Action::Now
            | Action::Later
            | Action::Shift
    )
}

/// How soon Enter's message acts behind the bare word of an action that sends.
fn level(action: Action) -> Option<Option<Urgency>> {
    match action {
        Action::Send => Some(None),
        Action::Sooner => Some(Some(Urgency::NextBoundary)),
        Action::Now => Some(Some(Urgency::Urgent)),
        Action::Later => Some(Some(Urgency::FollowUp)),
        _ => None,
    }
}

/// Sends the words, or what is typed, so soon.
pub(super) fn draft(state: &mut State, urgency: Option<Urgency>, words: &str) -> Vec<Effect> {
    match outgoing(state, urgency, words) {
        Some(message) => vec![Effect::Send(message)],
        None if !state.is_live() => not_live(state),
        None => Vec::new(),
    }
}

/// Stops the agent and sends the words, or what is typed.
pub(super) fn instead(state: &mut State, words: &str) -> Vec<Effect> {
    match outgoing(state, None, words) {
        Some(message) => vec![Effect::Instead(message)],
        None if !state.is_live() => not_live(state),
        None => Vec::new(),
    }
}

fn outgoing(state: &mut State, urgency: Option<Urgency>, words: &str) -> Option<Outgoing> {
    if !state.is_live() {
        return None;
    }
    if state.sending.len() >= SENDING_MAX {
        state.say(Tone::Bad, "not sent: too many messages are on their way; what is typed is kept");
        return None;
    }
    let (to, text) = if words.is_empty() { typed(state)? } else { addressed(state, words)? };
    Some(goes_out(state, to, text, urgency))
}

/// A message is on its way from now on.
pub(super) fn goes_out(state: &mut State, to: AgentName, text: String, urgency: Option<Urgency>) -> Outgoing {
    let id = state.id_for(&to, &text, urgency);
    state.remember(&to, &id);
    state.notice = None;
    if let Some(looking) = state.looking_mut() {
        looking.scroll = Scroll::End;
    }
    let message = Outgoing { to, id, text, urgency, replaces: None };
    state.sending.push(message.clone());
    message
}

/// For whom a text is: a name at its beginning says so, else it is for the agent one looks at.
fn addressed(state: &State, text: &str) -> Option<(AgentName, String)> {
    let agents: Vec<_> = state.session.view().agents().map(|(name, _)| name.clone()).collect();
    match addressee(text, &agents) {
        Some(Addressed { agent, text }) => Some((agent, text)),
        None => Some((state.chosen.clone()?, text.to_owned())),
    }
}

/// What is typed, and for whom. An action's words are never a message, whichever key sends them.
fn typed(state: &mut State) -> Option<(AgentName, String)> {
    let whole = state.composer.text();
    let text = match read(&whole) {
        Ok(Draft::Text(text)) => text,
        Ok(Draft::Command(..)) => {
            state.say(
                Tone::Asks,
                "not sent: an action is done by Enter; text that begins with / is written //",
            );
            return None;
        }
        Err(error) => {
            state.say(Tone::Bad, error.to_string());
            return None;
        }
    };
    let (to, text) = addressed(state, text)?;
    let text = text.trim().to_owned();
    if text.is_empty() {
        state.say(Tone::Quiet, "nothing is typed yet");
        return None;
    }
    state.composer.sent();
    state.keep_drafts();
    Some((to, text))
}

/// Takes back the last message of ours that waits, or the one of this number: nobody reads it then.
pub(super) fn take_back(state: &mut State, edit: bool, number: &str) -> Vec<Effect> {
    if edit && !state.composer.is_empty() {
        state.say(Tone::Asks, "not taken back: send or clear what is typed first, so that nothing is lost");
        return Vec::new();
    }
    let Some((to, id, text, _)) = waiting(state, number, true) else { return Vec::new() };
    state.is_on_its_way(&id, true);
    vec![Effect::Withdraw { to, id, text, edit }]
}

/// The same words again, one step sooner, in the place of those that wait.
pub(super) fn sooner(state: &mut State, number: &str) -> Vec<Effect> {
    let Some((to, replaces, text, urgency)) = waiting(state, number, false) else { return Vec::new() };
    if state.ours.iter().any(|ours| ours.id == replaces && ours.on_its_way) {
        state.say(Tone::Quiet, "one moment: something is being done with it already");
        return Vec::new();
    }
    let urgency = match urgency {
        Urgency::FollowUp => Urgency::AfterTools,
        Urgency::AfterTools => Urgency::NextBoundary,
        Urgency::NextBoundary => Urgency::Urgent,
        Urgency::Urgent => {
            state.say(Tone::Quiet, "it is as urgent as can be");
            return Vec::new();
        }
    };
    let id = state.next_id();
    // It is as much ours as the one whose place it takes.
    state.remember(&to, &id);
    state.is_on_its_way(&replaces, true);
    let message = Outgoing { to, id, text, urgency: Some(urgency), replaces: Some(replaces) };
    state.sending.push(message.clone());
    vec![Effect::Send(message)]
}

type Waiting = (AgentName, MessageId, String, Urgency);

/// The last message of ours that waits for the chosen agent (or of those that nothing is done with yet), or the
/// one of this number in its queue.
fn waiting(state: &mut State, number: &str, at_rest: bool) -> Option<Waiting> {
    let to = state.chosen.clone()?;
    if !state.is_live() {
        not_live(state);
        return None;
    }
    let message = match number {
        "" => state.last_queued(&to, at_rest),
        number => state.queued_at(&to, number.parse().ok()),
    };
    match message {
        Some(message) => Some((to, message.id.clone(), message.text.to_string(), message.urgency)),
        None if number.is_empty() => {
            state.say(Tone::Quiet, format!("nothing of yours waits for {to}: what was sent has been read"));
            None
        }
        None => {
            state.say(Tone::Bad, format!("{number} is none of your messages that wait for {to}"));
            None
        }
    }
}
