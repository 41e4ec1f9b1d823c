//! How many commands run at once in a process, whichever sessions their agents are of (docs/decisions/0054).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of a process. Clones share them; who has waited longest gets the next one.
#[derive(Clone, Debug)]
pub struct Slots(Arc<Semaphore>);

/// A command runs in it; it is free again once this is dropped.
#[derive(Debug)]
pub(crate) struct Slot(#[expect(dead_code, reason = "it is held, and that is all")] OwnedSemaphorePermit);

impl Slots {
    /// So many, one at least.
    pub fn new(slots: usize) -> Self {
        Self(Arc::new(Semaphore::new(slots.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// One that is free, and that nobody waits for.
    pub(crate) fn free(&self) -> Option<Slot> {
        self.0.clone().try_acquire_owned().ok().map(Slot)
    }

    /// Waits until one is free.
    pub(crate) async fn wait(self) -> Slot {
        match self.0.acquire_owned().await {
            Ok(slot) => Slot(slot),
            // Nobody closes them.
            Err(_) => std::future::pending().await,
        }
    }
}
