//! How a driver records: what has to be durable before it goes on, and what may become durable with
//! what follows at once. With a tool that makes two syncs of a turn: the reply with the start of its
//! calls, and their results with the mail beside them and the start of the next request.

use super::Driver;
use crate::engine::journal::{Draft, PutOff};
use crate::engine::mailbox::Queued;
use crate::engine::ports::StoreError;

/// What the driver has recorded and does not wait for yet.
#[derive(Default)]
pub(super) struct Ahead {
    put_off: PutOff,
    /// The mail that it takes out of the mailbox.
    taken: Vec<Queued>,
}

impl Driver {
    /// Records, and waits until that is durable with all that was put off before it.
    pub(super) async fn record(&mut self, draft: Draft) -> Result<(), StoreError> {
        let recorded = self.session.journal.record_after(&mut self.ahead.put_off, draft, || true).await;
        self.settled(recorded).map(drop)
    }

    /// The same. `false`: the store is broken, and the run ends.
    pub(super) async fn record_or_end(&mut self, draft: Draft) -> bool {
        let recorded = self.record(draft).await;
        self.obey(recorded)
    }

    /// Records, unless the work in hand is cancelled by then: `false`, and nothing is recorded.
    /// Whoever cancels first and records that afterwards finds no such start behind it: a stop is a
    /// fence (semantics.md, section 5).
    pub(super) async fn record_start(&mut self, draft: Draft) -> Result<bool, StoreError> {
        let (work, before) = (&self.work, &mut self.ahead.put_off);
        let recorded = self.session.journal.record_after(before, draft, || !work.is_cancelled()).await;
        self.settled(recorded)
    }

    /// Records the begin of the run, unless the process ends by then: `false`, and there is no such run.
    pub(super) async fn record_begin(&mut self, draft: Draft) -> Result<bool, StoreError> {
        let (mailbox, before) = (&self.cell.mailbox, &mut self.ahead.put_off);
        let recorded = self.session.journal.record_after(before, draft, || mailbox.starts()).await;
        self.settled(recorded)
    }

    /// Records what something else will follow at once. Whoever would then wait for anything but the
    /// store calls [`Driver::sync`] first, or nobody would hear of it meanwhile. `false`: the store
    /// is broken, and the run ends.
    pub(super) async fn put_off(&mut self, draft: Draft) -> bool {
        let recorded = self.session.journal.put_off(draft, &mut self.ahead.put_off).await;
        let recorded = self.settled(recorded);
        self.obey(recorded)
    }

    /// The same with the mail that the draft takes out of the mailbox.
    pub(super) async fn put_off_taking(&mut self, draft: Draft, mut taken: Vec<Queued>) -> bool {
        self.ahead.taken.append(&mut taken);
        self.put_off(draft).await
    }

    /// Waits until all that was put off is durable.
    pub(super) async fn sync(&mut self) {
        let synced = self.session.journal.sync(&mut self.ahead.put_off).await;
        let synced = self.settled(synced);
        self.obey(synced);
    }

    /// What was taken is gone once that is durable, and goes back if the store refuses it.
    fn settled<T>(&mut self, recorded: Result<T, StoreError>) -> Result<T, StoreError> {
        if recorded.is_err() {
            let taken = std::mem::take(&mut self.ahead.taken);
            self.mailbox().restore(taken);
        } else if self.ahead.put_off.is_empty() {
            self.ahead.taken.clear();
        }
        recorded
    }
}
