//! What a history has shown of each message, and what has to hold at its end.

use std::collections::{BTreeMap, BTreeSet};

use midturn_bridges::spool::{Mailbox, State, Withdrawn};
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::{ReturnReason, Urgency};

/// A message, as its sender knows it.
pub(crate) type Key = (&'static str, usize);

pub(crate) fn id(key: Key) -> MessageId {
    MessageId::new(format!("m{}", key.1))
}

/// What stands in no other message's words.
pub(crate) fn text(key: Key) -> String {
    format!("<{} {}>", key.0, key.1)
}

/// What its senders saw of a message.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) urgency: Option<Urgency>,
    /// When the first send of it began.
    pub(crate) begun: Option<u64>,
    /// When the first that accepted it returned.
    pub(crate) accepted: Option<u64>,
    /// It was sent more than once.
    pub(crate) shared: bool,
    /// What was said of it that can't change any more, and when.
    pub(crate) last: Option<(u64, State)>,
    pub(crate) withdrawn: bool,
    pub(crate) superseded: bool,
}

/// Where the model was given something: at which boundary, by which hook there, and where in its words.
type Place = (usize, usize, usize);

/// Where the model was given a message.
fn shown(key: Key, told: &[Vec<String>]) -> Vec<Place> {
    let mut shown = Vec::new();
    for (at, boundary) in told.iter().enumerate() {
        for (nth, context) in boundary.iter().enumerate() {
            shown.extend(context.match_indices(&text(key)).map(|(offset, _)| (at, nth, offset)));
        }
    }
    shown
}

/// All of a history.
#[derive(Debug, Default)]
pub(crate) struct Log {
    clock: u64,
    pub(crate) seen: BTreeMap<Key, Seen>,
    /// What a hook that was killed had taken: it may come again behind younger ones.
    pub(crate) lost: BTreeSet<Key>,
    /// What the program delivers itself, and how often it has.
    pub(crate) own: BTreeMap<Key, usize>,
    pub(crate) has_died: bool,
    /// What was sent in the place of each.
    pub(crate) instead: BTreeMap<Key, BTreeSet<Key>>,
    pub(crate) wrong: Vec<String>,
}

impl Log {
    /// Times of what one did before the other did something.
    pub(crate) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub(crate) fn of(&mut self, key: Key) -> &mut Seen {
        self.seen.entry(key).or_default()
    }

    pub(crate) fn begins(&mut self, key: Key, urgency: Urgency) -> u64 {
        let at = self.tick();
        let seen = self.of(key);
        seen.urgency = Some(urgency);
        seen.shared |= seen.begun.is_some();
        seen.begun.get_or_insert(at);
        at
    }

    pub(crate) fn accepted(&mut self, key: Key, began: u64, state: State) {
        let at = self.tick();
        self.of(key).accepted.get_or_insert(at);
        self.told(key, began, Some(state));
    }

    /// What was said to one who began to ask then. States only move forward.
    pub(crate) fn told(&mut self, key: Key, began: u64, state: Option<State>) {
        let at = self.tick();
        let seen = self.of(key);
        let is_settled = state.is_some_and(|state| state != State::Queued);
        let is_back = seen.last.is_some_and(|(at, last)| Some(last) != state && (is_settled || at < began));
        let is_gone = state.is_none() && seen.accepted.is_some_and(|at| at < began);
        if is_settled && seen.last.is_none() {
            seen.last = state.map(|state| (at, state));
        }
        if is_back || is_gone {
            let wrong = format!("{key:?} became {state:?}: {seen:?}");
            self.wrong.push(wrong);
        }
    }

    pub(crate) fn withdrew(&mut self, key: Key, began: u64, what: Withdrawn) {
        match what {
            Withdrawn::Now => self.of(key).withdrawn = true,
            Withdrawn::Unknown => self.told(key, began, None),
            Withdrawn::TooLate | Withdrawn::Before => {}
        }
    }

    /// What doesn't hold, once nothing is on its way any more. `told`: what the model was given at each boundary.
    pub(crate) fn ends(&mut self, mailbox: &Mailbox, told: &[Vec<String>]) -> Vec<String> {
        let mut places: BTreeMap<Key, Place> = BTreeMap::new();
        for (key, delivered) in &self.own {
            let (shown, state) = (shown(*key, told), mailbox.state(key.0, &id(*key)).unwrap_or_default());
            // What a killed program had not written went with it.
            let is_well = shown.len() == *delivered || self.has_died && shown.len() < *delivered;
            if !is_well || state == Some(State::Queued) {
                self.wrong
                    .push(format!("{key:?} is {state:?}, shown {shown:?}, delivered {delivered} times"));
            }
        }
        for (key, seen) in &self.seen {
            let shown = shown(*key, told);
            if shown.len() > 1 {
                self.wrong.push(format!("{key:?} is doubled: {shown:?}"));
            }
            let state = mailbox.state(key.0, &id(*key)).unwrap_or_default();
            let is_well = match state {
                Some(State::Injected) => shown.len() == 1,
                Some(State::Returned(_)) => shown.is_empty(),
                Some(State::Queued) => false,
                None => seen.accepted.is_none() && shown.is_empty(),
            };
            let is_said = seen.last.is_none_or(|(_, last)| Some(last) == state);
            let is_back = !seen.withdrawn || state == Some(State::Returned(ReturnReason::Withdrawn));
            let is_replaced = !seen.superseded || state == Some(State::Returned(ReturnReason::Superseded));
            if !(is_well && is_said && is_back && is_replaced) {
                self.wrong.push(format!("{key:?} is {state:?}, shown {shown:?}: {seen:?}"));
            }
            let is_superseded = state == Some(State::Returned(ReturnReason::Superseded));
            let is_there = |key: &Key| mailbox.state(key.0, &id(*key)).is_ok_and(|state| state.is_some());
            if is_superseded && !self.instead.get(key).is_some_and(|keys| keys.iter().any(is_there)) {
                self.wrong.push(format!("{key:?} is gone, and nothing is in its place: {seen:?}"));
            }
            places.extend(shown.first().map(|place| (*key, *place)));
        }
        self.order(&places);
        std::mem::take(&mut self.wrong)
    }

    fn order(&mut self, places: &BTreeMap<Key, Place>) {
        let mut wrong = Vec::new();
        for (older, place) in places {
            for (younger, before) in places {
                let (first, then) = (&self.seen[older], &self.seen[younger]);
                let is_older = first.accepted.zip(then.begun).is_some_and(|(end, begin)| end < begin);
                let is_one_look = place.0 == before.0;
                let is_one_context = is_one_look && place.1 == before.1;
                let is_bound = is_one_look || first.urgency == then.urgency;
                let is_lost = self.lost.contains(older) && !is_one_context;
                if is_older && before < place && is_bound && !is_lost {
                    wrong.push(format!("{younger:?} overtook {older:?}: {first:?} {then:?} {places:?}"));
                }
            }
        }
        self.wrong.extend(wrong);
    }
}
