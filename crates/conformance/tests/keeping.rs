//! The engine's own store in memory is held to what a session relies on when it goes on: the suite
//! shows that `KeepingStore` gives back what the databases do. An archive of such stores lives
//! here; nobody but this test has many sessions in one.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::sync::Arc;

use async_trait::async_trait;
use midturn_conformance::{Place, SUITE};
use midturn_core::engine::ports::archive::{ChatMessage, SessionSummary, StoredEvent};
use midturn_core::engine::ports::{
    Archive, KeepingStore, SessionJournal, SessionRecord, Store, StoreError, TakenUp,
};
use midturn_core::rules::id::{AgentName, MessageId, SessionId};
use midturn_core::rules::mail::{ReceiptState, Sender};
use midturn_core::rules::record::Line;
use parking_lot::Mutex;

/// What is not asked of it: it keeps what one coordinator gives it, whom it trusts, for the next one.
const NOT_ASKED: [&str; 10] = [
    // It refuses nothing, so nothing fails.
    "a_transaction_counts_as_a_whole_or_not_at_all",
    "a_failing_transaction_does_no_harm_to_other_sessions",
    "nothing_counts_that_was_submitted_after_what_failed",
    // What an earlier coordinator still writes goes into a copy that nobody reads, and isn't told.
    "a_stale_epoch_writes_nothing_and_is_counted",
    // It asserts that nobody moves a receipt back.
    "receipts_only_move_forward",
    // It keeps no line of an agent that was never made.
    "transactions_count_in_the_order_of_submission",
    // It keeps no list of sessions, no events but open tails, and no table.
    "a_session_is_begun_once_and_an_unknown_one_is_nobody",
    "sessions_are_listed_the_newest_first",
    "events_come_in_pages_as_they_were_told",
    "chat_messages_are_what_semantics_section_6_says",
];

#[tokio::test]
async fn the_store_in_memory_gives_back_what_the_databases_do() {
    for name in NOT_ASKED {
        assert!(SUITE.iter().any(|claim| claim.name == name), "there is no claim `{name}`");
    }
    for claim in SUITE.iter().filter(|claim| !NOT_ASKED.contains(&claim.name)) {
        claim.holds(&Memory::default()).await;
    }
}

/// All sessions. To close it changes nothing: it lives as long as its place.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<Kept>>>);

/// One session under its newest epoch.
#[derive(Clone)]
struct Kept {
    record: SessionRecord,
    epoch: u64,
    store: Arc<KeepingStore>,
}

impl Kept {
    fn journal(&self) -> SessionJournal {
        self.store.journal(self.record.clone())
    }
}

impl Memory {
    fn find(&self, session: &SessionId) -> Option<Kept> {
        self.0.lock().iter().find(|kept| kept.record.id == *session).cloned()
    }
}

fn not_kept<T>() -> Result<T, StoreError> {
    Err(StoreError::Failed("a store in memory doesn't keep that".to_owned()))
}

#[async_trait]
impl Place for Memory {
    async fn open(&self) -> Arc<dyn Archive> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Archive for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn begin(&self, record: SessionRecord) -> Result<Arc<dyn Store>, StoreError> {
        let store = Arc::new(KeepingStore::default());
        self.0.lock().push(Kept { record, epoch: 1, store: store.clone() });
        Ok(store)
    }

    async fn take_up(&self, session: &SessionId) -> Result<Option<TakenUp>, StoreError> {
        let mut sessions = self.0.lock();
        let Some(kept) = sessions.iter_mut().find(|kept| kept.record.id == *session) else { return Ok(None) };
        kept.store = Arc::new(kept.store.taken_up());
        kept.epoch += 1;
        Ok(Some(TakenUp { store: kept.store.clone(), epoch: kept.epoch, journal: kept.journal() }))
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        not_kept()
    }

    async fn journal(&self, session: &SessionId) -> Result<Option<SessionJournal>, StoreError> {
        Ok(self.find(session).map(|kept| kept.journal()))
    }

    async fn events(
        &self,
        _: &SessionId,
        _: Option<&AgentName>,
        _: u64,
        _: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        not_kept()
    }

    /// The prompts: what the claims say that are asked of it.
    async fn conversation(
        &self,
        session: &SessionId,
        agent: &AgentName,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        let agents = self.find(session).map(|kept| kept.journal().agents).unwrap_or_default();
        let rows = agents.into_iter().find(|known| known.record.name == *agent).map(|known| known.rows);
        let prompts = rows.unwrap_or_default().into_iter().zip(1..).map(|(row, seq)| match row.line {
            Line::Prompt(text) => Ok(prompt(agent, seq, &text)),
            _ => not_kept(),
        });
        prompts.skip(after as usize).take(limit as usize).collect()
    }

    async fn receipts(
        &self,
        session: &SessionId,
        from: &Sender,
        id: &MessageId,
    ) -> Result<Vec<(AgentName, ReceiptState)>, StoreError> {
        let Some(kept) = self.find(session) else { return Ok(Vec::new()) };
        let known = kept.store.known(from, id).await?;
        Ok(known.into_iter().map(|kept| (kept.accepted.mail.to.clone(), kept.state)).collect())
    }

    fn stale_writes(&self) -> u64 {
        0
    }

    async fn close(&self) {}
}

fn prompt(agent: &AgentName, seq: u64, text: &str) -> ChatMessage {
    ChatMessage {
        agent: agent.clone(),
        run: 1,
        seq,
        role: "user".to_owned(),
        message_type: "user".to_owned(),
        content: text.to_owned(),
        tool_name: None,
        tool_call_id: None,
        tool_result: None,
        metadata: serde_json::Value::Null,
        created_at: 0,
    }
}
