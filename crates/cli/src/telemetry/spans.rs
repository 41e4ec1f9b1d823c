//! One session's spans, made of its events: `invoke_agent NAME` for each run, in it `chat MODEL`
//! for each model call and `execute_tool NAME` for each call. A subagent's run lies in the run
//! of its parent, if that is under way when it begins; otherwise a run is a trace of its own.
//!
//! What is under way, and since when, it reads in core's fold. It is told of what is recorded and
//! changes nothing. No text goes out unless a person has asked for texts.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use midturn_core::engine::ports::Observer;
use midturn_core::rules::event::{Event, EventKind, Outcome};
use midturn_core::rules::id::{AgentName, RunId, SessionId};
use midturn_core::rules::time::Micros;
use midturn_core::rules::view::{Agent, Call, Request, View};
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanBuilder, SpanKind};
use opentelemetry_sdk::trace::SdkTracer;
use parking_lot::Mutex;

use super::genai;
use super::open::{Closing, Running};

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
    /// Spans of a session of which this much is known already. `texts`: whether texts go out.
    pub(super) fn new(session: &SessionId, view: View, tracer: SdkTracer, texts: bool) -> Self {
        let open = Mutex::new(OpenSpans { view, ..OpenSpans::default() });
        Self { session: session.clone(), tracer, texts, open }
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
        let mut attributes = genai::of_model(self.known.model.as_deref());
        attributes.push(genai::trigger(trigger));
        let parent = self.known.parent.as_ref().and_then(|parent| self.runs.get(parent));
        let span = self.span(genai::INVOKE_AGENT, Some(self.agent.as_str()), self.event.t, attributes);
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
        attributes.extend(genai::of_model(model));
        self.part(self.span(genai::CHAT, model, since, attributes).with_kind(SpanKind::Client), closing);
    }

    fn call_ends(&self, call: &Call, closing: Closing) {
        let Call { id, name, input, since } = call;
        let mut attributes = genai::of_tool(id.as_str(), name);
        attributes.extend(self.spans.texts.then(|| genai::text::arguments(input)));
        self.part(self.span(genai::EXECUTE_TOOL, Some(name), *since, attributes), closing);
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
        let Some((what, attributes)) = genai::happened(&self.event.kind, self.spans.texts) else { return };
        let run = self.run();
        if let Some(running) = self.runs.get_mut(self.agent).filter(|running| running.run == run) {
            running.happens(what, at, attributes);
        }
    }

    /// A span that is to be made, of something that the agent did in this run.
    fn span(
        &self,
        operation: &'static str,
        on: Option<&str>,
        since: Micros,
        attributes: Vec<KeyValue>,
    ) -> SpanBuilder {
        let who = genai::of_agent(operation, self.spans.session.as_str(), self.agent.as_str(), self.run());
        SpanBuilder::from_name(genai::name(operation, on))
            .with_kind(SpanKind::Internal)
            .with_start_time(self.wall(since))
            .with_attributes([who, attributes].concat())
    }
}
