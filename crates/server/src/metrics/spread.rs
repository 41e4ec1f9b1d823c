//! How a quantity is spread: a histogram with fixed bounds that a scrape can read and that
//! tells its own quantiles, so that `midturn stats` needs no Prometheus.
//!
//! It keeps counts, never the values: its size does not depend on how much it was told.

use std::sync::Arc;

use midturn_wire::stats::Quantiles;
use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// From being accepted to being injected, in seconds: from "at once" to "in half an hour".
const WAITS: &[f64] =
    &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0];

/// From a stop to its end, in seconds. A process that ignores SIGTERM costs the grace (0.1 s),
/// a call that ignores its token 2 s.
const STOPS: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];

/// From a step to its being durable, in seconds; 20 ms is the target's p99.
const COMMITS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0];

/// The length of a partial reply, in tokens. The first bucket holds the empty ones.
const TOKENS: &[f64] = &[0.0, 1.0, 4.0, 16.0, 64.0, 256.0, 1_024.0, 4_096.0, 16_384.0];

/// A histogram. Clones share their counts.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    bounds: &'static [f64],
    cells: Arc<Mutex<Cells>>,
}

#[derive(Debug)]
struct Cells {
    sum: f64,
    /// One for each bound, and one for what is above all of them.
    counts: Vec<u64>,
}

impl Spread {
    fn with(bounds: &'static [f64]) -> Self {
        let cells = Cells { sum: 0.0, counts: vec![0; bounds.len() + 1] };
        Self { bounds, cells: Arc::new(Mutex::new(cells)) }
    }

    pub(super) fn of_waits() -> Self {
        Self::with(WAITS)
    }

    pub(super) fn of_stops() -> Self {
        Self::with(STOPS)
    }

    pub(super) fn of_commits() -> Self {
        Self::with(COMMITS)
    }

    pub(super) fn of_tokens() -> Self {
        Self::with(TOKENS)
    }

    /// Counts a value.
    pub(super) fn observe(&self, value: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        let mut cells = self.cells.lock();
        cells.sum += value;
        if let Some(count) = cells.counts.get_mut(at) {
            *count += 1;
        }
    }

    /// Adds the counts of another spread with the same bounds.
    pub(super) fn absorb(&self, other: &Self) {
        let (sum, counts) = other.snapshot();
        let mut cells = self.cells.lock();
        cells.sum += sum;
        cells.counts.iter_mut().zip(counts).for_each(|(count, more)| *count += more);
    }

    /// How many, and the middle and the slowest hundredth of them.
    pub(super) fn quantiles(&self) -> Quantiles {
        let (_, counts) = self.snapshot();
        let count = counts.iter().sum();
        Quantiles { count, p50: self.quantile(&counts, count, 0.5), p99: self.quantile(&counts, count, 0.99) }
    }

    /// As Prometheus' `histogram_quantile`: linear within the bucket; what is above all bounds
    /// is said to be the highest bound.
    fn quantile(&self, counts: &[u64], total: u64, q: f64) -> Option<f64> {
        let highest = *self.bounds.last()?;
        if total == 0 {
            return None;
        }
        let rank = q * total as f64;
        let (mut below, mut lower) = (0.0, 0.0);
        for (bound, count) in self.bounds.iter().zip(counts) {
            let within = *count as f64;
            if within > 0.0 && below + within >= rank {
                return Some(lower + (bound - lower) * (rank - below) / within);
            }
            below += within;
            lower = *bound;
        }
        Some(highest)
    }

    fn snapshot(&self) -> (f64, Vec<u64>) {
        let cells = self.cells.lock();
        (cells.sum, cells.counts.clone())
    }
}

impl TypedMetric for Spread {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Spread {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let (sum, counts) = self.snapshot();
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts.iter().copied()).collect();
        encoder.encode_histogram::<NoLabelSet>(sum, counts.iter().sum(), &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_that_prometheus_would_say() {
        for (values, p50, p99) in [
            (vec![], None, None),
            (vec![0.0; 10], Some(0.0), Some(0.0)),
            // Half of the way into the bucket from 1 to 4.
            (vec![2.0, 3.0], Some(2.5), Some(3.97)),
            // One of four is above all bounds.
            (vec![1.0, 1.0, 1.0, 1e9], Some(2.0 / 3.0), Some(16_384.0)),
        ] {
            let spread = Spread::of_tokens();
            values.iter().for_each(|value| spread.observe(*value));
            let told = spread.quantiles();
            assert_eq!(told.count, values.len() as u64);
            for (told, expected) in [(told.p50, p50), (told.p99, p99)] {
                let close = |told: f64, expected: f64| (told - expected).abs() < 1e-9;
                let same = told.zip(expected).map_or(told == expected, |(a, b)| close(a, b));
                assert!(same, "{values:?}: {told:?}, not {expected:?}");
            }
        }
    }

    #[test]
    fn a_value_on_a_bound_belongs_below_it() {
        let spread = Spread::of_tokens();
        [0.0, 0.5, 1.0, 4.0, 5.0].iter().for_each(|value| spread.observe(*value));
        let (sum, counts) = spread.snapshot();
        assert_eq!((sum, &counts[..5]), (10.5, &[1, 2, 1, 1, 0][..]));
        let both = Spread::of_tokens();
        both.absorb(&spread);
        both.absorb(&spread);
        assert_eq!(both.quantiles().count, 10);
    }
}
