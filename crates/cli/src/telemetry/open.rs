//! The spans that are open: of each agent its run, and in it a model call and tool calls.
//!
//! It knows how spans are opened, nested and closed, and nothing of events.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use midturn_core::rules::id::{AgentName, CallId, RunId};
use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, Span};

use super::genai;

/// How many tool calls of one agent are open at most; more are not traced.
const CALLS_MAX: usize = 256;

/// What is known of an agent.
#[derive(Default)]
pub(super) struct Traced {
    /// Its model, as configured.
    pub(super) model: Option<Arc<str>>,
    /// Who spawned it.
    pub(super) parent: Option<AgentName>,
    /// Its run, while there is one.
    pub(super) running: Option<Running>,
}

/// A run that is open, and what is open in it. What is still open when it goes ends with it.
pub(super) struct Running {
    pub(super) run: RunId,
    pub(super) span: Span,
    context: Context,
    model: Option<Span>,
    calls: HashMap<CallId, Span>,
}

/// What a span is to be.
pub(super) struct Opening {
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) at: SystemTime,
    pub(super) attributes: Vec<KeyValue>,
}

impl Opening {
    fn under(self, parent: &Context, tracer: &SdkTracer) -> Span {
        let builder = SpanBuilder::from_name(self.name)
            .with_kind(self.kind)
            .with_start_time(self.at)
            .with_attributes(self.attributes);
        tracer.build_with_context(builder, parent)
    }
}

/// How a span ends.
pub(super) struct Closing {
    pub(super) at: SystemTime,
    pub(super) attributes: Vec<KeyValue>,
    /// The class of the error, if it is one.
    pub(super) error: Option<&'static str>,
}

impl Closing {
    /// It was open when what it belongs to ended: nobody can say how it went.
    fn lost(at: SystemTime) -> Self {
        Self { at, attributes: Vec::new(), error: Some("lost") }
    }

    /// Ends the span so.
    pub(super) fn of(self, span: &mut Span) {
        span.set_attributes(self.attributes);
        if let Some(class) = self.error {
            span.set_attribute(genai::error_type(class));
            span.set_status(Status::error(class));
        }
        span.end_with_timestamp(self.at);
    }
}

impl Running {
    /// Opens a run; without a parent it begins a trace.
    pub(super) fn open(run: RunId, opening: Opening, parent: Option<&Context>, tracer: &SdkTracer) -> Self {
        let span = opening.under(parent.unwrap_or(&Context::new()), tracer);
        let context = Context::new().with_remote_span_context(span.span_context().clone());
        Self { run, span, context, model: None, calls: HashMap::new() }
    }

    /// What is opened under the run.
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn model_opens(&mut self, opening: Opening, tracer: &SdkTracer) {
        self.model_closes(Closing::lost(opening.at));
        self.model = Some(opening.under(&self.context, tracer));
    }

    pub(super) fn model_closes(&mut self, closing: Closing) {
        if let Some(mut span) = self.model.take() {
            closing.of(&mut span);
        }
    }

    pub(super) fn call_opens(&mut self, id: &CallId, opening: Opening, tracer: &SdkTracer) {
        if self.calls.len() < CALLS_MAX {
            self.calls.insert(id.clone(), opening.under(&self.context, tracer));
        }
    }

    /// `false`: the call was not open.
    pub(super) fn call_closes(&mut self, id: &CallId, closing: Closing) -> bool {
        let span = self.calls.remove(id);
        span.map(|mut span| closing.of(&mut span)).is_some()
    }

    /// Something happened in the run.
    pub(super) fn happens(&mut self, what: &'static str, at: SystemTime, attributes: Vec<KeyValue>) {
        self.span.add_event_with_timestamp(what, at, attributes);
    }

    /// Ends the run, and before it what is still open in it.
    pub(super) fn close(mut self, closing: Closing) {
        // A model call that is open when its run ends failed with the run.
        self.model_closes(Closing { error: closing.error.or(Some("lost")), ..Closing::lost(closing.at) });
        for (_, mut span) in self.calls.drain() {
            Closing::lost(closing.at).of(&mut span);
        }
        closing.of(&mut self.span);
    }
}
