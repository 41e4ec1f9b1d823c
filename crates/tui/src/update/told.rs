//! What is told of the session.

use midturn_client::events::{Ended, Told};
use midturn_core::rules::event::EventKind;

use crate::effect::Effect;
use crate::look::Tone;
use crate::state::{Standing, State, TAKE_UP};

/// Takes what is told.
pub(super) fn told(state: &mut State, told: Told) -> Vec<Effect> {
    if matches!(told, Told::Event(..) | Told::Live(_)) && state.found.take().is_some() {
        state.say(Tone::Good, "the session is back");
    }
    match told {
        // What is played back is shown when its time has come.
        Told::Event(_, event) if state.player.as_mut().is_some_and(|player| !player.holds(&event)) => {}
        Told::Event(_, event) => {
            // What it cost, and how full its context is, stands in no event.
            let changes_facts = matches!(
                event.kind,
                EventKind::ModelFinished { .. }
                    | EventKind::RunStarted { .. }
                    | EventKind::RunFinished { .. }
                    | EventKind::LimitRaised { .. }
                    | EventKind::Compacted { .. }
            );
            if state.session.event(&event) && changes_facts {
                state.asked.1 = true;
            }
        }
        Told::Live(event) => {
            state.session.live(&event);
        }
        // What is no event has no number.
        Told::Other(json, None) => state.asked.1 |= json.contains("agents_changed"),
        // A newer version's: it says nothing to this one.
        Told::Other(..) => {}
        Told::Ended(ended) => ends(state, &ended),
    }
    Vec::new()
}

/// Nothing is told any more.
fn ends(state: &mut State, ended: &Ended) {
    let id = &state.opening.id;
    match (ended, &state.standing) {
        // It never had more to tell.
        (_, Standing::Stored(_)) => {}
        // A process that has only just begun may take it up yet.
        (Ended::Session, _) if state.found.is_some_and(|found| state.now.since(found) < TAKE_UP) => {
            let says = "Midturn is there again, and has not taken the session up yet. What is typed is kept";
            state.say(Tone::Asks, says);
            state.standing = Standing::Lost(says.to_owned());
        }
        (Ended::Session, _) => {
            state.standing = Standing::Stored(format!(
                "the session rests in its store: `midturn resume {id}` goes on with it"
            ));
        }
        (Ended::Lost(trouble), _) => {
            let says = format!("the way to the session is lost: {trouble}. What is typed is kept");
            state.say(Tone::Bad, says.clone());
            state.standing = Standing::Lost(says);
            state.found = None;
        }
    }
}

impl State {
    /// The session's process was found again: what was missed is told next.
    pub fn found_again(&mut self, standing: Standing) {
        self.standing = standing;
        self.session.rejoined();
        self.found.get_or_insert(self.now);
    }
}
