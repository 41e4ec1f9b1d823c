//! One client of a feed: catches up by numbers, then goes along by place in the ring.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use midturn_core::engine::ports::StoreError;
use midturn_core::engine::ports::archive::{Rows, StoredEvent};
use midturn_core::rules::id::AgentName;
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::seed::SeedWords;
use super::{Along, Behind, End, Feed, Item, Past, frame};

/// So many events at most are in a client's hands at once.
const PAGE: usize = 32;

/// A comment is sent when nothing else was for so long.
const QUIET: Duration = Duration::from_secs(15);

enum Position {
    /// The events after this number come next.
    Behind(u64),
    /// The item at this place of the ring comes next.
    Along(u64),
    Ended,
}

/// The frames of what a client comes to, in the vocabulary of scenarios.md, section 4, or else in seed
/// 004's. `held` is kept while it lasts.
pub(crate) fn frames<H: Send + 'static>(
    cursor: Cursor,
    seed: Option<SeedWords>,
    held: H,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    stream::unfold((cursor, seed, held), |(mut cursor, mut seed, held)| async move {
        let frame = loop {
            match cursor.next().await? {
                Came::Item(item) => match &mut seed {
                    None => break item.frame,
                    Some(words) => match words.frame(&item) {
                        Some(frame) => break frame,
                        None => continue,
                    },
                },
                Came::Quiet => break frame::comment(),
                Came::Lost(Lost::Place(last)) => break frame::resync(last),
                // Whoever comes back finds the archive well again, or hears what is wrong with it.
                Came::Lost(Lost::Archive(last, error)) => {
                    tracing::warn!(%error, "an event stream ends: its past can't be read");
                    break frame::resync(last);
                }
            }
        };
        Some((Ok(frame), (cursor, seed, held)))
    })
}

/// What comes next.
pub(super) enum Came {
    Item(Item),
    /// Nothing did for a while.
    Quiet,
    /// Nothing more does, though there is more.
    Lost(Lost),
}

/// Why a reader can't go on, and the number of the last event that was told.
pub(super) enum Lost {
    /// What comes next is not here any more, or never was.
    Place(u64),
    /// The archive can't be read.
    Archive(u64, StoreError),
}

/// A reader on its way through a session's events.
pub(crate) struct Cursor {
    feed: Arc<Feed>,
    past: Past,
    agent: Option<AgentName>,
    shutdown: CancellationToken,
    position: Position,
    moved: watch::Receiver<End>,
    ready: VecDeque<Came>,
}

impl Cursor {
    /// A reader that goes along from now on.
    pub(crate) fn new(feed: Arc<Feed>, past: Past, shutdown: CancellationToken) -> Self {
        let moved = feed.moved();
        let position = Position::Along(moved.borrow().place);
        Self { feed, past, agent: None, shutdown, position, moved, ready: VecDeque::new() }
    }

    /// Only what concerns this agent, if one is named, and comes after the event of this number.
    pub(crate) fn of(mut self, agent: Option<AgentName>, after: u64) -> Self {
        self.agent = agent;
        self.go_on_after(after);
        self
    }

    /// What comes after the event of this number is next.
    pub(super) fn go_on_after(&mut self, seq: u64) {
        self.position = Position::Behind(seq);
    }

    /// `None`: nothing comes any more.
    pub(super) async fn next(&mut self) -> Option<Came> {
        loop {
            if let Some(came) = self.ready.pop_front() {
                return Some(came);
            }
            match self.position {
                Position::Ended => return None,
                Position::Behind(after) => self.catch_up(after).await,
                Position::Along(place) => self.go_along(place).await,
            }
        }
    }

    fn take(&mut self, items: Vec<Item>) {
        let agent = self.agent.as_ref();
        self.ready.extend(items.into_iter().filter(|item| item.concerns(agent)).map(Came::Item));
    }

    fn lost(&mut self, lost: Lost) {
        self.ready.push_back(Came::Lost(lost));
        self.position = Position::Ended;
    }

    async fn catch_up(&mut self, after: u64) {
        match self.feed.behind(after, self.agent.as_ref(), PAGE) {
            Behind::Ahead(last, place) => self.wait_to_be_told(after, last, place).await,
            Behind::Archived(last) => self.read_archive(after, last).await,
            Behind::Here(items) => {
                self.position = Position::Behind(items.last().map_or(after, |item| item.seq));
                self.take(items);
            }
            Behind::CaughtUp(said, place) => {
                self.position = Position::Along(place);
                self.take(said);
            }
        }
    }

    /// An event is durable a moment before it is told, and whoever read it in the archive (of a
    /// session that was just being taken up, say) comes back with its number. What was never
    /// recorded can't be waited for.
    async fn wait_to_be_told(&mut self, after: u64, last: u64, place: u64) {
        let recorded = self.past.events(None, Rows::After(after - 1), 1).await;
        match recorded.map(|page| page.first().is_some_and(|event| event.seq == after)) {
            Ok(true) => self.wait(place).await,
            Ok(false) => self.lost(Lost::Place(last)),
            Err(error) => {
                // To be sent back to `last` would be to read events twice.
                tracing::warn!(%error, "an event stream ends: it is not known whether its last event was recorded");
                self.position = Position::Ended;
            }
        }
    }

    /// The next page from the archive, up to the number `last`: what is recorded and not told
    /// yet comes later, and comes once.
    async fn read_archive(&mut self, after: u64, last: u64) {
        let limit = u32::try_from(PAGE).unwrap_or(u32::MAX);
        let page = match self.past.events(self.agent.as_ref(), Rows::After(after), limit).await {
            Ok(page) => page,
            Err(error) => return self.lost(Lost::Archive(last, error)),
        };
        let full = page.len() >= PAGE;
        let items: Vec<Item> = page.iter().filter(|event| event.seq <= last).map(item_of).collect();
        match (items.last().map(|item| item.seq), &self.agent) {
            // An archive that has less than was told can't give it: that is said, not hidden.
            (_, None) if items.first().is_none_or(|first| first.seq != after + 1) => {
                self.lost(Lost::Place(last));
            }
            (Some(seq), agent) => {
                let done = agent.is_some() && !full;
                self.position = Position::Behind(if done { last } else { seq });
                self.take(items);
            }
            (None, _) => self.position = Position::Behind(last),
        }
    }

    async fn go_along(&mut self, place: u64) {
        match self.feed.along(place, PAGE) {
            Along::Lost(last) => self.lost(Lost::Place(last)),
            Along::Items(items, next) if !items.is_empty() => {
                self.position = Position::Along(next);
                self.take(items);
            }
            Along::Items(..) => self.wait(place).await,
        }
    }

    /// Waits for something behind this place; whoever ends the process lets its clients read to the end.
    async fn wait(&mut self, place: u64) {
        let new = tokio::time::timeout(QUIET, self.moved.wait_for(|end| end.place > place || end.over));
        tokio::select! {
            biased;
            new = new => match new.map(|new| new.map(|end| end.place > place)) {
                Ok(Ok(true)) => {}
                Ok(Ok(false) | Err(_)) => self.position = Position::Ended,
                Err(_) => self.ready.push_back(Came::Quiet),
            },
            () = self.shutdown.cancelled() => self.position = Position::Ended,
        }
    }
}

fn item_of(event: &StoredEvent) -> Item {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(rename = "type", borrow)]
        name: &'a str,
    }
    let name = serde_json::from_str::<Named<'_>>(&event.json).map_or("unknown", |named| named.name);
    let frame = frame::stored(event.seq, name, &event.json);
    Item { seq: event.seq, stored: true, agent: event.agent.clone(), frame }
}
