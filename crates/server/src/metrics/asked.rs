//! A counter that somebody else keeps and that is asked for at each scrape.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

type Source = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The counter; 0 until it is known whom to ask.
#[derive(Clone, Default)]
pub(super) struct Asked(Arc<RwLock<Option<Source>>>);

impl Asked {
    pub(super) fn from(&self, source: impl Fn() -> u64 + Send + Sync + 'static) {
        *self.0.write() = Some(Arc::new(source));
    }

    pub(super) fn get(&self) -> u64 {
        let source = self.0.read().clone();
        source.map_or(0, |source| source())
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}

impl EncodeMetric for Asked {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.encode_counter::<NoLabelSet, _, u64>(&self.get(), None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}
