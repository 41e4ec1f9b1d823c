//! One session's spans, made of its events: `invoke_agent NAME` for each run, in it `chat MODEL`
//! for each model call and `execute_tool NAME` for each call. A subagent's run lies in the run
//! of its parent, if that is under way when it begins; otherwise a run is a trace of its own.
//!
//! It is told of what is recorded and changes nothing. No text goes out unless a person has
//! asked for texts.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use midturn_core::engine::ports::{Observer, SessionJournal};
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind, Outcome, Trigger};
use midturn_core::rules::id::{AgentName, RunId, SessionId};
use midturn_core::rules::time::Micros;
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;
use opentelemetry_sdk::trace::SdkTracer;
use parking_lot::Mutex;

use super::genai::{self, happening};
use super::open::{Closing, Opening, Running, Traced};

/// How many agents of a session are traced at a time.
const AGENTS_MAX: usize = 16_384;

/// Makes spans of one session's events.
pub(super) struct SessionSpans {
    session: SessionId,
    tracer: SdkTracer,
    texts: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When the session's time began, by the machine's clock: known with the first event.
    began: Option<SystemTime>,
    agents: HashMap<AgentName, Traced>,
}

impl SessionSpans {
    /// Spans of a session that begins. `texts`: whether texts go out.
    pub(super) fn new(session: &SessionId, tracer: SdkTracer, texts: bool) -> Self {
        Self { session: session.clone(), tracer, texts, state: Mutex::default() }
    }

    /// Spans of a session that goes on: its agents are known already.
    pub(super) fn resumed(journal: &SessionJournal, tracer: SdkTracer, texts: bool) -> Self {
        let spans = Self::new(&journal.record.id, tracer, texts);
        let agents = journal.agents.iter().filter(|agent| !agent.closed.is_asked()).take(AGENTS_MAX);
        let traced = agents.map(|agent| {
            let record = &agent.record;
            let known = Traced { model: record.model.clone(), parent: record.parent.clone(), running: None };
            (record.name.clone(), known)
        });
        spans.state.lock().agents.extend(traced);
        spans
    }
}

impl Observer for SessionSpans {
    fn event(&self, event: &Event) {
        let mut state = self.state.lock();
        let at = state.wall(event.t);
        let Some(agent) = &event.at.agent else { return };
        let run = event.at.run.unwrap_or_default();
        Telling { spans: self, state: &mut state, agent, run, at }.tell(event);
    }
}

impl State {
    /// The instant by the machine's clock. The session's own clock may be another, so all is
    /// counted from the first event, which is told when it happens.
    fn wall(&mut self, t: Micros) -> SystemTime {
        let passed = Duration::from_micros(t.0);
        let began = *self.began.get_or_insert_with(|| {
            let now = SystemTime::now();
            now.checked_sub(passed).unwrap_or(now)
        });
        began.checked_add(passed).unwrap_or(began)
    }
}

/// One event on its way into the spans.
struct Telling<'a> {
    spans: &'a SessionSpans,
    state: &'a mut State,
    agent: &'a AgentName,
    run: RunId,
    at: SystemTime,
}

impl Telling<'_> {
    fn tell(&mut self, event: &Event) {
        match &event.kind {
            EventKind::AgentSpawned { parent, model, .. } => {
                if let Some(traced) = self.traced() {
                    (traced.parent, traced.model) = (parent.clone(), model.clone());
                }
            }
            EventKind::RunStarted { trigger } => self.run_starts(vec![triggered(trigger)]),
            EventKind::RunFinished { .. } => self.run_ends(&event.kind),
            EventKind::ModelStarted { call, messages, .. } => {
                let turn = event.at.turn.unwrap_or_default();
                self.model_starts(genai::of_call(*call, *messages, turn));
            }
            EventKind::ModelFinished { .. }
            | EventKind::ModelInterrupted { .. }
            | EventKind::ModelRetry { .. } => self.model_ends(&event.kind),
            EventKind::ToolStarted { .. } | EventKind::ToolFinished { .. } => self.tool(&event.kind),
            EventKind::MessageQueued { .. }
            | EventKind::MessageInjected { .. }
            | EventKind::MessageReturned { .. }
            | EventKind::ApprovalRequested { .. }
            | EventKind::ApprovalResolved { .. }
            | EventKind::Compacted { .. }
            | EventKind::StopRequested { .. } => self.happens(&event.kind),
            EventKind::AgentClosed {} => {
                self.state.agents.remove(self.agent);
            }
            EventKind::SessionStarted { .. }
            | EventKind::SessionResumed { .. }
            | EventKind::LimitRaised { .. }
            | EventKind::MessageRefused { .. }
            | EventKind::PlanUpdated { .. } => {}
        }
    }

    /// What is known of the agent, unless there are too many.
    fn traced(&mut self) -> Option<&mut Traced> {
        if !self.state.agents.contains_key(self.agent) && self.state.agents.len() >= AGENTS_MAX {
            return None;
        }
        Some(self.state.agents.entry(self.agent.clone()).or_default())
    }

    /// The agent's open run, if the event is of it: what is of another run changes nothing.
    fn running(&mut self) -> Option<&mut Running> {
        let run = self.run;
        self.state.agents.get_mut(self.agent)?.running.as_mut().filter(|running| running.run == run)
    }

    fn run_starts(&mut self, mut attributes: Vec<KeyValue>) {
        let (name, at, run, tracer) =
            (genai::run_name(self.agent.as_str()), self.at, self.run, self.spans.tracer.clone());
        attributes.extend(self.of_agent(genai::INVOKE_AGENT));
        let Some(traced) = self.traced() else { return };
        attributes.extend(genai::of_model(traced.model.as_deref()));
        let parent = traced.parent.clone();
        let left = traced.running.take();
        if let Some(left) = left {
            left.close(Closing { at, attributes: Vec::new(), error: Some("lost") });
        }
        let parent = parent.and_then(|name| self.state.agents.get(&name)?.running.as_ref());
        let opening = Opening { name, kind: SpanKind::Internal, at, attributes };
        let running = Running::open(run, opening, parent.map(Running::context), &tracer);
        if let Some(traced) = self.traced() {
            traced.running = Some(running);
        }
    }

    /// A run that the process before this one began has no beginning here.
    fn ensure_run(&mut self) {
        if self.running().is_none() {
            self.run_starts(vec![genai::trigger("resumed")]);
        }
    }

    fn run_ends(&mut self, kind: &EventKind) {
        let EventKind::RunFinished { outcome, error, turns, usage } = kind else { return };
        let failed = match outcome {
            Outcome::Failed => Some(genai::error_class(error.as_deref().unwrap_or_default())),
            Outcome::Limit => Some("limit"),
            // Nothing went wrong: somebody wanted it to end.
            Outcome::Finished | Outcome::Stopped => None,
        };
        let mut attributes = genai::outcome(*outcome, *turns);
        attributes.extend(genai::usage(*usage));
        let closing = Closing { at: self.at, attributes, error: failed };
        if self.running().is_none() {
            return;
        }
        if let Some(running) = self.traced().and_then(|traced| traced.running.take()) {
            running.close(closing);
        }
    }

    fn model_starts(&mut self, mut attributes: Vec<KeyValue>) {
        self.ensure_run();
        attributes.extend(self.of_agent(genai::CHAT));
        let model = self.state.agents.get(self.agent).and_then(|traced| traced.model.clone());
        attributes.extend(genai::of_model(model.as_deref()));
        let name = genai::call_name(model.as_deref());
        let (at, tracer) = (self.at, self.spans.tracer.clone());
        if let Some(running) = self.running() {
            running.model_opens(Opening { name, kind: SpanKind::Client, at, attributes }, &tracer);
        }
    }

    fn model_ends(&mut self, kind: &EventKind) {
        let (at, texts) = (self.at, self.spans.texts);
        let Some(running) = self.running() else { return };
        match kind {
            EventKind::ModelFinished { stop_reason, usage, text, .. } => {
                let mut attributes = genai::usage(*usage);
                attributes.push(genai::finish_reason(stop_reason));
                attributes.extend(texts.then(|| genai::text::reply(text, stop_reason)));
                running.model_closes(Closing { at, attributes, error: None });
            }
            EventKind::ModelInterrupted { reason, text, partial_tokens, .. } => {
                let mut attributes = vec![genai::partial_tokens(*partial_tokens)];
                attributes.extend(texts.then(|| genai::text::reply(text, "interrupted")));
                running.model_closes(Closing { at, attributes, error: Some(genai::cut_reason(*reason)) });
            }
            EventKind::ModelRetry { attempt, error, wait } => {
                let class = genai::error_class(error);
                running.model_closes(Closing { at, attributes: Vec::new(), error: Some(class) });
                running.happens(happening::RETRY, at, genai::retry(class, *attempt, *wait));
            }
            _ => {}
        }
    }

    fn tool(&mut self, kind: &EventKind) {
        let (at, texts, tracer) = (self.at, self.spans.texts, self.spans.tracer.clone());
        match kind {
            EventKind::ToolStarted { tool, name, input, .. } => {
                self.ensure_run();
                let mut attributes = self.of_agent(genai::EXECUTE_TOOL);
                attributes.extend(genai::of_tool(tool.as_str(), name));
                attributes.extend(texts.then(|| genai::text::arguments(input)));
                let opening =
                    Opening { name: genai::tool_name(name), kind: SpanKind::Internal, at, attributes };
                if let Some(running) = self.running() {
                    running.call_opens(tool, opening, &tracer);
                }
            }
            EventKind::ToolFinished { tool, name, status, output, .. } => {
                let (word, is_error) = genai::tool_status(*status);
                let mut attributes = vec![genai::status(word)];
                attributes.extend(texts.then(|| genai::text::result(output)));
                let Some(running) = self.running() else { return };
                let closing = Closing { at, attributes, error: is_error.then_some(word) };
                let was_open = running.call_closes(tool, closing);
                if !was_open && *status == ToolStatus::Skipped {
                    running.happens(happening::SKIPPED, at, genai::of_tool(tool.as_str(), name));
                }
            }
            _ => {}
        }
    }

    /// What is not a span: it is told within the run, if one is open.
    fn happens(&mut self, kind: &EventKind) {
        let (at, texts) = (self.at, self.spans.texts);
        let Some((what, attributes)) = happened(kind, texts) else { return };
        if let Some(running) = self.running() {
            running.happens(what, at, attributes);
        }
    }

    fn of_agent(&self, operation: &'static str) -> Vec<KeyValue> {
        genai::of_agent(operation, self.spans.session.as_str(), self.agent.as_str(), self.run)
    }
}

fn triggered(trigger: &Trigger) -> KeyValue {
    genai::trigger(match trigger {
        Trigger::Prompt => "prompt",
        Trigger::Mail(ids) if ids.is_empty() => "resume",
        Trigger::Mail(_) => "message",
    })
}

fn happened(kind: &EventKind, texts: bool) -> Option<(&'static str, Vec<KeyValue>)> {
    let (what, mut attributes, text) = match kind {
        EventKind::MessageQueued { message, from, urgency, text } => {
            (happening::QUEUED, genai::queued(message.as_str(), from, *urgency), Some(text))
        }
        EventKind::MessageInjected { messages, point, text, skipped, interrupted } => {
            let ids = messages.iter().map(|id| id.as_str());
            let attributes = genai::injected(ids, *point, skipped.len(), interrupted.len());
            (happening::INJECTED, attributes, Some(text))
        }
        EventKind::MessageReturned { message, .. } => {
            (happening::RETURNED, genai::returned(message.as_str()), None)
        }
        EventKind::StopRequested { by, scope, .. } => (happening::STOP, genai::stop(by, *scope), None),
        EventKind::ApprovalRequested { tool, name, input, .. } => {
            let mut attributes = genai::of_tool(tool.as_str(), name);
            attributes.extend(texts.then(|| genai::text::arguments(input)));
            (happening::ASKED, attributes, None)
        }
        EventKind::ApprovalResolved { tool, decision, .. } => {
            (happening::ANSWERED, genai::answered(tool.as_str(), *decision), None)
        }
        EventKind::Compacted { tokens, .. } => (happening::COMPACTED, genai::compacted(*tokens), None),
        _ => return None,
    };
    attributes.extend(text.filter(|_| texts).map(|text| genai::text::message(text)));
    Some((what, attributes))
}
