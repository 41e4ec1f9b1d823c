//! Where what was told before comes from.

use std::sync::Arc;

use midturn_core::engine::ports::archive::{Rows, StoredEvent};
use midturn_core::engine::ports::{Archive, StoreError};
use midturn_core::rules::id::{AgentName, SessionId};

use super::Feed;

/// The events of a session that were told before.
pub(crate) enum Past {
    /// They are recorded.
    Recorded(Arc<dyn Archive>, SessionId),
    /// Nobody records them: what the feed still has is all there is.
    Kept(Arc<Feed>),
}

impl Past {
    /// At most `limit` of these events, in order; of one agent if asked.
    ///
    /// # Errors
    /// [`StoreError`]: the archive can't be read.
    pub(crate) async fn events(
        &self,
        agent: Option<&AgentName>,
        rows: Rows,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        match self {
            Self::Recorded(archive, session) => archive.events(session, agent, rows, limit).await,
            Self::Kept(feed) => Ok(feed.kept(agent, rows, usize::try_from(limit).unwrap_or(usize::MAX))),
        }
    }
}
