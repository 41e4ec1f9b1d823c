//! What if: scenarios and sessions that rest, played again on a virtual clock with messages moved.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use midturn_core::rules::id::SessionId;
use midturn_wire::replay::{Kept, Played, Replay, Scenario};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{Made, Reply};
use crate::app::{App, Named, not_here};
use crate::extract::{Brought, Path};
use crate::host::Script;
use crate::problem::Refused;
use crate::security::Asker;

/// How many messages are moved at once.
const SHIFTS_MAX: usize = 64;

/// A replay in the path.
#[derive(Deserialize, IntoParams)]
pub(super) struct ReplayPath {
    /// The replay's id.
    #[param(min_length = 1)]
    replay: String,
}

/// Plays a scenario, or what was recorded of a session that rests, as it is and with messages moved: what that would
/// have changed and spared. Tools are simulated; nothing is stored.
#[utoipa::path(post, path = "/v1/replays", request_body = Replay, responses((status = 200, body = Played)))]
pub(super) async fn play(
    State(app): State<Arc<App>>,
    asker: Asker,
    Brought(replay): Brought<Replay>,
) -> Reply<Played> {
    asker.must_be_a_person()?;
    if replay.shift.len() > SHIFTS_MAX {
        return Err(Refused::bad_request(format!("`shift`: move at most {SHIFTS_MAX} messages at once")));
    }
    let script = script(&app, replay.scenario, replay.session, replay.replay).await?;
    played(&app, script, replay.shift).await
}

/// Keeps a scenario for a page to show.
#[utoipa::path(post, path = "/v1/replays/kept", request_body = Scenario, responses((status = 201, body = Kept)))]
pub(super) async fn keep(
    State(app): State<Arc<App>>,
    asker: Asker,
    Brought(Scenario { scenario }): Brought<Scenario>,
) -> Made<Kept> {
    asker.must_be_a_person()?;
    Ok((StatusCode::CREATED, Json(Kept { id: app.replays.keep(scenario) })))
}

/// Plays a scenario that is kept, as it is.
#[utoipa::path(get, path = "/v1/replays/{replay}", params(ReplayPath), responses((status = 200, body = Played)))]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(ReplayPath { replay }): Path<ReplayPath>,
) -> Reply<Played> {
    asker.must_be_a_person()?;
    let script = script(&app, None, None, Some(replay)).await?;
    played(&app, script, Vec::new()).await
}

async fn played(app: &App, script: Script, shift: Vec<String>) -> Reply<Played> {
    let _room = app.replays.room()?;
    Ok(Json(app.host.clone().play(script, shift).await?))
}

/// What is to be played: exactly one of them.
async fn script(
    app: &App,
    scenario: Option<String>,
    session: Option<String>,
    replay: Option<String>,
) -> Result<Script, Refused> {
    match (scenario, session, replay) {
        (Some(scenario), None, None) => Ok(Script::Scenario(scenario)),
        (None, Some(session), None) => recorded(app, &session).await.map(Script::Session),
        (None, None, Some(id)) => app.replays.kept(&id).map(Script::Scenario).ok_or_else(|| {
            Refused::not_found("unknown_replay", "this replay is not kept here any more: open its file again")
        }),
        _ => Err(Refused::bad_request("give one of `scenario`, `session` and `replay`")),
    }
}

/// A session of ours: what another program records can't be played.
async fn recorded(app: &App, session: &str) -> Result<SessionId, Refused> {
    match app.named(session)? {
        Named::Live(live) => Ok(live.record.id.clone()),
        Named::Joined(joined) => Err(not_here(&*joined)),
        Named::Stored(id) => Ok(app.summary(&id).await?.record.id),
    }
}
