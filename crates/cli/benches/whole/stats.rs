//! Medians and the like.

use std::time::Duration;

/// Figures of one thing, in order.
pub(crate) struct Figures(Vec<f64>);

impl Figures {
    pub(crate) fn new(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        Self(figures)
    }

    /// The figure that so much of all are below, from 0 to 1.
    pub(crate) fn at(&self, share: f64) -> f64 {
        let last = self.0.len() - 1;
        self.0[(last as f64 * share).round() as usize]
    }

    pub(crate) fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// Prints a line: median, the extremes, and what is aimed at.
    pub(crate) fn print(&self, name: &str, unit: &str, target: &str) {
        let (least, most) = (self.at(0.0), self.at(1.0));
        println!("  {name:<58} {:>9.2} {least:>9.2} {most:>9.2} {unit:<6} {target}", self.median());
    }
}

pub(crate) fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1_000.0
}

/// Processor time of all children that have ended, and of theirs.
pub(crate) fn of_children() -> Duration {
    use nix::sys::resource::{UsageWho, getrusage};
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let span = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec().unsigned_abs(), u32::try_from(time.tv_usec()).unwrap_or(0) * 1_000)
    };
    span(used.user_time()) + span(used.system_time())
}
