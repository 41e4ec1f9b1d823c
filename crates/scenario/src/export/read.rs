//! Reads the events of a session in order and makes the plan of them.
//!
//! `calls` reads what became of tool calls, `mail` messages and what else was done from
//! outside. None of them decides what a message does, or guesses what an order would have
//! come to: the engine says that when the plan is played (`order`).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use midturn_core::engine::Message;
use midturn_core::engine::ports::ErrorKind;
use midturn_core::engine::ports::archive::{AgentJournal, SessionJournal};
use midturn_core::engine::ports::store::{Accepted, AgentRecord};
use midturn_core::engine::scripted::ScriptedReply;
use midturn_core::rules::approval::{Decision, Rule};
use midturn_core::rules::conversation::{InterruptReason, Partial, Reply, ToolResult};
use midturn_core::rules::event::{Event, EventKind, Halt, Outcome, ThinkingState, Trigger};
use midturn_core::rules::id::{AgentName, CallId, MessageId, RunId};
use midturn_core::rules::mail::{Point, Sender};
use midturn_core::rules::record::Line;
use midturn_core::rules::time::{Micros, Span};
use serde_json::Value;

use super::ExportError;
use super::calls::{Live, calls, kind_of, thinking, unnatural};
use super::difference::is_arrival;
use super::plan::{Done, NEVER, Plan, ends_at};
use crate::scenario::{Act, Anchor, Says, Start, When};

/// What stands for the words that never came: the replay cuts the reply before them.
pub(super) const UNSAID: &str = "…";

/// A session, as far as its events are read.
#[derive(Default)]
pub(super) struct Reader<'a> {
    pub(super) events: &'a [Event],
    /// The place of the event that is read now.
    pub(super) place: usize,
    pub(super) items: Vec<Done>,
    /// The events read so far, with the ids that the file has.
    pub(super) told: Vec<Event>,
    pub(super) hands: Vec<Hand<'a>>,
    pub(super) kept: HashMap<(String, MessageId, AgentName), &'a Accepted>,
    /// The items of messages, by sender and id.
    pub(super) sent: HashMap<(String, MessageId), usize>,
    /// The ids that items of the file have.
    pub(super) taken: HashSet<String>,
    /// Events of which an item tells that was read before them.
    pub(super) consumed: HashSet<u64>,
    /// The item of the shutdown that is under way.
    pub(super) shutdown: Option<usize>,
    /// Whether the session was played on virtual time: then an instant has rounds.
    pub(super) exact: bool,
}

/// What is read of an agent.
pub(super) struct Hand<'a> {
    pub(super) record: &'a AgentRecord,
    /// How it came; none when somebody added it later: then its prompt is a message.
    pub(super) start: Option<Start>,
    pub(super) script: Vec<ScriptedReply>,
    /// The calls of its last reply that asked for any.
    pub(super) turn: Vec<Live>,
    /// The ids that calls of the coordinator's tools were given, which named none: entry, call and id.
    pub(super) sent_as: Vec<(usize, usize, String)>,
    replies: VecDeque<Arc<Reply>>,
    partials: VecDeque<Arc<Partial>>,
    pub(super) results: HashMap<CallId, VecDeque<&'a ToolResult>>,
    /// The ids of its calls in the file.
    pub(super) ids: HashSet<String>,
    /// Its queued messages.
    pub(super) queued: Vec<Letter>,
    /// Its last event that is no arrival, when that was, and its number.
    pub(super) last: Option<(Anchor, Micros, u64)>,
    /// Why its last run was stopped, and which that was.
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
    pub(super) file_id: MessageId,
    /// The item that sends it, if one does.
    pub(super) item: Option<usize>,
}

impl<'a> Hand<'a> {
    fn new(journal: &'a AgentJournal) -> Self {
        let mut hand = Self {
            record: &journal.record,
            start: Some(Start::AtOnce),
            script: Vec::new(),
            turn: Vec::new(),
            sent_as: Vec::new(),
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

    pub(super) fn name(&self) -> &'a AgentName {
        &self.record.name
    }

    /// Whether a run that nothing started needs nobody who resumes it: a shutdown had stopped the
    /// one before it, or a stop has given back what had started it.
    fn begins_by_itself(&self, event: &Event) -> bool {
        let began = event.at.run.unwrap_or_default();
        self.halt.is_some_and(|(halt, run)| halt == Halt::Shutdown || run == began)
    }

    /// A call that has not ended, as far as is known.
    pub(super) fn asks(&mut self) {
        self.script.push(ScriptedReply { takes: NEVER, ..ScriptedReply::default() });
    }

    fn is_under_way(&self) -> bool {
        self.script.last().is_some_and(|entry| entry.takes == NEVER && entry.text.is_empty())
    }
}

/// The id, or one like it where that can't stand in the file; with a number where it is taken.
pub(super) fn free(id: &str, otherwise: &str, taken: &mut HashSet<String>) -> String {
    let printable: String = id.chars().filter(|c| !c.is_control()).take(60).collect();
    let base = if matches!(printable.trim(), "" | "any") { otherwise.to_owned() } else { printable };
    let mut free = base.clone();
    let mut n = 1;
    while !taken.insert(free.clone()) {
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
        let is_virtual =
            |event: &Event| matches!(event.kind, EventKind::SessionStarted { virtual_time: true, .. });
        let mut reader = Self {
            events,
            hands: journal.agents.iter().map(Hand::new).collect(),
            kept: kept.collect(),
            exact: events.iter().any(is_virtual),
            ..Self::default()
        };
        for (place, event) in events.iter().enumerate() {
            reader.place = place;
            reader.event(event)?;
        }
        super::frame::planned(journal, reader)
    }

    /// The place of an agent in the session.
    pub(super) fn agent(&self, name: &str) -> Option<usize> {
        self.hands.iter().position(|hand| hand.name().as_str() == name)
    }

    fn event(&mut self, event: &'a Event) -> Result<(), ExportError> {
        let mut told = event.clone();
        let agent = event.at.agent.as_ref().map(|name| self.agent(name.as_str()));
        match agent {
            None => match &event.kind {
                EventKind::SessionResumed { .. } => self.taken_up(event),
                EventKind::LimitRaised { limits, .. } => {
                    self.done(event, None, None, Act::Raise { whose: None, limits: limits.clone() });
                }
                _ => {}
            },
            Some(Some(agent)) => self.of_an_agent(event, agent, &mut told.kind)?,
            // A refused message may be for nobody.
            Some(None) if matches!(event.kind, EventKind::MessageRefused { .. }) => {}
            Some(None) => {
                return Err(ExportError::damaged(format!("event {} is about an unknown agent", event.seq)));
            }
        }
        if let Some(Some(agent)) = agent
            && !is_arrival(&told.kind)
        {
            let hand = &mut self.hands[agent];
            let named = Anchor::of(&told, hand.script.len() as u64);
            // Of several without an id only the first can be named.
            if named.id.is_some() || hand.last.is_none() {
                hand.last = Some((named, event.t, event.seq));
            }
        }
        self.told.push(told);
        Ok(())
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
                self.hands[agent].asks();
                *call = self.hands[agent].script.len() as u64;
            }
            EventKind::ModelFinished { .. } => self.model_finished(event, agent)?,
            EventKind::ModelInterrupted { reason, thinking, .. } => {
                self.model_interrupted(event, agent, *reason, thinking);
            }
            EventKind::ModelRetry { attempt, error, wait } => {
                let natural = self.hands[agent].record.settings.retry.wait(*attempt, None);
                let retry_after = (*wait > natural).then_some(*wait);
                self.failed(event, agent, kind_of(error).unwrap_or(ErrorKind::Connection), retry_after);
            }
            EventKind::RunFinished { outcome, error, .. } => {
                *error = self.run_finished(event, agent, *outcome, error.take());
            }
            EventKind::ToolStarted { tool, batch, .. } => self.tool_started(event, agent, tool, *batch)?,
            EventKind::ToolFinished { tool, status, .. } => {
                self.tool_finished(event, agent, tool, *status)?;
            }
            EventKind::ApprovalRequested { tool, .. } => *tool = self.named(agent, tool),
            EventKind::ApprovalResolved { tool, decision, by, reason } => {
                *tool = self.named(agent, tool);
                if let (Some(says), "user") = (says(*decision, reason.as_deref()), by.as_str()) {
                    let answer = Act::Answer { agent: self.name(agent), tool: tool.clone(), says };
                    self.done(event, Some(agent), None, answer);
                }
            }
            EventKind::LimitRaised { limits, .. } => {
                let raise = Act::Raise { whose: Some(self.name(agent)), limits: limits.clone() };
                self.done(event, Some(agent), None, raise);
            }
            EventKind::StopRequested { .. } => self.stop_requested(event, agent),
            EventKind::AgentClosed {} => self.closed(event, agent),
            EventKind::MessageQueued { .. }
            | EventKind::MessageInjected { .. }
            | EventKind::MessageReturned { .. }
            | EventKind::MessageRefused { .. } => self.of_mail(event, agent, told),
            EventKind::SessionStarted { .. }
            | EventKind::SessionResumed { .. }
            | EventKind::PlanUpdated { .. }
            | EventKind::Compacted { .. } => {}
        }
        Ok(())
    }

    fn of_mail(&mut self, event: &Event, agent: usize, told: &mut EventKind) {
        match told {
            EventKind::MessageQueued { message, .. } => *message = self.queued(event, agent),
            EventKind::MessageInjected { messages, skipped, interrupted, .. } => {
                self.cut_before_it_began(event, agent);
                for message in messages {
                    *message = self.leaves(agent, message).map_or(message.clone(), |letter| letter.file_id);
                }
                for calls in [skipped, interrupted] {
                    *calls = calls.iter().map(|call| self.named(agent, call)).collect();
                }
            }
            EventKind::MessageReturned { message, reason } => {
                *message = self.returned(event, agent, message, *reason);
            }
            _ => {}
        }
    }

    pub(super) fn name(&self, agent: usize) -> AgentName {
        self.hands[agent].name().clone()
    }

    fn spawned(&mut self, agent: usize) {
        let hand = &self.hands[agent];
        let parent = hand.record.parent.as_ref().and_then(|parent| self.agent(parent.as_str()));
        let names_it =
            |input: &Value| input.get("name").and_then(Value::as_str) == Some(hand.name().as_str());
        let caused = parent.is_some_and(|parent| self.acts(parent, &["spawn_agent"], names_it).is_some());
        let first = |event: &Event| {
            matches!(
                event.kind,
                EventKind::SessionStarted { .. }
                    | EventKind::AgentSpawned { .. }
                    | EventKind::RunStarted { .. }
                    | EventKind::ModelStarted { .. }
            )
        };
        let late = !self.exact && !self.told.iter().all(first);
        self.hands[agent].start = match (caused, late) {
            (true, _) => Some(Start::Spawned),
            (false, true) => None,
            (false, false) => Some(Start::AtOnce),
        };
    }

    fn run_started(&mut self, event: &Event, agent: usize, trigger: &Trigger) {
        let hand = &self.hands[agent];
        match trigger {
            Trigger::Prompt if hand.start.is_none() => {
                let prompt = hand.record.prompt.as_deref().unwrap_or_default();
                let message = Message::new(Sender::User, hand.name().as_str(), prompt);
                let id = MessageId::new(format!("prompt-{}", hand.name()));
                self.done(event, Some(agent), Some(id), Act::Send(message));
            }
            Trigger::Mail(ids)
                if (ids.is_empty() || self.nothing_came_since_the_stop(event))
                    && !hand.begins_by_itself(event) =>
            {
                let resume = Act::Resume { agent: Some(hand.name().clone()), by: Sender::User };
                self.done(event, Some(agent), None, resume);
                self.resumed_while_it_ended(event);
            }
            Trigger::Prompt | Trigger::Mail(_) => {}
        }
        self.hands[agent].halt = None;
    }

    /// Who was stopped begins with what was still queued, and nothing woke it: it was resumed.
    fn nothing_came_since_the_stop(&self, event: &Event) -> bool {
        let own = self.told.iter().rev().filter(|told| told.at.agent == event.at.agent);
        let mut since = own.take_while(|told| !matches!(told.kind, EventKind::StopRequested { .. }));
        let wakes =
            |kind: &EventKind| matches!(kind, EventKind::MessageQueued { from, .. } if from != "coordinator");
        let ends = |told: &&Event| matches!(told.kind, EventKind::RunFinished { .. });
        let last = since.clone().find(ends);
        let stopped =
            |last: &Event| matches!(last.kind, EventKind::RunFinished { outcome: Outcome::Stopped, .. });
        last.is_some_and(stopped) && !since.any(|told| wakes(&told.kind))
    }

    /// A run that begins in the very instant in which the one before it ended, some time after it was stopped:
    /// it was asked for meanwhile.
    fn resumed_while_it_ended(&mut self, event: &Event) {
        let own = self.told.iter().rev().filter(|told| told.at.agent == event.at.agent);
        let before = own.clone().find(|told| told.t < event.t);
        let stop = own.clone().find(|told| matches!(told.kind, EventKind::StopRequested { .. }));
        let ends = |told: &&Event| matches!(told.kind, EventKind::RunFinished { .. });
        let ended = own.clone().find(ends).filter(|ended| ended.t == event.t);
        if let (Some(before), Some(stop), Some(_), Some(done)) = (before, stop, ended, self.items.last_mut())
            && stop.seq <= before.seq
        {
            (done.at, done.item.when) = (before.t, When::at(before.t));
        }
    }

    fn model_finished(&mut self, event: &Event, agent: usize) -> Result<(), ExportError> {
        let EventKind::ModelFinished { text, purpose, .. } = &event.kind else { return Ok(()) };
        let hand = &mut self.hands[agent];
        let reply = hand.replies.pop_front().ok_or_else(|| {
            let seq = event.seq;
            ExportError::damaged(format!("no record of the reply that event {seq} tells of"))
        })?;
        let tools = calls(hand, &reply);
        if purpose.is_turn() {
            hand.turn = Live::of(&reply, &tools);
        }
        if let Some(entry) = hand.script.last_mut() {
            *entry = ScriptedReply {
                ends_after: ends_at(event.t),
                text: if purpose.is_turn() { reply.text() } else { text.clone() },
                thinking: thinking(&reply),
                tools: tools.into_iter().map(Arc::new).collect(),
                stop_reason: unnatural(&reply),
                usage: reply.usage,
                ..ScriptedReply::default()
            };
        }
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
        let hand = &mut self.hands[agent];
        let partial = hand.partials.pop_front();
        let Some(entry) = hand.script.last_mut() else { return };
        entry.text = partial.as_ref().map_or_else(|| text.clone(), |partial| partial.text.clone());
        entry.thinking = partial.map(|partial| partial.thinking.clone()).unwrap_or_default();
        if reason == InterruptReason::Error {
            // What follows says what it failed of.
            (entry.ends_after, entry.takes) = (ends_at(event.t), Span::ZERO);
            entry.error = Some(ErrorKind::Connection);
            return;
        }
        let thought = thinking.iter().all(|state| *state == ThinkingState::Completed);
        let unsaid = if thought || !entry.text.is_empty() { &mut entry.text } else { &mut entry.thinking };
        if !unsaid.is_empty() {
            unsaid.push(' ');
        }
        unsaid.push_str(UNSAID);
    }

    /// The call under way failed; when, may have been told before.
    fn failed(&mut self, event: &Event, agent: usize, kind: ErrorKind, retry_after: Option<Span>) {
        let Some(entry) = self.hands[agent].script.last_mut() else { return };
        if entry.error.is_none() {
            (entry.ends_after, entry.takes) = (ends_at(event.t), Span::ZERO);
        }
        (entry.error, entry.retry_after) = (Some(kind), retry_after);
    }

    /// The error that the run ended with, as a replay says it.
    fn run_finished(
        &mut self,
        event: &Event,
        agent: usize,
        outcome: Outcome,
        error: Option<Arc<str>>,
    ) -> Option<Arc<str>> {
        let hand = &self.hands[agent];
        let failed = hand.script.last().is_some_and(|entry| {
            let at = entry.ends_after.as_ref().map(|end| end.plus);
            entry.error.is_some() && at == Some(Span(event.t.0))
        });
        if outcome != Outcome::Failed || !(failed || hand.is_under_way()) {
            return error;
        }
        let text = error.as_deref().unwrap_or_default();
        let exhausted = text == ErrorKind::ScriptExhausted.to_string();
        match kind_of(text) {
            // On virtual time it takes none; elsewhere something may have come meanwhile.
            None if exhausted && self.exact => {
                self.failed(event, agent, ErrorKind::ScriptExhausted, None);
                error
            }
            None => {
                self.failed(event, agent, ErrorKind::InvalidRequest, None);
                None
            }
            // Longer than all retries may take: it was not tried again, and is not this time.
            Some(kind) => {
                let longest = hand.record.settings.retry.time;
                let forbids = kind.is_retryable().then_some(Span(longest.0.saturating_add(1)));
                self.failed(event, agent, kind, forbids);
                Some(kind.to_string().into())
            }
        }
    }

    /// An urgent message that came after the look and before the request went out. In a replay
    /// there is no such gap, and it cuts a call that has said nothing.
    fn cut_before_it_began(&mut self, event: &Event, agent: usize) {
        let EventKind::MessageInjected { point: Point::Stream, .. } = &event.kind else { return };
        let looked = ["message_injected", "run_started", "tool_finished"];
        let hand = &mut self.hands[agent];
        if hand.last.as_ref().is_some_and(|(last, ..)| looked.contains(&last.event)) {
            hand.asks();
            hand.script.last_mut().into_iter().for_each(|entry| entry.text.push_str(UNSAID));
        }
    }
}

fn says(decision: Decision, reason: Option<&str>) -> Option<Says> {
    match decision {
        Decision::Once => Some(Says::Once),
        Decision::Session => Some(Says::Session(reason.and_then(|rule| Rule::parse(rule).ok()))),
        Decision::Denied => Some(Says::Denied(reason.map(str::to_owned))),
        Decision::NotAnswered => None,
    }
}
