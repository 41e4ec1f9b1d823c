//! The whole program with faults planted on purpose, which the crash harness (tests/crash) has to
//! find: wrappers around the store, so that the real code stays clean. `_MIDTURN_PLANTED` names
//! the fault, `_MIDTURN_FAIL_POINT` where the process ends; without either this is the program as it is.
//!
//! Each is a mistake that somebody could make: something is told before it is so, something is
//! not kept, or what was kept is not believed by the next process.

mod fail_points;
mod journal;
mod writes;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use midturn::planted::{Planted, plant};
use midturn_conformance::around::{Around, Layer};
use midturn_core::engine::Coordinator;
use midturn_core::engine::ports::archive::SessionSummary;
use midturn_core::engine::ports::{Archive, SessionJournal, Store};
use midturn_core::rules::mail::Sender;
use serde::Deserialize;

use writes::Writes;

/// The variable that names the fault; the tools have faults of their own in it. It is not a setting.
const VARIABLE: &str = "_MIDTURN_PLANTED";

/// A fault of the store's, named by its word: `ack_before_durable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fault {
    /// A transaction is called durable while it waits for others to go with it.
    AckBeforeDurable,
    /// Mail leaves the mailbox before the conversation has it.
    DrainBeforeSave,
    /// That a call starts is written with its result.
    ToolStartedIsLate,
    /// A reply is written with what follows it.
    ReplyIsLate,
    /// The results of an open turn are not kept.
    ResultsAreNotKept,
    /// That a message was injected is not kept.
    InjectionsAreNotKept,
    /// Mail that was injected beside results is not in the conversation that is kept.
    MailBesideResultsIsNotKept,
    /// The answers that a wait returns leave the mailbox before its result is kept.
    WaitsTakeTooEarly,
    /// That a parent has still to be told of an end is not kept.
    ReportsAreNotOwed,
    /// A reply that was cut comes back as a whole one.
    PartialRepliesAreWhole,
    /// What waited when a run failed is gone.
    QueueIsClearedOnError,
    /// Mail comes back in the wrong order.
    MailIsTurnedRound,
    /// The newest message that waited is gone.
    LastMailIsDropped,
    /// The newest message that waited is there twice.
    LastMailIsDoubled,
    /// Nobody remembers messages that have come to their end.
    SettledMailIsForgotten,
    /// Nobody remembers which calls had started.
    StartedCallsLookUnstarted,
    /// A call that was lost is said to have ended well.
    LostCallsAreCompleted,
    /// A turn whose calls were lost is begun once more.
    LostCallsRunAgain,
    /// The newest line of a conversation is gone.
    LastRowIsDropped,
    /// The numbers of runs are given out once more.
    RunsBeginAnew,
    /// A run that was under way is taken for one that has ended.
    OpenRunsAreLeft,
    /// The session's time begins at zero.
    TimeBeginsAnew,
    /// Nobody remembers who was closed.
    ClosesAreForgotten,
    /// Nobody remembers which messages a result was cut or skipped for.
    CommittedIsForgotten,
    /// Nobody remembers what limits were set.
    LimitsAreForgotten,
    /// That a conversation was compacted is not kept.
    CompactionsAreNotKept,
    /// Of what a compaction kept whole nothing is there.
    CompactionsKeepNoTurns,
    /// Nobody remembers what a person is to be asked about.
    ModesAreForgotten,
    /// A call that was asked about is taken for one that had started.
    RequestsLookStarted,
    /// Whoever ends a daemon is taken to mean its sessions, also those that others have begun in it.
    GuestsAreLeft,
    /// The end of the process stops everybody as a person would, and goes on accepting meanwhile.
    ShutdownAccepts,
    /// A second process may hold the store.
    NoFence,
}

/// How long a shutdown that accepts does so at most.
const ACCEPTS: Duration = Duration::from_millis(400);

fn main() -> ExitCode {
    fail_points::arm();
    if let Some(fault) = named() {
        plant(Box::new(fault));
    }
    midturn::main()
}

/// The fault that is named, if it is one of the store's.
fn named() -> Option<Fault> {
    let word = std::env::var(VARIABLE).ok()?;
    Fault::deserialize(serde_json::Value::from(word)).ok()
}

#[async_trait]
impl Planted for Fault {
    /// Without a fence the lock beside the file goes, so that whoever has it keeps a lock on nothing.
    fn before_opening(&self, store: &Path) {
        if *self == Self::NoFence {
            let mut lock = store.as_os_str().to_owned();
            lock.push(".lock");
            // The first to open it finds none.
            std::fs::remove_file(lock).ok();
        }
    }

    fn around(&self, archive: Arc<dyn Archive>) -> Arc<dyn Archive> {
        Arc::new(Around::new(archive, *self))
    }

    /// It is stopped, and let accept more.
    async fn before_the_end(&self, coordinator: &Coordinator) {
        if *self == Self::ShutdownAccepts {
            coordinator.stop_all(Sender::User).await.ok();
            tokio::time::timeout(ACCEPTS, coordinator.quiet()).await.ok();
        }
    }
}

impl Layer for Fault {
    fn store(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(Writes::new(*self, store))
    }

    fn journal(&self, journal: SessionJournal) -> SessionJournal {
        journal::with(*self, journal)
    }

    fn summary(&self, summary: SessionSummary) -> SessionSummary {
        journal::of_summary(*self, summary)
    }
}
