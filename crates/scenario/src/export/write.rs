//! Writes a plan: agents and items, as a file says them.

use std::collections::HashMap;

use midturn_core::engine::ports::ErrorKind;
use midturn_core::rules::approval::Decision;
use midturn_core::rules::event::{Event, EventKind};
use midturn_core::rules::id::AgentName;
use midturn_core::rules::time::{Micros, Span};

use super::order::{is_arrival, mark};
use super::out::{OutAfter, OutAgent, OutCall, OutEnd, OutEntry, OutItem, Us};
use super::plan::{Act, Agent, Call, CallEnd, CallKind, Entry, EntryEnd, Item, Mark, Opening, When};

/// What stands for the words that never came: the replay cuts the reply before them.
const UNSAID: &str = "…";

/// How much longer a call would have run that was cut.
const BEYOND: Span = Span::secs(1);

/// When what happened in a replay of the plan: durations are counted from there.
#[derive(Debug, Default)]
pub(super) struct Played {
    first: HashMap<(AgentName, &'static str, String), Micros>,
    /// Each agent's steps, and when they were.
    steps: HashMap<AgentName, Vec<(Micros, Mark)>>,
}

impl Played {
    pub(super) fn of(events: &[Event]) -> Self {
        let mut played = Self::default();
        let mut calls: HashMap<&AgentName, u64> = HashMap::new();
        for event in events {
            let Some(agent) = &event.at.agent else { continue };
            if let EventKind::ModelStarted { call, .. } = event.kind {
                calls.insert(agent, call);
            }
            let Some(mark) = mark(event, calls.get(agent).copied().unwrap_or_default()) else { continue };
            let key = (agent.clone(), mark.event, mark.id.clone());
            let known = played.first.contains_key(&key);
            played.first.entry(key).or_insert(event.t);
            if !known && !is_arrival(&event.kind) {
                played.steps.entry(agent.clone()).or_default().push((event.t, mark));
            }
        }
        played
    }

    fn at(&self, agent: &AgentName, event: &'static str, id: &str) -> Option<Micros> {
        self.first.get(&(agent.clone(), event, id.to_owned())).copied()
    }

    /// The agent's last step before that time.
    fn before(&self, agent: &AgentName, at: Micros) -> Option<&(Micros, Mark)> {
        self.steps.get(agent)?.iter().rev().find(|(step, _)| *step < at)
    }
}

/// Writes agents and items.
pub(super) struct Writer<'a> {
    /// Without it every time is one since the session began.
    pub(super) played: &'a Played,
    /// When the session ended.
    pub(super) over: Micros,
    /// Whether messages of models must name their ids: in the session the coordinator also
    /// numbered messages that the file sends.
    pub(super) names_ids: bool,
    /// Results longer than this many bytes are shortened, so that the file can be read.
    pub(super) longest: usize,
}

impl Writer<'_> {
    pub(super) fn agent(&self, agent: &Agent, settings: serde_json::Value) -> OutAgent {
        let (prompt, start) = match agent.opening {
            Opening::AtOnce => (agent.prompt.as_deref().map(str::to_owned), None),
            Opening::Spawned => (None, Some("spawned")),
            Opening::Late => (None, None),
        };
        let exhausted =
            agent.entries.iter().rev().take_while(|e| matches!(e.end, EntryEnd::Exhausted)).count();
        let said = agent.entries.iter().take(agent.entries.len() - exhausted).enumerate();
        OutAgent {
            name: agent.name.to_string(),
            role: agent.role,
            parent: agent.parent.as_ref().map(AgentName::to_string),
            prompt,
            start,
            settings,
            model: agent.works.then(|| said.map(|(n, entry)| self.entry(agent, n, entry)).collect()),
        }
    }

    /// The end of what began there.
    fn end(&self, start: Option<Micros>, when: &When) -> OutEnd {
        match (when, start) {
            (When::At(at), Some(start)) => OutEnd { takes: Some(Us(at.since(start))), ends_after: None },
            (When::At(at), None) => {
                let after = OutAfter { mark: None, plus: Us(Span(at.0)) };
                OutEnd { takes: None, ends_after: Some(after) }
            }
            (When::After(mark), _) => {
                let after = OutAfter { mark: Some(mark.clone()), plus: Us::default() };
                OutEnd { takes: None, ends_after: Some(after) }
            }
        }
    }

    fn beyond(&self) -> OutEnd {
        OutEnd { takes: Some(Us(Span(self.over.0.saturating_add(BEYOND.0)))), ends_after: None }
    }

    fn entry(&self, agent: &Agent, n: usize, entry: &Entry) -> OutEntry {
        let mut out = OutEntry {
            text: entry.text.clone(),
            thinking: entry.thinking.clone(),
            stop_reason: entry.stop_reason.clone(),
            usage: entry.usage,
            tools: entry.calls.iter().map(|call| self.call(agent, call)).collect(),
            ..OutEntry::default()
        };
        let number = (n + 1).to_string();
        let start = self.played.at(&agent.name, "model_started", &number);
        match &entry.end {
            EntryEnd::Whole(when) => out.end = self.end(start, when),
            EntryEnd::Failed { when, kind, retry_after } => {
                out.end = self.end(start, when);
                out.error = Some(word(*kind));
                out.retry_after = retry_after.map(Us);
            }
            EntryEnd::Cut { thought } => {
                let cut = self.played.at(&agent.name, "model_interrupted", &number);
                self.cut(&mut out, start.zip(cut), *thought);
            }
            EntryEnd::Open => out.end = self.beyond(),
            EntryEnd::Exhausted => out.error = Some(word(ErrorKind::InvalidRequest)),
        }
        out
    }

    /// A reply that was cut: as much longer than it ran as makes the same words come.
    fn cut(&self, entry: &mut OutEntry, ran: Option<(Micros, Micros)>, thought: bool) {
        let words = entry.text.split_whitespace().count() + entry.thinking.split_whitespace().count();
        let unsaid = if thought || !entry.text.is_empty() { &mut entry.text } else { &mut entry.thinking };
        if !unsaid.is_empty() {
            unsaid.push(' ');
        }
        unsaid.push_str(UNSAID);
        entry.end = match (ran, words as u64) {
            (Some((start, end)), words @ 1..) => {
                let ran = end.since(start).0;
                let takes = ran.saturating_add(ran / words).max(ran + 1);
                OutEnd { takes: Some(Us(Span(takes))), ends_after: None }
            }
            (Some((start, end)), 0) => {
                let takes = end.since(start).0.saturating_add(BEYOND.0);
                OutEnd { takes: Some(Us(Span(takes))), ends_after: None }
            }
            (None, _) => self.beyond(),
        };
    }

    fn call(&self, agent: &Agent, call: &Call) -> OutCall {
        let mut out = OutCall {
            id: call.id.clone(),
            name: call.name.clone(),
            input: call.input.clone(),
            end: OutEnd::default(),
            result: None,
            error: None,
            output: Vec::new(),
            safe: call.safe,
            abortable: call.abortable,
            abort_takes: Us::default(),
            continues: None,
            provider: call.kind == CallKind::Provider,
        };
        if let (CallKind::Own, Some(id), true) = (call.kind, &call.sent_as, self.names_ids)
            && let Some(input) = out.input.as_object_mut()
        {
            input.insert("id".to_owned(), id.as_str().into());
        }
        if call.kind != CallKind::Simulated || call.started.is_none() {
            if let CallEnd::Given(text) = &call.end {
                out.result = Some(self.shortened(text));
            }
            return out;
        }
        let start = self.played.at(&agent.name, "tool_started", &call.id);
        match &call.end {
            CallEnd::Natural { when, text, is_error } => {
                out.end = self.end(start, when);
                if let (Some(returned), When::At(end)) = (call.continued, when) {
                    out.end = self.end(start, &When::At(returned));
                    out.continues = Some(Us(end.since(returned)));
                }
                let text = Some(self.shortened(text));
                if *is_error { out.error = text } else { out.result = text.filter(|text| !text.is_empty()) }
            }
            CallEnd::Cut { abort_takes, output } => {
                out.end = self.goes_on(call, start, &mut out.continues);
                out.abort_takes = Us(*abort_takes);
                if !output.is_empty() {
                    out.output = vec![(Us::default(), self.shortened(output))];
                }
            }
            CallEnd::None | CallEnd::Given(_) => out.end = self.goes_on(call, start, &mut out.continues),
        }
        out
    }

    /// Longer than until it was cut.
    fn goes_on(&self, call: &Call, start: Option<Micros>, continues: &mut Option<Us>) -> OutEnd {
        match call.continued {
            Some(returned) => {
                *continues = self.beyond().takes;
                self.end(start, &When::At(returned))
            }
            None => self.beyond(),
        }
    }

    fn shortened(&self, text: &str) -> String {
        if text.len() <= self.longest {
            return text.to_owned();
        }
        let end = text.floor_char_boundary(self.longest);
        format!("{}\n[{} more bytes are not in this export]", &text[..end], text.len() - end)
    }

    /// An item, after the last step of its agent that was before it.
    pub(super) fn item(&self, item: &Item) -> OutItem {
        let mut out = OutItem { id: item.id.clone(), ..OutItem::default() };
        match &item.when {
            When::After(mark) => {
                out.after = Some(OutAfter { mark: Some(mark.clone()), plus: Us::default() });
            }
            When::At(at) => match item.agent.as_ref().and_then(|agent| self.played.before(agent, *at)) {
                Some((step, mark)) => {
                    let plus = Us(at.since(*step));
                    out.after = Some(OutAfter { mark: Some(mark.clone()), plus });
                }
                None => out.at = Some(Us(Span(at.0))),
            },
        }
        let name = item.agent.as_ref().map(AgentName::to_string);
        self.act(&mut out, item, name);
        out
    }

    fn act(&self, out: &mut OutItem, item: &Item, name: Option<String>) {
        let by = |by: &String| (by != "user").then(|| by.clone());
        match &item.act {
            Act::Send(send) => {
                out.from = Some(send.from.clone());
                out.to = Some(send.to.clone());
                out.text = Some(send.text.clone());
                out.urgency = send.urgency;
                out.expires_after = send.expires.map(|end| Us(end.since(item.at)));
                out.supersedes = send.supersedes.clone();
                out.if_queued = send.if_queued && send.supersedes.is_some();
                out.only_run = send.only_run;
            }
            Act::Stop { by: who } => (out.by, out.stop) = (by(who), name),
            Act::Supersede { by: who, text } => {
                (out.by, out.supersede, out.text) = (by(who), name, Some(text.clone()));
            }
            Act::Resume => out.resume = name,
            Act::Close { by: who } => (out.by, out.close) = (by(who), name),
            Act::Withdraw { by: who, message } => {
                (out.by, out.withdraw) = (by(who), Some(message.clone()));
            }
            Act::Answer { tool, decision, reason } => {
                (out.answer, out.tool, out.decision) = (name, Some(tool.clone()), Some(*decision));
                match decision {
                    Decision::Session => out.rule = reason.clone(),
                    Decision::Denied => out.text = reason.clone(),
                    Decision::Once | Decision::NotAnswered => {}
                }
            }
            Act::Raise { limits } => {
                out.raise = name.or(Some("session".to_owned()));
                out.limits = Some(limits.clone());
            }
            Act::Crash { back } => out.crash = Some(Us(back.since(item.at))),
            Act::ShutDown { back_after } => out.shutdown = Some(Us(*back_after)),
        }
    }
}

/// The scenario's word for a failure.
fn word(kind: ErrorKind) -> String {
    match kind {
        ErrorKind::Overloaded
        | ErrorKind::RateLimited
        | ErrorKind::Server
        | ErrorKind::Connection
        | ErrorKind::InvalidRequest => kind.to_string(),
        ErrorKind::Cancelled | ErrorKind::ScriptExhausted => ErrorKind::InvalidRequest.to_string(),
    }
}
