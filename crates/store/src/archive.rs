//! The core's `Archive` over either database: who writes is asked, what is read is read here, but
//! for the journal that a session goes on from.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use midturn_core::engine::ports::archive::{
    ChatMessage, KeptMail, Rows, SessionSize, SessionSummary, StoredEvent, Used,
};
use midturn_core::engine::ports::{
    Archive, Commit, SessionJournal, SessionRecord, Store, StoreError, TakenUp, Transaction,
};
use midturn_core::rules::conversation::Usage;
use midturn_core::rules::id::{AgentName, MessageId, SessionId};
use midturn_core::rules::mail::{ReceiptState, Sender};
use midturn_core::rules::time::Micros;
use tokio::sync::oneshot;

use crate::cell::Cell;
use crate::db::{Pool, Row};
use crate::error::Problem;
use crate::journal::{self, id_of, record};
use crate::open::now;
use crate::session::OpenSession;
use crate::writer::{Epoch, Job, Writer};

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

    /// Has the writer begin a session or take one up, and waits for the epoch that it then has.
    async fn epoch(&self, query: &'static str, values: Vec<Cell>) -> Result<Option<u64>, StoreError> {
        self.set_epoch(&[], query, values).await
    }

    async fn set_epoch(
        &self,
        first: &'static [&'static str],
        query: &'static str,
        values: Vec<Cell>,
    ) -> Result<Option<u64>, StoreError> {
        let (told, answer) = oneshot::channel();
        self.writer()?.queue.push(Job::Epoch(Epoch { first, query, values, told }))?;
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
        Ok(journal::known(&mut snapshot, Cell::Text(self.session.id.clone()), from, id).await?)
    }
}

/// What is done before a session's own row is removed. The epoch goes up first: on a server, whoever is writing
/// to the session has ended by then, and whoever comes later finds none.
const REMOVAL: [&str; 7] = [
    "UPDATE sessions SET epoch = epoch + 1 WHERE id = ?",
    "DELETE FROM agents WHERE session = ?",
    "DELETE FROM agent_progress WHERE session = ?",
    "DELETE FROM runs WHERE session = ?",
    "DELETE FROM chat_messages WHERE session = ?",
    "DELETE FROM messages WHERE session = ?",
    "DELETE FROM events WHERE session = ?",
];

/// The events of a session that meet a condition.
macro_rules! events_where {
    ($condition:literal) => {
        concat!("SELECT seq, agent, data FROM events WHERE session = ? AND ", $condition)
    };
}

/// The rows of an agent's conversation that meet a condition.
macro_rules! messages_where {
    ($condition:literal) => {
        concat!(
            "SELECT run, seq, role, message_type, content, tool_name, tool_call_id, tool_result, metadata, created_at \
             FROM chat_messages WHERE session = ? AND agent = ? AND ",
            $condition
        )
    };
}

#[async_trait]
impl Archive for SqlArchive {
    /// Its path, or its server without user and password.
    fn name(&self) -> &str {
        &self.name
    }

    async fn begin(&self, record: SessionRecord) -> Result<Arc<dyn Store>, StoreError> {
        let query = "INSERT INTO sessions (id, epoch, began_at, folder, title, memo) \
            VALUES (?, 1, ?, ?, ?, ?::json) ON CONFLICT DO NOTHING RETURNING epoch";
        let values = vec![
            id_of(&record.id),
            Cell::number(record.began_at),
            Cell::text(&record.folder),
            Cell::text(&record.title),
            Cell::json(&record.memo).map_err(Problem::from)?,
        ];
        let epoch = self.epoch(query, values).await?.ok_or_else(|| {
            let id = &record.id;
            StoreError::Failed(format!("there is a session `{id}` already; resume it, or take another id"))
        })?;
        self.bound(OpenSession::new(&record.id, epoch, HashMap::new()))
    }

    async fn take_up(&self, session: &SessionId) -> Result<Option<TakenUp>, StoreError> {
        // Whoever had it before is refused from now on.
        let query = "UPDATE sessions SET epoch = epoch + 1 WHERE id = ? RETURNING epoch";
        let Some(epoch) = self.epoch(query, vec![id_of(session)]).await? else { return Ok(None) };
        // From here on nobody else writes to the session.
        let mut snapshot = self.pool.snapshot().await?;
        let Some((journal, progress)) = journal::journal(&mut snapshot, session).await? else {
            return Ok(None);
        };
        let store = self.bound(OpenSession::new(session, epoch, progress))?;
        Ok(Some(TakenUp { store, epoch, journal }))
    }

    async fn remove(&self, session: &SessionId) -> Result<bool, StoreError> {
        let query = "DELETE FROM sessions WHERE id = ? RETURNING epoch";
        Ok(self.set_epoch(&REMOVAL, query, vec![id_of(session)]).await?.is_some())
    }

    async fn size(&self, session: &SessionId) -> Result<SessionSize, StoreError> {
        let query = "SELECT count(*), coalesce(sum(octet_length(data)), 0) FROM events WHERE session = ? \
            UNION ALL \
            SELECT count(*), coalesce(sum(octet_length(content) + octet_length(CAST(metadata AS text)) \
                + coalesce(octet_length(CAST(tool_result AS text)), 0)), 0) FROM chat_messages WHERE session = ?";
        let values = vec![id_of(session), id_of(session)];
        let part = |row: Row<'_>| Ok((row.unsigned(0)?, row.unsigned(1)?));
        let parts = self.pool.snapshot().await?.rows(query, values, part).await?;
        let sum = |all: SessionSize, (entries, bytes)| SessionSize {
            entries: all.entries + entries,
            bytes: all.bytes + bytes,
        };
        Ok(parts.into_iter().fold(SessionSize::default(), sum))
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        let query = "SELECT s.id, s.began_at, s.folder, s.title, s.memo, s.epoch, \
            (SELECT count(*) FROM agents a WHERE a.session = s.id), \
            (SELECT count(*) FROM agent_progress p JOIN runs r ON r.session = p.session AND r.agent = p.agent AND r.run = p.run \
                WHERE p.session = s.id AND r.outcome IS NULL), \
            (SELECT count(*) FROM agent_progress p JOIN runs r ON r.session = p.session AND r.agent = p.agent AND r.run = p.run \
                WHERE p.session = s.id AND r.reason = 'shutdown'), \
            (SELECT count(*) FROM messages m WHERE m.session = s.id AND m.settled = 0 AND m.state = 'queued') \
            + (SELECT count(*) FROM agents a LEFT JOIN agent_progress p ON p.session = a.session AND p.agent = a.name \
                WHERE a.session = s.id AND a.prompt IS NOT NULL AND coalesce(p.run, 0) = 0 AND coalesce(p.closed, 0) = 0) \
            + (SELECT count(*) FROM runs r WHERE r.session = s.id AND r.owed_to IS NOT NULL AND NOT EXISTS \
                (SELECT 1 FROM messages m WHERE m.session = r.session AND m.id = r.agent || '#' || r.run \
                    AND m.sender = 'coordinator:' || r.agent)), \
            coalesce((SELECT e.seq FROM events e WHERE e.session = s.id ORDER BY e.seq DESC LIMIT 1), 0), \
            coalesce((SELECT e.t FROM events e WHERE e.session = s.id ORDER BY e.seq DESC LIMIT 1), 0) \
            FROM sessions s ORDER BY s.began_at DESC, s.id DESC";
        let summary = |row: Row<'_>| {
            Ok(SessionSummary {
                record: record(&row)?,
                epoch: row.unsigned(5)?,
                agents: row.unsigned(6)?,
                running: row.unsigned(7)?,
                shut_down: row.unsigned(8)?,
                waiting: row.unsigned(9)?,
                last_seq: row.unsigned(10)?,
                last_t: Micros(row.unsigned(11)?),
            })
        };
        Ok(self.pool.snapshot().await?.rows(query, Vec::new(), summary).await?)
    }

    async fn used(&self) -> Result<Vec<Used>, StoreError> {
        // Both databases read `->` and `->>` so; a sum of theirs is wider than what it adds up.
        let query = "SELECT m.session, coalesce(a.model, ''), \
            CAST(coalesce(sum(CAST(m.metadata -> 'usage' ->> 'input' AS BIGINT)), 0) AS BIGINT), \
            CAST(coalesce(sum(CAST(m.metadata -> 'usage' ->> 'output' AS BIGINT)), 0) AS BIGINT), \
            CAST(coalesce(sum(CAST(m.metadata -> 'usage' ->> 'cached' AS BIGINT)), 0) AS BIGINT) \
            FROM chat_messages m JOIN agents a ON a.session = m.session AND a.name = m.agent \
            WHERE m.message_type IN ('assistant', 'summary', 'summary_unused') GROUP BY m.session, a.model";
        let used = |row: Row<'_>| {
            let model = row.text(1)?;
            Ok(Used {
                session: SessionId::new(row.text(0)?),
                model: Some(model).filter(|model| !model.is_empty()).map(Into::into),
                usage: Usage { input: row.unsigned(2)?, output: row.unsigned(3)?, cached: row.unsigned(4)? },
            })
        };
        Ok(self.pool.snapshot().await?.rows(query, Vec::new(), used).await?)
    }

    async fn journal(&self, session: &SessionId) -> Result<Option<SessionJournal>, StoreError> {
        let found = journal::journal(&mut self.pool.snapshot().await?, session).await?;
        Ok(found.map(|(journal, _)| journal))
    }

    async fn events(
        &self,
        session: &SessionId,
        agent: Option<&AgentName>,
        rows: Rows,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let (all, of_agent, number) = match rows {
            Rows::After(number) => (
                events_where!("seq > ? ORDER BY seq LIMIT ?"),
                events_where!("agent = ? AND seq > ? ORDER BY seq LIMIT ?"),
                number,
            ),
            Rows::Before(number) => (
                events_where!("seq < ? ORDER BY seq DESC LIMIT ?"),
                events_where!("agent = ? AND seq < ? ORDER BY seq DESC LIMIT ?"),
                number,
            ),
        };
        let (number, limit) = (Cell::bound(number), Cell::number(limit));
        let (query, values) = match agent {
            None => (all, vec![id_of(session), number, limit]),
            Some(agent) => (of_agent, vec![id_of(session), Cell::name(agent), number, limit]),
        };
        let event = |row: Row<'_>| {
            Ok(StoredEvent {
                seq: row.unsigned(0)?,
                agent: row.or_null(1, Row::name)?,
                json: row.raw(2)?.into(),
            })
        };
        let mut found = self.pool.snapshot().await?.rows(query, values, event).await?;
        found.sort_unstable_by_key(|event| event.seq);
        Ok(found)
    }

    async fn conversation(
        &self,
        session: &SessionId,
        agent: &AgentName,
        rows: Rows,
        limit: u32,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        let (query, number) = match rows {
            Rows::After(number) => (messages_where!("seq > ? ORDER BY seq LIMIT ?"), number),
            Rows::Before(number) => (messages_where!("seq < ? ORDER BY seq DESC LIMIT ?"), number),
        };
        let values = vec![id_of(session), Cell::name(agent), Cell::bound(number), Cell::number(limit)];
        let message = |row: Row<'_>| {
            Ok(ChatMessage {
                agent: agent.clone(),
                run: row.unsigned(0)?,
                seq: row.unsigned(1)?,
                role: row.text(2)?,
                message_type: row.text(3)?,
                content: row.text(4)?,
                tool_name: row.or_null(5, Row::text)?,
                tool_call_id: row.or_null(6, Row::text)?,
                tool_result: row.or_null(7, Row::parsed)?,
                metadata: row.parsed(8)?,
                created_at: row.unsigned(9)?,
            })
        };
        let mut found = self.pool.snapshot().await?.rows(query, values, message).await?;
        found.sort_unstable_by_key(|row| row.seq);
        Ok(found)
    }

    async fn receipts(
        &self,
        session: &SessionId,
        from: &Sender,
        id: &MessageId,
    ) -> Result<Vec<(AgentName, ReceiptState)>, StoreError> {
        let known = journal::known(&mut self.pool.snapshot().await?, id_of(session), from, id).await?;
        Ok(known.into_iter().map(|kept| (kept.accepted.mail.to.clone(), kept.state)).collect())
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
