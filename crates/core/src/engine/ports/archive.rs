//! The `Archive` port: what a store gives back, to whoever asks and to a session that goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::store::{Accepted, AgentRecord, Row, RunEnd, Store, StoreError};
use crate::rules::conversation::Usage;
use crate::rules::event::Event;
use crate::rules::id::{AgentName, MessageId, RunId, SessionId};
use crate::rules::lifetime::SetLimits;
use crate::rules::mail::{ReceiptState, Sender};
use crate::rules::progress::{Closed, Progress};
use crate::rules::record::Line;
use crate::rules::time::{Micros, Span};
use crate::rules::view::{self, View};

/// How many messages whose receipts can't change any more a session remembers by itself. A
/// journal that has as many may have left older ones out.
pub const REMEMBERED: usize = 16_384;

/// A session, as it was begun.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    /// Its id.
    pub id: SessionId,
    /// When it began: microseconds since 1970 by the machine's clock.
    pub began_at: u64,
    /// The folder it works in.
    pub folder: String,
    /// The task, for people.
    pub title: String,
    /// What whoever began it wants to find again when it goes on.
    pub memo: Value,
}

/// A session, as a list shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSummary {
    /// The session.
    pub record: SessionRecord,
    /// How often it was taken up: 1 when it was begun, one more each time.
    pub epoch: u64,
    /// How many agents it has.
    pub agents: u64,
    /// How many of them have a run that has not ended.
    pub running: u64,
    /// How many agents' last run was stopped by a shutdown (`reason` of its end), and goes on when the session does.
    pub shut_down: u64,
    /// How much of it waits that may ask for a run: queued messages, prompts of agents that
    /// have not begun, and ends that a parent has still to be told of.
    pub waiting: u64,
    /// The number of its last event, and when that was.
    pub last_seq: u64,
    /// When its last event was, since it began.
    pub last_t: Micros,
}

/// How much is kept of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionSize {
    /// How many events and messages of conversations.
    pub entries: u64,
    /// How many bytes these have, as far as they are text.
    pub bytes: u64,
}

/// What the agents of a session that have one model have used together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// The session.
    pub session: SessionId,
    /// The model.
    pub model: Option<Arc<str>>,
    /// What its calls have used.
    pub usage: Usage,
}

/// An event as it is kept: the JSON of scenarios.md, section 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number.
    pub seq: u64,
    /// Whom it concerns.
    pub agent: Option<AgentName>,
    /// The object, one line.
    pub json: Arc<str>,
}

/// A row of the table `chat_messages` (docs/store.md).
#[derive(Clone, Debug, PartialEq)]
pub struct ChatMessage {
    /// Whose conversation.
    pub agent: AgentName,
    /// In which run.
    pub run: RunId,
    /// Its place in the conversation: 1, 2, 3 …
    pub seq: u64,
    /// `user`, `assistant` or `tool`.
    pub role: String,
    /// `user`, `assistant`, `assistant_interrupted`, `summary`, `summary_unused`, `tool_result` or
    /// `tool_partial`.
    pub message_type: String,
    /// The text.
    pub content: String,
    /// The tool, in a result.
    pub tool_name: Option<String>,
    /// The call, in a result.
    pub tool_call_id: Option<String>,
    /// The result, structured.
    pub tool_result: Option<Value>,
    /// What else belongs to it (semantics.md, section 6).
    pub metadata: Value,
    /// When: microseconds since 1970.
    pub created_at: u64,
}

/// A message and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptMail {
    /// The message.
    pub accepted: Accepted,
    /// The number of the event that told of it.
    pub seq: u64,
    /// Its receipt.
    pub state: ReceiptState,
}

/// What is known of an agent: enough to go on where it was.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentJournal {
    /// As it was made.
    pub record: AgentRecord,
    /// Its conversation, oldest first.
    pub rows: Vec<Row>,
    /// Where it stands, as far as its events tell.
    pub stands: Progress,
    /// The end of its last run that ended, and the number of the event that told of it.
    pub last_end: Option<(RunEnd, u64)>,
    /// How long it was at work, as far as that was recorded.
    pub worked: Span,
    /// The limits that were set while it lived, and the number of the last event that set any.
    pub limits: SetLimits,
    /// While its last run has not ended: the events of that run's last turn, and what stopped it, in order
    /// ([`Progress::is_in_tail`]).
    pub tail: Vec<Event>,
}

impl AgentJournal {
    /// An agent that has done nothing yet.
    pub fn new(record: AgentRecord) -> Self {
        let (stands, worked, limits) = Default::default();
        Self { record, rows: Vec::new(), stands, last_end: None, worked, limits, tail: Vec::new() }
    }

    /// What the wanted calls of its models have used.
    pub fn usage(&self, wanted: impl Fn(&Row) -> bool) -> Usage {
        let mut all = Usage::default();
        let rows = self.rows.iter().filter(|row| wanted(row));
        rows.filter_map(|row| row.line.usage()).for_each(|usage| all.add(usage));
        all
    }

    /// How many tokens its conversation holds, as a provider counted them last; 0 if none did.
    pub fn context(&self) -> u64 {
        let counted = self.rows.iter().rev().find_map(|row| match &row.line {
            Line::Reply(reply) => Some(reply.usage.total()),
            Line::Compacted(compaction) => Some(compaction.tokens.after),
            _ => None,
        });
        counted.unwrap_or_default()
    }

    /// Whether its last run has not ended.
    pub fn is_open(&self) -> bool {
        self.stands.is_open(self.last_end.as_ref().map_or(0, |(end, _)| end.run))
    }
}

/// A session, as far as it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionJournal {
    /// As it was begun.
    pub record: SessionRecord,
    /// The number of its last event.
    pub last_seq: u64,
    /// When that was, since the session began.
    pub last_t: Micros,
    /// How long it lived, in all processes that had it.
    pub lived: Span,
    /// The session's limits that were set while it lived, and the number of the last event that
    /// set any.
    pub limits: SetLimits,
    /// Its agents, in its order.
    pub agents: Vec<AgentJournal>,
    /// Its messages in the order in which they were accepted: all that are not settled, and
    /// the newest [`REMEMBERED`] of those that are.
    pub mail: Vec<KeptMail>,
}

impl SessionJournal {
    /// What can be seen of the session as it was at its last event. When its mail came is not
    /// known, nor what it used.
    pub fn view(&self) -> View {
        let mut agents: BTreeMap<_, _> =
            self.agents.iter().map(|agent| (agent.record.name.clone(), agent.view())).collect();
        for KeptMail { accepted, state, .. } in &self.mail {
            let mail = &accepted.mail;
            if let Some(agent) = agents.get_mut(&mail.to) {
                agent.has(view::Message {
                    id: mail.id.clone(),
                    from: mail.from.to_string(),
                    urgency: mail.urgency,
                    text: mail.text.clone(),
                    since: None,
                    state: state.clone(),
                });
            }
        }
        View::snapshot(self.last_seq, self.last_t, agents)
    }
}

impl AgentJournal {
    fn view(&self) -> view::Agent {
        let ended = self.last_end.as_ref().map_or(0, |(end, _)| end.run);
        let Progress { run, closed, plan, .. } = &self.stands;
        let last = self.last_end.as_ref().filter(|_| ended == *run);
        view::Agent {
            parent: self.record.parent.clone(),
            role: Some(self.record.role),
            model: self.record.model.clone(),
            run: *run,
            ended,
            outcome: last.map(|(end, _)| end.outcome),
            plan: plan.clone(),
            // A run that is closed has to end first.
            is_closed: *closed == Closed::Told || closed.is_asked() && ended == *run,
            ..view::Agent::default()
        }
    }
}

/// A session that was taken up: where its writes go from now on, and what there is of it.
pub struct TakenUp {
    /// Accepts writes under the new epoch; whoever had the session before is refused.
    pub store: Arc<dyn Store>,
    /// The new epoch.
    pub epoch: u64,
    /// What there is.
    pub journal: SessionJournal,
}

/// Which rows of a conversation, or which events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// The first behind this number.
    After(u64),
    /// The last before it.
    Before(u64),
}

/// Begins and takes up sessions, and reads what was recorded.
#[async_trait]
pub trait Archive: Send + Sync {
    /// The archive for people: a path, or a server without user and password.
    fn name(&self) -> &str;

    /// Begins a session: where its writes go.
    async fn begin(&self, record: SessionRecord) -> Result<Arc<dyn Store>, StoreError>;

    /// Takes a session up under a new epoch. `None`: there is none of that id.
    async fn take_up(&self, session: &SessionId) -> Result<Option<TakenUp>, StoreError>;

    /// Removes all that was recorded of a session. False: there is none of that id. Whoever writes to it still
    /// is refused.
    async fn remove(&self, session: &SessionId) -> Result<bool, StoreError>;

    /// How much that would be.
    async fn size(&self, session: &SessionId) -> Result<SessionSize, StoreError>;

    /// All sessions, the newest first.
    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError>;

    /// What model calls have used, by session and model; in any order.
    async fn used(&self) -> Result<Vec<Used>, StoreError> {
        let mut used = Vec::new();
        for SessionSummary { record, .. } in self.sessions().await? {
            let journal = self.journal(&record.id).await?;
            used.extend(journal.into_iter().flat_map(|journal| journal.agents).map(|agent| Used {
                session: record.id.clone(),
                model: agent.record.model.clone(),
                usage: agent.usage(|_| true),
            }));
        }
        Ok(used)
    }

    /// What was recorded of a session, for whoever only looks.
    async fn journal(&self, session: &SessionId) -> Result<Option<SessionJournal>, StoreError>;

    /// At most `limit` of these events, in order; of one agent if asked.
    async fn events(
        &self,
        session: &SessionId,
        agent: Option<&AgentName>,
        rows: Rows,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError>;

    /// At most `limit` of these rows of a conversation, in order.
    async fn conversation(
        &self,
        session: &SessionId,
        agent: &AgentName,
        rows: Rows,
        limit: u32,
    ) -> Result<Vec<ChatMessage>, StoreError>;

    /// The receipts of a message, one for each receiver.
    async fn receipts(
        &self,
        session: &SessionId,
        from: &Sender,
        id: &MessageId,
    ) -> Result<Vec<(AgentName, ReceiptState)>, StoreError>;

    /// How many writes were refused because another process had taken their session over.
    fn stale_writes(&self) -> u64;

    /// Lets everything go. What was submitted is written before this returns, unless the store
    /// fails: then nobody waits for it any longer. Whatever is submitted or asked for from now on
    /// is refused.
    async fn close(&self);
}
