//! What is over is played back: what is shown of it is folded anew, or further.

use midturn_core::rules::time::{Micros, Span};
use midturn_view::fold::Session;

use super::what_if;
use crate::keys::Action;
use crate::look::Tone;
use crate::player::Player;
use crate::state::{Scroll, State};

/// Shows what has come due.
pub(super) fn shows_due(state: &mut State) {
    let Some(mut player) = state.player.take() else { return };
    while let Some(event) = player.due(state.now) {
        state.session.event(event);
    }
    state.player = Some(player);
}

pub(super) fn act(state: &mut State, action: Action, words: &str) {
    if what_if::moved_by(state, action) {
        return;
    }
    let Some(mut player) = state.player.take() else {
        return state.say(Tone::Bad, "only what is over can be played back");
    };
    match player.is_whole() {
        true => acts(state, &mut player, action, words),
        false => state.say(Tone::Bad, "there is too much of it to be played back"),
    }
    state.player = Some(player);
}

fn acts(state: &mut State, player: &mut Player, action: Action, words: &str) {
    match action {
        Action::Play => {
            if let Some(shown) = player.toggles(state.now) {
                state.shows(shown);
            }
        }
        Action::Step => {
            if let Some(event) = player.steps() {
                state.session.event(event);
            }
        }
        Action::Back => state.shows(player.back()),
        Action::Faster | Action::Slower => player.speeds(action == Action::Faster, state.now),
        _ => match moment(words) {
            Some(t) => state.shows(player.to_moment(t)),
            None => state.say(Tone::Bad, "write a moment as in `/to 2.5s`, `/to 2m` or `/to 1:04`"),
        },
    }
}

/// A moment as a clock has it, or as durations are written; a bare number counts seconds.
fn moment(words: &str) -> Option<Micros> {
    let words = words.trim();
    let span = match words.split_once(':') {
        Some((minutes, seconds)) => {
            let minutes: u64 = minutes.parse().ok()?;
            let seconds: u64 = seconds.parse().ok().filter(|seconds| *seconds < 60)?;
            Span::secs(minutes.checked_mul(60)?.checked_add(seconds)?)
        }
        None => words.parse().or_else(|_| format!("{words}s").parse()).ok()?,
    };
    Some(Micros::default().after(span))
}

impl State {
    /// Whether a key that types or moves in the draft is the draft's, whatever it does where something is played back.
    pub(super) fn is_the_drafts(&self, action: Action) -> bool {
        let plays_back = self.player.is_some() && self.composer.is_empty();
        match action {
            Action::Play => !plays_back,
            Action::Step | Action::Back | Action::Faster | Action::Slower => {
                !plays_back && !self.moves_message()
            }
            Action::NextMessage | Action::PreviousMessage => !self.goes_through_messages(),
            _ => false,
        }
    }

    /// What is shown is these events and no others.
    fn shows(&mut self, events: &[midturn_core::rules::event::Event]) {
        self.session = Session::default();
        self.layouts.forget();
        // Entries have their numbers anew: where one looked means nothing any more.
        self.looking.values_mut().for_each(|looking| looking.scroll = Scroll::End);
        events.iter().for_each(|event| {
            self.session.event(event);
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_moment_is_a_clock_or_a_duration_as_on_the_page() {
        let cases: Value = serde_json::from_str(include_str!("../../../../tests/fold/playing.json")).unwrap();
        for case in cases["moments"].as_array().unwrap() {
            let words = case[0].as_str().unwrap();
            let expected = case[1].as_f64().map(|seconds| Micros((seconds * 1e6) as u64));
            assert_eq!(moment(words), expected, "{words}");
        }
    }
}
