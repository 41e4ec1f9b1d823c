//! Calls that wait for a slot: as many commands run in this process as may at once.
//!
//! A call that waits is as one of a batch that waits for a free slot of its own (semantics.md, section 5): its segment
//! is entered, so `next_boundary` waits for it; an urgent message and a stop skip it, for it has done nothing.

use tokio_util::sync::ReusableBoxFuture;

use super::Driver;
use super::budget::Waits;
use crate::engine::session::ActivityKind;
use crate::engine::slots::{Slot, Slots};
use crate::rules::conversation::ToolUse;

/// A call that starts, and the slot in which it does, if it needs one.
pub(super) type Starting = (usize, ToolUse, Option<Slot>);

/// The agent's place among all that wait.
#[derive(Default)]
pub(super) struct Queue {
    waits: Option<Waiting>,
    /// What came of it, for the call that starts next.
    came: Option<Slot>,
}

struct Waiting {
    slot: ReusableBoxFuture<'static, Slot>,
    _told: Waits,
}

impl Queue {
    pub(super) fn is_waiting(&self) -> bool {
        self.waits.is_some()
    }

    /// Waits until a slot has come; for ever, when none is wanted.
    pub(super) async fn comes(&mut self) {
        let Some(waiting) = &mut self.waits else { return std::future::pending().await };
        let slot = waiting.slot.get_pin().await;
        *self = Self { waits: None, came: Some(slot) };
    }

    /// The slot that came. Whoever takes it starts a call in it or lets it go: nobody rests on one.
    pub(super) fn take(&mut self) -> Option<Slot> {
        self.came.take()
    }

    /// Nothing waits any more.
    pub(super) fn leave(&mut self) {
        *self = Self::default();
    }
}

impl Driver {
    /// Keeps the calls that have a slot, the one that `came` for the first of them, or need none. For the first of the
    /// others one is waited for.
    pub(super) fn with_slots(
        &mut self,
        mut came: Option<Slot>,
        calls: Vec<(usize, ToolUse)>,
    ) -> Vec<Starting> {
        let Some(slots) = self.session.slots.clone() else {
            return calls.into_iter().map(|(index, call)| (index, call, None)).collect();
        };
        let mut starting = Vec::new();
        for (index, call) in calls {
            if !self.tool(&call).is_some_and(|tool| tool.traits(&call).command) {
                starting.push((index, call, None));
            } else if let Some(slot) = came.take().or_else(|| slots.free()) {
                starting.push((index, call, Some(slot)));
            } else if !self.bench.queue.is_waiting() {
                self.waits_for(&slots, &call);
            }
        }
        starting
    }

    fn waits_for(&mut self, slots: &Slots, call: &ToolUse) {
        let what = ActivityKind::Slot { id: call.id.clone(), name: call.name.clone() };
        let told = Waits::begin(&self.cell, what, self.session.clock.now());
        let slot = ReusableBoxFuture::new(slots.clone().wait());
        self.bench.queue.waits = Some(Waiting { slot, _told: told });
    }
}
