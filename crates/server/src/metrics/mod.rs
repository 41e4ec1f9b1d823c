//! Figures people watch, of a whole process: counted from the events of its sessions.
//!
//! It knows the vocabulary of events and nothing of engine, store or connections; what it can't
//! see in an event it is told ([`Metrics::sse_opened`], [`Metrics::stale_writes_from`]). No name,
//! id or text becomes a label. What each figure means is in docs/operations.md.

mod figures;
mod page;
mod session;
mod spread;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use midturn_core::engine::ports::{Observer, SessionJournal};
use midturn_core::rules::view::View;
use midturn_wire::stats::Stats;

use self::figures::{Figures, SSE_CLIENTS};
use self::session::SessionFigures;

/// What [`Metrics::prometheus`] is, for the header `Content-Type`.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The figures of a process.
#[derive(Default)]
pub struct Metrics(Arc<Figures>);

impl Metrics {
    /// An observer for one session that begins. What it adds to the gauges goes with it.
    pub fn for_session(&self) -> Arc<dyn Observer> {
        Arc::new(SessionFigures::of(self.0.clone(), View::default()))
    }

    /// An observer for one session that goes on: it knows the agents and the mail that are
    /// there already.
    pub fn for_resumed(&self, journal: &SessionJournal) -> Arc<dyn Observer> {
        Arc::new(SessionFigures::of(self.0.clone(), journal.view()))
    }

    /// A client reads events, until this is dropped.
    pub fn sse_opened(&self) -> Reads {
        self.0.count(SSE_CLIENTS, 1);
        Reads(self.0.clone())
    }

    /// Whom to ask how many writes were stale: the archive. Whoever is named first is asked.
    pub fn stale_writes_from(&self, source: impl Fn() -> u64 + Send + Sync + 'static) {
        self.0.stale_writes.get_or_init(|| Box::new(source));
    }

    /// As text that Prometheus scrapes: OpenMetrics 1.0, of the type [`CONTENT_TYPE`].
    pub fn prometheus(&self) -> String {
        self.0.now().page()
    }

    /// Condensed, as a type with a schema.
    pub fn summary(&self) -> Stats {
        self.0.now().stats()
    }
}

/// A client that reads events.
pub struct Reads(Arc<Figures>);

impl Drop for Reads {
    fn drop(&mut self) {
        self.0.count(SSE_CLIENTS, -1);
    }
}
