//! One session's story: who plays in it, what goes on in it, and what is known of it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::watch;

use crate::answering::{Answers, PATIENCE};
use crate::breach::Breaches;
use crate::ledger::Ledger;
use crate::mail::Mail;
use crate::rule::{CREW, GUEST, HOST, LIMITED};
use crate::world::World;

/// Who plays in a session.
#[derive(Debug)]
pub(crate) struct Cast {
    /// What their model is called: so its server tells sessions from each other.
    pub(crate) model: &'static str,
    /// The lead's task. Who has lost the answer to a begin knows the session by it.
    pub(crate) task: &'static str,
    /// Those that are there from the start and are never closed; people write to them most.
    pub(crate) crew: &'static [&'static str],
    /// More of them, who may take a few turns only.
    pub(crate) limited: &'static [&'static str],
}

/// The session that a history is about.
pub(crate) const HOSTS: Cast =
    Cast { model: HOST, task: "@p Begin, lead.", crew: &CREW, limited: &[LIMITED] };

/// One that `midturn run` begins in the daemon.
pub(crate) const GUESTS: Cast =
    Cast { model: GUEST, task: "@p Begin, guest.", crew: &["lead"], limited: &[] };

/// So little that a conversation is compacted every few turns, and so much that the mail of one
/// turn never fills it.
const CONTEXT_TOKENS: u64 = 3_200;

/// What goes on in a history besides messages and calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ways {
    /// A person is asked before a command runs.
    pub(crate) asks: bool,
    /// Conversations outgrow what the model holds.
    pub(crate) compacts: bool,
    /// There is a second session.
    pub(crate) has_guests: bool,
}

impl Ways {
    /// Each of them, and some together, in any few histories that follow each other.
    pub(crate) fn nth(n: u64) -> Self {
        Self { asks: n % 3 == 1, compacts: n.is_multiple_of(2), has_guests: n % 3 == 2 }
    }

    /// The types of event that only such histories have.
    pub(crate) fn events(self) -> impl Iterator<Item = &'static str> {
        let asking = ["approval_requested", "approval_resolved"].into_iter().filter(move |_| self.asks);
        asking.chain(self.compacts.then_some("compacted"))
    }

    /// What a session has to be begun with.
    pub(crate) fn settings(self) -> Vec<String> {
        let asking = ["approvals.mode=accept-edits".to_owned(), format!("approvals.patience={PATIENCE}")];
        let compacting = [format!("context_tokens={CONTEXT_TOKENS}"), "compact_keep_turns=1".to_owned()];
        let asking = asking.into_iter().filter(|_| self.asks);
        asking.chain(compacting.into_iter().filter(|_| self.compacts)).collect()
    }
}

/// What everybody knows of one session.
pub(crate) struct Story {
    pub(crate) world: Arc<World>,
    pub(crate) breaches: Arc<Breaches>,
    pub(crate) cast: &'static Cast,
    pub(crate) ways: Ways,
    /// Its id, once it has begun.
    pub(crate) session: OnceLock<String>,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) mail: Mutex<Mail>,
    pub(crate) answers: Mutex<Answers>,
    /// The number of the last event, for those who wait for one.
    pub(crate) told: watch::Sender<u64>,
    /// The agents that were said to be closed.
    pub(crate) closed: Mutex<BTreeSet<String>>,
    /// From now on people only send, and how many of their stops are on their way.
    pub(crate) only_sends: AtomicBool,
    pub(crate) stopping: AtomicU32,
}

impl Story {
    pub(crate) fn new(
        world: &Arc<World>,
        breaches: &Arc<Breaches>,
        cast: &'static Cast,
        ways: Ways,
    ) -> Arc<Self> {
        Arc::new(Self {
            world: world.clone(),
            breaches: breaches.clone(),
            cast,
            ways,
            session: OnceLock::new(),
            ledger: Mutex::default(),
            mail: Mutex::default(),
            answers: Mutex::default(),
            told: watch::Sender::new(0),
            closed: Mutex::default(),
            only_sends: AtomicBool::new(false),
            stopping: AtomicU32::new(0),
        })
    }
}
