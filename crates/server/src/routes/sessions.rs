//! Sessions: listed, begun, taken up, shut down.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use midturn_core::engine::Attached;
use midturn_core::rules::characters::is_blank;
use midturn_core::rules::mail::{Sender, Standing};
use midturn_core::rules::time::Micros;
use midturn_wire::session::{NewSession, Remove, Removed, Resume, Resumed, Session, Sessions};
use midturn_wire::spent::Spent;
use midturn_wire::text::Text;
use midturn_wire::work::{Empty, Stopped};

use super::{Change, Made, Reply, SessionPath};
use crate::app::{App, Named, not_here};
use crate::extract::{Brought, Path};
use crate::host::Live;
use crate::joined;
use crate::problem::Refused;
use crate::security::Asker;

/// How long somebody may take to follow a session who said that they would.
const COMES: Duration = Duration::from_secs(10);

/// The sessions: those that live, and those that are only stored.
#[utoipa::path(get, path = "/v1/sessions", responses((status = 200, body = Sessions)))]
pub(super) async fn list(State(app): State<Arc<App>>) -> Reply<Sessions> {
    let mut sessions: Vec<Session> = app.host.live().iter().rev().map(Session::from).collect();
    for joined in app.host.joined() {
        match joined.look().await {
            Ok(()) => sessions.push(joined::session(&*joined)),
            // The others can be shown.
            Err(error) => {
                tracing::warn!(%error, session = joined.id(), "a joined session can't be looked at")
            }
        }
    }
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
    responses((status = 201, body = Session))
)]
pub(super) async fn begin(
    State(app): State<Arc<App>>,
    asker: Asker,
    Brought(session): Brought<NewSession>,
) -> Made<Session> {
    if is_blank(&session.task.0) {
        return Err(Refused::unprocessable("empty", "the task is empty; say what to do"));
    }
    let is_relative = |folder: &Text| !folder.0.starts_with('/');
    if session.folder.as_ref().is_some_and(is_relative) {
        return Err(Refused::bad_request("`folder`: give an absolute path"));
    }
    if session.answers {
        asker.must_be_a_person()?;
    }
    let entered = app.host.clone().begin(session).await?;
    hold(&app, entered.attached);
    Ok((StatusCode::CREATED, Json(Session::from(&entered.live))))
}

/// A session.
#[utoipa::path(get, path = "/", responses((status = 200, body = Session)))]
pub(super) async fn one(State(app): State<Arc<App>>, Path(path): Path<SessionPath>) -> Reply<Session> {
    Ok(Json(match app.seen(&path.session).await? {
        Named::Live(live) => Session::from(&*live),
        Named::Joined(joined) => joined::session(&*joined),
        Named::Stored(id) => app.summary(&id).await?.into(),
    }))
}

/// Takes a stored session up and starts what was under way in it.
#[utoipa::path(post, path = "/resume", request_body = Resume, responses((status = 200, body = Resumed)))]
pub(super) async fn resume(
    State(app): State<Arc<App>>,
    Path(path): Path<SessionPath>,
    asker: Asker,
    Brought(Resume { answers }): Brought<Resume>,
) -> Reply<Resumed> {
    if answers {
        asker.must_be_a_person()?;
    }
    let id = match app.named(&path.session)? {
        // Its store failed for too long: it is taken up again from what was recorded.
        Named::Live(live) if live.coordinator.broken().is_some() => live.record.id,
        Named::Live(live) => {
            let detail = format!("the session `{}` lives already; write to its agents", live.record.id);
            return Err(Refused::conflict("already_live", detail));
        }
        Named::Joined(joined) => return Err(not_here(&*joined)),
        Named::Stored(id) => app.summary(&id).await?.record.id,
    };
    let entered = app.host.clone().resume(id, answers).await?;
    hold(&app, entered.attached);
    Ok(Json(Resumed { resumed: entered.working.iter().map(ToString::to_string).collect() }))
}

/// Removes what is left of a session that is only stored: what is recorded, its agents' folders, and their branches as far
/// as they are merged.
#[utoipa::path(post, path = "/remove", request_body = Remove, responses((status = 200, body = Removed)))]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Path(path): Path<SessionPath>,
    asker: Asker,
    Brought(seen): Brought<Remove>,
) -> Reply<Removed> {
    asker.must_be_a_person()?;
    let id = app.id(&path.session)?;
    app.summary(&id).await?;
    Ok(Json(app.host.clone().remove(id, seen).await?))
}

/// Whoever is about to follow a session counts as there until its stream can have come.
fn hold(app: &App, attached: Option<Arc<Attached>>) {
    let Some(attached) = attached else { return };
    let shutdown = app.shutdown.clone();
    app.tasks.spawn(async move {
        // Either way it is over: in time its own stream holds it.
        let _ = tokio::time::timeout(COMES, shutdown.cancelled()).await;
        drop(attached);
    });
}

/// Stops all agents of a session, as a person does who stops each of them.
#[utoipa::path(post, path = "/shutdown", request_body = Empty, responses((status = 200, body = Stopped)))]
pub(super) async fn shutdown(change: Change<SessionPath, Empty>) -> Reply<Stopped> {
    let Change { live, .. } = change;
    let reply = live.coordinator.stop_all(Sender::User).await?;
    Ok(Json(reply.into()))
}

impl From<&Live> for Session {
    fn from(live: &Live) -> Self {
        let agents = live.coordinator.agents();
        let running = agents.iter().filter(|agent| !matches!(agent.standing, Standing::Resting(_))).count();
        let used = agents.iter().map(|agent| (agent.usage.into(), agent.cost, agent.priced_at));
        let spent = Spent::of(used);
        Self {
            session: live.record.id.to_string(),
            title: live.record.title.clone(),
            folder: live.record.folder.clone(),
            began_at: Micros(live.record.began_at),
            epoch: live.epoch,
            live: true,
            lead: live.lead.clone(),
            agents: agents.len() as u64,
            running: running as u64,
            busy: live.coordinator.is_busy(),
            last_seq: live.feed.last(),
            spent: Some(spent),
            shared: live.shared.clone(),
            joined: None,
        }
    }
}
