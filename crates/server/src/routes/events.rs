//! Event streams: the session's, and one agent's in seed 004's names.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use midturn_core::engine::Attached;
use midturn_core::engine::ports::archive::StoredEvent;
use midturn_core::rules::id::AgentName;
use midturn_wire::work::{EventsQuery, Log, LogQuery, StreamQuery, parse_number};
use serde_json::value::RawValue;

use super::agents::{around, existing, rows_asked, rows_wanted};
use super::{AgentPath, Reply, SessionPath};
use crate::app::{App, Named};
use crate::extract::{Path, Query};
use crate::feed::{Cursor, Feed, Past, SeedWords, frames};
use crate::host::HostError;
use crate::problem::Refused;
use crate::security::Asker;
use crate::serve::Peer;

/// The events of a session, in the vocabulary of docs/scenarios.md, section 4.
#[utoipa::path(
    get,
    path = "/events",
    params(
        EventsQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "The last event that was received.")
    ),
    responses((status = 200, body = String, content_type = "text/event-stream"))
)]
pub(super) async fn session(
    State(app): State<Arc<App>>,
    Path(path): Path<SessionPath>,
    Query(query): Query<EventsQuery>,
    Extension(peer): Extension<Peer>,
    asker: Asker,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let named = app.seen(&path.session).await?;
    let after = after(&headers, query.after)?;
    let attached = attached(&named, &asker, query.answers.unwrap_or_default())?;
    let agent = match query.agent {
        Some(agent) => Some(existing(&app, &AgentPath { session: path.session, agent }).await?.1),
        None => None,
    };
    let reading = Reading { named, agent, seed: None, after, attached };
    stream(&app, &peer, reading).await
}

/// A part of the recorded events, for who wants no stream of them.
#[utoipa::path(get, path = "/log", params(LogQuery), responses((status = 200, body = Log)))]
pub(super) async fn log(
    State(app): State<Arc<App>>,
    Path(path): Path<SessionPath>,
    Query(query): Query<LogQuery>,
) -> Reply<Log> {
    let limit = rows_wanted(query.limit)?;
    let wanted = rows_asked(query.after, query.before)?;
    let as_of = app.as_of(&path.session).await?;
    let (session, agent) = match query.agent {
        Some(agent) => {
            let (session, agent) =
                existing(&app, &AgentPath { session: path.session.clone(), agent }).await?;
            (session, Some(agent))
        }
        None => (app.id(&path.session)?, None),
    };
    let past = match app.named(&path.session)? {
        Named::Joined(joined) => Past::Kept(joined.feed()),
        Named::Live(_) | Named::Stored(_) => Past::Recorded(app.host.archive(), session),
    };
    let stored = past.events(agent.as_ref(), wanted, limit).await?;
    let numbers: Vec<u64> = stored.iter().map(|event| event.seq).collect();
    let (next, previous) = around(wanted, &numbers, limit);
    let raw = |event: StoredEvent| RawValue::from_string(event.json.to_string());
    let events = stored.into_iter().map(raw).collect::<Result<_, _>>();
    let events = events
        .map_err(|error| HostError::Failed(format!("the store holds an event that is no JSON: {error}")))?;
    Ok(Json(Log { events, next, previous, as_of }))
}

/// The runs of one agent, in seed 004's names: `text`, `tool_call`, `tool_result`, `soft_interrupt_injected`,
/// `interrupted`, `error`, `done`, each with its `stream_run_id`.
#[utoipa::path(
    get,
    path = "/stream",
    params(
        StreamQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "The last event that was received.")
    ),
    responses((status = 200, body = String, content_type = "text/event-stream"))
)]
pub(super) async fn run(
    State(app): State<Arc<App>>,
    Path(path): Path<AgentPath>,
    Query(query): Query<StreamQuery>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let named = app.seen(&path.session).await?;
    let after = after(&headers, query.after)?;
    let (_, agent) = existing(&app, &path).await?;
    let queue = match &named {
        Named::Live(live) => live.feed.queue(&agent),
        Named::Joined(joined) => joined.feed().queue(&agent),
        Named::Stored(_) => VecDeque::new(),
    };
    let seed = Some(SeedWords::of(queue));
    let reading = Reading { named, agent: Some(agent), seed, after, attached: None };
    stream(&app, &peer, reading).await
}

/// The number after which a client goes on. The header is newer than what it was begun with.
fn after(headers: &HeaderMap, query: Option<u64>) -> Result<Option<u64>, Refused> {
    let Some(header) = headers.get("last-event-id") else { return Ok(query) };
    let number = header.to_str().ok().and_then(parse_number);
    let wrong = || Refused::bad_request("`Last-Event-ID`: send the `id` of an event, as it was received");
    number.map(Some).ok_or_else(wrong)
}

/// Attaches who says that they answer requests, for as long as what it gives is kept. In a
/// session that is only stored nobody asks, and what another program asks is answered there.
fn attached(named: &Named, asker: &Asker, answers: bool) -> Result<Option<Attached>, Refused> {
    if !answers {
        return Ok(None);
    }
    asker.must_be_a_person()?;
    Ok(match named {
        Named::Live(live) => Some(live.coordinator.attach()),
        Named::Joined(_) | Named::Stored(_) => None,
    })
}

/// What is read, and by whom.
struct Reading {
    named: Named,
    agent: Option<AgentName>,
    seed: Option<SeedWords>,
    after: Option<u64>,
    attached: Option<Attached>,
}

async fn stream(app: &Arc<App>, peer: &Peer, reading: Reading) -> Result<Response, Refused> {
    let Reading { named, agent, seed, after, attached } = reading;
    let recorded = |session| Past::Recorded(app.host.archive(), session);
    let (feed, past, joined) = match named {
        Named::Live(live) => (live.feed, recorded(live.record.id), None),
        Named::Joined(joined) => (joined.feed(), Past::Kept(joined.feed()), Some(joined)),
        Named::Stored(id) => (Arc::new(Feed::ended(app.summary(&id).await?.last_seq)), recorded(id), None),
    };
    // All of it is let go when the client is: whoever left answers nothing.
    let held = (attached, app.stream()?, app.metrics.sse_opened());
    peer.is_a_stream_now();
    let after = after.unwrap_or_else(|| feed.last());
    let cursor = Cursor::new(feed, past, app.shutdown.clone()).of(agent, after);
    // From now on somebody reads it.
    if let Some(joined) = joined {
        joined.follow();
    }
    let mut response = Body::from_stream(frames(cursor, seed, held)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Its place among the connections is another's now.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(response)
}
