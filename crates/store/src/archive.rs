//! The core's `Archive` over either database.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use midturn_core::engine::ports::archive::{ChatMessage, KeptMail, SessionSummary, StoredEvent};
use midturn_core::engine::ports::{
    Archive, Commit, SessionJournal, SessionRecord, Store, StoreError, TakenUp, Transaction,
};
use midturn_core::rules::id::{AgentName, MessageId, SessionId};
use midturn_core::rules::mail::{ReceiptState, Sender};
use tokio::sync::oneshot;

use crate::db::Pool;
use crate::nul::hide;
use crate::open::now;
use crate::read;
use crate::session::OpenSession;
use crate::writer::{Job, Writer};

/// A store that is open. It is closed when it and all stores of its sessions are gone, or by
/// [`Archive::close`].
#[derive(Clone, Debug)]
pub struct SqlArchive {
    name: Arc<str>,
    pool: Pool,
    /// None when it was opened for reading only.
    writer: Option<Arc<Writer>>,
}

impl SqlArchive {
    pub(crate) fn new(name: String, pool: Pool, writer: Option<Writer>) -> Self {
        Self { name: name.into(), pool, writer: writer.map(Arc::new) }
    }

    /// How long a store that fails is waited for: 30 s unless this says otherwise. Then all that
    /// wait for it are told, and their sessions have to be taken up again.
    pub fn be_patient(&self, patience: Duration) {
        if let Some(writer) = &self.writer {
            writer.queue.be_patient(patience);
        }
    }

    fn writer(&self) -> Result<&Arc<Writer>, StoreError> {
        self.writer.as_ref().ok_or_else(|| {
            StoreError::Failed("it was opened for reading only; open it to write for this".to_owned())
        })
    }

    /// Asks the writer and waits for its answer.
    async fn ask<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job,
    ) -> Result<T, StoreError> {
        let (told, answer) = oneshot::channel();
        self.writer()?.queue.push(job(told))?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Failed("its writer has ended".to_owned())))
    }

    fn bound(&self, session: OpenSession) -> Result<Arc<dyn Store>, StoreError> {
        let (writer, pool) = (self.writer()?.clone(), self.pool.clone());
        Ok(Arc::new(BoundStore { writer, pool, session: Arc::new(session) }))
    }
}

/// Writes of one session under one epoch.
#[derive(Debug)]
struct BoundStore {
    writer: Arc<Writer>,
    pool: Pool,
    session: Arc<OpenSession>,
}

#[async_trait]
impl Store for BoundStore {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        self.writer.queue.submit(&self.session, transaction, now())
    }

    fn trouble(&self) -> Option<Arc<str>> {
        self.writer.queue.trouble()
    }

    async fn known(&self, from: &Sender, id: &MessageId) -> Result<Vec<KeptMail>, StoreError> {
        let mut snapshot = self.pool.snapshot().await?;
        Ok(read::known(&mut snapshot, &self.session.id, from, id).await?)
    }
}

#[async_trait]
impl Archive for SqlArchive {
    /// Its path, or its server without user and password.
    fn name(&self) -> &str {
        &self.name
    }

    async fn begin(&self, record: SessionRecord) -> Result<Arc<dyn Store>, StoreError> {
        let session = OpenSession::new(&record.id, 1, HashMap::new());
        self.ask(|told| Job::Begin(record, told)).await?;
        self.bound(session)
    }

    async fn take_up(&self, session: &SessionId) -> Result<Option<TakenUp>, StoreError> {
        let id: Arc<str> = hide(session.as_str()).into();
        let Some(epoch) = self.ask(|told| Job::TakeUp(id, told)).await? else { return Ok(None) };
        // From here on nobody else writes to the session.
        let mut snapshot = self.pool.snapshot().await?;
        let Some((journal, progress)) = read::journal(&mut snapshot, session).await? else { return Ok(None) };
        let store = self.bound(OpenSession::new(session, epoch, progress))?;
        Ok(Some(TakenUp { store, epoch, journal }))
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        Ok(read::sessions(&mut self.pool.snapshot().await?).await?)
    }

    async fn journal(&self, session: &SessionId) -> Result<Option<SessionJournal>, StoreError> {
        let found = read::journal(&mut self.pool.snapshot().await?, session).await?;
        Ok(found.map(|(journal, _)| journal))
    }

    async fn events(
        &self,
        session: &SessionId,
        agent: Option<&AgentName>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(read::events(&mut self.pool.snapshot().await?, session, agent, after, limit).await?)
    }

    async fn conversation(
        &self,
        session: &SessionId,
        agent: &AgentName,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        Ok(read::conversation(&mut self.pool.snapshot().await?, session, agent, after, limit).await?)
    }

    async fn receipts(
        &self,
        session: &SessionId,
        from: &Sender,
        id: &MessageId,
    ) -> Result<Vec<(AgentName, ReceiptState)>, StoreError> {
        Ok(read::receipts(&mut self.pool.snapshot().await?, session, from, id).await?)
    }

    fn stale_writes(&self) -> u64 {
        self.writer.as_ref().map_or(0, |writer| writer.queue.stale.load(Ordering::Relaxed))
    }

    /// Closes all connections, too, and gives the lock back.
    async fn close(&self) {
        self.pool.close().await;
        if let Some(writer) = &self.writer {
            writer.close().await;
        }
    }
}
