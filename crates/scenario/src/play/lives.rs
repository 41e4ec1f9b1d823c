//! A play on virtual time: one process after the other, as the scenario ends them.
//!
//! Each process is a runtime of its own. A crash drops it with all that was under way; what
//! was recorded by then is what the next one takes up, by the same code as a real one.

use std::sync::Arc;

use midturn_core::engine::ports::archive::SessionRecord;
use midturn_core::engine::ports::{
    Clock, Commit, KeepingStore, SessionJournal, Store, StoreError, Transaction,
};
use midturn_core::engine::scripted::SimulatedTools;
use midturn_core::engine::{Attached, Coordinator, Stuck};
use midturn_core::rules::id::SessionId;
use midturn_core::rules::time::Span;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::acts::{Acting, Process};
use super::items::Items;
use super::{Keeps, Played, Witnesses, refused, stage};
use crate::error::Error;
use crate::scenario::Scenario;

/// Plays a scenario with simulated tools to its end.
pub(super) fn played(scenario: &Scenario, keeps: &Keeps) -> Result<Played, Error> {
    let clock: Arc<dyn Clock> = keeps.clock.clone();
    let witnesses = Witnesses::new(scenario, &clock);
    let items = Items::of(scenario, &witnesses.anchors);
    let play = Play { scenario, keeps, witnesses, items };
    let mut before = None;
    let stuck = loop {
        match play.live(before.as_deref())? {
            End::Over(stuck) => break stuck,
            End::Gone { back_after, left } => {
                keeps.clock.pass(clock.now().after(back_after));
                before = Some(left);
            }
        }
    };
    if let Some(error) = play.witnesses.remarks.refusal() {
        return Err(error);
    }
    Ok(Played { record: play.witnesses.record(stuck), worktrees: Box::new(|_| None) })
}

struct Play<'a> {
    scenario: &'a Scenario,
    keeps: &'a Keeps,
    witnesses: Witnesses,
    items: Items,
}

/// How a process ended.
enum End {
    /// Nothing can happen any more, or an instant never ends.
    Over(Option<Stuck>),
    /// The scenario ended it; this is left of it, and taken up so much later.
    Gone { back_after: Span, left: Box<KeepingStore> },
}

impl End {
    /// Before anything is dropped: what the dead still write is not in it.
    fn gone(back_after: Span, kept: &KeepingStore) -> Self {
        Self::Gone { back_after, left: Box::new(kept.taken_up()) }
    }
}

/// What lives as long as a process, on its stage.
struct Staged {
    _items: JoinSet<()>,
    _attached: Option<Attached>,
}

impl Play<'_> {
    /// One process: it begins the session, or takes it up from what is left.
    fn live(&self, before: Option<&KeepingStore>) -> Result<End, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.map_err(|error| refused(self.scenario, format!("no runtime: {error}")))?;
        let kept = Arc::new(before.map(KeepingStore::taken_up).unwrap_or_default());
        let journal = before.map(|before| before.journal(record()));
        let ended = runtime.block_on(async {
            let (process, mut is_gone) = watch::channel(Process::Lives);
            let acting = |coordinator: &Coordinator| Acting {
                coordinator: coordinator.clone(),
                remarks: self.witnesses.remarks.clone(),
                source: self.scenario.source.clone(),
                clock: self.keeps.clock.clone(),
                process: process.clone(),
            };
            let set = self.set(&kept, journal, acting);
            tokio::pin!(set);
            let mut staged = None;
            loop {
                tokio::select! {
                    biased;
                    // With a store that takes its time, the stage is set while the clock moves.
                    set = &mut set, if staged.is_none() => staged = Some(set?),
                    back_after = gone(&mut is_gone) => return Ok(End::gone(back_after, &kept)),
                    moved = self.keeps.clock.drive_until(|| self.items.is_over()) => {
                        return match self.items.end() {
                            Some(back_after) => Ok(End::gone(back_after, &kept)),
                            None if staged.is_none() && moved.is_ok() => {
                                Err(refused(self.scenario, "the store never answered"))
                            }
                            None => self.over(moved.err()),
                        };
                    }
                }
            }
        });
        drop(runtime);
        ended
    }

    async fn set(
        &self,
        kept: &Arc<KeepingStore>,
        journal: Option<SessionJournal>,
        acting: impl FnOnce(&Coordinator) -> Acting,
    ) -> Result<Staged, Error> {
        let clock: Arc<dyn Clock> = self.keeps.clock.clone();
        let tools = SimulatedTools::new(clock.clone(), stage::scripts(self.scenario));
        let tools = Arc::new(tools.anchored(&self.witnesses.anchors));
        let builder = stage::builder(self.scenario, &self.witnesses, clock.clone(), tools);
        let builder = builder.store(self.store(kept)).virtual_time(self.keeps.virtual_time);
        let coordinator = match journal {
            Some(journal) => stage::take_up(self.scenario, builder.resume(journal)).await?,
            None => stage::set(self.scenario, builder).await?,
        };
        let attached = self.scenario.approvals.attached.then(|| coordinator.attach());
        let items = self.items.start(&clock, &acting(&coordinator));
        Ok(Staged { _items: items, _attached: attached })
    }

    /// Only who will be taken up needs to keep anything.
    fn store(&self, kept: &Arc<KeepingStore>) -> Arc<dyn Store> {
        let store = self.keeps.store.clone();
        match self.scenario.items.iter().any(|item| item.act.ends_process()) {
            true => {
                let items = self.items.clone();
                Arc::new(Both { kept: kept.clone(), store, items, late: Mutex::default() })
            }
            false => store,
        }
    }

    /// Nothing can happen any more: what still waits for an event waits for ever.
    fn over(&self, stuck: Option<Stuck>) -> Result<End, Error> {
        match super::never_comes(self.scenario, &self.witnesses.anchors) {
            Some(error) if stuck.is_none() => Err(error),
            Some(_) | None => Ok(End::Over(stuck)),
        }
    }
}

/// Waits until the process is gone, and says how much later its session is taken up.
async fn gone(process: &mut watch::Receiver<Process>) -> Span {
    let is_gone = process.wait_for(Process::is_gone).await.map(|process| *process);
    match is_gone {
        Ok(Process::Gone(back_after)) => back_after,
        // Who could end it is gone first: it ends with the play.
        Ok(Process::Lives | Process::Ends) | Err(_) => std::future::pending().await,
    }
}

fn record() -> SessionRecord {
    SessionRecord {
        id: SessionId::new("s1"),
        began_at: 0,
        folder: String::new(),
        title: String::new(),
        memo: serde_json::Value::Null,
    }
}

/// Keeps what the session is taken up from, beside the store that the play was given.
struct Both {
    kept: Arc<KeepingStore>,
    store: Arc<dyn Store>,
    items: Items,
    /// Who records something when the process is over waits for ever.
    late: Mutex<Vec<oneshot::Sender<Result<(), StoreError>>>>,
}

impl Store for Both {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        if self.items.is_over() {
            let (never, waits) = oneshot::channel();
            self.late.lock().push(never);
            return Commit::Waits(waits);
        }
        match self.kept.submit(transaction.clone()) {
            Commit::Done(Ok(())) => self.store.submit(transaction),
            refused => refused,
        }
    }
}
