//! The journal of a session: all that it needs to go on where it was.
//!
//! The size of a conversation is what it costs. Events are not read, but for those of a turn
//! that is not over.

use std::collections::HashMap;
use std::sync::Arc;

use midturn_core::engine::ports::SessionRecord;
use midturn_core::engine::ports::archive::{AgentJournal, KeptMail, REMEMBERED, SessionJournal};
use midturn_core::engine::ports::store::{Accepted, AgentRecord, Row as ChatRow, RunEnd};
use midturn_core::rules::event::Event;
use midturn_core::rules::id::{AgentName, MessageId, SessionId};
use midturn_core::rules::lifetime::Lifetime;
use midturn_core::rules::mail::{Mail, Sender};
use midturn_core::rules::progress::Progress;
use midturn_core::rules::time::Micros;

use crate::cell::Cell;
use crate::db::{Row, Snapshot};
use crate::error::{Problem, Unreadable};
use crate::line::{self, StoredLine};
use crate::words;

/// A session's id as the tables have it.
pub(crate) fn id_of(session: &SessionId) -> Cell {
    Cell::text(session.as_str())
}

/// The session of a row that begins with id, began_at, folder, title, memo.
pub(crate) fn record(row: &Row<'_>) -> Result<SessionRecord, Unreadable> {
    Ok(SessionRecord {
        id: SessionId::new(row.text(0)?),
        began_at: row.unsigned(1)?,
        folder: row.text(2)?,
        title: row.text(3)?,
        memo: row.parsed(4)?,
    })
}

type Agents = HashMap<AgentName, Progress>;

/// The journal, and where its agents stand. None: there is no such session.
pub(crate) async fn journal(
    snapshot: &mut Snapshot,
    session: &SessionId,
) -> Result<Option<(SessionJournal, Agents)>, Problem> {
    let of = id_of(session);
    let query = "SELECT s.id, s.began_at, s.folder, s.title, s.memo, \
        coalesce((SELECT e.seq FROM events e WHERE e.session = s.id ORDER BY e.seq DESC LIMIT 1), 0), \
        coalesce((SELECT e.t FROM events e WHERE e.session = s.id ORDER BY e.seq DESC LIMIT 1), 0) \
        FROM sessions s WHERE s.id = ?";
    let kept = |row: Row<'_>| Ok((record(&row)?, row.unsigned(5)?, Micros(row.unsigned(6)?)));
    let found = snapshot.rows(query, vec![of.clone()], kept).await?;
    let Some((record, last_seq, last_t)) = found.into_iter().next() else { return Ok(None) };
    let mut progress = progress(snapshot, &of).await?;
    let mut rows = rows(snapshot, &of).await?;
    for (agent, rows) in &rows {
        progress.entry(agent.clone()).or_default().lines = rows.len() as u64;
    }
    let mut ends = ends(snapshot, &of).await?;
    let lifetime = lifetime(snapshot, &of, last_t).await?;
    let mut agents = Vec::new();
    for record in agent_records(snapshot, &of).await? {
        let stands = progress.entry(record.name.clone()).or_default();
        let rows = rows.remove(&record.name).unwrap_or_default();
        let last_end = ends.remove(&record.name);
        let tail = tail(snapshot, &of, &record.name, stands, last_end.as_ref()).await?;
        let (worked, limits) = lifetime.of(&record.name);
        agents.push(AgentJournal { record, rows, stands: stands.clone(), last_end, worked, limits, tail });
    }
    let mail = mail(snapshot, &of).await?;
    Ok(Some((
        SessionJournal {
            record,
            last_seq,
            last_t,
            lived: lifetime.lived(),
            limits: lifetime.limits(),
            agents,
            mail,
        },
        progress,
    )))
}

/// How long the session lived and its agents worked, and the limits that were set.
async fn lifetime(snapshot: &mut Snapshot, of: &Cell, last_t: Micros) -> Result<Lifetime, Problem> {
    // What the session's event before a take-up tells is when its process was last seen.
    let query = "SELECT e.data, p.t FROM events e \
        LEFT JOIN events p ON p.session = e.session AND p.seq = e.seq - 1 \
        WHERE e.session = ? AND e.type IN (?, ?, ?, ?) \
        ORDER BY e.seq";
    let read = |row: Row<'_>| Ok((row.event(0)?, row.or_null(1, Row::unsigned)?));
    let values = std::iter::once(of.clone()).chain(Lifetime::TYPES.map(Cell::word)).collect();
    let mut lifetime = Lifetime::default();
    for (event, before) in snapshot.rows(query, values, read).await? {
        lifetime.reaches(Micros(before.unwrap_or_default()));
        lifetime.note(&event);
    }
    lifetime.reaches(last_t);
    Ok(lifetime)
}

async fn agent_records(snapshot: &mut Snapshot, of: &Cell) -> Result<Vec<AgentRecord>, Problem> {
    let query = "SELECT position, name, role, parent, prompt, model, system, settings, memo \
        FROM agents WHERE session = ? ORDER BY position";
    let agent = |row: Row<'_>| {
        Ok(AgentRecord {
            index: row.small(0)?,
            name: row.name(1)?,
            role: words::to_variant(row.text(2)?)?,
            parent: row.or_null(3, Row::name)?,
            prompt: row.or_null(4, Row::text)?.map(Arc::from),
            model: row.or_null(5, Row::text)?.map(Arc::from),
            system: row.text(6)?.into(),
            settings: Arc::new(words::to_settings(&row.json(7)?)?),
            memo: row.parsed(8)?,
        })
    };
    snapshot.rows(query, vec![of.clone()], agent).await
}

async fn progress(snapshot: &mut Snapshot, of: &Cell) -> Result<Agents, Problem> {
    let query = "SELECT agent, run, turn, turn_seq, stop_seq, turns, calls, closed, resumed, plan \
        FROM agent_progress WHERE session = ?";
    let stands = |row: Row<'_>| {
        let progress = Progress {
            lines: 0,
            run: row.unsigned(1)?,
            turn: row.small(2)?,
            turn_seq: row.unsigned(3)?,
            stop_seq: row.unsigned(4)?,
            turns: row.unsigned(5)?,
            calls: row.unsigned(6)?,
            closed: words::to_closed(row.unsigned(7)?)?,
            resumed: row.unsigned(8)?,
            plan: row.parsed(9)?,
        };
        Ok((row.name(0)?, progress))
    };
    Ok(snapshot.rows(query, vec![of.clone()], stands).await?.into_iter().collect())
}

/// The conversations, oldest line first.
async fn rows(snapshot: &mut Snapshot, of: &Cell) -> Result<HashMap<AgentName, Vec<ChatRow>>, Problem> {
    let query = "SELECT agent, run, turn, message_type, content, tool_name, tool_call_id, metadata \
        FROM chat_messages WHERE session = ? ORDER BY agent, seq";
    let mut last: Option<AgentName> = None;
    let row = |row: Row<'_>| {
        let agent = row.raw(0)?;
        let agent = match &last {
            Some(last) if last.as_str() == agent => last.clone(),
            _ => last.insert(words::name(&agent)?).clone(),
        };
        let stored = StoredLine {
            message_type: row.raw(3)?,
            content: row.text(4)?,
            tool_name: row.or_null(5, Row::text)?,
            tool_call_id: row.or_null(6, Row::text)?,
            metadata: row.json(7)?,
        };
        let line = line::restore(stored)?;
        Ok(ChatRow { agent, run: row.unsigned(1)?, turn: row.small(2)?, line })
    };
    let mut conversations: HashMap<AgentName, Vec<ChatRow>> = HashMap::new();
    for row in snapshot.rows(query, vec![of.clone()], row).await? {
        match conversations.get_mut(&row.agent) {
            Some(conversation) => conversation.push(row),
            None => drop(conversations.insert(row.agent.clone(), vec![row])),
        }
    }
    Ok(conversations)
}

/// The end of each agent's last run that ended.
async fn ends(snapshot: &mut Snapshot, of: &Cell) -> Result<HashMap<AgentName, (RunEnd, u64)>, Problem> {
    let query = "SELECT r.agent, r.run, r.outcome, r.reason, r.text, r.changes, r.owed_to, r.restarts, r.ended_seq FROM runs r \
        WHERE r.session = ? AND r.run = (SELECT max(l.run) FROM runs l \
            WHERE l.session = r.session AND l.agent = r.agent AND l.outcome IS NOT NULL)";
    let end = |row: Row<'_>| {
        let agent = row.name(0)?;
        let end = RunEnd {
            agent: agent.clone(),
            run: row.unsigned(1)?,
            outcome: words::to_variant(row.text(2)?)?,
            reason: row.or_null(3, Row::text)?.map(words::to_variant).transpose()?,
            text: row.text(4)?.into(),
            changes: row.parsed(5)?,
            owed_to: row.or_null(6, Row::name)?,
            restarts: row.int(7)? != 0,
        };
        Ok((agent, (end, row.unsigned(8)?)))
    };
    Ok(snapshot.rows(query, vec![of.clone()], end).await?.into_iter().collect())
}

/// The events of the last turn of a run that has not ended, and what stopped it.
async fn tail(
    snapshot: &mut Snapshot,
    of: &Cell,
    agent: &AgentName,
    stands: &Progress,
    last_end: Option<&(RunEnd, u64)>,
) -> Result<Vec<Event>, Problem> {
    let ended = last_end.map_or(0, |(end, _)| end.run);
    if !stands.is_open(ended) {
        return Ok(Vec::new());
    }
    let query = "SELECT data FROM events WHERE session = ? AND agent = ? AND seq >= ? AND run = ? \
        AND (turn = ? OR type = 'stop_requested') ORDER BY seq";
    let (run, turn) = (Cell::number(stands.run), Cell::number(stands.turn));
    let values = vec![of.clone(), Cell::name(agent), Cell::bound(stands.tail_begins()), run, turn];
    snapshot.rows(query, values, |row| row.event(0)).await
}

/// The messages in the order in which they were accepted.
async fn mail(snapshot: &mut Snapshot, of: &Cell) -> Result<Vec<KeptMail>, Problem> {
    let waiting = "SELECT n, sender, id, receiver, text, urgency, kind, address, asked_urgency, only_run, \
        expires_at, seq, receipt FROM messages WHERE session = ? AND settled = 0";
    let settled = "SELECT n, sender, id, receiver, text, urgency, kind, address, asked_urgency, only_run, \
        expires_at, seq, receipt FROM messages WHERE session = ? AND settled = 1 ORDER BY n DESC LIMIT ?";
    let mut mail = snapshot.rows(waiting, vec![of.clone()], kept).await?;
    mail.extend(snapshot.rows(settled, vec![of.clone(), Cell::bound(REMEMBERED as u64)], kept).await?);
    Ok(in_order(mail))
}

/// What was accepted under an id of a sender's, one for each receiver. Settled or not.
pub(crate) async fn known(
    snapshot: &mut Snapshot,
    session: Cell,
    from: &Sender,
    id: &MessageId,
) -> Result<Vec<KeptMail>, Problem> {
    // In order without ORDER BY: that would lead SQLite through all messages of the session.
    let query = "SELECT n, sender, id, receiver, text, urgency, kind, address, asked_urgency, only_run, \
        expires_at, seq, receipt FROM messages WHERE session = ? AND id = ? AND sender = ?";
    let of = vec![session, Cell::text(id.as_str()), Cell::Text(words::sender(from))];
    Ok(in_order(snapshot.rows(query, of, kept).await?))
}

fn in_order(mut mail: Vec<(i64, KeptMail)>) -> Vec<KeptMail> {
    mail.sort_unstable_by_key(|(n, _)| *n);
    mail.into_iter().map(|(_, kept)| kept).collect()
}

fn kept(row: Row<'_>) -> Result<(i64, KeptMail), Unreadable> {
    let mail = Mail {
        from: words::to_sender(&row.text(1)?)?,
        id: MessageId::new(row.text(2)?),
        to: row.name(3)?,
        text: row.text(4)?.into(),
        urgency: words::to_variant(row.text(5)?)?,
        kind: words::to_mail_kind(&row.text(6)?)?,
        only_run: row.or_null(9, Row::unsigned)?,
        expires_at: row.or_null(10, Row::unsigned)?.map(Micros),
    };
    let accepted = Accepted {
        mail: Arc::new(mail),
        address: row.text(7)?.into(),
        urgency: row.or_null(8, Row::text)?.map(words::to_variant).transpose()?,
    };
    Ok((row.int(0)?, KeptMail { accepted, seq: row.unsigned(11)?, state: row.parsed(12)? }))
}
