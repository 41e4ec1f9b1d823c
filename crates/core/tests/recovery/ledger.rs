//! A store in memory that can end like a process: after so many transactions it takes no more.

use std::sync::Arc;

use midturn_core::engine::ports::archive::SessionRecord;
use midturn_core::engine::ports::{Commit, KeepingStore, SessionJournal, Store, StoreError, Transaction};
use midturn_core::rules::event::Event;
use midturn_core::rules::id::SessionId;
use parking_lot::Mutex;

#[derive(Default)]
pub(crate) struct Ledger {
    kept: KeepingStore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    room: usize,
    taken: usize,
    events: Vec<Event>,
}

impl Store for Ledger {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        let mut state = self.state.lock();
        if state.taken >= state.room {
            return Commit::Done(Err(StoreError::Failed("the process has ended".to_owned())));
        }
        state.taken += 1;
        state.events.extend(transaction.events.iter().cloned());
        self.kept.submit(transaction)
    }
}

impl Ledger {
    /// Lets the process live for so many transactions more.
    pub(crate) fn live(&self, transactions: usize) {
        let mut state = self.state.lock();
        state.room = state.taken.saturating_add(transactions);
    }

    pub(crate) fn len(&self) -> usize {
        self.state.lock().taken
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.state.lock().events.clone()
    }

    pub(crate) fn journal(&self) -> SessionJournal {
        self.kept.journal(SessionRecord {
            id: SessionId::new("s1"),
            began_at: 0,
            folder: "/".to_owned(),
            title: String::new(),
            memo: serde_json::Value::Null,
        })
    }
}
