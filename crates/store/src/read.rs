//! What is read back: lists, pages, receipts, and the journal that a session goes on from.

mod journal;

use midturn_core::engine::ports::SessionRecord;
use midturn_core::engine::ports::archive::{ChatMessage, SessionSummary, StoredEvent};
use midturn_core::rules::id::{AgentName, MessageId, SessionId};
use midturn_core::rules::mail::{ReceiptState, Sender};

use crate::cell::Cell;
use crate::db::{Row, Snapshot};
use crate::error::{Problem, Unreadable};
use crate::words;

pub(crate) use journal::{journal, known};

fn id(session: &SessionId) -> Cell {
    Cell::text(session.as_str())
}

fn name(agent: &AgentName) -> Cell {
    Cell::word(agent.as_str())
}

/// All sessions, the newest first.
pub(crate) async fn sessions(snapshot: &mut Snapshot) -> Result<Vec<SessionSummary>, Problem> {
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
            last_t: row.micros(11)?,
        })
    };
    snapshot.rows(query, Vec::new(), summary).await
}

/// The session of a row that begins with id, began_at, folder, title, memo.
fn record(row: &Row<'_>) -> Result<SessionRecord, Unreadable> {
    Ok(SessionRecord {
        id: SessionId::new(row.text(0)?),
        began_at: row.unsigned(1)?,
        folder: row.text(2)?,
        title: row.text(3)?,
        memo: row.value(4)?,
    })
}

/// A page of events.
pub(crate) async fn events(
    snapshot: &mut Snapshot,
    session: &SessionId,
    agent: Option<&AgentName>,
    after: u64,
    limit: u32,
) -> Result<Vec<StoredEvent>, Problem> {
    let all = "SELECT seq, agent, data FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?";
    let of_agent = "SELECT seq, agent, data FROM events WHERE session = ? AND agent = ? AND seq > ? ORDER BY seq LIMIT ?";
    let (after, limit) = (Cell::bound(after), Cell::number(limit));
    let (query, values) = match agent {
        None => (all, vec![id(session), after, limit]),
        Some(agent) => (of_agent, vec![id(session), name(agent), after, limit]),
    };
    let event = |row: Row<'_>| {
        let agent = row.text_or_null(1)?;
        let agent = agent.as_deref().map(words::name).transpose()?;
        Ok(StoredEvent { seq: row.unsigned(0)?, agent, json: row.raw(2)?.into() })
    };
    snapshot.rows(query, values, event).await
}

/// A page of a conversation.
pub(crate) async fn conversation(
    snapshot: &mut Snapshot,
    session: &SessionId,
    agent: &AgentName,
    after: u64,
    limit: u32,
) -> Result<Vec<ChatMessage>, Problem> {
    let query = "SELECT run, seq, role, message_type, content, tool_name, tool_call_id, tool_result, metadata, created_at \
        FROM chat_messages WHERE session = ? AND agent = ? AND seq > ? ORDER BY seq LIMIT ?";
    let values = vec![id(session), name(agent), Cell::bound(after), Cell::number(limit)];
    let message = |row: Row<'_>| {
        Ok(ChatMessage {
            agent: agent.clone(),
            run: row.unsigned(0)?,
            seq: row.unsigned(1)?,
            role: row.text(2)?,
            message_type: row.text(3)?,
            content: row.text(4)?,
            tool_name: row.text_or_null(5)?,
            tool_call_id: row.text_or_null(6)?,
            tool_result: row.value_or_null(7)?,
            metadata: row.value(8)?,
            created_at: row.unsigned(9)?,
        })
    };
    snapshot.rows(query, values, message).await
}

/// The receipts of a message.
pub(crate) async fn receipts(
    snapshot: &mut Snapshot,
    session: &SessionId,
    from: &Sender,
    message: &MessageId,
) -> Result<Vec<(AgentName, ReceiptState)>, Problem> {
    // In order without ORDER BY: that would lead SQLite through all messages of the session.
    let query = "SELECT n, receiver, receipt FROM messages WHERE session = ? AND id = ? AND sender = ?";
    let values = vec![id(session), Cell::text(message.as_str()), Cell::Text(words::sender(from))];
    let each = |row: Row<'_>| Ok((row.int(0)?, (words::name(&row.text(1)?)?, receipt(&row, 2)?)));
    let mut found = snapshot.rows(query, values, each).await?;
    found.sort_unstable_by_key(|(n, _)| *n);
    Ok(found.into_iter().map(|(_, receipt)| receipt).collect())
}

fn receipt(row: &Row<'_>, column: usize) -> Result<ReceiptState, Unreadable> {
    serde_json::from_str(&row.json(column)?).map_err(Unreadable::of)
}
