//! The `Observer` port: who is told of events once they are recorded.

use crate::rules::event::{Event, LiveEvent};
use crate::rules::time::Span;

/// Is told every event, in order, after it was recorded. Must return quickly and must not
/// call back into the coordinator from within.
pub trait Observer: Send + Sync {
    /// An event was recorded.
    fn event(&self, event: &Event);

    /// Something was said that is recorded only as a whole, later.
    fn live(&self, _event: &LiveEvent) {}

    /// Something came from work that nobody waits for any more (a call that was given up and
    /// ended after all): it changed nothing (semantics.md, section 6).
    fn stale(&self) {}

    /// A transaction took so long to be durable.
    fn stored(&self, _took: Span) {}
}
