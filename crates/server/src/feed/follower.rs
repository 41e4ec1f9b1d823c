//! A reader of a feed in its own process, for whom nothing may be lost: when it is so slow
//! that the ring has gone on without it, it reads on in the archive, at its own pace.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use midturn_core::engine::ports::{Archive, StoreError};
use midturn_core::rules::id::SessionId;
use tokio_util::sync::CancellationToken;

use super::reader::{Came, Cursor, Lost};
use super::{Feed, Item, Past, frame};

/// How often, and in which pauses, an archive is asked that fails: as long as the engine waits
/// for a store, and a little longer.
const ATTEMPTS: (u32, Duration) = (160, Duration::from_millis(250));

/// Something that a follower hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The JSON of an event.
    Event(Bytes),
    /// The JSON of a delta.
    Delta(Bytes),
    /// Deltas were missed: of what is being said, all of it comes next, each in one piece.
    Rejoined,
}

/// Whoever follows a session in its own process: all events from the place on where it was
/// made, in order and without a gap, and deltas between them. It holds a page at most.
pub struct Follower {
    cursor: Cursor,
    /// The last event that was heard.
    seq: u64,
    /// What is being said is heard in one piece next.
    rejoins: bool,
    /// What is heard after [`News::Rejoined`].
    held: Option<Item>,
    /// How often it has gone back since it heard something.
    failures: u32,
}

impl Follower {
    /// Follows from now on. The archive has to have all that is told.
    pub fn new(feed: Arc<Feed>, archive: Arc<dyn Archive>, session: SessionId) -> Self {
        let cursor = Cursor::new(feed.clone(), Past::Recorded(archive, session), CancellationToken::new());
        Self { cursor, seq: feed.last(), rejoins: false, held: None, failures: 0 }
    }

    /// The number of the last event that was heard.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// What comes next; `None` when the feed has ended and all of it was heard. Whoever drops
    /// the future has lost nothing.
    ///
    /// # Errors
    /// The archive can't be read, and could not for a while: nothing more can be heard.
    pub async fn next(&mut self) -> Result<Option<News>, StoreError> {
        loop {
            if let Some(item) = self.held.take() {
                return Ok(Some(self.heard(&item)));
            }
            match self.cursor.next().await {
                None => return Ok(None),
                Some(Came::Quiet) => {}
                // What was heard before it was lost is a part of what comes now.
                Some(Came::Item(item)) if self.rejoins && !item.stored => {
                    (self.rejoins, self.held) = (false, Some(item));
                    return Ok(Some(News::Rejoined));
                }
                Some(Came::Item(item)) => return Ok(Some(self.heard(&item))),
                Some(Came::Lost(lost)) => self.go_back(lost).await?,
            }
        }
    }

    fn heard(&mut self, item: &Item) -> News {
        self.failures = 0;
        let json = item.frame.slice_ref(frame::json(&item.frame));
        if !item.stored {
            return News::Delta(json);
        }
        self.seq = item.seq;
        News::Event(json)
    }

    /// Reads on after the last event that was heard: from the ring, or else from the archive.
    async fn go_back(&mut self, lost: Lost) -> Result<(), StoreError> {
        self.cursor.go_on_after(self.seq);
        self.rejoins = true;
        self.failures += 1;
        let (most, pause) = ATTEMPTS;
        match lost {
            // It was slow, and the archive has what it missed.
            Lost::Place(_) if self.failures == 1 => Ok(()),
            Lost::Place(last) if self.failures > most => {
                Err(StoreError::Failed(format!("events up to {last} were told and are not there")))
            }
            Lost::Archive(_, error) if self.failures > most => Err(error),
            Lost::Place(_) | Lost::Archive(..) => {
                tokio::time::sleep(pause).await;
                Ok(())
            }
        }
    }
}
