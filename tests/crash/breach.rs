//! What the checker found: which promise is broken, and how.

use std::fmt;
use std::sync::Mutex;

/// The promises of semantics.md that the harness looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Promise {
    /// What was accepted is not lost (invariant 2).
    NothingLost,
    /// What was accepted is there once (invariants 2 and 3).
    NothingDoubled,
    /// Every prompt is one that a provider takes (invariant 1), of whole replies only (invariant 7).
    ValidPrompts,
    /// What was sent never changes (invariant 6).
    PromptsGrow,
    /// A result says what the tool did (invariant 4); no call runs twice.
    TrueResults,
    /// Nothing of a call outlives its result, nothing of a session its daemon (invariant 9).
    NoSurvivors,
    /// Receipts move forward only and say what is so.
    TrueReceipts,
    /// Who writes first is read first (invariant 2).
    InOrder,
    /// Events have numbers without gaps, stay as they were told, and tell of whole runs (invariant 8).
    OneHistory,
    /// A parent learns of every end once.
    EndsAreTold,
    /// Whoever was told to work comes to an end (invariant 5).
    WorkGoesOn,
    /// What was answered to an order has happened, after a crash too.
    OrdersStand,
    /// What a person is to be asked about runs after a yes, and never without one.
    AskedFirst,
    /// Nothing begins behind a shutdown, and no mail goes back because of it.
    ShutdownIsAFence,
    /// One process holds a store.
    OneHolder,
    /// The daemon runs until it is killed, and answers.
    StaysUp,
}

/// One thing that is not as promised.
#[derive(Clone, Debug)]
pub(crate) struct Breach {
    pub(crate) promise: Promise,
    pub(crate) what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.promise, self.what)
    }
}

/// How many breaches of one history are kept: the first ones tell most.
const KEPT: usize = 200;

/// Where everybody who sees a breach puts it.
#[derive(Debug, Default)]
pub(crate) struct Breaches(Mutex<Vec<Breach>>);

impl Breaches {
    pub(crate) fn add(&self, promise: Promise, what: impl Into<String>) {
        let mut kept = self.0.lock().unwrap();
        if kept.len() < KEPT {
            kept.push(Breach { promise, what: what.into() });
        }
    }

    pub(crate) fn any(&self) -> bool {
        !self.0.lock().unwrap().is_empty()
    }

    pub(crate) fn all(&self) -> Vec<Breach> {
        self.0.lock().unwrap().clone()
    }
}
