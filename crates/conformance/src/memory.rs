//! An archive in memory, of the engine's own stores: what the suite shows of it holds for whoever
//! tests with it instead of a database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use midturn_core::engine::ports::archive::{
    ChatMessage, KeptMail, Rows, SessionSize, SessionSummary, StoredEvent,
};
use midturn_core::engine::ports::store::Row;
use midturn_core::engine::ports::{
    Archive, Commit, KeepingStore, SessionJournal, SessionRecord, Store, StoreError, TakenUp, Transaction,
};
use midturn_core::rules::event::Event;
use midturn_core::rules::id::{AgentName, MessageId, SessionId};
use midturn_core::rules::mail::{ReceiptState, Sender};
use midturn_core::rules::record::Line;
use parking_lot::Mutex;

use crate::{Place, maker};

/// All sessions. To close it changes nothing: they live as long as this does.
#[derive(Default)]
pub struct Memory {
    sessions: Mutex<Vec<Arc<Kept>>>,
    /// Nothing can be read.
    pub broken: AtomicBool,
}

/// One session under its newest epoch. What an earlier coordinator still writes goes into an
/// earlier one of these, which nobody reads.
pub struct Kept {
    record: SessionRecord,
    epoch: u64,
    store: KeepingStore,
    events: Mutex<Vec<StoredEvent>>,
}

impl Kept {
    /// Keeps an event.
    pub fn event(&self, event: &Event) {
        // It is kept at once.
        drop(self.submit(maker::events(vec![event.clone()])));
    }

    fn journal(&self) -> SessionJournal {
        self.store.journal(self.record.clone())
    }
}

#[async_trait]
impl Store for Kept {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        let told = transaction.events.iter().map(|event| {
            let json = serde_json::to_string(event).unwrap().into();
            StoredEvent { seq: event.seq, agent: event.at.agent.clone(), json }
        });
        self.events.lock().extend(told);
        self.store.submit(transaction)
    }

    async fn known(&self, from: &Sender, id: &MessageId) -> Result<Vec<KeptMail>, StoreError> {
        self.store.known(from, id).await
    }
}

impl Memory {
    /// Begins a session, or one that is only stored.
    pub fn add(&self, record: SessionRecord) -> Arc<Kept> {
        let (store, events) = Default::default();
        let kept = Arc::new(Kept { record, epoch: 1, store, events });
        self.sessions.lock().push(kept.clone());
        kept
    }

    /// How many events are kept, of all sessions.
    pub fn count(&self) -> usize {
        self.sessions.lock().iter().map(|kept| kept.events.lock().len()).sum()
    }

    /// What is kept of a session.
    ///
    /// # Errors
    /// It is `broken`.
    pub fn find(&self, session: &SessionId) -> Result<Option<Arc<Kept>>, StoreError> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(StoreError::Failed("the disk is gone; look for it".to_owned()));
        }
        Ok(self.sessions.lock().iter().find(|kept| kept.record.id == *session).cloned())
    }
}

#[async_trait]
impl Place for Arc<Memory> {
    async fn open(&self) -> Arc<dyn Archive> {
        self.clone()
    }
}

#[async_trait]
impl Archive for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn begin(&self, record: SessionRecord) -> Result<Arc<dyn Store>, StoreError> {
        if self.find(&record.id)?.is_some() {
            return Err(StoreError::Failed(format!("there is a session `{}` already", record.id)));
        }
        Ok(self.add(record))
    }

    async fn take_up(&self, session: &SessionId) -> Result<Option<TakenUp>, StoreError> {
        let mut sessions = self.sessions.lock();
        let Some(kept) = sessions.iter_mut().find(|kept| kept.record.id == *session) else { return Ok(None) };
        let events = Mutex::new(kept.events.lock().clone());
        let (record, store) = (kept.record.clone(), kept.store.taken_up());
        *kept = Arc::new(Kept { record, epoch: kept.epoch + 1, store, events });
        Ok(Some(TakenUp { store: kept.clone(), epoch: kept.epoch, journal: kept.journal() }))
    }

    async fn remove(&self, session: &SessionId) -> Result<bool, StoreError> {
        let mut sessions = self.sessions.lock();
        let before = sessions.len();
        sessions.retain(|kept| kept.record.id != *session);
        Ok(sessions.len() < before)
    }

    /// Conversations aren't counted.
    async fn size(&self, session: &SessionId) -> Result<SessionSize, StoreError> {
        let Some(kept) = self.find(session)? else { return Ok(SessionSize::default()) };
        let events = kept.events.lock();
        let bytes = events.iter().map(|event| event.json.len() as u64).sum();
        Ok(SessionSize { entries: events.len() as u64, bytes })
    }

    /// What runs in them isn't counted.
    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        self.find(&SessionId::new("any"))?;
        let summary = |kept: &Arc<Kept>| {
            let journal = kept.journal();
            SessionSummary {
                record: journal.record,
                epoch: kept.epoch,
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
        rows: Rows,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let Some(kept) = self.find(session)? else { return Ok(Vec::new()) };
        let events = kept.events.lock();
        let of_agent = |event: &&StoredEvent| agent.is_none_or(|agent| event.agent.as_ref() == Some(agent));
        let events = events.iter().filter(of_agent);
        Ok(match rows {
            Rows::After(after) => {
                events.filter(|event| event.seq > after).take(limit as usize).cloned().collect()
            }
            Rows::Before(before) => {
                let last = events.rev().filter(|event| event.seq < before).take(limit as usize);
                let mut last: Vec<_> = last.cloned().collect();
                last.reverse();
                last
            }
        })
    }

    async fn conversation(
        &self,
        session: &SessionId,
        agent: &AgentName,
        rows: Rows,
        limit: u32,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        let agents = self.find(session)?.map(|kept| kept.journal().agents).unwrap_or_default();
        let all = agents.into_iter().find(|known| known.record.name == *agent).map(|known| known.rows);
        let all: Vec<_> = all.unwrap_or_default().into_iter().zip(1..).collect();
        let (first, most) = match rows {
            Rows::After(after) => (after as usize, limit as usize),
            Rows::Before(before) => {
                let end = all.len().min((before as usize).saturating_sub(1));
                let first = end.saturating_sub(limit as usize);
                (first, end - first)
            }
        };
        Ok(all.iter().skip(first).take(most).map(|(row, seq)| message(row, *seq)).collect())
    }

    async fn receipts(
        &self,
        session: &SessionId,
        from: &Sender,
        id: &MessageId,
    ) -> Result<Vec<(AgentName, ReceiptState)>, StoreError> {
        let Some(kept) = self.find(session)? else { return Ok(Vec::new()) };
        let known = kept.known(from, id).await?;
        Ok(known.into_iter().map(|kept| (kept.accepted.mail.to.clone(), kept.state)).collect())
    }

    fn stale_writes(&self) -> u64 {
        0
    }

    async fn close(&self) {}
}

/// A prompt as semantics.md, section 6 has it. Of all other lines nobody asks here for the words.
fn message(row: &Row, seq: u64) -> ChatMessage {
    let content = match &row.line {
        Line::Prompt(text) => text.to_string(),
        other => format!("{other:?}"),
    };
    ChatMessage {
        agent: row.agent.clone(),
        run: row.run,
        seq,
        role: "user".to_owned(),
        message_type: "user".to_owned(),
        content,
        tool_name: None,
        tool_call_id: None,
        tool_result: None,
        metadata: serde_json::json!({}),
        created_at: 0,
    }
}
