//! A session that is over, played back: step by step, at a speed, to a moment. Pure: time is told.
//!
//! It holds what happened and how far that is shown; who shows it folds what it is given. A step back begins anew and stops
//! before the last one: a fold has no way back.

use midturn_core::rules::event::Event;
use midturn_core::rules::time::{Micros, Span};

/// How many events are held. A session of more is shown, and not played.
pub const EVENTS_MAX: usize = 20_000;

/// So long nothing happens at most: nobody watches a pause of an hour.
const PAUSE_MAX: Span = Span::secs(2);

/// How many times as fast as it was.
const SPEEDS: [(u64, u64, &str); 7] =
    [(1, 4, "¼"), (1, 2, "½"), (1, 1, "1"), (2, 1, "2"), (4, 1, "4"), (16, 1, "16"), (64, 1, "64")];

/// As fast as it was.
const USUAL: usize = 2;

/// What is played.
#[derive(Debug)]
pub struct Player {
    events: Vec<Event>,
    /// How many of them are shown.
    shown: usize,
    plays: bool,
    speed: usize,
    /// When the last one was shown.
    last: Micros,
    /// The number of the last one that there will be.
    ends: u64,
    /// There were more than are held.
    is_full: bool,
}

impl Player {
    /// Nothing yet, of a session whose last event has the number `ends`. `plays`: from the beginning, as soon as there is anything.
    pub fn new(plays: bool, ends: u64, now: Micros) -> Self {
        Self { events: Vec::new(), shown: 0, plays, speed: USUAL, last: now, ends, is_full: false }
    }

    /// One more has happened. `true`: it is to be shown at once.
    pub fn holds(&mut self, event: &Event) -> bool {
        let follows = !self.plays && self.shown == self.events.len();
        if self.events.len() >= EVENTS_MAX {
            self.is_full = true;
            return true;
        }
        self.events.push(event.clone());
        self.shown += usize::from(follows);
        follows
    }

    /// Whether it can be played: all of it is held.
    pub fn is_whole(&self) -> bool {
        !self.is_full
    }

    /// The next one that is due.
    pub fn due(&mut self, now: Micros) -> Option<&Event> {
        let at = self.wakes_at().filter(|at| *at <= now)?;
        self.last = at;
        self.shown += 1;
        let event = self.events.get(self.shown - 1)?;
        self.plays &= event.seq < self.ends;
        Some(event)
    }

    /// When the next one is due. `None`: nothing moves by itself.
    pub fn wakes_at(&self) -> Option<Micros> {
        let next = self.events.get(self.shown).filter(|_| self.plays)?;
        let before = self.shown.checked_sub(1).map_or(next.t, |last| self.events[last].t);
        let (times, of, _) = SPEEDS[self.speed];
        let pause = Span(next.t.since(before).0.saturating_mul(of) / times);
        Some(self.last.after(pause.min(PAUSE_MAX)))
    }

    /// Goes on, or waits; at the end it begins anew. What is shown from now on, if that changes.
    pub fn toggles(&mut self, now: Micros) -> Option<&[Event]> {
        (self.plays, self.last) = (!self.plays, now);
        if self.shown < self.events.len() {
            return None;
        }
        self.shown = 0;
        Some(&[])
    }

    /// One further. It waits then.
    pub fn steps(&mut self) -> Option<&Event> {
        self.plays = false;
        let next = self.events.get(self.shown)?;
        self.shown += 1;
        Some(next)
    }

    /// One back: all that is shown then. It waits then.
    pub fn back(&mut self) -> &[Event] {
        self.to(self.shown.saturating_sub(1))
    }

    /// To a moment: all that is shown then. It waits then.
    pub fn to_moment(&mut self, t: Micros) -> &[Event] {
        self.to(self.events.partition_point(|event| event.t <= t))
    }

    fn to(&mut self, shown: usize) -> &[Event] {
        (self.plays, self.shown) = (false, shown);
        &self.events[..shown]
    }

    /// Faster, or slower.
    pub fn speeds(&mut self, faster: bool, now: Micros) {
        self.last = now;
        self.speed = match faster {
            true => (self.speed + 1).min(SPEEDS.len() - 1),
            false => self.speed.saturating_sub(1),
        };
    }

    /// Where it is, in words: `plays 2.5 of 4.0 s, 1×`.
    pub fn says(&self) -> String {
        let at = |shown: usize| shown.checked_sub(1).map_or(Micros::default(), |last| self.events[last].t);
        let word = if self.plays { "plays" } else { "at" };
        let tenths = |t: Micros| t.since(Micros::default()).tenths();
        format!(
            "{word} {} of {} s, {}×",
            tenths(at(self.shown)),
            tenths(at(self.events.len())),
            SPEEDS[self.speed].2
        )
    }

    /// Whether all of it is shown.
    pub fn is_at_end(&self) -> bool {
        self.shown == self.events.len()
    }
}

#[cfg(test)]
mod tests {
    use midturn_core::rules::event::{EventKind, Place, VERSION};
    use serde_json::{Value, json};

    use super::*;

    fn event(seq: u64, t: u64) -> Event {
        let kind = EventKind::SessionResumed { version: "x".into() };
        Event { v: VERSION, seq, t: Micros(t), at: Place::default(), kind }
    }

    /// Begun at 100 s, with events at 0, 1, 1 and 3601 s.
    fn playing() -> Player {
        let mut player = Player::new(true, 4, Micros(100_000_000));
        for (seq, t) in [(1, 0), (2, 1), (3, 1), (4, 3_601)] {
            assert!(!player.holds(&event(seq, t * 1_000_000)));
        }
        player
    }

    fn until(player: &mut Player, now: u64) -> Vec<u64> {
        std::iter::from_fn(|| player.due(Micros(now)).map(|event| event.seq)).collect()
    }

    #[test]
    fn it_plays_as_it_was_but_no_pause_is_longer_than_two_seconds() {
        let mut player = playing();
        assert_eq!(until(&mut player, 100_000_000), [1]);
        assert_eq!(player.wakes_at(), Some(Micros(101_000_000)));
        assert_eq!(until(&mut player, 101_000_000), [2, 3]);
        assert_eq!(player.wakes_at(), Some(Micros(103_000_000)));
        assert_eq!(until(&mut player, 200_000_000), [4]);
        assert_eq!((player.wakes_at(), player.is_at_end()), (None, true));
    }

    #[test]
    fn twice_as_fast_takes_half_as_long() {
        let mut player = playing();
        until(&mut player, 100_000_000);
        player.speeds(true, Micros(100_000_000));
        assert_eq!(player.wakes_at(), Some(Micros(100_500_000)));
        (0..9).for_each(|_| player.speeds(false, Micros(100_000_000)));
        assert_eq!(player.wakes_at(), Some(Micros(102_000_000)), "a pause has its bound");
    }

    #[test]
    fn a_step_back_shows_what_was_before_and_a_moment_all_that_was_by_then() {
        let mut player = playing();
        let shown = |events: &[Event]| events.iter().map(|event| event.seq).collect::<Vec<_>>();
        assert_eq!(shown(player.to_moment(Micros(1_000_000))), [1, 2, 3]);
        assert_eq!(shown(player.back()), [1, 2]);
        assert_eq!(player.steps().map(|event| event.seq), Some(3));
        assert_eq!(player.wakes_at(), None, "who steps has stopped it");
        assert_eq!(player.toggles(Micros(5)), None);
        assert_eq!(player.wakes_at(), Some(Micros(2_000_005)));
    }

    #[test]
    fn at_its_end_it_begins_anew_and_what_comes_while_nothing_plays_is_shown_at_once() {
        let mut player = Player::new(false, 2, Micros(0));
        assert!(player.holds(&event(1, 0)) && player.holds(&event(2, 5)));
        assert!(player.is_at_end());
        assert_eq!(player.toggles(Micros(7)).map(<[Event]>::len), Some(0));
        assert_eq!(until(&mut player, 7), [1]);
        assert!(player.says().starts_with("plays 0.0 of 0.0 s, 1×"), "{}", player.says());
    }

    /// `tests/fold/playing.json`: what the page is held to as well (tests/page/reads.mjs).
    #[test]
    fn it_plays_as_the_page_does() {
        let cases: Value = serde_json::from_str(include_str!("../../../tests/fold/playing.json")).unwrap();
        let micros = |seconds: &Value| Micros((seconds.as_f64().unwrap() * 1e6).round() as u64);
        for case in cases["plays"].as_array().unwrap() {
            let times = case["events"].as_array().unwrap();
            let plays = case["plays"].as_bool().unwrap();
            let mut player = Player::new(plays, times.len() as u64, micros(&case["begins"]));
            for (seq, t) in (1..).zip(times) {
                player.holds(&event(seq, micros(t).0));
            }
            for step in case["then"].as_array().unwrap() {
                let at = micros(&step[1]);
                match step[0].as_str().unwrap() {
                    "due" => while player.due(at).is_some() {},
                    "toggles" => {
                        player.toggles(at);
                    }
                    "steps" => {
                        player.steps();
                    }
                    "back" => {
                        player.back();
                    }
                    "to" => {
                        player.to_moment(at);
                    }
                    does => player.speeds(does == "faster", at),
                }
                let wakes = player.wakes_at().map(|at| at.0 as f64 / 1e6);
                let is = json!([player.shown, wakes, player.says()]);
                let expected = json!([step[2], step[3].as_f64(), step[4]]);
                assert_eq!(is, expected, "{step} of {}", case["name"]);
            }
        }
    }

    #[test]
    fn one_event_more_than_is_held_is_shown_and_nothing_is_played() {
        let mut player = Player::new(false, 2, Micros(0));
        (0..=EVENTS_MAX as u64).for_each(|seq| assert!(player.holds(&event(seq, seq))));
        assert!(!player.is_whole());
    }
}
