//! Event streams: the session's, and one agent's in seed 004's names.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use midturn_core::rules::id::AgentName;

use super::agents::existing;
use super::{AgentPath, SessionPath};
use crate::app::{App, Named};
use crate::extract::{Path, Query};
use crate::feed::{Reader, Source, View};
use crate::metrics::Metrics;
use crate::problem::Refused;
use crate::serve::Peer;
use crate::wire::problem::Unanswered;
use crate::wire::work::{EventsQuery, StreamQuery, parse_number};

/// The events of a session, in the vocabulary of docs/scenarios.md, section 4.
#[utoipa::path(
    get,
    path = "/v1/sessions/{session}/events",
    params(
        SessionPath,
        EventsQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "The last event that was received.")
    ),
    responses((status = 200, body = String, content_type = "text/event-stream"), Unanswered)
)]
pub(super) async fn session(
    State(app): State<Arc<App>>,
    Path(path): Path<SessionPath>,
    Query(query): Query<EventsQuery>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let named = app.named(&path.session)?;
    let after = after(&headers, query.after)?;
    let agent = match query.agent {
        Some(agent) => Some(existing(&app, &AgentPath { session: path.session, agent }).await?.1),
        None => None,
    };
    stream(&app, &peer, named, agent, View::Events, after).await
}

/// The runs of one agent, in seed 004's names: `text`, `tool_call`, `tool_result`, `soft_interrupt_injected`,
/// `interrupted`, `error`, `done`, each with its `stream_run_id`.
#[utoipa::path(
    get,
    path = "/v1/sessions/{session}/agents/{agent}/stream",
    params(
        AgentPath,
        StreamQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "The last event that was received.")
    ),
    responses((status = 200, body = String, content_type = "text/event-stream"), Unanswered)
)]
pub(super) async fn run(
    State(app): State<Arc<App>>,
    Path(path): Path<AgentPath>,
    Query(query): Query<StreamQuery>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let named = app.named(&path.session)?;
    let after = after(&headers, query.after)?;
    let (_, agent) = existing(&app, &path).await?;
    stream(&app, &peer, named, Some(agent), View::seed(), after).await
}

/// The number after which a client goes on. The header is newer than what it was begun with.
fn after(headers: &HeaderMap, query: Option<u64>) -> Result<Option<u64>, Refused> {
    let Some(header) = headers.get("last-event-id") else { return Ok(query) };
    let number = header.to_str().ok().and_then(parse_number);
    let wrong = || Refused::bad_request("`Last-Event-ID`: send the `id` of an event, as it was received");
    number.map(Some).ok_or_else(wrong)
}

async fn stream(
    app: &Arc<App>,
    peer: &Peer,
    named: Named,
    agent: Option<AgentName>,
    view: View,
    after: Option<u64>,
) -> Result<Response, Refused> {
    let (source, session) = match named {
        Named::Live(live) => (Source::Live(live.feed.clone()), live.record.id.clone()),
        Named::Stored(id) => {
            let summary = app.summary(&id).await?;
            (Source::Stored(summary.last_seq), summary.record.id)
        }
    };
    let held = (app.stream()?, Counted::new(app.metrics.clone()));
    peer.is_a_stream_now();
    let shutdown = app.shutdown.clone();
    let reader = Reader { source, archive: app.host.archive(), session, agent, view, shutdown };
    let mut response = Body::from_stream(reader.frames(after, held)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Its place among the connections is another's now.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(response)
}

/// Counts a client among those that read events, until it is dropped.
struct Counted(Arc<Metrics>);

impl Counted {
    fn new(metrics: Arc<Metrics>) -> Self {
        metrics.sse_opened();
        Self(metrics)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.sse_closed();
    }
}
