//! A collector on loopback that keeps what it is sent, decoded.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use parking_lot::Mutex;
use prost::Message;
use tokio::sync::oneshot;

/// A span as it arrived.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    pub(super) name: String,
    pub(super) trace: Vec<u8>,
    id: Vec<u8>,
    parent: Vec<u8>,
    /// Microseconds from its start to its end.
    pub(super) took: u64,
    pub(super) is_error: bool,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) events: Vec<(String, BTreeMap<String, String>)>,
}

/// What has arrived.
#[derive(Default)]
struct Inbox {
    answer: StatusCode,
    bodies: Mutex<Vec<Bytes>>,
}

pub(super) struct Collector {
    pub(super) endpoint: String,
    inbox: Arc<Inbox>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    /// Answers on a thread of its own, so that whoever blocks the test's doesn't block it.
    pub(super) fn start(answer: StatusCode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let inbox = Arc::new(Inbox { answer, bodies: Mutex::default() });
        let app = Router::new().route("/v1/traces", post(take)).with_state(inbox.clone());
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    served = axum::serve(listener, app) => served.unwrap(),
                    _ = ended => {}
                }
            });
        });
        Self { endpoint, inbox, end: Some(end), thread: Some(thread) }
    }

    pub(super) fn bodies(&self) -> Vec<Bytes> {
        self.inbox.bodies.lock().clone()
    }

    pub(super) fn spans(&self) -> Vec<Arrived> {
        let bodies = self.bodies().into_iter();
        let requests = bodies.map(|body| ExportTraceServiceRequest::decode(body).unwrap());
        let scopes = requests.flat_map(|r| r.resource_spans).flat_map(|r| r.scope_spans);
        scopes.flat_map(|scope| scope.spans).map(arrived).collect()
    }

    /// What the process says of itself.
    pub(super) fn resource(&self) -> BTreeMap<String, String> {
        let request = ExportTraceServiceRequest::decode(self.bodies().remove(0)).unwrap();
        attributes(request.resource_spans[0].resource.clone().unwrap().attributes)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

async fn take(State(inbox): State<Arc<Inbox>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    inbox.bodies.lock().push(body);
    inbox.answer
}

fn arrived(span: opentelemetry_proto::tonic::trace::v1::Span) -> Arrived {
    let events = span.events.into_iter().map(|event| (event.name, attributes(event.attributes)));
    Arrived {
        name: span.name,
        trace: span.trace_id,
        id: span.span_id,
        parent: span.parent_span_id,
        took: (span.end_time_unix_nano - span.start_time_unix_nano) / 1_000,
        is_error: span.status.is_some_and(|status| status.code == 2),
        attributes: attributes(span.attributes),
        events: events.collect(),
    }
}

fn attributes(list: Vec<KeyValue>) -> BTreeMap<String, String> {
    list.into_iter().map(|kv| (kv.key, kv.value.map(text).unwrap_or_default())).collect()
}

fn text(value: AnyValue) -> String {
    match value.value {
        Some(Value::StringValue(text)) => text,
        Some(Value::BoolValue(yes)) => yes.to_string(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::ArrayValue(list)) => list.values.into_iter().map(text).collect::<Vec<_>>().join(","),
        other => format!("{other:?}"),
    }
}

/// The name of the span that a span lies in.
pub(super) fn parent<'a>(spans: &'a [Arrived], of: &Arrived) -> Option<&'a str> {
    let parent = spans.iter().find(|span| span.id == of.parent);
    assert!(of.parent.is_empty() || parent.is_some_and(|parent| parent.trace == of.trace), "{}", of.name);
    parent.map(|parent| parent.name.as_str())
}
