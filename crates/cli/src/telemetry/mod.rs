//! Traces: what the agents do as OpenTelemetry spans, sent by OTLP to a collector.
//!
//! Off, and costing nothing, unless the standard variables name a collector. It hears events
//! as any other observer does: it must not slow a session down, so spans wait in a bounded
//! queue, and what finds it full is dropped. No text of a conversation goes out unless a person
//! has asked for it, and no error's text ever.

mod genai;
mod link;
mod open;
mod settings;
mod spans;

#[cfg(test)]
mod tests;

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use midturn_core::engine::ports::Observer;
use midturn_core::rules::id::SessionId;
use midturn_core::rules::view::View;
use opentelemetry::InstrumentationScope;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracer, SdkTracerProvider};
use tokio::runtime::{Builder, Runtime};

use self::link::Link;
use self::settings::Settings;
use self::spans::SessionSpans;
use crate::env::Env;

/// How long the end of the process waits for the last spans to be delivered.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The same after a signal: whoever sent it waits for the process.
const LAST_WORD: Duration = Duration::from_millis(200);

/// Sends traces of all sessions of this process.
pub(crate) struct Telemetry {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    texts: bool,
    /// Spans are sent to the end of the process: who drops a runtime waits for what is under way, and
    /// within another runtime must not even do that.
    _runtime: ManuallyDrop<Runtime>,
}

impl Telemetry {
    /// As the environment asks for it. `None`: it doesn't, or what it asks for can't be done,
    /// and then that is said on standard error; agents work without traces.
    pub(crate) fn from_env(env: &Env) -> Option<Self> {
        let settings = match Settings::of(env) {
            Ok(settings) => settings?,
            Err(failure) => {
                tracing::warn!("no traces are sent: {failure}");
                return None;
            }
        };
        Self::start(&settings).map_err(|why| tracing::warn!("no traces are sent: {why}")).ok()
    }

    fn start(settings: &Settings) -> Result<Self, String> {
        // One thread, asleep while nothing is sent.
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("midturn-traces").enable_all().build();
        let runtime = ManuallyDrop::new(runtime.map_err(|error| format!("no thread for them: {error}"))?);
        let link = Link::new(settings, runtime.handle().clone())?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(link)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&settings.endpoint)
            .with_timeout(settings.timeout)
            .build()
            .map_err(|error| format!("{error}; see the OTEL_EXPORTER_OTLP_ variables"))?;
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).build())
            .with_resource(resource())
            .build();
        let scope = InstrumentationScope::builder(genai::SCOPE).with_version(env!("CARGO_PKG_VERSION"));
        let tracer = provider.tracer_with_scope(scope.build());
        Ok(Self { provider, tracer, texts: settings.texts, _runtime: runtime })
    }

    /// Who is told of the events of a session; of one that goes on the models and parents of its
    /// agents are known, and what was under way.
    pub(crate) fn observer(&self, session: &SessionId, view: View) -> Arc<dyn Observer> {
        Arc::new(SessionSpans::new(session, view, self.tracer.clone(), self.texts))
    }

    /// Delivers what is still to be sent, for at most 5 s (0.2 s of a process that somebody
    /// waits for), and blocks its thread meanwhile. What ends after it is not sent. Calling it
    /// twice changes nothing.
    pub(crate) fn shutdown(&self, in_a_hurry: bool) {
        let time = if in_a_hurry { LAST_WORD } else { LAST_WORDS };
        match self.provider.shutdown_with_timeout(time) {
            Ok(()) | Err(OTelSdkError::AlreadyShutdown) => {}
            Err(error) => tracing::warn!(%error, "not all traces were delivered"),
        }
    }
}

/// `midturn`, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES name it otherwise.
fn resource() -> Resource {
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let named = Resource::builder().build();
    let service = opentelemetry::Key::from_static_str("service.name");
    let unnamed = named.get(&service).is_none_or(|name| name.as_str().starts_with("unknown_service"));
    let builder = Resource::builder().with_attribute(version);
    if unnamed { builder.with_service_name("midturn").build() } else { builder.build() }
}
