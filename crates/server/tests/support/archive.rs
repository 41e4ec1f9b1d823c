//! An archive in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use midturn_core::engine::ports::archive::{ChatMessage, SessionRecord, SessionSummary, StoredEvent};
use midturn_core::engine::ports::{
    Archive, Commit, KeepingStore, SessionJournal, Store, StoreError, TakenUp, Transaction,
};
use midturn_core::rules::event::Event;
use midturn_core::rules::id::{AgentName, MessageId, SessionId};
use midturn_core::rules::mail::{ReceiptState, Sender};
use parking_lot::Mutex;

/// All sessions.
#[derive(Default)]
pub struct Memory {
    sessions: Mutex<Vec<Arc<Kept>>>,
    /// Nothing can be read.
    pub broken: AtomicBool,
}

/// One session.
pub struct Kept {
    record: SessionRecord,
    store: KeepingStore,
    events: Mutex<Vec<StoredEvent>>,
}

impl Kept {
    /// Keeps an event.
    pub fn event(&self, event: &Event) {
        let events = vec![event.clone()];
        // It is kept at once.
        drop(self.submit(Arc::new(Transaction { events, ..Transaction::default() })));
    }

    /// How many events are kept.
    pub fn count(&self) -> usize {
        self.events.lock().len()
    }

    fn journal(&self) -> SessionJournal {
        self.store.journal(self.record.clone())
    }
}

impl Store for Kept {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        let told = transaction.events.iter().map(|event| {
            let json = serde_json::to_string(event).unwrap().into();
            StoredEvent { seq: event.seq, agent: event.at.agent.clone(), json }
        });
        self.events.lock().extend(told);
        self.store.submit(transaction)
    }
}

impl Memory {
    /// Begins a session, or one that is only stored.
    pub fn add(&self, record: SessionRecord) -> Arc<Kept> {
        let kept = Arc::new(Kept { record, store: KeepingStore::default(), events: Mutex::default() });
        self.sessions.lock().push(kept.clone());
        kept
    }

    /// How many events are kept, of all sessions.
    pub fn count(&self) -> usize {
        self.sessions.lock().iter().map(|kept| kept.count()).sum()
    }

    fn find(&self, session: &SessionId) -> Result<Option<Arc<Kept>>, StoreError> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(StoreError::Failed("the disk is gone; look for it".to_owned()));
        }
        let sessions = self.sessions.lock();
        Ok(sessions.iter().find(|kept| kept.record.id == *session).cloned())
    }
}

#[async_trait]
impl Archive for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn begin(&self, record: SessionRecord) -> Result<Arc<dyn Store>, StoreError> {
        Ok(self.add(record))
    }

    async fn take_up(&self, _: &SessionId) -> Result<Option<TakenUp>, StoreError> {
        Ok(None)
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        self.find(&SessionId::new("any"))?;
        let summary = |kept: &Arc<Kept>| {
            let journal = kept.journal();
            SessionSummary {
                record: journal.record,
                epoch: 1,
                agents: journal.agents.len() as u64,
                running: 0,
                shut_down: 0,
                waiting: 0,
                last_seq: journal.last_seq,
                last_t: journal.last_t,
            }
        };
        Ok(self.sessions.lock().iter().rev().map(summary).collect())
    }

    async fn journal(&self, session: &SessionId) -> Result<Option<SessionJournal>, StoreError> {
        Ok(self.find(session)?.map(|kept| kept.journal()))
    }

    async fn events(
        &self,
        session: &SessionId,
        agent: Option<&AgentName>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let Some(kept) = self.find(session)? else { return Ok(Vec::new()) };
        let events = kept.events.lock();
        let wanted = events.iter().filter(|event| {
            event.seq > after && agent.is_none_or(|agent| event.agent.as_ref() == Some(agent))
        });
        Ok(wanted.take(limit as usize).cloned().collect())
    }

    async fn conversation(
        &self,
        session: &SessionId,
        agent: &AgentName,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        // Twelve rows of each agent, whatever was said.
        let known = self.find(session)?.is_some();
        let row = |seq| ChatMessage {
            agent: agent.clone(),
            run: 1,
            seq,
            role: "user".to_owned(),
            message_type: "user".to_owned(),
            content: format!("row {seq}"),
            tool_name: None,
            tool_call_id: None,
            tool_result: None,
            metadata: serde_json::json!({}),
            created_at: 1_700_000_000_000_000 + seq,
        };
        let rows = (1..=12).filter(|seq| known && *seq > after);
        Ok(rows.take(limit as usize).map(row).collect())
    }

    async fn receipts(
        &self,
        session: &SessionId,
        from: &Sender,
        id: &MessageId,
    ) -> Result<Vec<(AgentName, ReceiptState)>, StoreError> {
        let Some(kept) = self.find(session)? else { return Ok(Vec::new()) };
        let known = kept.store.known(from, id).await?;
        Ok(known.into_iter().map(|kept| (kept.accepted.mail.to.clone(), kept.state)).collect())
    }

    fn stale_writes(&self) -> u64 {
        0
    }

    async fn close(&self) {}
}
