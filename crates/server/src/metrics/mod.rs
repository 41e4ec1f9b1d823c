//! Figures people watch, of a whole process: counted from the events of its sessions.
//!
//! It knows the vocabulary of events and nothing of engine, store or connections; what it can't
//! see in an event it is told ([`Metrics::sse_opened`], [`Metrics::stale_writes_from`]). No name,
//! id or text becomes a label. What each figure means is in docs/operations.md.

mod asked;
mod figures;
mod session;
mod spread;
mod words;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use midturn_core::engine::ports::{Observer, SessionJournal};
use midturn_wire::stats::Stats;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use self::figures::Figures;
use self::session::SessionFigures;

/// What [`Metrics::prometheus`] is, for the header `Content-Type`.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The figures of a process.
#[derive(Debug)]
pub struct Metrics {
    figures: Figures,
    registry: Registry,
}

impl Default for Metrics {
    fn default() -> Self {
        let figures = Figures::default();
        let mut registry = Registry::with_prefix("midturn");
        figures.register(&mut registry);
        Self { figures, registry }
    }
}

impl Metrics {
    /// An observer for one session that begins. What it adds to the gauges goes with it.
    pub fn for_session(&self) -> Arc<dyn Observer> {
        Arc::new(SessionFigures::new(self.figures.clone()))
    }

    /// An observer for one session that goes on: it knows the agents and the mail that are
    /// there already.
    pub fn for_resumed(&self, journal: &SessionJournal) -> Arc<dyn Observer> {
        Arc::new(SessionFigures::resumed(self.figures.clone(), journal))
    }

    /// A client reads events now.
    pub fn sse_opened(&self) {
        self.figures.sse_clients.inc();
    }

    /// A client that read events is gone.
    pub fn sse_closed(&self) {
        self.figures.sse_clients.dec();
    }

    /// Whom to ask how many writes were stale: the archive.
    pub fn stale_writes_from(&self, source: impl Fn() -> u64 + Send + Sync + 'static) {
        self.figures.stale_writes.from(source);
    }

    /// As text that Prometheus scrapes: OpenMetrics 1.0, of the type [`CONTENT_TYPE`].
    pub fn prometheus(&self) -> String {
        let mut page = String::new();
        // Writing to a text can't fail; if it did, half a page without its end is refused by
        // whoever scrapes.
        if let Err(error) = text::encode(&mut page, &self.registry) {
            tracing::error!(%error, "the figures can't be written");
        }
        page
    }

    /// Condensed, as a type with a schema.
    pub fn summary(&self) -> Stats {
        self.figures.stats()
    }

    /// Condensed, as JSON.
    pub fn stats(&self) -> serde_json::Value {
        serde_json::to_value(self.summary()).unwrap_or_default()
    }
}
