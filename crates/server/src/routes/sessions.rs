//! Sessions: listed, begun, taken up, shut down.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use midturn_core::rules::id::SessionId;

use super::SessionPath;
use crate::app::{App, Named};
use crate::extract::{Change, Json, Path};
use crate::problem::Refused;
use crate::wire::problem::{Unanswered, Unchanged};
use crate::wire::session::{NewSession, Resumed, Session, Sessions};
use crate::wire::work::{Empty, Stopped};

/// The sessions: those that live, and those that are only stored.
#[utoipa::path(get, path = "/v1/sessions", responses((status = 200, body = Sessions), Unanswered))]
pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Json<Sessions>, Refused> {
    let mut sessions: Vec<Session> = app.host.live().iter().rev().map(Session::from).collect();
    for stored in app.host.archive().sessions().await? {
        if sessions.iter().all(|live| live.session != stored.record.id.as_str()) {
            sessions.push(stored.into());
        }
    }
    Ok(Json(Sessions { sessions }))
}

/// Begins a session.
#[utoipa::path(
    post,
    path = "/v1/sessions",
    request_body = NewSession,
    responses((status = 201, body = Session), Unchanged)
)]
pub(super) async fn begin(
    State(app): State<Arc<App>>,
    Change(session): Change<NewSession>,
) -> Result<(StatusCode, Json<Session>), Refused> {
    if session.task.0.trim().is_empty() {
        return Err(Refused::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "empty",
            "the task is empty; say what to do",
        ));
    }
    let is_relative = |folder: &crate::wire::text::Text| !folder.0.starts_with('/');
    if session.folder.as_ref().is_some_and(is_relative) {
        return Err(Refused::bad_request("`folder`: give an absolute path"));
    }
    let host = app.host.clone();
    let live = app.whole(async move { Ok(host.begin(session.into()).await?) }).await?;
    Ok((StatusCode::CREATED, Json(Session::from(&live))))
}

/// A session.
#[utoipa::path(
    get,
    path = "/v1/sessions/{session}",
    params(SessionPath),
    responses((status = 200, body = Session), Unanswered)
)]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    Path(path): Path<SessionPath>,
) -> Result<Json<Session>, Refused> {
    Ok(Json(match app.named(&path.session)? {
        Named::Live(live) => Session::from(&*live),
        Named::Stored(id) => app.summary(&id).await?.into(),
    }))
}

/// Takes a stored session up and starts what was under way in it.
#[utoipa::path(
    post,
    path = "/v1/sessions/{session}/resume",
    params(SessionPath),
    request_body = Empty,
    responses((status = 200, body = Resumed), Unchanged)
)]
pub(super) async fn resume(
    State(app): State<Arc<App>>,
    Path(path): Path<SessionPath>,
    Change(Empty {}): Change<Empty>,
) -> Result<Json<Resumed>, Refused> {
    let id: SessionId = match app.named(&path.session)? {
        Named::Live(live) => {
            let detail = format!("the session `{}` lives already; write to its agents", live.record.id);
            return Err(Refused::conflict("already_live", detail));
        }
        Named::Stored(id) => app.summary(&id).await?.record.id,
    };
    let host = app.host.clone();
    let (_, names) = app.whole(async move { Ok(host.resume(&id).await?) }).await?;
    Ok(Json(Resumed { resumed: names.iter().map(ToString::to_string).collect() }))
}

/// Stops all agents of a session and waits until their calls have ended.
#[utoipa::path(
    post,
    path = "/v1/sessions/{session}/shutdown",
    params(SessionPath),
    request_body = Empty,
    responses((status = 200, body = Stopped), Unchanged)
)]
pub(super) async fn shutdown(
    State(app): State<Arc<App>>,
    Path(path): Path<SessionPath>,
    Change(Empty {}): Change<Empty>,
) -> Result<Json<Stopped>, Refused> {
    let live = app.live(&path.session).await?;
    let reply = app.whole(async move { Ok(live.coordinator.shutdown().await) }).await?;
    Ok(Json(reply.into()))
}
