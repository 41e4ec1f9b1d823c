//! Reads the events of a session in order and makes the plan of them.
//!
//! `calls` reads what became of tool calls, `mail` messages and what else was done from
//! outside. None of them decides what a message does, or guesses what an order would have
//! come to: the engine says that when the plan is played (`order`).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use midturn_core::engine::ports::ErrorKind;
use midturn_core::engine::ports::archive::{AgentJournal, SessionJournal};
use midturn_core::engine::ports::store::Accepted;
use midturn_core::engine::tools::is_own;
use midturn_core::rules::approval::Decision;
use midturn_core::rules::conversation::{Block, InterruptReason, Partial, Reply, StopReason, ToolResult};
use midturn_core::rules::event::{Event, EventKind, Halt, Outcome, ThinkingState, Trigger};
use midturn_core::rules::id::{AgentName, CallId, MessageId, RunId};
use midturn_core::rules::record::Line;
use midturn_core::rules::time::{Micros, Span};
use serde_json::Value;

use super::ExportError;
use super::order::mark;
use super::plan::{Act, Agent, Call, CallEnd, CallKind, Entry, EntryEnd, Mark, Opening, Plan, Send, When};

/// The kinds of failure that a scenario can say.
const KINDS: [ErrorKind; 5] = [
    ErrorKind::Overloaded,
    ErrorKind::RateLimited,
    ErrorKind::Server,
    ErrorKind::Connection,
    ErrorKind::InvalidRequest,
];

/// A session, as far as its events are read.
pub(super) struct Reader<'a> {
    pub(super) events: &'a [Event],
    /// The place of the event that is read now.
    pub(super) place: usize,
    pub(super) plan: Plan,
    /// The events read so far, with the ids that the file has.
    pub(super) told: Vec<Event>,
    pub(super) hands: Vec<Hand<'a>>,
    pub(super) kept: HashMap<(String, MessageId, AgentName), &'a Accepted>,
    /// The items of messages, by sender and id.
    pub(super) sent: HashMap<(String, MessageId), usize>,
    /// The ids that items of the file have.
    pub(super) taken: HashSet<String>,
    /// Messages that some receiver refused since what they supersede was gone.
    pub(super) too_late: HashSet<(String, MessageId)>,
    /// Events that an item tells of which was read before them.
    pub(super) consumed: HashSet<u64>,
    /// The item of the shutdown that is under way.
    pub(super) shutdown: Option<usize>,
    /// Whether the session was played on virtual time: then an instant has rounds.
    pub(super) exact: bool,
}

/// What is read of an agent, beside what is in the plan.
pub(super) struct Hand<'a> {
    replies: VecDeque<Arc<Reply>>,
    partials: VecDeque<Arc<Partial>>,
    pub(super) results: HashMap<CallId, VecDeque<&'a ToolResult>>,
    /// The ids of its calls in the file.
    ids: HashSet<String>,
    /// Its queued messages.
    pub(super) queued: Vec<Letter>,
    /// Its last event that is no arrival, as far as a file can name it.
    pub(super) last: Option<(Mark, Micros, u64)>,
    /// Why its last run was stopped.
    pub(super) halt: Option<(Halt, RunId)>,
    /// Whether it was asked to close.
    pub(super) closing: bool,
}

/// A message that is queued.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) from: String,
    pub(super) id: MessageId,
    /// The id that the file calls it by.
    pub(super) file_id: String,
    /// The item that sends it, if one does.
    pub(super) item: Option<usize>,
}

impl<'a> Hand<'a> {
    fn new(journal: &'a AgentJournal) -> Self {
        let mut hand = Self {
            replies: VecDeque::new(),
            partials: VecDeque::new(),
            results: HashMap::new(),
            ids: HashSet::new(),
            queued: Vec::new(),
            last: None,
            halt: None,
            closing: false,
        };
        for row in &journal.rows {
            match &row.line {
                Line::Reply(reply) | Line::Unused(reply) => hand.replies.push_back(reply.clone()),
                Line::Interrupted(partial) => hand.partials.push_back(partial.clone()),
                Line::Result(result) => hand.results.entry(result.id.clone()).or_default().push_back(result),
                // What was said is in the event.
                Line::Compacted(compaction) => {
                    let reply = Reply { usage: compaction.usage, ..Reply::default() };
                    hand.replies.push_back(Arc::new(reply));
                }
                Line::Prompt(_) | Line::Alone(..) | Line::Beside(..) => {}
            }
        }
        hand
    }

    /// Whether a run that nothing started needs nobody who resumes it: a shutdown had stopped the
    /// one before it, or a stop has given back what had started it.
    fn begins_by_itself(&self, event: &Event) -> bool {
        let began = event.at.run.unwrap_or_default();
        self.halt.is_some_and(|(halt, run)| halt == Halt::Shutdown || run == began)
    }

    /// An id for a call that can stand in the file, once.
    fn file_id(&mut self, call: &str) -> String {
        free(call, "call", |id| !self.ids.insert(id.to_owned()))
    }
}

/// The id, or one like it where that can't stand in the file; with a number where it is taken.
pub(super) fn free(id: &str, otherwise: &str, mut is_taken: impl FnMut(&str) -> bool) -> String {
    let printable: String = id.chars().filter(|c| !c.is_control()).take(60).collect();
    let base = if matches!(printable.trim(), "" | "any") { otherwise.to_owned() } else { printable };
    let mut free = base.clone();
    let mut n = 1;
    while is_taken(&free) {
        n += 1;
        free = format!("{base}.{n}");
    }
    free
}

impl<'a> Reader<'a> {
    /// Reads all of a session: the plan, and its events as the file names things.
    pub(super) fn read(
        journal: &'a SessionJournal,
        events: &'a [Event],
    ) -> Result<(Plan, Vec<Event>), ExportError> {
        let kept = journal.mail.iter().map(|kept| {
            let mail = &kept.accepted.mail;
            ((mail.from.to_string(), mail.id.clone(), mail.to.clone()), &kept.accepted)
        });
        let mut reader = Self {
            events,
            place: 0,
            plan: Plan { agents: journal.agents.iter().map(agent).collect(), items: Vec::new() },
            told: Vec::with_capacity(events.len()),
            hands: journal.agents.iter().map(Hand::new).collect(),
            kept: kept.collect(),
            sent: HashMap::new(),
            taken: HashSet::new(),
            consumed: HashSet::new(),
            too_late: HashSet::new(),
            shutdown: None,
            exact: events
                .iter()
                .any(|event| matches!(event.kind, EventKind::SessionStarted { virtual_time: true, .. })),
        };
        for (place, event) in events.iter().enumerate() {
            reader.place = place;
            reader.event(event)?;
        }
        for item in &mut reader.plan.items {
            if let (Act::Send(send), Some(id)) = (&mut item.act, &item.id) {
                send.if_queued = reader.too_late.contains(&(send.from.clone(), MessageId::new(id.as_str())));
            }
        }
        Ok((reader.plan, reader.told))
    }

    /// The place of an agent in the session.
    pub(super) fn agent(&self, name: &str) -> Option<usize> {
        self.plan.agents.iter().position(|agent| agent.name.as_str() == name)
    }

    fn event(&mut self, event: &'a Event) -> Result<(), ExportError> {
        let mut told = event.clone();
        let agent = event.at.agent.as_ref().map(|name| self.agent(name.as_str()));
        match agent {
            None => self.of_the_session(event),
            Some(Some(agent)) => self.of_an_agent(event, agent, &mut told.kind)?,
            // A refused message may be for nobody.
            Some(None) if matches!(event.kind, EventKind::MessageRefused { .. }) => {}
            Some(None) => {
                return Err(ExportError::damaged(format!("event {} is about an unknown agent", event.seq)));
            }
        }
        if let Some(Some(agent)) = agent
            && !super::order::is_arrival(&told.kind)
        {
            let calls = self.plan.agents[agent].entries.len();
            let named = mark(&told, calls as u64).map(|mark| (mark, event.t, event.seq));
            self.hands[agent].last = named.or(self.hands[agent].last.take());
        }
        self.told.push(told);
        Ok(())
    }

    fn of_the_session(&mut self, event: &Event) {
        match &event.kind {
            EventKind::SessionResumed { .. } => self.taken_up(event),
            EventKind::LimitRaised { limits, .. } => {
                self.done(event, None, None, Act::Raise { limits: limits.clone() });
            }
            _ => {}
        }
    }

    fn of_an_agent(
        &mut self,
        event: &'a Event,
        agent: usize,
        told: &mut EventKind,
    ) -> Result<(), ExportError> {
        match told {
            EventKind::AgentSpawned { .. } => self.spawned(agent),
            EventKind::RunStarted { trigger } => self.run_started(event, agent, trigger),
            EventKind::ModelStarted { call, .. } => {
                let entries = &mut self.plan.agents[agent].entries;
                entries.push(Entry::silent(EntryEnd::Open));
                *call = entries.len() as u64;
            }
            EventKind::ModelFinished { .. } => self.model_finished(event, agent)?,
            EventKind::ModelInterrupted { reason, thinking, .. } => {
                self.model_interrupted(event, agent, *reason, thinking);
            }
            EventKind::ModelRetry { attempt, error, wait } => {
                let natural = self.plan.agents[agent].settings.retry.wait(*attempt, None);
                let retry_after = (*wait > natural).then_some(*wait);
                let kind = kind_of(error).unwrap_or(ErrorKind::Connection);
                self.failed(event, agent, kind, retry_after);
            }
            EventKind::RunFinished { outcome, error, .. } => {
                let said = error.as_deref().map(str::to_owned);
                *error = self.run_finished(event, agent, *outcome, said).map(Arc::from);
            }
            EventKind::ToolStarted { tool, batch, .. } => self.tool_started(event, agent, tool, *batch)?,
            EventKind::ToolFinished { tool, status, .. } => {
                self.tool_finished(event, agent, tool, *status)?;
            }
            EventKind::ApprovalRequested { tool, .. } => *tool = self.asked_about(event, agent, tool)?,
            EventKind::ApprovalResolved { tool, decision, by, reason } => {
                *tool = self.asked_about(event, agent, tool)?;
                if by == "user" && *decision != Decision::NotAnswered {
                    let (tool, decision, reason) = (tool.to_string(), *decision, reason.clone());
                    self.done(event, Some(agent), None, Act::Answer { tool, decision, reason });
                }
            }
            EventKind::LimitRaised { limits, .. } => {
                self.done(event, Some(agent), None, Act::Raise { limits: limits.clone() });
            }
            EventKind::StopRequested { .. } => self.stop_requested(event, agent),
            EventKind::AgentClosed {} => self.closed(event, agent),
            EventKind::MessageQueued { message, .. } => *message = self.queued(event, agent),
            EventKind::MessageInjected { messages, skipped, interrupted, .. } => {
                self.cut_before_it_began(event, agent);
                for message in messages {
                    *message = self
                        .leaves(agent, message)
                        .map_or_else(|| message.clone(), |letter| MessageId::new(letter.file_id.as_str()));
                }
                for calls in [skipped, interrupted] {
                    let named = calls.iter().map(|call| self.named(agent, call));
                    *calls = named.collect();
                }
            }
            EventKind::MessageReturned { message, reason } => {
                *message = self.returned(event, agent, message, *reason);
            }
            EventKind::MessageRefused { message, from, reason } if &**reason == "too_late" => {
                self.too_late.insert((from.clone(), message.clone()));
            }
            EventKind::SessionStarted { .. }
            | EventKind::SessionResumed { .. }
            | EventKind::MessageRefused { .. }
            | EventKind::PlanUpdated { .. }
            | EventKind::Compacted { .. } => {}
        }
        Ok(())
    }

    fn spawned(&mut self, agent: usize) {
        let (name, parent) = (&self.plan.agents[agent].name, &self.plan.agents[agent].parent);
        let parent = parent.as_ref().and_then(|parent| self.agent(parent.as_str()));
        let names_it = |input: &Value| input.get("name").and_then(Value::as_str) == Some(name.as_str());
        let caused = parent.is_some_and(|parent| self.acts(parent, &["spawn_agent"], names_it));
        let first = |event: &Event| {
            matches!(
                event.kind,
                EventKind::SessionStarted { .. }
                    | EventKind::AgentSpawned { .. }
                    | EventKind::RunStarted { .. }
                    | EventKind::ModelStarted { .. }
            )
        };
        let late = !self.told.iter().all(first) && !self.exact;
        self.plan.agents[agent].opening = match (caused, late) {
            (true, _) => Opening::Spawned,
            (false, true) => Opening::Late,
            (false, false) => Opening::AtOnce,
        };
    }

    fn run_started(&mut self, event: &Event, agent: usize, trigger: &Trigger) {
        let read = &self.plan.agents[agent];
        match trigger {
            Trigger::Prompt if read.opening == Opening::Late => {
                let send = Send {
                    from: "user".into(),
                    to: read.name.to_string(),
                    text: read.prompt.as_deref().unwrap_or_default().to_owned(),
                    urgency: None,
                    expires: None,
                    supersedes: None,
                    if_queued: false,
                    only_run: None,
                };
                let id = Some(format!("prompt-{}", read.name));
                self.done(event, Some(agent), id, Act::Send(send));
            }
            Trigger::Mail(ids) if ids.is_empty() && !self.hands[agent].begins_by_itself(event) => {
                self.done(event, Some(agent), None, Act::Resume);
            }
            Trigger::Prompt | Trigger::Mail(_) => {}
        }
        self.hands[agent].halt = None;
    }

    fn entry(&mut self, agent: usize) -> Option<&mut Entry> {
        self.plan.agents[agent].entries.last_mut()
    }

    fn model_finished(&mut self, event: &Event, agent: usize) -> Result<(), ExportError> {
        let EventKind::ModelFinished { text, purpose, .. } = &event.kind else { return Ok(()) };
        let Some(reply) = self.hands[agent].replies.pop_front() else {
            return Err(ExportError::damaged(format!(
                "no record of the reply that event {} tells of",
                event.seq
            )));
        };
        // What was asked for beside a summary is nobody's call.
        let mut calls = calls(&mut self.hands[agent], &reply);
        calls.iter_mut().filter(|_| !purpose.is_turn()).for_each(|call| call.ended = Some(event.seq));
        let Some(entry) = self.entry(agent) else { return Ok(()) };
        *entry = Entry {
            end: EntryEnd::Whole(When::At(event.t)),
            text: if purpose.is_turn() { reply.text() } else { text.clone() },
            thinking: thinking(&reply),
            calls,
            stop_reason: unnatural(&reply),
            usage: reply.usage,
        };
        Ok(())
    }

    fn model_interrupted(
        &mut self,
        event: &Event,
        agent: usize,
        reason: InterruptReason,
        thinking: &[ThinkingState],
    ) {
        let EventKind::ModelInterrupted { text, .. } = &event.kind else { return };
        let partial = self.hands[agent].partials.pop_front();
        let Some(entry) = self.entry(agent) else { return };
        entry.text = partial.as_ref().map_or_else(|| text.clone(), |partial| partial.text.clone());
        entry.thinking = partial.map(|partial| partial.thinking.clone()).unwrap_or_default();
        entry.end = match reason {
            // What follows says what it failed of.
            InterruptReason::Error => failure(event.t, ErrorKind::Connection, None),
            _ => EntryEnd::Cut { thought: thinking.iter().all(|state| *state == ThinkingState::Completed) },
        };
    }

    /// The call under way failed; when, may have been told before.
    fn failed(&mut self, event: &Event, agent: usize, kind: ErrorKind, retry_after: Option<Span>) {
        let Some(entry) = self.entry(agent) else { return };
        entry.end = match &entry.end {
            EntryEnd::Failed { when, .. } => EntryEnd::Failed { when: when.clone(), kind, retry_after },
            _ => failure(event.t, kind, retry_after),
        };
    }

    /// The error that the run ended with, as a replay says it.
    fn run_finished(
        &mut self,
        event: &Event,
        agent: usize,
        outcome: Outcome,
        error: Option<String>,
    ) -> Option<String> {
        let text = error.as_deref().unwrap_or_default();
        let under_way = self.entry(agent).is_some_and(|entry| {
            let failed = matches!(&entry.end, EntryEnd::Failed { when: When::At(at), .. } if *at == event.t);
            matches!(entry.end, EntryEnd::Open) || failed
        });
        if outcome != Outcome::Failed || !under_way {
            return error;
        }
        let Some(kind) = kind_of(text) else {
            // On virtual time it takes none; elsewhere something may have come meanwhile.
            if self.exact && text == ErrorKind::ScriptExhausted.to_string() {
                self.plan.agents[agent].entries.last_mut()?.end = EntryEnd::Exhausted;
                return error;
            }
            self.failed(event, agent, ErrorKind::InvalidRequest, None);
            return None;
        };
        // Longer than all retries may take: it was not tried again, and is not this time.
        let longest = self.plan.agents[agent].settings.retry.time;
        let forbids = kind.is_retryable().then_some(Span(longest.0.saturating_add(1)));
        self.failed(event, agent, kind, forbids);
        Some(kind.to_string())
    }

    /// An urgent message that came after the look and before the request went out. In a replay
    /// there is no such gap, and it cuts a call that has said nothing.
    fn cut_before_it_began(&mut self, event: &Event, agent: usize) {
        use midturn_core::rules::mail::Point;
        let EventKind::MessageInjected { point: Point::Stream, .. } = &event.kind else { return };
        let name = event.at.agent.as_ref();
        let mut own = self.told.iter().rev().filter(|told| told.at.agent.as_ref() == name);
        let before = own.find(|told| !super::order::is_arrival(&told.kind));
        let between = |kind: &EventKind| {
            matches!(
                kind,
                EventKind::MessageInjected { .. }
                    | EventKind::RunStarted { .. }
                    | EventKind::ToolFinished { .. }
            )
        };
        if before.is_some_and(|before| between(&before.kind)) {
            self.plan.agents[agent].entries.push(Entry::silent(EntryEnd::Cut { thought: true }));
        }
    }
}

fn agent(journal: &AgentJournal) -> Agent {
    let record = &journal.record;
    Agent {
        name: record.name.clone(),
        role: record.role,
        parent: record.parent.clone(),
        prompt: record.prompt.clone(),
        opening: Opening::AtOnce,
        settings: record.settings.clone(),
        works: record.model.is_some(),
        entries: Vec::new(),
    }
}

fn failure(at: Micros, kind: ErrorKind, retry_after: Option<Span>) -> EntryEnd {
    EntryEnd::Failed { when: When::At(at), kind, retry_after }
}

/// The kind that an error's text begins with.
fn kind_of(error: &str) -> Option<ErrorKind> {
    let word = error.split(':').next().unwrap_or_default();
    KINDS.into_iter().find(|kind| kind.to_string() == word)
}

fn thinking(reply: &Reply) -> String {
    let blocks = reply.blocks.iter().filter_map(|block| match block {
        Block::Thinking(thinking) => Some(thinking.text.as_str()),
        Block::Text(_) | Block::ToolUse(_) | Block::Provider(_) => None,
    });
    blocks.collect()
}

/// The stop reason, if it is not the one that a scripted reply has by itself.
fn unnatural(reply: &Reply) -> Option<String> {
    let natural = if reply.calls().next().is_some() { StopReason::ToolUse } else { StopReason::EndTurn };
    (reply.stop_reason != natural).then(|| reply.stop_reason.as_str().to_owned())
}

/// The reply's calls, the provider's own among them.
fn calls(hand: &mut Hand<'_>, reply: &Reply) -> Vec<Call> {
    let blocks = reply.blocks.iter().filter_map(|block| match block {
        Block::ToolUse(call) => {
            let kind = if is_own(&call.name) { CallKind::Own } else { CallKind::Simulated };
            Some((call.id.clone(), call.name.to_string(), call.input.clone(), kind, CallEnd::None))
        }
        Block::Provider(raw) => {
            let raw: Value = serde_json::from_str(&raw.0).unwrap_or_default();
            let text = |key: &str| raw.get(key).and_then(Value::as_str);
            let id = CallId::new(text("id").unwrap_or("provider"));
            let name = text("name").or(text("type")).unwrap_or("provider").to_owned();
            let input = raw.get("input").cloned().unwrap_or_default();
            let end = CallEnd::Given(text("result").unwrap_or_default().to_owned());
            Some((id, name, input, CallKind::Provider, end))
        }
        Block::Text(_) | Block::Thinking(_) => None,
    });
    let call = |(by_model, name, input, kind, end): (CallId, String, Value, CallKind, CallEnd)| Call {
        id: hand.file_id(by_model.as_str()),
        by_model,
        name,
        input,
        kind,
        started: None,
        ended: None,
        continued: None,
        end,
        safe: None,
        abortable: true,
        sent_as: None,
    };
    blocks.map(call).collect()
}
