//! One client of a feed: catches up by numbers, then goes along by place in the ring.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use midturn_core::engine::ports::Archive;
use midturn_core::engine::ports::archive::StoredEvent;
use midturn_core::rules::id::{AgentName, SessionId};
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::seed::SeedView;
use super::{Along, Behind, Feed, Item, frame};

/// So many events at most are in a client's hands at once.
const PAGE: usize = 32;

/// A comment is sent when nothing else was for so long.
const QUIET: Duration = Duration::from_secs(15);

/// Where the events come from.
pub(crate) enum Source {
    /// A session that lives.
    Live(Arc<Feed>),
    /// A session that is only stored; its last event's number.
    Stored(u64),
}

/// In which words they are told.
pub(crate) enum View {
    /// The vocabulary of scenarios.md, section 4.
    Events,
    /// Seed 004's names.
    Seed(Box<SeedView>),
}

impl View {
    /// Seed 004's names, from the beginning.
    pub(crate) fn seed() -> Self {
        Self::Seed(Box::default())
    }

    fn frame(&mut self, item: &Item) -> Option<Bytes> {
        match self {
            Self::Events => Some(item.frame.clone()),
            Self::Seed(view) => view.frame(item),
        }
    }
}

enum Phase {
    /// The events after this number come next.
    Behind(u64),
    /// The item at this place of the ring comes next.
    Along(u64),
    Ended,
}

/// A client, as it is begun.
pub(crate) struct Reader {
    pub(crate) source: Source,
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) session: SessionId,
    /// Whose events only.
    pub(crate) agent: Option<AgentName>,
    pub(crate) view: View,
    pub(crate) shutdown: CancellationToken,
}

impl Reader {
    /// The frames, from after the number given or from now on. `held` is kept while it lasts.
    pub(crate) fn frames<H: Send + 'static>(
        self,
        after: Option<u64>,
        held: H,
    ) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
        let last = match &self.source {
            Source::Live(feed) => feed.last(),
            Source::Stored(last) => *last,
        };
        let moved = match &self.source {
            Source::Live(feed) => Some(feed.moved()),
            Source::Stored(_) => None,
        };
        let phase = Phase::Behind(after.unwrap_or(last));
        let going = Going { reader: self, phase, moved, ready: VecDeque::new() };
        stream::unfold((going, held), |(mut going, held)| async move {
            let frame = going.next().await?;
            Some((Ok(frame), (going, held)))
        })
    }
}

struct Going {
    reader: Reader,
    phase: Phase,
    moved: Option<watch::Receiver<u64>>,
    ready: VecDeque<Bytes>,
}

impl Going {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            match self.phase {
                Phase::Ended => return None,
                Phase::Behind(after) => self.catch_up(after).await,
                Phase::Along(place) => self.go_along(place).await,
            }
        }
    }

    fn take(&mut self, items: &[Item]) {
        for item in items {
            if item.concerns(self.reader.agent.as_ref()) {
                self.ready.extend(self.reader.view.frame(item));
            }
        }
    }

    fn resync(&mut self, last: u64) {
        self.ready.push_back(frame::resync(last));
        self.phase = Phase::Ended;
    }

    async fn catch_up(&mut self, after: u64) {
        let feed = match &self.reader.source {
            Source::Live(feed) => feed.clone(),
            Source::Stored(last) if after > *last => return self.resync(*last),
            Source::Stored(last) if after == *last => return self.phase = Phase::Ended,
            Source::Stored(last) => return self.read_archive(after, *last).await,
        };
        match feed.behind(after, self.reader.agent.as_ref(), PAGE) {
            Behind::Ahead(last) => self.resync(last),
            Behind::Archived(last) => self.read_archive(after, last).await,
            Behind::Here(items) => {
                self.phase = Phase::Behind(items.last().map_or(after, |item| item.seq));
                self.take(&items);
            }
            Behind::CaughtUp(said, place) => {
                self.phase = Phase::Along(place);
                self.take(&said);
            }
        }
    }

    /// The next page from the archive, up to the number `last`: what is recorded and not told
    /// yet comes later, and comes once.
    async fn read_archive(&mut self, after: u64, last: u64) {
        let reader = &self.reader;
        let limit = u32::try_from(PAGE).unwrap_or(u32::MAX);
        let page = reader.archive.events(&reader.session, reader.agent.as_ref(), after, limit).await;
        let page = match page {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "an event stream ends: its past can't be read");
                return self.resync(last);
            }
        };
        let full = page.len() >= PAGE;
        let items: Vec<Item> = page.iter().filter(|event| event.seq <= last).map(item_of).collect();
        match (items.last().map(|item| item.seq), &self.reader.agent) {
            // An archive that has less than was told can't give it: that is said, not hidden.
            (_, None) if items.first().is_none_or(|first| first.seq != after + 1) => self.resync(last),
            (Some(seq), agent) => {
                let done = agent.is_some() && !full;
                self.phase = Phase::Behind(if done { last } else { seq });
                self.take(&items);
            }
            (None, _) => self.phase = Phase::Behind(last),
        }
    }

    async fn go_along(&mut self, place: u64) {
        let Source::Live(feed) = &self.reader.source else {
            return self.phase = Phase::Ended;
        };
        match feed.along(place, PAGE) {
            Along::Lost(last) => self.resync(last),
            Along::Items(items, next) if !items.is_empty() => {
                self.phase = Phase::Along(next);
                self.take(&items);
            }
            Along::Items(..) => self.wait(place).await,
        }
    }

    /// Waits for something new; whoever ends the process lets its clients read to the end.
    async fn wait(&mut self, place: u64) {
        let Some(moved) = &mut self.moved else {
            return self.phase = Phase::Ended;
        };
        let new = tokio::time::timeout(QUIET, moved.wait_for(|end| *end > place));
        tokio::select! {
            biased;
            new = new => match new {
                Ok(Ok(_)) => {}
                Ok(Err(_)) => self.phase = Phase::Ended,
                Err(_) => self.ready.push_back(frame::comment()),
            },
            () = self.reader.shutdown.cancelled() => self.phase = Phase::Ended,
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
