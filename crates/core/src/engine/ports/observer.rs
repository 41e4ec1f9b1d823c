//! The `Observer` port: who is told of events once they are recorded.

use crate::rules::event::{Event, LiveEvent};
use crate::rules::time::Span;

/// Is told every event, in order, after it was recorded, under the journal's lock and on a
/// thread that agents need: **it must not wait**. It may count and keep (in bounds, under locks
/// that nobody holds while waiting); it neither sends where there may be no room, nor writes to
/// a terminal, a pipe or a disk, nor calls back into the coordinator. One that waits holds up
/// every agent of the session, and whoever would stop them.
///
/// Whoever shows events is therefore no observer but a reader: it asks for them by number at
/// its own pace, takes those that are no longer in memory from the store, and misses only
/// deltas, which the event that ends them repeats. Where nothing may be lost and there is no
/// store to read from, the *agent* waits at its next boundary, never the runtime.
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
