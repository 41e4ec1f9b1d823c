//! Fences: while a subtree is being stopped or closed, nobody is spawned in it, and who is just
//! being spawned is waited for. Without that a stop would run after agents that spawn faster
//! than it stops.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::until::until;
use crate::rules::id::AgentName;

/// The subtrees that are being stopped now.
#[derive(Default)]
pub(crate) struct Fences(Mutex<Vec<Around>>);

/// The agents whose spawn is not recorded yet.
#[derive(Default)]
pub(crate) struct Spawns {
    under_way: Mutex<HashSet<AgentName>>,
    ended: Notify,
}

/// A spawn that is under way, as long as this lives.
pub(crate) struct Spawning {
    spawns: Arc<Spawns>,
    name: AgentName,
}

impl Spawns {
    pub(crate) fn begin(self: &Arc<Self>, name: &AgentName) -> Spawning {
        self.under_way.lock().insert(name.clone());
        Spawning { spawns: self.clone(), name: name.clone() }
    }

    /// Waits until the agent's spawn is recorded, or has failed: before that nothing can be
    /// told of it.
    pub(crate) async fn ended(&self, name: &AgentName) {
        until(&self.ended, || !self.under_way.lock().contains(name)).await;
    }
}

impl Drop for Spawning {
    fn drop(&mut self) {
        self.spawns.under_way.lock().remove(&self.name);
        self.spawns.ended.notify_waiters();
    }
}

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
