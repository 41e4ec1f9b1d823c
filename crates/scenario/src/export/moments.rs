//! The instants of a replay: each is where it was in the session, or a little later where the
//! order asks for it.
//!
//! A session on the machine's clock spends time between its steps (a commit, a task that is
//! woken); a replay spends none. So steps that followed each other fall into one instant, and
//! what came between them has to be put before or after it. Whoever reads the session says
//! which instant must come before which; [`Moments::solved`] moves as few as it can, by a
//! microsecond where a microsecond does. Nothing here knows what happens at an instant.

use std::collections::{HashMap, HashSet};

use midturn_core::rules::time::{Micros, Span};

/// How often all orders are looked at before one of those that chase each other is given up.
const PASSES: usize = 128;

/// How many orders are given up one by one; after that all that don't hold are.
const GIVEN_UP: usize = 64;

/// An instant of the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment(usize);

/// The replay's begin.
pub(super) const BEGIN: Moment = Moment(0);

#[derive(Clone, Copy, Debug)]
struct Known {
    /// When it was in the session.
    live: Micros,
    /// It comes exactly so long after another one.
    after: Option<(usize, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Order {
    first: usize,
    then: usize,
    /// At least so many microseconds later.
    gap: u64,
}

/// The instants of a session, and in which order they must come.
#[derive(Debug)]
pub(super) struct Moments {
    known: Vec<Known>,
    orders: Vec<Order>,
    /// When the session's first agent began: the replay's begin.
    origin: Micros,
    /// On virtual time every instant was what it is in a replay, and nothing is to be moved.
    exact: bool,
}

impl Moments {
    /// No instants but the begin.
    pub(super) fn new(origin: Micros, exact: bool) -> Self {
        let begin = Known { live: Micros(0), after: None };
        Self { known: vec![begin], orders: Vec::new(), origin, exact }
    }

    /// Whether the session was itself played on virtual time.
    pub(super) fn is_exact(&self) -> bool {
        self.exact
    }

    fn push(&mut self, known: Known) -> Moment {
        self.known.push(known);
        Moment(self.known.len() - 1)
    }

    /// An instant of its own, at this time of the session.
    pub(super) fn at(&mut self, t: Micros) -> Moment {
        self.push(Known { live: Micros(t.since(self.origin).0), after: None })
    }

    /// The instant that is exactly so much later than another.
    pub(super) fn later(&mut self, than: Moment, by: Span) -> Moment {
        let live = self.live(than).after(by);
        self.push(Known { live, after: Some((than.0, by.0)) })
    }

    /// When it was in the session, since the first agent began.
    pub(super) fn live(&self, moment: Moment) -> Micros {
        self.known[moment.0].live
    }

    /// `first` is no later than `then`.
    pub(super) fn in_order(&mut self, first: Moment, then: Moment) {
        self.order(first, then, 0);
    }

    /// `first` is earlier than `then`.
    pub(super) fn apart(&mut self, first: Moment, then: Moment) {
        self.order(first, then, 1);
    }

    fn order(&mut self, first: Moment, then: Moment, gap: u64) {
        if !self.exact && (first != then || gap > 0) {
            self.orders.push(Order { first: first.0, then: then.0, gap });
        }
    }

    /// Whichever of the two was later; the other one is then no later.
    pub(super) fn latest(&mut self, one: Moment, other: Moment) -> Moment {
        let (first, last) = if self.live(other) > self.live(one) { (one, other) } else { (other, one) };
        self.in_order(first, last);
        last
    }

    /// What an instant is counted from, and how much later it is.
    fn root(&self, mut of: usize) -> (usize, u64) {
        let mut offset = 0u64;
        // An instant is only ever counted from an earlier entry, so the walk ends.
        while let Some((base, by)) = self.known[of].after {
            (of, offset) = (base, offset.saturating_add(by));
        }
        (of, offset)
    }

    /// Puts every instant where all orders hold, and no later than that. Of orders that
    /// contradict each other the one that was said last is given up.
    pub(super) fn solved(self) -> Times {
        let roots: Vec<(usize, u64)> = (0..self.known.len()).map(|of| self.root(of)).collect();
        let live: Vec<u64> = self.known.iter().map(|known| known.live.0).collect();
        let mut orders = self.orders;
        let mut broken = 0;
        let at = loop {
            let mut at = live.clone();
            let mut restless = vec![false; orders.len()];
            let settled = (0..PASSES).any(|pass| {
                restless.iter_mut().for_each(|moved| *moved &= pass > PASSES / 2);
                !relax(&mut at, &roots, &orders, &mut restless)
            });
            if settled {
                break at;
            }
            match circle(&roots, &orders, &restless).filter(|_| broken < GIVEN_UP) {
                Some(last) => {
                    orders.remove(last);
                    broken += 1;
                }
                None => break at,
            }
        };
        let at: Vec<u64> = roots.iter().map(|(root, by)| at[*root].saturating_add(*by)).collect();
        // Within one instant the rounds of the replay decide.
        let apart = |order: &&Order| roots[order.first].0 != roots[order.then].0;
        let fails = |order: &&Order| apart(order) && at[order.first] + order.gap > at[order.then];
        broken += orders.iter().filter(fails).count();
        Times { at, broken }
    }
}

/// By how much an order doesn't hold.
fn shortfall(at: &[u64], roots: &[(usize, u64)], order: &Order) -> u64 {
    let ((first, before), (then, after)) = (roots[order.first], roots[order.then]);
    if first == then || then == BEGIN.0 {
        return 0;
    }
    let earliest = at[first].saturating_add(before).saturating_add(order.gap);
    earliest.saturating_sub(at[then].saturating_add(after))
}

/// Moves what comes too early, and notes which orders moved something. `false`: none did.
fn relax(at: &mut [u64], roots: &[(usize, u64)], orders: &[Order], moved: &mut [bool]) -> bool {
    let mut any = false;
    for (order, moved) in orders.iter().zip(moved) {
        let by = shortfall(at, roots, order);
        if by > 0 {
            at[roots[order.then].0] += by;
            (*moved, any) = (true, true);
        }
    }
    any
}

/// The last of the restless orders that is part of a circle of them.
fn circle(roots: &[(usize, u64)], orders: &[Order], restless: &[bool]) -> Option<usize> {
    let edge = |order: &Order| (roots[order.first].0, roots[order.then].0);
    let mut next: HashMap<usize, Vec<usize>> = HashMap::new();
    for (order, _) in orders.iter().zip(restless).filter(|(_, restless)| **restless) {
        let (first, then) = edge(order);
        next.entry(first).or_default().push(then);
    }
    let leads_back = |(first, then): (usize, usize)| {
        let mut seen = HashSet::from([then]);
        let mut to_see = vec![then];
        while let Some(here) = to_see.pop() {
            if here == first {
                return true;
            }
            to_see.extend(next.get(&here).into_iter().flatten().filter(|next| seen.insert(**next)));
        }
        false
    };
    (0..orders.len()).rev().find(|index| restless[*index] && leads_back(edge(&orders[*index])))
}

/// When each instant is in the replay.
#[derive(Debug)]
pub(super) struct Times {
    at: Vec<u64>,
    /// How many orders don't hold: what was apart in the session is one instant in a replay.
    pub(super) broken: usize,
}

impl Times {
    /// When it is in the replay.
    pub(super) fn at(&self, moment: Moment) -> Micros {
        Micros(self.at[moment.0])
    }

    /// How long it is from one instant to another; zero when the other one is not later.
    pub(super) fn between(&self, from: Moment, to: Moment) -> Span {
        self.at(to).since(self.at(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_too_early_is_moved_and_nothing_else() {
        let mut moments = Moments::new(Micros(1_000), false);
        let (end, mail) = (moments.at(Micros(1_500)), moments.at(Micros(1_400)));
        let wait = moments.later(end, Span(100));
        moments.apart(end, mail);
        let times = moments.solved();
        assert_eq!([end, mail, wait].map(|m| times.at(m)), [Micros(500), Micros(501), Micros(600)]);
        assert_eq!(times.broken, 0);
    }

    #[test]
    fn what_hangs_on_another_instant_moves_it() {
        let mut moments = Moments::new(Micros(0), false);
        let (fail, end) = (moments.at(Micros(10)), moments.at(Micros(300)));
        let retry = moments.later(fail, Span(100));
        moments.in_order(end, retry);
        let times = moments.solved();
        assert_eq!([times.at(fail), times.at(retry)], [Micros(200), Micros(300)]);
    }

    #[test]
    fn orders_that_contradict_each_other_are_given_up_and_counted() {
        let mut moments = Moments::new(Micros(0), false);
        let (one, other) = (moments.at(Micros(10)), moments.at(Micros(20)));
        moments.apart(one, other);
        moments.apart(other, one);
        assert!(moments.solved().broken > 0);
    }

    #[test]
    fn on_virtual_time_nothing_moves() {
        let mut moments = Moments::new(Micros(0), true);
        let (one, other) = (moments.at(Micros(10)), moments.at(Micros(10)));
        moments.apart(one, other);
        let times = moments.solved();
        assert_eq!((times.at(one), times.at(other), times.broken), (Micros(10), Micros(10), 0));
    }
}
