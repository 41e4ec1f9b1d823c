//! One session's spans, made of its events: `invoke_agent NAME` for each run, in it `chat MODEL`
//! for each model call and `execute_tool NAME` for each call. A subagent's run lies in the run
//! of its parent, if that is under way when it begins; otherwise a run is a trace of its own.
//!
//! What is under way, and since when, it reads in core's fold. It is told of what is recorded and
//! changes nothing. No text goes out unless a person has asked for texts.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use midturn_core::engine::ports::{Observer, SessionJournal};
use midturn_core::rules::conversation::ToolStatus;
use midturn_core::rules::event::{Event, EventKind, Outcome};
use midturn_core::rules::id::{AgentName, RunId, SessionId};
use midturn_core::rules::time::Micros;
use midturn_core::rules::view::{Agent, Call, Request, View};
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanBuilder, SpanKind};
use opentelemetry_sdk::trace::SdkTracer;
use parking_lot::Mutex;

use super::genai::{self, happening};
use super::open::{Closing, Running, begin};

/// Makes spans of one session's events.
pub(super) struct SessionSpans {
    session: SessionId,
    tracer: SdkTracer,
    texts: bool,
    open: Mutex<OpenSpans>,
}

#[derive(Default)]
struct OpenSpans {
    /// When the session's time began, by the machine's clock: known with the first event.
    began: Option<SystemTime>,
    view: View,
    /// The runs that are open.
    runs: HashMap<AgentName, Running>,
}

impl SessionSpans {
    /// Spans of a session that begins. `texts`: whether texts go out.
    pub(super) fn new(session: &SessionId, tracer: SdkTracer, texts: bool) -> Self {
        Self { session: session.clone(), tracer, texts, open: Mutex::default() }
    }

    /// Spans of a session that goes on: its agents are known already.
    pub(super) fn resumed(journal: &SessionJournal, tracer: SdkTracer, texts: bool) -> Self {
        let spans = Self::new(&journal.record.id, tracer, texts);
        spans.open.lock().view = journal.view();
        spans
    }
}

impl Observer for SessionSpans {
    fn event(&self, event: &Event) {
        let open = &mut *self.open.lock();
        let began = open.began(event.t);
        if let Some(agent) = &event.at.agent {
            let nobody = Agent::default();
            let known = open.view.agent(agent).unwrap_or(&nobody);
            if !known.is_stale(event) {
                Telling { spans: self, runs: &mut open.runs, agent, known, event, began }.tell();
            }
        }
        open.view.event(event);
    }
}

impl OpenSpans {
    /// When the session's time began. Its own clock may be another than the machine's, so all is
    /// counted from the first event, which is told when it happens.
    fn began(&mut self, t: Micros) -> SystemTime {
        *self.began.get_or_insert_with(|| {
            let now = SystemTime::now();
            now.checked_sub(Duration::from_micros(t.0)).unwrap_or(now)
        })
    }
}

/// One event on its way into the spans.
struct Telling<'a> {
    spans: &'a SessionSpans,
    runs: &'a mut HashMap<AgentName, Running>,
    agent: &'a AgentName,
    /// The agent as it was before.
    known: &'a Agent,
    event: &'a Event,
    began: SystemTime,
}

impl Telling<'_> {
    fn tell(&mut self) {
        match &self.event.kind {
            EventKind::RunStarted { trigger } => self.run_starts(trigger.as_str()),
            EventKind::RunFinished { .. } => self.run_ends(),
            EventKind::ModelStarted { .. } => {
                if self.known.run == self.run() {
                    self.model_ends(Closing::lost());
                }
                self.ensure_run();
            }
            EventKind::ToolStarted { .. } => self.ensure_run(),
            EventKind::ModelFinished { stop_reason, usage, text, .. } => {
                let mut attributes = genai::usage(*usage);
                attributes.push(genai::finish_reason(stop_reason));
                attributes.extend(self.spans.texts.then(|| genai::text::reply(text, stop_reason)));
                self.model_ends(Closing { attributes, error: None });
            }
            EventKind::ModelInterrupted { reason, text, partial_tokens, .. } => {
                let mut attributes = vec![genai::partial_tokens(*partial_tokens)];
                attributes.extend(self.spans.texts.then(|| genai::text::reply(text, "interrupted")));
                self.model_ends(Closing { attributes, error: Some(reason.as_str()) });
            }
            EventKind::ModelRetry { error, .. } => {
                let error = Some(genai::error_class(error));
                self.model_ends(Closing { error, ..Closing::default() });
                self.happens();
            }
            EventKind::ToolFinished { .. } => self.tool_ends(),
            EventKind::AgentClosed {} => self.run_is_lost(),
            _ => self.happens(),
        }
    }

    fn run(&self) -> RunId {
        self.event.at.run.unwrap_or_default()
    }

    /// An instant by the machine's clock.
    fn wall(&self, t: Micros) -> SystemTime {
        self.began.checked_add(Duration::from_micros(t.0)).unwrap_or(self.began)
    }

    fn run_starts(&mut self, trigger: &'static str) {
        self.run_is_lost();
        let (name, at) = (genai::run_name(self.agent.as_str()), self.wall(self.event.t));
        let mut attributes = vec![genai::trigger(trigger)];
        attributes.extend(self.of_agent(genai::INVOKE_AGENT));
        attributes.extend(genai::of_model(self.known.model.as_deref()));
        let parent = self.known.parent.as_ref().and_then(|parent| self.runs.get(parent));
        let span = begin(name, SpanKind::Internal, at, attributes);
        let running = Running::open(self.run(), span, parent, &self.spans.tracer);
        self.runs.insert(self.agent.clone(), running);
    }

    /// A run that the process before this one began has no beginning here.
    fn ensure_run(&mut self) {
        if self.runs.get(self.agent).is_none_or(|running| running.run != self.run()) {
            self.run_starts("resumed");
        }
    }

    fn run_is_lost(&mut self) {
        self.parts_are_lost(Closing::lost().error);
        if let Some(running) = self.runs.remove(self.agent) {
            running.close(Closing::lost(), self.wall(self.event.t));
        }
    }

    /// What is open when its run ends ends with it. A model call failed with the run.
    fn parts_are_lost(&self, error: Option<&'static str>) {
        self.model_ends(Closing { error: error.or(Closing::lost().error), ..Closing::default() });
        self.known.calls.iter().for_each(|call| self.call_ends(call, Closing::lost()));
    }

    fn run_ends(&mut self) {
        let EventKind::RunFinished { outcome, error, turns, usage } = &self.event.kind else { return };
        let failed = match outcome {
            Outcome::Failed => Some(genai::error_class(error.as_deref().unwrap_or_default())),
            Outcome::Limit => Some("limit"),
            // Nothing went wrong: somebody wanted it to end.
            Outcome::Finished | Outcome::Stopped => None,
        };
        self.parts_are_lost(failed);
        let mut attributes = genai::outcome(*outcome, *turns);
        attributes.extend(genai::usage(*usage));
        if let Some(running) = self.runs.remove(self.agent) {
            running.close(Closing { attributes, error: failed }, self.wall(self.event.t));
        }
    }

    fn part(&self, span: SpanBuilder, closing: Closing) {
        if let Some(running) = self.runs.get(self.agent) {
            running.part(span, closing, self.wall(self.event.t), &self.spans.tracer);
        }
    }

    /// The model call that was under way has ended, if there was one.
    fn model_ends(&self, closing: Closing) {
        let Some(Request { call, messages, since, .. }) = self.known.request else { return };
        let model = self.known.model.as_deref();
        let mut attributes = genai::of_call(call, messages, self.known.turn);
        attributes.extend(self.of_agent(genai::CHAT));
        attributes.extend(genai::of_model(model));
        self.part(begin(genai::call_name(model), SpanKind::Client, self.wall(since), attributes), closing);
    }

    fn call_ends(&self, call: &Call, closing: Closing) {
        let Call { id, name, input, since } = call;
        let mut attributes = self.of_agent(genai::EXECUTE_TOOL);
        attributes.extend(genai::of_tool(id.as_str(), name));
        attributes.extend(self.spans.texts.then(|| genai::text::arguments(input)));
        let span = begin(genai::tool_name(name), SpanKind::Internal, self.wall(*since), attributes);
        self.part(span, closing);
    }

    fn tool_ends(&mut self) {
        let EventKind::ToolFinished { tool, status, output, .. } = &self.event.kind else { return };
        let Some(call) = self.known.calls.iter().find(|call| call.id == *tool) else {
            return self.happens();
        };
        let mut attributes = vec![genai::status(status.as_str())];
        attributes.extend(self.spans.texts.then(|| genai::text::result(output)));
        let error = genai::is_error(*status).then(|| status.as_str());
        self.call_ends(call, Closing { attributes, error });
    }

    /// What is not a span: it is told within the run, if one is open.
    fn happens(&mut self) {
        let at = self.wall(self.event.t);
        let Some((what, attributes)) = happened(&self.event.kind, self.spans.texts) else { return };
        let run = self.run();
        if let Some(running) = self.runs.get_mut(self.agent).filter(|running| running.run == run) {
            running.happens(what, at, attributes);
        }
    }

    fn of_agent(&self, operation: &'static str) -> Vec<KeyValue> {
        genai::of_agent(operation, self.spans.session.as_str(), self.agent.as_str(), self.run())
    }
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
        EventKind::ModelRetry { attempt, error, wait } => {
            (happening::RETRY, genai::retry(genai::error_class(error), *attempt, *wait), None)
        }
        EventKind::ToolFinished { tool, name, status: ToolStatus::Skipped, .. } => {
            (happening::SKIPPED, genai::of_tool(tool.as_str(), name), None)
        }
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
