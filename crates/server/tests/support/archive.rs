//! A store in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use midturn_core::engine::ports::archive::{
    AgentJournal, ChatMessage, KeptMail, SessionRecord, SessionSummary, StoredEvent,
};
use midturn_core::engine::ports::store::Transaction;
use midturn_core::engine::ports::{Archive, Commit, SessionJournal, Store, StoreError, TakenUp};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::{AgentName, MessageId, SessionId};
use midturn_core::rules::mail::{ReceiptState, Sender};
use midturn_core::rules::time::Micros;
use parking_lot::Mutex;

/// All sessions.
#[derive(Default)]
pub struct Memory {
    sessions: Mutex<Vec<Arc<Kept>>>,
    /// Nothing can be read.
    pub broken: AtomicBool,
}

/// Where a message stands at each of its receivers.
type Standings = Vec<(AgentName, ReceiptState)>;

/// One session.
pub struct Kept {
    journal: Mutex<SessionJournal>,
    events: Mutex<Vec<StoredEvent>>,
    receipts: Mutex<HashMap<(Sender, MessageId), Standings>>,
}

impl Kept {
    /// Keeps an event.
    pub fn event(&self, event: &Event) {
        let json = serde_json::to_string(event).unwrap().into();
        self.events.lock().push(StoredEvent { seq: event.seq, agent: event.at.agent.clone(), json });
        let mut journal = self.journal.lock();
        journal.last_seq = event.seq;
        let Some(agent) = &event.at.agent else { return };
        let known = journal.agents.iter_mut().find(|known| known.record.name == *agent);
        if let (Some(known), EventKind::RunStarted { .. }) = (known, &event.kind) {
            known.run = event.at.run.unwrap_or_default();
        }
    }

    /// How many events are kept.
    pub fn count(&self) -> usize {
        self.events.lock().len()
    }
}

impl Store for Kept {
    fn submit(&self, transaction: Arc<Transaction>) -> Commit {
        for record in &transaction.agents {
            self.journal.lock().agents.push(AgentJournal {
                record: record.clone(),
                rows: Vec::new(),
                run: 0,
                last_end: None,
                closed: Default::default(),
                resumed: false,
                stop_seq: 0,
                turns: 0,
                calls: 0,
                plan: Vec::new(),
                worked: Default::default(),
                limits: None,
                tail: Vec::new(),
            });
        }
        for accepted in &transaction.accepted {
            let mail = &accepted.mail;
            let state = ReceiptState::Queued;
            self.journal.lock().mail.push(KeptMail {
                accepted: accepted.clone(),
                seq: 0,
                state: state.clone(),
            });
            let key = (mail.from.clone(), mail.id.clone());
            self.receipts.lock().entry(key).or_default().push((mail.to.clone(), state));
        }
        for step in &transaction.receipts {
            let key = (step.from.clone(), step.id.clone());
            let mut receipts = self.receipts.lock();
            let of = receipts.entry(key).or_default();
            of.iter_mut().filter(|(to, _)| *to == step.to).for_each(|(_, state)| *state = step.state.clone());
        }
        transaction.events.iter().for_each(|event| self.event(event));
        Commit::Done(Ok(()))
    }
}

impl Memory {
    /// Begins a session, or one that is only stored.
    pub fn add(&self, record: SessionRecord) -> Arc<Kept> {
        let journal = SessionJournal {
            record,
            last_seq: 0,
            last_t: Micros(0),
            lived: Default::default(),
            limits: None,
            agents: Vec::new(),
            mail: Vec::new(),
        };
        let kept = Arc::new(Kept {
            journal: Mutex::new(journal),
            events: Mutex::default(),
            receipts: Mutex::default(),
        });
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
        Ok(sessions.iter().find(|kept| kept.journal.lock().record.id == *session).cloned())
    }
}

#[async_trait]
impl Archive for Memory {
    async fn begin(&self, record: SessionRecord) -> Result<Arc<dyn Store>, StoreError> {
        Ok(self.add(record))
    }

    async fn take_up(&self, _: &SessionId) -> Result<Option<TakenUp>, StoreError> {
        Ok(None)
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        self.find(&SessionId::new("any"))?;
        let summary = |kept: &Arc<Kept>| {
            let journal = kept.journal.lock();
            SessionSummary {
                record: journal.record.clone(),
                epoch: 1,
                agents: journal.agents.len() as u64,
                running: 0,
                shut_down: 0,
                waiting: 0,
                last_seq: journal.last_seq,
                last_t: Micros(0),
            }
        };
        Ok(self.sessions.lock().iter().rev().map(summary).collect())
    }

    async fn journal(&self, session: &SessionId) -> Result<Option<SessionJournal>, StoreError> {
        Ok(self.find(session)?.map(|kept| kept.journal.lock().clone()))
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
        let receipts = kept.receipts.lock();
        Ok(receipts.get(&(from.clone(), id.clone())).cloned().unwrap_or_default())
    }

    fn stale_writes(&self) -> u64 {
        0
    }
}
