//! The cases that all benchmarks share: what of ours is measured, and what beside it.
//!
//! A case does something `n` times and says how much processor time that took, without its
//! preparation. Processor time, because the machines this runs on have other work too. What
//! is compared carries the same payload and is driven the same way; no case knows whether it
//! is timed, counted or alternated with another.

#![allow(dead_code, unreachable_pub, reason = "each benchmark uses a part of this")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that can't go on should end")]

pub mod cpu;
pub mod fanout;
pub mod fleet;
pub mod growth;
pub mod peek;
pub mod queue;
pub mod replay;
pub mod urgent;

use std::hint::black_box;
use std::time::Duration;

/// Something that can be done `n` times.
pub struct Case {
    /// What it is, for tables.
    pub name: &'static str,
    run: Box<dyn FnMut(u64) -> Duration>,
}

impl Case {
    /// A case that measures itself, because it prepares something that is not counted.
    pub fn measured(name: &'static str, run: impl FnMut(u64) -> Duration + 'static) -> Self {
        Self { name, run: Box::new(run) }
    }

    /// A case all of which counts.
    pub fn plain<T>(name: &'static str, mut once: impl FnMut() -> T + 'static) -> Self {
        Self::measured(name, move |n| {
            cpu::measure(|| {
                for _ in 0..n {
                    black_box(once());
                }
            })
        })
    }

    /// Does it `n` times.
    pub fn run(&mut self, n: u64) -> Duration {
        (self.run)(n)
    }
}

/// A row of the table: ours first, then its alternatives.
pub struct Row {
    /// What is compared.
    pub name: &'static str,
    /// What `targets.md` asks of it, as a ratio to the case of that name.
    pub target: Option<(f64, &'static str)>,
    /// How often a case is done in a round.
    pub per_round: u64,
    /// Whether all that a case does counts, so that its instructions can be counted too.
    pub countable: bool,
    /// Ours is the first.
    pub cases: Vec<Case>,
}

/// All rows; each is prepared only when it is asked for.
pub const ROWS: [fn() -> Row; 6] = [peek::row, queue::row, fanout::row, urgent::row, fleet::row, replay::row];
