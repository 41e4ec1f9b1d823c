//! The transactions of a group as rows of the tables.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use midturn_core::engine::ports::store::{Accepted, AgentRecord, ReceiptMove, Row, RunEnd};
use midturn_core::engine::ports::{StoreError, Transaction};
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::ReceiptState;
use midturn_core::rules::progress::Progress;
use tokio::sync::oneshot;

use crate::cell::Cell;
use crate::session::OpenSession;
use crate::statements::Into;
use crate::{line, words};

type Encoded<T> = Result<T, serde_json::Error>;

/// A transaction on its way.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) session: Arc<OpenSession>,
    pub(crate) transaction: Arc<Transaction>,
    /// When it was submitted: microseconds since 1970.
    pub(crate) at: u64,
    pub(crate) told: oneshot::Sender<Result<(), StoreError>>,
}

/// An agent of one of a group's sessions.
type AgentKey = (Arc<str>, AgentName);
/// Which message of which session: session, sender, id, receiver.
type MailKey = (Arc<str>, Arc<str>, Arc<str>, AgentName);

/// Rows to be written together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    rows: BTreeMap<Into, Vec<Cell>>,
    /// A message's receipt is written once, however often it moves.
    receipts: HashMap<MailKey, ReceiptState>,
    agents: HashMap<AgentKey, Touched>,
}

/// A row that only this group writes: it is there exactly if the whole group is.
#[derive(Clone, Debug)]
pub(crate) struct Witness {
    /// How many there are of it.
    pub(crate) query: &'static str,
    /// The values of its table's key.
    pub(crate) key: Vec<Cell>,
}

#[derive(Debug)]
struct Touched {
    session: Arc<OpenSession>,
    progress: Progress,
    /// Whether its row is to be written.
    changed: bool,
}

impl Batch {
    /// The rows of the transactions, in their order.
    pub(crate) fn of<'a>(writes: impl IntoIterator<Item = &'a Write>) -> Encoded<Self> {
        let mut batch = Self::default();
        for write in writes {
            batch.add(write)?;
        }
        batch.add_receipts()?;
        batch.add_progress()?;
        Ok(batch)
    }

    /// What tells whether the rows are written. `None`: writing them twice changes nothing.
    pub(crate) fn witness(&self) -> Option<Witness> {
        let lines = "SELECT count(*) FROM chat_messages WHERE session = ? AND agent = ? AND seq = ?";
        let keys = [
            (Into::Events, 2, "SELECT count(*) FROM events WHERE session = ? AND seq = ?"),
            (Into::ChatMessages, 3, lines),
            (Into::Agents, 2, "SELECT count(*) FROM agents WHERE session = ? AND name = ?"),
        ];
        keys.into_iter().find_map(|(table, columns, query)| {
            let key = self.rows.get(&table)?.get(..columns)?.to_vec();
            Some(Witness { query, key })
        })
    }

    /// The values for each statement, row after row.
    pub(crate) fn take(&mut self) -> BTreeMap<Into, Vec<Cell>> {
        std::mem::take(&mut self.rows)
    }

    /// It is written: the sessions go on from here.
    pub(crate) fn settle(self) {
        for ((_, agent), touched) in self.agents {
            touched.session.advance(agent, touched.progress);
        }
    }

    fn add(&mut self, write: &Write) -> Encoded<()> {
        let transaction = &*write.transaction;
        for agent in &transaction.agents {
            self.agent(&write.session, agent)?;
        }
        for (accepted, seq) in transaction.accepted() {
            self.accepted(write, accepted, seq)?;
        }
        for moved in &transaction.receipts {
            self.receipt(&write.session, moved);
        }
        for row in &transaction.rows {
            self.line(write, row)?;
        }
        for event in &transaction.events {
            self.event(&write.session, event)?;
        }
        for (agent, run) in &transaction.resumes {
            let touched = self.touched(&write.session, agent);
            touched.progress.note_resume(*run);
            touched.changed = true;
        }
        for (end, seq) in transaction.ends() {
            self.end(&write.session, end, seq)?;
        }
        Ok(())
    }

    fn push<const N: usize>(&mut self, into: Into, row: [Cell; N]) {
        debug_assert_eq!(into.statement().kinds.len(), N, "{into:?}");
        self.rows.entry(into).or_default().extend(row);
    }

    fn agent(&mut self, session: &Arc<OpenSession>, agent: &AgentRecord) -> Encoded<()> {
        let row = [
            Cell::Text(session.id.clone()),
            Cell::name(&agent.name),
            Cell::number(agent.index),
            Cell::word(agent.role.as_str()),
            Cell::or_null(agent.parent.as_ref(), Cell::name),
            Cell::or_null(agent.prompt.as_ref(), Cell::shared),
            Cell::or_null(agent.model.as_ref(), Cell::shared),
            Cell::shared(&agent.system),
            Cell::json(&agent.settings)?,
            Cell::json(&agent.memo)?,
        ];
        self.push(Into::Agents, row);
        self.touched(session, &agent.name).changed = true;
        Ok(())
    }

    fn accepted(&mut self, write: &Write, accepted: &Accepted, seq: u64) -> Encoded<()> {
        let mail = &*accepted.mail;
        let queued = ReceiptState::Queued;
        let row = [
            Cell::Text(write.session.id.clone()),
            Cell::Text(words::sender(&mail.from)),
            Cell::text(mail.id.as_str()),
            Cell::name(&mail.to),
            Cell::shared(&mail.text),
            Cell::word(mail.urgency.as_str()),
            Cell::word(words::mail_kind(&mail.kind)),
            Cell::shared(&accepted.address),
            Cell::or_null(accepted.urgency, |urgency| Cell::word(urgency.as_str())),
            Cell::or_null(mail.only_run, Cell::number),
            Cell::or_null(mail.expires_at, |at| Cell::number(at.0)),
            Cell::number(seq),
            Cell::number(write.at),
            Cell::word(queued.as_str()),
            Cell::json(&queued)?,
            Cell::number(queued.rank()),
            Cell::flag(queued.is_final()),
        ];
        self.push(Into::Messages, row);
        Ok(())
    }

    fn receipt(&mut self, session: &Arc<OpenSession>, moved: &ReceiptMove) {
        let id = moved.id.as_str().into();
        let key = (session.id.clone(), words::sender(&moved.from), id, moved.to.clone());
        let state = self.receipts.entry(key).or_insert_with(|| moved.state.clone());
        if state.rank() < moved.state.rank() {
            *state = moved.state.clone();
        }
    }

    fn add_receipts(&mut self) -> Encoded<()> {
        for ((session, sender, id, receiver), state) in std::mem::take(&mut self.receipts) {
            let row = [
                Cell::Text(session),
                Cell::Text(sender),
                Cell::text(&id),
                Cell::name(&receiver),
                Cell::word(state.as_str()),
                Cell::json(&state)?,
                Cell::number(state.rank()),
                Cell::flag(state.is_final()),
            ];
            self.push(Into::Receipts, row);
        }
        Ok(())
    }

    fn line(&mut self, write: &Write, row: &Row) -> Encoded<()> {
        let seq = self.touched(&write.session, &row.agent).progress.note_line();
        let filled = line::fill(&row.line, row.run)?;
        let row = [
            Cell::Text(write.session.id.clone()),
            Cell::name(&row.agent),
            Cell::number(seq),
            Cell::number(row.run),
            Cell::number(row.turn),
            Cell::number(write.session.epoch),
            Cell::word(filled.role),
            Cell::word(filled.message_type),
            filled.content,
            filled.tool_name,
            filled.tool_call_id,
            filled.tool_result,
            filled.metadata,
            Cell::number(write.at),
        ];
        self.push(Into::ChatMessages, row);
        Ok(())
    }

    fn event(&mut self, session: &Arc<OpenSession>, event: &Event) -> Encoded<()> {
        let row = [
            Cell::Text(session.id.clone()),
            Cell::number(event.seq),
            Cell::number(event.t.0),
            Cell::or_null(event.at.agent.as_ref(), Cell::name),
            Cell::or_null(event.at.run, Cell::number),
            Cell::or_null(event.at.turn, Cell::number),
            Cell::word(event.kind.type_name()),
            // In a text column the escape of a NUL is as good as any other.
            Cell::Owned(serde_json::to_string(event)?),
        ];
        self.push(Into::Events, row);
        let Some(agent) = &event.at.agent else { return Ok(()) };
        let touched = self.touched(session, agent);
        touched.changed |= touched.progress.note(event);
        if let (EventKind::RunStarted { .. }, Some(run)) = (&event.kind, event.at.run) {
            let (id, epoch) = (Cell::Text(session.id.clone()), Cell::number(session.epoch));
            let row = [id, Cell::name(agent), Cell::number(run), epoch, Cell::number(event.seq)];
            self.push(Into::RunStarts, row);
        }
        Ok(())
    }

    fn end(&mut self, session: &OpenSession, end: &RunEnd, seq: u64) -> Encoded<()> {
        let row = [
            Cell::Text(session.id.clone()),
            Cell::name(&end.agent),
            Cell::number(end.run),
            Cell::number(session.epoch),
            Cell::word(end.outcome.as_str()),
            Cell::or_null(end.reason, |reason| Cell::word(reason.as_str())),
            Cell::shared(&end.text),
            Cell::json(&end.changes)?,
            Cell::or_null(end.owed_to.as_ref(), Cell::name),
            Cell::flag(end.restarts),
            Cell::number(seq),
        ];
        self.push(Into::RunEnds, row);
        Ok(())
    }

    fn touched(&mut self, session: &Arc<OpenSession>, agent: &AgentName) -> &mut Touched {
        let touched = self.agents.entry((session.id.clone(), agent.clone()));
        touched.or_insert_with(|| Touched {
            session: session.clone(),
            progress: session.progress(agent),
            changed: false,
        })
    }

    fn add_progress(&mut self) -> Encoded<()> {
        let mut rows = Vec::new();
        for ((session, agent), touched) in self.agents.iter().filter(|(_, touched)| touched.changed) {
            let progress = &touched.progress;
            rows.extend([
                Cell::Text(session.clone()),
                Cell::name(agent),
                Cell::number(progress.run),
                Cell::number(progress.turn),
                Cell::number(progress.turn_seq),
                Cell::number(progress.stop_seq),
                Cell::number(progress.turns),
                Cell::number(progress.calls),
                Cell::number(words::closed(progress.closed)),
                Cell::number(progress.resumed),
                Cell::json(&progress.plan)?,
            ]);
        }
        self.rows.insert(Into::Progress, rows);
        Ok(())
    }
}
