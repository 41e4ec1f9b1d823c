//! A turn whose calls are asked about, answered, denied, cut and ended in a random order
//! (semantics.md, sections 4 and 5): what starts has its yes and its slot, and every call has
//! one result that never changes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use midturn_core::rules::batch::PlannedCall;
use midturn_core::rules::boundary::{Committed, Inbox};
use midturn_core::rules::conversation::{ToolResult, ToolStatus};
use midturn_core::rules::id::CallId;
use midturn_core::rules::mail::{Sender, Urgency};
use midturn_core::rules::settings::{Concurrency, Settings};
use midturn_core::rules::time::{Micros, Span};
use midturn_core::rules::turn::{Given, Turn};
use midturn_core::rules::wording::Cause;
use proptest::prelude::*;

/// A mailbox that holds at most one message of the user's.
#[derive(Clone, Copy, Debug)]
struct Mail(Option<Urgency>);

impl Inbox for Mail {
    fn pending(&self) -> Option<Urgency> {
        self.0
    }

    fn commit(&self, at_least: Urgency) -> Option<Committed> {
        let highest = self.0.filter(|urgency| *urgency >= at_least)?;
        Some(Committed { sender: Sender::User, highest })
    }
}

/// What the driver does with a call that may start, and what happens to those under way.
#[derive(Clone, Debug)]
enum Deed {
    /// Of the calls that are ready: how each fares, in turn.
    Step(Vec<Fate>),
    Approve(usize),
    Deny(usize),
    TimeUp(usize),
    End(usize),
    /// Mail comes; an urgent message cuts at once, or is seen at the next look.
    Mail(Urgency, bool),
    Stop,
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Starts,
    IsAsked,
    IsDenied,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![2 => Just(Fate::Starts), 3 => Just(Fate::IsAsked), 1 => Just(Fate::IsDenied)]
}

fn deed() -> impl Strategy<Value = Deed> {
    let nth = 0..8usize;
    prop_oneof![
        6 => proptest::collection::vec(fate(), 8).prop_map(Deed::Step),
        4 => nth.clone().prop_map(Deed::Approve),
        1 => nth.clone().prop_map(Deed::Deny),
        1 => nth.clone().prop_map(Deed::TimeUp),
        4 => nth.prop_map(Deed::End),
        1 => (0..4usize, any::<bool>()).prop_map(|(urgency, cuts)| Deed::Mail(Urgency::ALL[urgency], cuts)),
        1 => Just(Deed::Stop),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Waits,
    Asked,
    Approved,
    Runs,
    Denied,
    Over,
}

/// The turn, and what a bystander knows of it.
struct Watched {
    turn: Turn,
    settings: Settings,
    mail: Mail,
    seen: Vec<Seen>,
    asked: BTreeSet<usize>,
    stopped: bool,
    results: Vec<Option<ToolResult>>,
}

impl Watched {
    fn new(safe: &[bool], settings: Settings) -> Self {
        let call = |(n, safe): (usize, &bool)| PlannedCall {
            id: CallId::new(format!("c{n}")),
            name: "bash".into(),
            safe: *safe,
            abortable: n % 3 != 2,
            edits: None,
        };
        let turn = Turn::new(safe.iter().enumerate().map(call).collect(), &settings, false);
        let (seen, results) = (vec![Seen::Waits; safe.len()], vec![None; safe.len()]);
        Self { turn, settings, mail: Mail(None), seen, asked: BTreeSet::new(), stopped: false, results }
    }

    fn those(&self, wanted: Seen) -> Vec<usize> {
        (0..self.seen.len()).filter(|call| self.seen[*call] == wanted).collect()
    }

    fn nth(&self, wanted: Seen, n: usize) -> Option<usize> {
        let those = self.those(wanted);
        those.get(n % those.len().max(1)).copied()
    }

    fn does(&mut self, deed: &Deed) -> Result<(), TestCaseError> {
        match deed {
            Deed::Step(fates) => self.steps(fates)?,
            Deed::Approve(n) => {
                if let Some(call) = self.nth(Seen::Asked, *n) {
                    self.turn.approved(call);
                    self.seen[call] = Seen::Approved;
                }
            }
            Deed::Deny(n) => {
                if let Some(call) = self.nth(Seen::Asked, *n) {
                    self.turn.denied(call, "[Denied by the user. It did not run.]".into());
                    self.seen[call] = Seen::Denied;
                }
            }
            Deed::TimeUp(n) => {
                if let Some(call) = self.nth(Seen::Asked, *n) {
                    self.turn.unanswered(call, Span::secs(60));
                    self.seen[call] = Seen::Denied;
                }
            }
            Deed::End(n) => {
                if let Some(call) = self.nth(Seen::Runs, *n) {
                    self.turn.ended(call, Given { text: "done".into(), ..Given::default() });
                    self.seen[call] = Seen::Over;
                }
            }
            Deed::Mail(urgency, cuts) => {
                self.mail = Mail(self.mail.0.max(Some(*urgency)));
                if *urgency == Urgency::Urgent && *cuts {
                    self.turn.cut(&Cause::Mail(Sender::User), Micros(0));
                }
            }
            Deed::Stop => {
                self.turn.cut(&Cause::Stop(Sender::User), Micros(0));
                self.stopped = true;
            }
        }
        self.reads_results()
    }

    fn steps(&mut self, fates: &[Fate]) -> Result<(), TestCaseError> {
        let begun = self.seen.iter().any(|seen| *seen != Seen::Waits);
        let ready = self.turn.step(&self.mail, &self.settings);
        self.reads_results()?;
        prop_assert!(ready.is_empty() || !self.stopped, "something starts after a stop");
        let urgent = self.mail.0 == Some(Urgency::Urgent);
        prop_assert!(ready.is_empty() || !urgent || !begun, "something starts beside an urgent message");
        for (call, fate) in ready.into_iter().zip(fates) {
            match (self.seen[call], fate) {
                (Seen::Approved, _) | (Seen::Waits, Fate::Starts) => {
                    self.turn.started(call, Micros(0));
                    self.seen[call] = Seen::Runs;
                }
                (Seen::Waits, Fate::IsAsked) => {
                    self.turn.asks(call);
                    self.asked.insert(call);
                    self.seen[call] = Seen::Asked;
                }
                (Seen::Waits, Fate::IsDenied) => {
                    self.turn.denied(call, "[Denied: the rule `x` forbids it. It did not run.]".into());
                    self.seen[call] = Seen::Denied;
                }
                (seen, _) => return Err(TestCaseError::fail(format!("c{call} is ready and {seen:?}"))),
            }
        }
        let busy =
            self.those(Seen::Asked).len() + self.those(Seen::Approved).len() + self.those(Seen::Runs).len();
        prop_assert!(busy <= self.settings.max_parallel_tools.max(1) as usize, "{busy} at once");
        Ok(())
    }

    /// Results come once, for calls that had none, and say what became of them.
    fn reads_results(&mut self) -> Result<(), TestCaseError> {
        for result in self.turn.news(&Default::default()) {
            let call: usize = result.id.as_str()[1..].parse().unwrap();
            prop_assert!(self.results[call].is_none(), "a second result of c{call}");
            let text = &*result.text;
            match result.status {
                ToolStatus::Skipped => {
                    prop_assert!(matches!(self.seen[call], Seen::Waits | Seen::Asked | Seen::Approved));
                    let was_asking = self.seen[call] == Seen::Asked;
                    prop_assert_eq!(text.contains("not answered"), was_asking, "{}", text);
                }
                ToolStatus::Failed => prop_assert_eq!(self.seen[call], Seen::Denied),
                _ => prop_assert_eq!(self.seen[call], Seen::Over),
            }
            if result.status == ToolStatus::Skipped {
                self.seen[call] = Seen::Over;
            }
            self.results[call] = Some(result);
        }
        Ok(())
    }

    /// Everybody answers and everything ends: the turn has all its results, in call order.
    fn comes_to_its_end(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..self.seen.len() * 4 + 4 {
            self.does(&Deed::Step(vec![Fate::Starts; 8]))?;
            if self.mail.0 == Some(Urgency::Urgent) {
                // The driver carries out what cancelled its token.
                self.turn.cut(&Cause::Mail(Sender::User), Micros(0));
                self.reads_results()?;
            }
            self.does(&Deed::Approve(0))?;
            self.does(&Deed::End(0))?;
        }
        prop_assert!(self.turn.is_complete(), "{:?}", self.seen);
        let ids: Vec<String> = self.turn.results().iter().map(|result| result.id.to_string()).collect();
        let expected: Vec<String> = (0..self.seen.len()).map(|call| format!("c{call}")).collect();
        prop_assert_eq!(ids, expected);
        for (now, first) in self.turn.results().iter().zip(&self.results) {
            prop_assert_eq!(Some(now), first.as_ref());
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_starts_has_its_yes_and_every_call_one_result(
        safe in proptest::collection::vec(any::<bool>(), 1..7),
        all in any::<bool>(),
        slots in 1..4u32,
        deeds in proptest::collection::vec(deed(), 0..40),
    ) {
        let concurrency = if all { Concurrency::All } else { Concurrency::Safe };
        let settings = Settings { concurrency, max_parallel_tools: slots, ..Settings::default() };
        let mut watched = Watched::new(&safe, settings);
        for deed in &deeds {
            watched.does(deed)?;
        }
        watched.comes_to_its_end()?;
    }
}
