//! Something around an archive: a layer says what it changes of what comes out, and everything
//! else is the archive's own.

use std::sync::Arc;

use async_trait::async_trait;

use midturn_core::engine::ports::archive::{
    Archive, ChatMessage, Rows, SessionJournal, SessionRecord, SessionSize, SessionSummary, StoredEvent,
    TakenUp,
};
use midturn_core::engine::ports::store::{Store, StoreError};
use midturn_core::rules::id::{AgentName, MessageId, SessionId};
use midturn_core::rules::mail::{ReceiptState, Sender};

/// What is around an archive.
pub trait Layer: Send + Sync {
    /// What becomes of the store of a session that begins or is taken up.
    fn store(&self, store: Arc<dyn Store>) -> Arc<dyn Store>;

    /// What becomes of a journal.
    fn journal(&self, journal: SessionJournal) -> SessionJournal {
        journal
    }

    /// What becomes of a session in the list.
    fn summary(&self, summary: SessionSummary) -> SessionSummary {
        summary
    }
}

/// An archive with a layer around it.
pub struct Around<L> {
    archive: Arc<dyn Archive>,
    layer: L,
}

impl<L: Layer> Around<L> {
    /// Puts the layer around it.
    pub fn new(archive: Arc<dyn Archive>, layer: L) -> Self {
        Self { archive, layer }
    }
}

#[async_trait]
impl<L: Layer> Archive for Around<L> {
    fn name(&self) -> &str {
        self.archive.name()
    }

    async fn begin(&self, record: SessionRecord) -> Result<Arc<dyn Store>, StoreError> {
        self.archive.begin(record).await.map(|store| self.layer.store(store))
    }

    async fn take_up(&self, session: &SessionId) -> Result<Option<TakenUp>, StoreError> {
        let taken = self.archive.take_up(session).await?;
        Ok(taken.map(|TakenUp { store, epoch, journal }| TakenUp {
            store: self.layer.store(store),
            epoch,
            journal: self.layer.journal(journal),
        }))
    }

    async fn remove(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.archive.remove(session).await
    }

    async fn size(&self, session: &SessionId) -> Result<SessionSize, StoreError> {
        self.archive.size(session).await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        let sessions = self.archive.sessions().await?;
        Ok(sessions.into_iter().map(|summary| self.layer.summary(summary)).collect())
    }

    async fn journal(&self, session: &SessionId) -> Result<Option<SessionJournal>, StoreError> {
        let journal = self.archive.journal(session).await?;
        Ok(journal.map(|journal| self.layer.journal(journal)))
    }

    async fn events(
        &self,
        session: &SessionId,
        agent: Option<&AgentName>,
        rows: Rows,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.archive.events(session, agent, rows, limit).await
    }

    async fn conversation(
        &self,
        session: &SessionId,
        agent: &AgentName,
        rows: Rows,
        limit: u32,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        self.archive.conversation(session, agent, rows, limit).await
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

    async fn close(&self) {
        self.archive.close().await;
    }
}
