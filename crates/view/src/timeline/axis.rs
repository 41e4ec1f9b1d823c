//! From moments to places: how far from the left everything stands.
//!
//! A true scale would leave an hour of waiting beside calls of milliseconds that nobody could read. So what lies between two
//! moments is as wide as it is long compared with the others, within bounds: what is shorter than a sixth of the usual is
//! drawn as long as that, what is longer than four times the usual is cut. Whatever needs room for its name pushes what is behind it.
//! All of it is whole numbers: the page comes to the same ones.

use midturn_core::rules::time::Micros;

use super::parts::{Moment, Tick};

/// How wide a usual step is, in units: about the points of a screen. Three quarters of all steps are no longer than the usual one.
const USUAL: u64 = 72;

/// How many steps are drawn as wide as that; more are drawn narrower.
const ROOMY: u64 = 150;

/// How many steps something that needs room is looked at for.
const LOOKED_AT: usize = 64;

/// So much room a written instant needs.
const TICK: u64 = 64;

/// Where moments stand, from left to right.
pub(super) struct Axis {
    moments: Vec<Moment>,
    places: Vec<u64>,
    /// The steps that are shorter than they would be: from where to where.
    pub(super) cuts: Vec<(u64, u64)>,
}

/// That something needs so much room from one moment to another.
pub(super) struct Need {
    pub(super) from: Moment,
    pub(super) to: Moment,
    pub(super) room: u64,
}

/// What is shorter than this, in microseconds, has an order and no width of its own: a live session has steps of some
/// millionths of a second, which nobody means.
const NOTHING: u64 = 1_000;

/// How wide steps are.
#[derive(Clone, Copy)]
struct Widths {
    /// What is shorter has no width.
    least: u64,
    /// The usual step's length in microseconds.
    usual: u64,
    width: u64,
}

impl Widths {
    fn of(moments: &[Moment]) -> Self {
        let all: u64 = moments.windows(2).map(length).sum();
        let least = (all / 100).clamp(1, NOTHING);
        let mut steps: Vec<u64> = moments.windows(2).map(length).filter(|length| *length >= least).collect();
        steps.sort_unstable();
        let usual = steps.get(steps.len() * 3 / 4).copied().unwrap_or(1);
        let width = (USUAL * ROOMY / (steps.len() as u64).max(1)).clamp(4, USUAL);
        Self { least, usual, width }
    }

    /// How wide a step is, and whether that is less than it should be.
    fn step(self, length: u64) -> (u64, bool) {
        if length < self.least {
            return (0, false);
        }
        let wide = length.saturating_mul(self.width) / self.usual;
        (wide.clamp((self.width / 6).max(1), self.width * 4), wide > self.width * 4)
    }
}

fn length(pair: &[Moment]) -> u64 {
    pair[1].at.since(pair[0].at).0
}

impl Axis {
    /// Where these moments stand, so that what has needs has its room.
    pub(super) fn new(mut moments: Vec<Moment>, needs: &[Need]) -> Self {
        moments.sort_unstable();
        moments.dedup();
        let widths = Widths::of(&moments);
        let mut steps: Vec<(u64, bool)> = moments.windows(2).map(|pair| widths.step(length(pair))).collect();
        for need in needs {
            makes_room(&moments, &mut steps, need, widths.width);
        }
        let mut places = vec![0];
        let mut cuts = Vec::new();
        let mut x = 0;
        for (step, is_cut) in steps {
            if is_cut {
                cuts.push((x, x + step));
            }
            x += step;
            places.push(x);
        }
        Self { moments, places, cuts }
    }

    /// Where a moment stands that was among those it was made of.
    pub(super) fn x(&self, moment: Moment) -> u64 {
        let at = self.moments.partition_point(|known| *known < moment);
        self.places.get(at).or(self.places.last()).copied().unwrap_or_default()
    }

    /// How wide all of it is.
    pub(super) fn width(&self) -> u64 {
        self.places.last().copied().unwrap_or_default()
    }

    /// The instants that are written: the first of each that reads otherwise than the one before it, where that leaves room.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let mut ticks: Vec<Tick> = Vec::new();
        let mut last: Option<Micros> = None;
        for (moment, x) in self.moments.iter().zip(&self.places) {
            let is_new = last.replace(moment.at).is_none_or(|last| moment.at > last);
            if is_new && ticks.last().is_none_or(|tick| tick.x + TICK <= *x) {
                let text = super::words::instant(moment.at);
                if ticks.last().is_none_or(|tick| tick.text != text) {
                    ticks.push(Tick { x: *x, text });
                }
            }
        }
        ticks
    }
}

/// Widens the last step of what has too little room. What is narrow all over has less than it needs.
fn makes_room(moments: &[Moment], steps: &mut [(u64, bool)], need: &Need, usual: u64) {
    let first = moments.partition_point(|known| *known < need.from);
    let end = moments.partition_point(|known| *known < need.to).min(steps.len());
    if first >= end || end - first > LOOKED_AT {
        return;
    }
    let has: u64 = steps[first..end].iter().map(|(step, _)| step).sum();
    let needs = need.room * usual / USUAL;
    if has < needs.max(1) {
        steps[end - 1].0 += needs.max(1) - has;
    }
}
