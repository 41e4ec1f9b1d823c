//! The spans of runs that are open, and what is known of a part of one when it ends.
//!
//! It knows how spans are nested and ended, and nothing of events.

use std::time::SystemTime;

use midturn_core::rules::id::RunId;
use opentelemetry::trace::{Span as _, SpanBuilder, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, Span};

use super::genai;

/// A run that is open.
pub(super) struct Running {
    pub(super) run: RunId,
    span: Span,
    context: Context,
}

/// How a span ends.
#[derive(Default)]
pub(super) struct Closing {
    pub(super) attributes: Vec<KeyValue>,
    /// The class of the error, if it is one.
    pub(super) error: Option<&'static str>,
}

impl Closing {
    /// It was open when what it belongs to ended: nobody can say how it went.
    pub(super) fn lost() -> Self {
        Self { error: Some("lost"), ..Self::default() }
    }

    fn end(self, span: &mut Span, at: SystemTime) {
        span.set_attributes(self.attributes);
        if let Some(class) = self.error {
            span.set_attribute(genai::error_type(class));
            span.set_status(Status::error(class));
        }
        span.end_with_timestamp(at);
    }
}

impl Running {
    /// Opens a run; without a parent it begins a trace.
    pub(super) fn open(run: RunId, span: SpanBuilder, parent: Option<&Self>, tracer: &SdkTracer) -> Self {
        let nothing = Context::new();
        let span = tracer.build_with_context(span, parent.map_or(&nothing, |parent| &parent.context));
        let context = Context::new().with_remote_span_context(span.span_context().clone());
        Self { run, span, context }
    }

    /// A model call or a tool call of the run has ended: its span is made now, since until then
    /// nothing lies in it.
    pub(super) fn part(&self, part: SpanBuilder, closing: Closing, at: SystemTime, tracer: &SdkTracer) {
        closing.end(&mut tracer.build_with_context(part, &self.context), at);
    }

    /// Something happened in the run.
    pub(super) fn happens(&mut self, what: &'static str, at: SystemTime, attributes: Vec<KeyValue>) {
        self.span.add_event_with_timestamp(what, at, attributes);
    }

    /// Ends the run.
    pub(super) fn close(mut self, closing: Closing, at: SystemTime) {
        closing.end(&mut self.span, at);
    }
}
