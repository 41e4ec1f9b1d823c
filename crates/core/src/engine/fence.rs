//! Fences: while a subtree is being stopped or closed, nobody is spawned in it. Without that a
//! stop would run after agents that spawn faster than it stops.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::rules::id::AgentName;

/// The subtrees that are being stopped now.
#[derive(Default)]
pub(crate) struct Fences(Mutex<Vec<Around>>);

/// What a fence is around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    /// An agent and all below it.
    Subtree(AgentName),
    /// Everybody.
    All,
}

/// A fence; it is there as long as this lives.
pub(crate) struct Fence {
    fences: Arc<Fences>,
    around: Around,
}

impl Fences {
    pub(crate) fn put(self: &Arc<Self>, around: Around) -> Fence {
        self.0.lock().push(around.clone());
        Fence { fences: self.clone(), around }
    }

    /// Whether one of these is in a fence, or everybody is.
    pub(crate) fn hold(&self, mut lineage: impl Iterator<Item = AgentName>) -> bool {
        let fences = self.0.lock();
        let all = fences.contains(&Around::All);
        // Looking up a lineage costs something, fences are rare.
        all || (!fences.is_empty() && lineage.any(|name| fences.contains(&Around::Subtree(name))))
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        let mut fences = self.fences.0.lock();
        if let Some(at) = fences.iter().position(|around| *around == self.around) {
            fences.swap_remove(at);
        }
    }
}
