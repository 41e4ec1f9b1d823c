//! How a quantity is spread: a histogram with fixed bounds that a scrape can read and that
//! tells its own quantiles, so that `midturn stats` needs no Prometheus.
//!
//! It keeps counts, never the values: its size does not depend on how much it was told.

use midturn_wire::stats::Quantiles;

/// A quantity that is spread.
pub(super) struct Spread {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) labels: &'static [&'static str],
    pub(super) bounds: &'static [f64],
    /// What it says.
    pub(super) help: &'static str,
}

/// What was counted of a spread.
#[derive(Clone)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    pub(super) sum: f64,
    /// One for each bound, and one for what is above all of them.
    pub(super) counts: Vec<u64>,
}

impl Histogram {
    /// Nothing yet.
    pub(super) fn of(spread: &Spread) -> Self {
        Self { bounds: spread.bounds, sum: 0.0, counts: vec![0; spread.bounds.len() + 1] }
    }

    /// Counts a value.
    pub(super) fn observe(&mut self, value: f64) {
        self.sum += value;
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
    }

    /// Adds the counts of another one of the same spread.
    pub(super) fn absorb(&mut self, other: &Self) {
        self.sum += other.sum;
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
    }

    /// How many were counted.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many, and the middle and the slowest hundredth of them.
    pub(super) fn quantiles(&self) -> Quantiles {
        Quantiles { count: self.count(), p50: self.quantile(0.5), p99: self.quantile(0.99) }
    }

    /// As Prometheus' `histogram_quantile`: linear within the bucket; what is above all bounds
    /// is said to be the highest bound.
    fn quantile(&self, q: f64) -> Option<f64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = q * total as f64;
        let (mut below, mut lower) = (0.0, 0.0);
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            let within = *count as f64;
            if within > 0.0 && below + within >= rank {
                return Some(lower + (bound - lower) * (rank - below) / within);
            }
            below += within;
            lower = *bound;
        }
        self.bounds.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::figures::PARTIAL_REPLY;

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
            let mut spread = Histogram::of(&PARTIAL_REPLY);
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
        let mut spread = Histogram::of(&PARTIAL_REPLY);
        [0.0, 0.5, 1.0, 4.0, 5.0].iter().for_each(|value| spread.observe(*value));
        assert_eq!((spread.sum, &spread.counts[..5]), (10.5, &[1, 2, 1, 1, 0][..]));
        let mut both = Histogram::of(&PARTIAL_REPLY);
        both.absorb(&spread);
        both.absorb(&spread);
        assert_eq!(both.quantiles().count, 10);
    }
}
