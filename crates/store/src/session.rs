//! What the writer knows of a session under one epoch: where its conversations and runs
//! stand, and whether its writes still count.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use midturn_core::engine::ports::StoreError;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::progress::Progress;
use parking_lot::Mutex;

use crate::nul::hide;

/// A session under one epoch.
#[derive(Debug)]
pub(crate) struct OpenSession {
    /// The session's id as the tables have it.
    pub(crate) id: Arc<str>,
    pub(crate) epoch: u64,
    /// How many transactions are on their way.
    pub(crate) in_flight: AtomicUsize,
    tracked: Mutex<Tracked>,
}

#[derive(Debug, Default)]
struct Tracked {
    broken: Option<StoreError>,
    agents: HashMap<AgentName, Progress>,
}

impl OpenSession {
    pub(crate) fn new(session: &SessionId, epoch: u64, agents: HashMap<AgentName, Progress>) -> Self {
        Self {
            id: hide(session.as_str()).into(),
            epoch,
            in_flight: AtomicUsize::new(0),
            tracked: Mutex::new(Tracked { broken: None, agents }),
        }
    }

    /// Why nothing of it counts any more, if that is so.
    pub(crate) fn broken(&self) -> Option<StoreError> {
        self.tracked.lock().broken.clone()
    }

    /// Nothing that was submitted after what failed counts. The first reason stands.
    pub(crate) fn break_off(&self, error: &StoreError) {
        self.tracked.lock().broken.get_or_insert_with(|| error.clone());
    }

    pub(crate) fn progress(&self, agent: &AgentName) -> Progress {
        self.tracked.lock().agents.get(agent).cloned().unwrap_or_default()
    }

    /// What was written is where the next group begins.
    pub(crate) fn advance(&self, agent: AgentName, progress: Progress) {
        self.tracked.lock().agents.insert(agent, progress);
    }
}
