//! The coordinator: what whoever embeds Midturn holds in hand. Cheap to clone.

use std::sync::Arc;

use super::approvals::{AnswerError, Approval, Attached, Meant};
use super::deliver;
use super::mailbox::Mailbox;
use super::ports::store::RunEnd;
use super::ports::{Diff, Merge, StoreError, ToolError};
use super::receipts::Receipt;
use super::send::{self, Delivery, Message};
use super::session::{Activity, AgentCell, Conflict, Session};
use super::spawn::{self, SpawnError};
use super::stop::{self, StopError, StopReply};
use super::templates::AgentSpec;
use crate::rules::approval::Answer;
use crate::rules::conversation::{MessageKey, Usage};
use crate::rules::event::{PlanStep, Scope};
use crate::rules::id::{AgentName, MessageId, RunId, SessionId, TurnId};
use crate::rules::limits::{Money, Prices, Spent};
use crate::rules::mail::{Refusal, ReturnReason, Role, Sender, Standing};
use crate::rules::time::Micros;

/// A session of agents, and everything that can be done to them.
#[derive(Clone)]
pub struct Coordinator {
    pub(super) session: Arc<Session>,
}

/// What is known of an agent.
#[derive(Clone, Debug)]
pub struct AgentStatus {
    /// Its name.
    pub name: AgentName,
    /// Lead or subagent.
    pub role: Role,
    /// Its parent.
    pub parent: Option<AgentName>,
    /// Its model.
    pub model: Option<Arc<str>>,
    /// What it is doing.
    pub standing: Standing,
    /// Its current or last run.
    pub run: u64,
    /// The turn of that run.
    pub turn: TurnId,
    /// The limit that keeps it from being woken until a person raises it.
    pub limit: Option<&'static str>,
    /// How much of it is used, in words.
    pub limit_used: Option<String>,
    /// How many messages wait for it.
    pub pending: usize,
    /// How its last run ended.
    pub last_end: Option<RunEnd>,
    /// What is under way, and since when.
    pub activity: Vec<Activity>,
    /// What its model calls have used in all its runs.
    pub usage: Usage,
    /// What they have cost; `None` where nobody has said what its model costs.
    pub cost: Option<Money>,
    /// The day whose prices that is counted with, where they are out of a table.
    pub priced_at: Option<&'static str>,
    /// How many tokens its conversation holds, as the provider counted them last; 0 before that.
    pub context: u64,
    /// How many it may hold; 0: nobody has said.
    pub context_tokens: u64,
    /// The branch it works on, if it has one of its own.
    pub branch: Option<String>,
    /// The last merge of its branch, if that conflicted and none has gone through since.
    pub conflict: Option<Conflict>,
    /// Its plan.
    pub plan: Vec<PlanStep>,
}

/// So many files of a conflict are remembered.
const FILES_MAX: usize = 64;

impl Coordinator {
    /// The session's id.
    pub fn session_id(&self) -> &SessionId {
        &self.session.id
    }

    /// Why this session records nothing any more: its store failed, and was waited for in vain, or
    /// another process has taken it over. It can be taken up again from its store.
    pub fn broken(&self) -> Option<StoreError> {
        self.session.journal.broken().cloned()
    }

    /// Adds an agent. With a prompt its first run starts at once.
    pub async fn spawn_agent(&self, spec: AgentSpec) -> Result<(), SpawnError> {
        spawn::spawn(&self.session, spec, None).await
    }

    /// Adds an agent that the session begins with: no limit concerns it, and its parent may
    /// be one that is still to be spawned.
    pub async fn cast_agent(&self, spec: AgentSpec) -> Result<(), SpawnError> {
        spawn::cast(&self.session, spec).await
    }

    /// The plain form of sending, from a person: `urgent` or the receiver's default.
    pub async fn send_message(&self, to: &str, text: &str, urgent: bool) -> Result<Receipt, Refusal> {
        self.send(Message::new(Sender::User, to, text).urgent(urgent)).await
    }

    /// Sends to one agent. A message to `all` is for [`Coordinator::broadcast`]; here it has
    /// the receipt of the first receiver.
    pub async fn send(&self, message: Message) -> Result<Receipt, Refusal> {
        let nobody = Refusal::UnknownAgent(message.to.clone());
        let first = self.broadcast(message).await.into_iter().next();
        first.map_or(Err(nobody), |delivery| delivery.result)
    }

    /// Sends to whoever the address names: one delivery for each receiver.
    pub async fn broadcast(&self, message: Message) -> Vec<Delivery> {
        send::send(&self.session, message).await
    }

    /// Takes back what is queued and has not acted, from every receiver of the message.
    /// Returns how many mailboxes gave it back; 0 is too late.
    pub async fn withdraw(&self, from: &Sender, id: &MessageId) -> Result<usize, Refusal> {
        let (from, id) = (from.clone(), id.clone());
        self.session.whole(|session| async move { withdraw(&session, &from, &id).await }).await
    }

    /// The receipts of a message, one for each receiver.
    pub fn receipts(&self, from: &Sender, id: &MessageId) -> Vec<Receipt> {
        self.session.journal.receipts.of(&MessageKey { from: from.clone(), id: id.clone() })
    }

    /// The mailbox of an agent, to look at.
    pub fn with_mailbox<T>(&self, name: &str, look: impl FnOnce(&Mailbox) -> T) -> Option<T> {
        self.session.agents.get(name).map(|cell| look(&cell.mailbox))
    }

    /// Ends the current run of an agent, and with [`Scope::Subtree`] of all below it.
    pub async fn stop(&self, name: &str, by: Sender, scope: Scope) -> Result<StopReply, StopError> {
        stop::stop(&self.session, name, by, scope, None).await
    }

    /// Ends the current runs of all agents, as if each was stopped. The session goes on: for the
    /// end of the process there is [`Coordinator::shutdown`].
    pub async fn stop_all(&self, by: Sender) -> Result<StopReply, StopError> {
        stop::stop_all(&self.session, by).await
    }

    /// As [`Coordinator::stop`], if `run` is the agent's current run (or its last, when it is
    /// idle); otherwise [`StopError::StaleRun`], and nothing is changed.
    pub async fn stop_run(
        &self,
        name: &str,
        by: Sender,
        scope: Scope,
        run: RunId,
    ) -> Result<StopReply, StopError> {
        stop::stop(&self.session, name, by, scope, Some(run)).await
    }

    /// Stops the run and starts the next one with a person's message, as one action. With
    /// `expects_run` only if that is the agent's run.
    pub async fn supersede(&self, message: Message) -> Result<Delivery, StopError> {
        send::supersede(&self.session, message).await
    }

    /// Closes an agent and all below it, leaves first; names those it closed.
    pub async fn close(&self, name: &str, by: Sender) -> Result<Vec<AgentName>, StopError> {
        stop::close(&self.session, name, by).await
    }

    /// The requests that wait for a person, in the order in which they were asked.
    pub fn approvals(&self) -> Vec<Approval> {
        self.session.approvals.open()
    }

    /// A person's answer to the request that is meant. No message and no tool leads here.
    ///
    /// # Errors
    /// [`AnswerError`]: nothing is asked (any more), the answer's rule is for other calls, or it
    /// is not clear which request is meant.
    pub fn answer(&self, agent: &str, tool: &str, meant: Meant, answer: Answer) -> Result<(), AnswerError> {
        let answer = answer.without(&self.session.secrets);
        for name in self.session.approvals.answer(agent, tool, meant, answer)? {
            if let Some(cell) = self.session.agent(name.as_str()) {
                cell.answered.notify_one();
            }
        }
        Ok(())
    }

    /// Says that somebody is there who can answer, as long as what it gives is kept. With
    /// nobody there a call that would be asked about is denied, with that reason.
    pub fn attach(&self) -> Attached {
        self.session.approvals.attach()
    }

    /// Whether somebody is attached who can answer.
    pub fn is_attended(&self) -> bool {
        self.session.approvals.is_attended()
    }

    /// All agents, in the session's order.
    pub fn agents(&self) -> Vec<AgentStatus> {
        self.session.in_order().iter().map(|cell| status(&self.session, cell)).collect()
    }

    /// One agent.
    pub fn agent(&self, name: &str) -> Option<AgentStatus> {
        self.session.agent(name).map(|cell| status(&self.session, &cell))
    }

    /// What an agent's branch changed since it began.
    ///
    /// # Errors
    /// The agent has no branch of its own, or git fails.
    pub async fn diff(&self, agent: &AgentName) -> Result<Diff, ToolError> {
        self.session.workplace.diff(agent).await
    }

    /// Merges an agent's branch into what the project folder has checked out; nothing is forced.
    /// It happens whole, whether or not the asker still waits for it.
    ///
    /// # Errors
    /// The agent has no branch of its own, or git fails.
    pub async fn merge(&self, agent: &AgentName) -> Result<Merge, ToolError> {
        let agent = agent.clone();
        let merge = async move |session: Arc<Session>| {
            let merge = session.workplace.merge(&agent).await?;
            remember(&session, &agent, &merge);
            Ok(merge)
        };
        self.session.whole(merge).await
    }

    /// What all agents together have used.
    pub fn spent(&self) -> Spent {
        self.session.budget.spent()
    }

    /// Now, in the session's time.
    pub fn now(&self) -> Micros {
        self.session.clock.now()
    }

    /// Whether anything is at work: a run, or the report on one that is on its way.
    pub fn is_busy(&self) -> bool {
        self.session.is_busy()
    }

    /// Waits until no agent works.
    pub async fn quiet(&self) {
        self.session.quiet().await;
    }

    /// Stops all agents because the process ends, and waits until their calls have ended, no
    /// longer than the abort deadline. It is final: from its first moment on nothing is accepted
    /// and nobody is woken, until the session is taken up again (semantics.md, section 9).
    pub async fn shutdown(&self) -> StopReply {
        stop::shut_down(&self.session).await
    }
}

/// What became of a merge is known until the next one, on every face: a person has to say how a conflict goes on.
fn remember(session: &Session, agent: &AgentName, merge: &Merge) {
    let Some(cell) = session.agent(agent.as_str()) else { return };
    let run = cell.mailbox.run();
    let mut state = cell.state.lock();
    match merge {
        Merge::Merged(_) | Merge::UpToDate => state.conflict = None,
        Merge::Conflicts(files) => {
            let files = files.iter().take(FILES_MAX).cloned().collect();
            state.conflict = Some(Conflict { run, at: session.clock.now(), files });
        }
        // Nobody has looked whether it conflicts.
        Merge::Refused(_) => {}
    }
}

fn status(session: &Session, cell: &AgentCell) -> AgentStatus {
    let branch = session.workplace.branch(&cell.name);
    let is_priced =
        cell.model.as_ref().is_some_and(|model| session.models.prices(model) != Prices::default());
    let priced_at = cell.model.as_ref().and_then(|model| session.models.priced_at(model));
    let limit = cell.mailbox.limit();
    let state = cell.state.lock();
    // Those of the session begin with `session.`.
    let used = |limit| {
        let of_session = || session.budget.used_of(limit, session.clock.now());
        state.budget.used_of(limit).or_else(of_session)
    };
    AgentStatus {
        name: cell.name.clone(),
        role: cell.role,
        parent: cell.parent.clone(),
        model: cell.model.clone(),
        standing: cell.mailbox.standing(),
        run: cell.mailbox.run(),
        turn: state.turn,
        limit,
        limit_used: limit.and_then(used),
        pending: cell.mailbox.ids().len(),
        last_end: state.last_end.clone(),
        activity: state.activity.clone(),
        usage: state.usage,
        cost: is_priced.then_some(state.budget.spent().cost),
        priced_at,
        context: state.context,
        context_tokens: cell.settings.context_tokens,
        conflict: state.conflict.clone().filter(|_| branch.is_some()),
        branch,
        plan: state.plan.clone(),
    }
}

/// Takes a message back from every mailbox where it is queued and has not acted.
pub(crate) async fn withdraw(
    session: &Arc<Session>,
    from: &Sender,
    id: &MessageId,
) -> Result<usize, Refusal> {
    let key = MessageKey { from: from.clone(), id: id.clone() };
    let receivers = session.journal.receipts.receivers(&key);
    if receivers.is_empty() {
        return Err(Refusal::UnknownMessage(id.clone()));
    }
    let mut returned = 0;
    for name in receivers {
        let Some(cell) = session.agent(name.as_str()) else { continue };
        let taken = deliver::take_back(session, &cell, from, id, ReturnReason::Withdrawn).await;
        returned += usize::from(taken.map_err(|error| Refusal::Store(error.to_string()))?);
    }
    Ok(returned)
}
