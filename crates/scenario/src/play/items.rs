//! The items of a scenario: who waits for its time, in which order what is due arrives, and
//! what is still to come when a process ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use midturn_core::engine::ports::{Clock, Phase};
use midturn_core::engine::scripted::{Anchors, Reached};
use midturn_core::rules::time::{Micros, Span};
use tokio::task::JoinSet;

use super::acts::Acting;
use crate::scenario::{Act, Item, Scenario, When};

/// All items of a scenario. They outlive the processes that it ends.
#[derive(Clone)]
pub(super) struct Items(Vec<Arc<Pending>>);

/// An item and whether it has acted.
struct Pending {
    item: Item,
    /// The event that it follows, or comes with.
    reached: Reached,
    has_acted: AtomicBool,
}

impl Pending {
    /// When it is due, as far as that is known.
    fn due(&self) -> Option<Micros> {
        match &self.item.when {
            When::After(_, plus) => Some(self.reached.now()?.after(*plus)),
            When::Upon(_) => None,
        }
    }

    async fn is_due(&self) -> Micros {
        match &self.item.when {
            When::After(_, plus) => self.reached.clone().at().await.after(*plus),
            When::Upon(_) => std::future::pending().await,
        }
    }

    /// How much later the session is taken up, when the event has come with which the process ends.
    fn ends_process(&self) -> Option<Span> {
        match (&self.item.when, &self.item.act) {
            (When::Upon(_), Act::Crash { back_after }) if self.is_open() => {
                self.reached.now().map(|_| *back_after)
            }
            _ => None,
        }
    }

    fn is_open(&self) -> bool {
        !self.has_acted.load(Ordering::Acquire)
    }
}

impl Items {
    /// The items of a scenario. What they follow is watched from now on.
    pub(super) fn of(scenario: &Scenario, anchors: &Anchors) -> Self {
        let pending = |item: &Item| {
            let (When::After(anchor, _) | When::Upon(anchor)) = &item.when;
            let (item, reached) = (item.clone(), anchors.watch(anchor));
            Arc::new(Pending { item, reached, has_acted: AtomicBool::new(false) })
        };
        Self(scenario.items.iter().map(pending).collect())
    }

    /// One task for each that has not acted. They are ended with the set that is returned.
    ///
    /// What became due while no process lived arrives first, in the order of its times; then
    /// the file's order holds.
    pub(super) fn start(&self, clock: &Arc<dyn Clock>, acting: &Acting) -> JoinSet<()> {
        let now = clock.now();
        let mut open: Vec<(usize, &Arc<Pending>)> =
            self.0.iter().enumerate().filter(|(_, item)| item.is_open()).collect();
        open.sort_by_key(|(index, item)| (item.due().filter(|due| *due < now).unwrap_or(now), *index));
        let mut tasks = JoinSet::new();
        for ((_, item), number) in open.into_iter().zip(0..) {
            let (item, acting, clock) = (item.clone(), acting.clone(), clock.clone());
            tasks.spawn(async move {
                let at = item.is_due().await;
                clock.until(at, Phase::Arrival(number)).await;
                item.has_acted.store(true, Ordering::Release);
                acting.act(&item.item).await;
            });
        }
        tasks
    }

    /// Whether an event has come with which the process ends: nothing is recorded behind it.
    pub(super) fn is_over(&self) -> bool {
        self.0.iter().any(|item| item.ends_process().is_some())
    }

    /// Ends the process, if such an event has come: how much later its session is taken up.
    pub(super) fn end(&self) -> Option<Span> {
        let mut back_after = None;
        for (item, span) in self.0.iter().filter_map(|item| Some((item, item.ends_process()?))) {
            item.has_acted.store(true, Ordering::Release);
            back_after.get_or_insert(span);
        }
        back_after
    }

    /// How many wait for an event that has not come.
    pub(super) fn waiting(&self) -> usize {
        self.0.iter().filter(|item| item.is_open() && item.due().is_none()).count()
    }
}
