//! An archive that puts something around each store that it opens.

use midturn_core::engine::ports::StoreError;
use midturn_core::engine::ports::archive::{ChatMessage, StoredEvent};
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::{ReceiptState, Sender};

use super::super::*;

/// The archive, and what becomes of its stores.
pub(super) struct Around<F> {
    pub(super) archive: Arc<dyn Archive>,
    pub(super) store: F,
}

#[async_trait]
impl<F> Archive for Around<F>
where
    F: Fn(Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync,
{
    async fn begin(&self, record: SessionRecord) -> Result<Arc<dyn Store>, StoreError> {
        self.archive.begin(record).await.map(|store| (self.store)(store))
    }

    async fn take_up(&self, session: &SessionId) -> Result<Option<TakenUp>, StoreError> {
        let taken = self.archive.take_up(session).await?;
        Ok(taken.map(|taken| TakenUp { store: (self.store)(taken.store.clone()), ..taken }))
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        self.archive.sessions().await
    }

    async fn journal(&self, session: &SessionId) -> Result<Option<SessionJournal>, StoreError> {
        self.archive.journal(session).await
    }

    async fn events(
        &self,
        session: &SessionId,
        agent: Option<&AgentName>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.archive.events(session, agent, after, limit).await
    }

    async fn conversation(
        &self,
        session: &SessionId,
        agent: &AgentName,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        self.archive.conversation(session, agent, after, limit).await
    }

    async fn receipts(
        &self,
        session: &SessionId,
        from: &Sender,
        id: &MessageId,
    ) -> Result<Vec<(AgentName, ReceiptState)>, StoreError> {
        self.archive.receipts(session, from, id).await
    }

    fn stale_writes(&self) -> u64 {
        self.archive.stale_writes()
    }
}
