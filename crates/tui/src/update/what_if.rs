//! What if: a message of the timeline is chosen and moved, and the session is played again with it.

use midturn_core::rules::time::Span;
use midturn_view::clean::one_line;
use midturn_view::what_if::words;

use crate::draw;
use crate::effect::Effect;
use crate::keys::Action;
use crate::look::Tone;
use crate::state::{Pane, Standing, State};
use crate::what_if::{FARTHEST, Played, Shift};

/// How far a key moves a message, in microseconds.
const STEP: i64 = 100_000;

/// How far the keys move it that play faster and slower.
const LEAP: i64 = 1_000_000;

/// Goes to the next message of the timeline, or to the one before.
pub(super) fn choose(state: &mut State, next: bool) {
    opens(state);
    if !state.what_if.choose(state.session.timeline(), next) {
        let says = match (&state.what_if.chosen, next) {
            (None, _) => "there is no message on the timeline yet",
            (Some(_), true) => "this is the last message",
            (Some(_), false) => "this is the first message",
        };
        return state.say(Tone::Quiet, says);
    }
    state.notice = None;
    let height = usize::from(draw::areas(state).pane.height);
    if let Some(row) = draw::timeline::row_of_chosen(state)
        && !(state.pane_top..state.pane_top.saturating_add(height)).contains(&row)
    {
        // Whose lane it is, and when, is above it.
        state.pane_top = row.saturating_sub(height / 2);
    }
}

fn opens(state: &mut State) {
    if state.pane != Pane::Timeline {
        state.show(Pane::Timeline);
    }
}

/// A key of what is played back moves the chosen message. `false`: it is none that does.
pub(super) fn moved_by(state: &mut State, action: Action) -> bool {
    let by = match action {
        Action::Step => STEP,
        Action::Back => -STEP,
        Action::Faster => LEAP,
        Action::Slower => -LEAP,
        _ => return false,
    };
    if !state.moves_message() {
        return false;
    }
    match why_not(state) {
        Some(why) => state.say(Tone::Bad, why),
        None => {
            state.what_if.by = state.what_if.by.saturating_add(by).clamp(-FARTHEST, FARTHEST);
            state.notice = None;
        }
    }
    true
}

/// Moves the chosen message so far, and plays it.
pub(super) fn shift(state: &mut State, text: &str) -> Vec<Effect> {
    if state.what_if.chosen.is_none() {
        let (next, timeline) = (state.key(Action::NextMessage), state.key(Action::Timeline));
        state.say(
            Tone::Bad,
            format!("choose a message first: {next} goes to it on the timeline ({timeline})"),
        );
        return Vec::new();
    }
    match by(text) {
        Some(by) => {
            opens(state);
            state.what_if.by = by;
            plays(state)
        }
        None => {
            state.say(Tone::Bad, "write how far as in `/shift 1.2s` or `/shift -500ms`, an hour at most");
            Vec::new()
        }
    }
}

/// How far a text says, in microseconds; a bare number counts seconds.
fn by(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, span) = match text.strip_prefix('-') {
        Some(span) => (-1, span),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let span: Span = span.parse().or_else(|_| format!("{span}s").parse()).ok()?;
    i64::try_from(span.0).ok().filter(|by| *by <= FARTHEST).map(|by| sign * by)
}

/// Plays the session again, with the chosen message where it was moved to.
pub(super) fn plays(state: &mut State) -> Vec<Effect> {
    let says = match state.what_if.shift() {
        _ if state.what_if.asked.is_some() => "one moment: it is being played".to_owned(),
        Some(shift) if shift.by != 0 => match why_not(state) {
            Some(why) => why,
            None => {
                (state.what_if.asked, state.what_if.is_awaited) = (Some(shift.clone()), true);
                state.notice = None;
                return vec![Effect::Replay(shift)];
            }
        },
        _ => format!("it is where it was: move it first ({} or /shift 1.2s)", state.key(Action::Step)),
    };
    state.say(Tone::Bad, says);
    Vec::new()
}

/// Why nothing can be moved now.
fn why_not(state: &State) -> Option<String> {
    match &state.standing {
        Standing::Lost(why) => Some(why.clone()),
        Standing::Stored(_) => None,
        Standing::Ours | Standing::Theirs => {
            let works = state.session.view().agents().any(|(_, agent)| agent.is_working());
            works.then(|| {
                "messages can be moved once nobody works: what goes on can't be played again".to_owned()
            })
        }
    }
}

/// What came of it, if somebody still waits for it.
pub(super) fn played(state: &mut State, shift: Shift, result: Result<Box<Played>, String>) {
    state.what_if.asked = None;
    if !state.what_if.is_awaited {
        return;
    }
    match result {
        Ok(played) => {
            state.what_if.plays += 1;
            state.what_if.played = Some((shift, played));
            state.pane_top = 0;
        }
        Err(why) => {
            let says = format!("not played with the message {}: {}", words(shift.by), one_line(&why));
            state.say(Tone::Bad, says);
        }
    }
}

impl State {
    /// Whether keys move a message: where one of the timeline is chosen and nothing is typed.
    pub(super) fn moves_message(&self) -> bool {
        self.pane == Pane::Timeline && self.composer.is_empty() && self.what_if.chosen.is_some()
    }

    /// Whether keys go from message to message: where the timeline is looked at and nothing is typed.
    pub(super) fn goes_through_messages(&self) -> bool {
        self.pane == Pane::Timeline && self.composer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_is_a_duration_with_a_sign() {
        for (text, micros) in [
            ("1.2s", Some(1_200_000)),
            ("+1.2s", Some(1_200_000)),
            ("-500ms", Some(-500_000)),
            (" 2 ", Some(2_000_000)),
            ("-1h", Some(-3_600_000_000)),
            ("0", Some(0)),
            ("61m", None),
            ("--1s", None),
            ("", None),
            ("soon", None),
        ] {
            assert_eq!(by(text), micros, "{text}");
        }
    }
}
