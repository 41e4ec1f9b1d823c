//! Where the crash harness plants faults into the program (tests/planted). Without the feature
//! `crash-tests` none of this is in it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use midturn_core::engine::Coordinator;
use midturn_core::engine::ports::Archive;

/// A fault, where it can act.
#[async_trait]
pub trait Planted: Send + Sync {
    /// Before a store's file is opened to write.
    fn before_opening(&self, store: &Path);

    /// Around the archive.
    fn around(&self, archive: Arc<dyn Archive>) -> Arc<dyn Archive>;

    /// Before a session is shut down.
    async fn before_the_end(&self, coordinator: &Coordinator);
}

static PLANTED: OnceLock<Box<dyn Planted>> = OnceLock::new();

/// Plants a fault. The first one stays.
pub fn plant(fault: Box<dyn Planted>) {
    PLANTED.get_or_init(|| fault);
}

pub(crate) fn planted() -> Option<&'static dyn Planted> {
    PLANTED.get().map(|fault| &**fault)
}
