//! The feed of a session: what is told to whoever watches it (docs/protocol.md, "Events").
//!
//! Each event is made into bytes once and kept in one bounded ring; a client holds nothing
//! but its place in it, so that a slow one costs nobody else anything. What the ring no
//! longer has comes from the archive. It must not wait: the engine tells it under a lock.

mod follower;
pub(crate) mod frame;
mod past;
mod reader;
mod seed;

use std::collections::VecDeque;

use bytes::Bytes;
use midturn_core::engine::ports::Observer;
use midturn_core::engine::ports::archive::{Rows, StoredEvent};
use midturn_core::rules::event::{Event, LiveEvent};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::time::Micros;
use midturn_core::rules::view::{Message, View};
use midturn_wire::message::{QueuedMessage, QueuedMessages};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

pub use follower::{Follower, News};
pub(crate) use past::Past;
pub(crate) use reader::{Cursor, frames};
pub(crate) use seed::SeedWords;

/// How much a feed keeps for clients that are behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// So many events and deltas.
    pub items: usize,
    /// So many bytes of them.
    pub bytes: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self { items: 16_384, bytes: 8 * 1024 * 1024 }
    }
}

/// What is told of one session. Make it an observer of the session's coordinator.
pub struct Feed {
    retention: Retention,
    ring: Mutex<Ring>,
    end: watch::Sender<End>,
}

/// Where a feed ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct End {
    /// The place behind the newest item.
    pub(crate) place: u64,
    /// Nothing comes any more.
    pub(crate) over: bool,
}

/// One frame, and whom it concerns.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The event's number; a delta's is that of the event before it.
    pub(crate) seq: u64,
    /// Whether it is a recorded event.
    pub(crate) stored: bool,
    /// Whom it concerns.
    pub(crate) agent: Option<AgentName>,
    /// The frame.
    pub(crate) frame: Bytes,
}

impl Item {
    fn concerns(&self, agent: Option<&AgentName>) -> bool {
        agent.is_none_or(|agent| self.agent.as_ref() == Some(agent))
    }

    fn stored_event(&self) -> StoredEvent {
        let json = String::from_utf8_lossy(frame::json(&self.frame));
        StoredEvent { seq: self.seq, agent: self.agent.clone(), json: json.as_ref().into() }
    }
}

struct Ring {
    items: VecDeque<Item>,
    /// The place of the oldest item.
    first: u64,
    bytes: usize,
    /// The number of the last event.
    last: u64,
    /// From this number on every event is here.
    whole_from: u64,
    /// What was said of what is not recorded yet, and what is on its way to whom.
    view: View,
}

/// What a feed has for a client that is behind by its number.
pub(crate) enum Behind {
    /// The next events, in order.
    Here(Vec<Item>),
    /// They are only in the archive, up to this number.
    Archived(u64),
    /// There are none: what was said so far, and the place from which to go on.
    CaughtUp(Vec<Item>, u64),
    /// So many were not told yet: the last event's number, and the place of what is told next.
    Ahead(u64, u64),
}

/// What a feed has for a client that goes along.
pub(crate) enum Along {
    /// The next items, and the place behind them.
    Items(Vec<Item>, u64),
    /// What it would need is gone; this is the last event's number.
    Lost(u64),
}

impl Default for Feed {
    fn default() -> Self {
        Self::resumed(View::default())
    }
}

impl Feed {
    /// The feed of a session that was seen so when it was taken up.
    pub fn resumed(view: View) -> Self {
        Self::keeping(Retention::default(), view)
    }

    /// The same, with other bounds.
    pub fn keeping(retention: Retention, view: View) -> Self {
        let last = view.seq();
        let ring = Ring { items: VecDeque::new(), first: 0, bytes: 0, last, whole_from: last + 1, view };
        Self { retention, ring: Mutex::new(ring), end: watch::Sender::default() }
    }

    /// The feed of a session that is only stored: what is there is in the archive, and nothing follows.
    pub(crate) fn ended(last: u64) -> Self {
        let feed = Self::resumed(View::snapshot(last, Micros(0), []));
        feed.end();
        feed
    }

    /// The number of the last event that was told.
    pub fn last(&self) -> u64 {
        self.ring.lock().last
    }

    /// What can be seen of its session.
    pub(crate) fn see<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        look(&self.ring.lock().view)
    }

    /// At most `limit` of the recorded events that it still has, of one agent if asked.
    pub(crate) fn kept(&self, agent: Option<&AgentName>, rows: Rows, limit: usize) -> Vec<StoredEvent> {
        let ring = self.ring.lock();
        let wanted = |item: &&Item| item.stored && item.concerns(agent);
        let mut kept: Vec<&Item> = match rows {
            Rows::After(after) => {
                ring.items.iter().filter(wanted).filter(|item| item.seq > after).take(limit).collect()
            }
            Rows::Before(before) => {
                ring.items.iter().rev().filter(wanted).filter(|item| item.seq < before).take(limit).collect()
            }
        };
        kept.sort_by_key(|item| item.seq);
        kept.into_iter().map(Item::stored_event).collect()
    }

    /// Something of an agent has changed that no event tells: whoever reads lists the agents anew.
    pub(crate) fn agents_changed(&self) {
        if !self.is_read() {
            return;
        }
        let ring = self.ring.lock();
        let frame = frame::live("agents_changed", r#"{"type":"agents_changed"}"#);
        let item = Item { seq: ring.last, stored: false, agent: None, frame };
        self.push(ring, item);
    }

    /// Whether anybody reads it.
    pub fn is_read(&self) -> bool {
        self.end.receiver_count() > 0
    }

    /// The session is let go: whoever reads gets all there is, and then the end.
    pub fn end(&self) {
        self.end.send_modify(|end| end.over = true);
    }

    /// What was sent to an agent and is not in its conversation yet.
    pub(crate) fn queue(&self, agent: &AgentName) -> VecDeque<Message> {
        self.ring.lock().view.agent(agent).map(|agent| agent.queue.clone()).unwrap_or_default()
    }

    /// What waits in all mailboxes, or in one. `None`: there is no such agent.
    pub(crate) fn queued(&self, agent: Option<&AgentName>) -> Option<QueuedMessages> {
        queued_in(&self.ring.lock().view, agent)
    }

    /// Is told whenever there is something new, and of the end.
    pub(crate) fn moved(&self) -> watch::Receiver<End> {
        self.end.subscribe()
    }

    /// At most `limit` of the events after the number `after`.
    pub(crate) fn behind(&self, after: u64, agent: Option<&AgentName>, limit: usize) -> Behind {
        let ring = self.ring.lock();
        if after > ring.last {
            return Behind::Ahead(ring.last, ring.end());
        }
        if after == ring.last {
            return Behind::CaughtUp(ring.said(agent), ring.end());
        }
        if ring.whole_from > after + 1 {
            return Behind::Archived(ring.last);
        }
        // A delta has the number of the event before it, so the numbers never fall.
        let start = ring.items.partition_point(|item| item.seq <= after);
        let stored = ring.items.range(start..).filter(|item| item.stored);
        Behind::Here(stored.take(limit).cloned().collect())
    }

    /// At most `limit` items from a place on.
    pub(crate) fn along(&self, place: u64, limit: usize) -> Along {
        let ring = self.ring.lock();
        let Some(skip) = place.checked_sub(ring.first) else {
            return Along::Lost(ring.last);
        };
        let start = usize::try_from(skip).unwrap_or(usize::MAX).min(ring.items.len());
        let items: Vec<Item> = ring.items.range(start..).take(limit).cloned().collect();
        let next = place + items.len() as u64;
        Along::Items(items, next)
    }

    /// Keeps an item and wakes who waits for it, outside the lock: there may be many.
    fn push(&self, mut ring: MutexGuard<'_, Ring>, item: Item) {
        ring.push(item, self.retention);
        let end = ring.end();
        drop(ring);
        self.end.send_if_modified(|known| {
            let is_newer = end > known.place;
            known.place = end.max(known.place);
            is_newer
        });
    }
}

/// What waits in the mailboxes of a session, or in one. `None`: there is no such agent.
pub(crate) fn queued_in(view: &View, agent: Option<&AgentName>) -> Option<QueuedMessages> {
    if agent.is_some_and(|agent| view.agent(agent).is_none()) {
        return None;
    }
    let wanted = view.agents().filter(|(name, _)| agent.is_none_or(|agent| agent == *name));
    let messages = wanted
        .flat_map(|(name, agent)| agent.queue.iter().map(|message| QueuedMessage::of(name, message.clone())));
    Some(QueuedMessages { messages: messages.collect(), as_of: view.seq() })
}

impl Ring {
    /// What is being said, by one agent or by all: who joins in the middle of a reply gets it in
    /// one piece (scenarios.md, section 4).
    fn said(&self, only: Option<&AgentName>) -> Vec<Item> {
        let wanted = self.view.agents().filter(|(name, _)| only.is_none_or(|only| only == *name));
        let pieces = wanted.flat_map(|(_, agent)| agent.said.pieces());
        pieces.filter_map(|piece| self.item(&LiveEvent { seq: self.last, ..piece.clone() })).collect()
    }

    /// The frame of a live event; none if it is no JSON, which no event is.
    fn item(&self, event: &LiveEvent) -> Option<Item> {
        let json = serde_json::to_string(event);
        let json =
            json.inspect_err(|error| tracing::error!(%error, "a live event is not valid JSON")).ok()?;
        let frame = frame::live(event.kind.type_name(), &json);
        Some(Item { seq: self.last, stored: false, agent: event.at.agent.clone(), frame })
    }

    fn end(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    fn push(&mut self, item: Item, retention: Retention) {
        self.bytes += item.frame.len();
        self.items.push_back(item);
        while self.items.len() > retention.items || self.bytes > retention.bytes {
            let Some(oldest) = self.items.pop_front() else { break };
            self.bytes -= oldest.frame.len();
            self.first += 1;
            if oldest.stored {
                self.whole_from = oldest.seq + 1;
            }
        }
    }
}

impl Observer for Feed {
    fn event(&self, event: &Event) {
        let json = match serde_json::to_string(event) {
            Ok(json) => json,
            Err(error) => return tracing::error!(%error, seq = event.seq, "an event is not valid JSON"),
        };
        let frame = frame::stored(event.seq, event.kind.type_name(), &json);
        let mut ring = self.ring.lock();
        ring.view.event(event);
        ring.last = event.seq;
        let item = Item { seq: event.seq, stored: true, agent: event.at.agent.clone(), frame };
        self.push(ring, item);
    }

    fn live(&self, event: &LiveEvent) {
        let mut ring = self.ring.lock();
        ring.view.live(event);
        // Who joins later gets it with what was said so far.
        if !self.is_read() {
            return;
        }
        if let Some(item) = ring.item(event) {
            self.push(ring, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_feed_of_a_session_that_was_taken_up_knows_how_far_it_was() {
        assert_eq!(Feed::resumed(View::snapshot(7, Micros(0), [])).last(), 7);
    }
}
