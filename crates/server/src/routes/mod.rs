//! The routes, and the document that describes them, made of the same code.

mod agents;
mod approvals;
mod events;
mod messages;
mod process;
mod sessions;
mod work;

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::{Json, Router};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{IntoParams, Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::extract::{Brought, Path};
use crate::host::Live;
use crate::problem::Refused;
use crate::security::{Asker, gate};

/// What a route replies.
type Reply<T> = Result<Json<T>, Refused>;

/// What a route replies that has made or accepted something.
type Made<T> = Result<(StatusCode, Json<T>), Refused>;

/// A change that is asked of a session that lives.
struct Change<P, T> {
    /// The session; it is looked up last, when all of the request has come.
    live: Live,
    /// What is meant in it.
    path: P,
    asker: Asker,
    /// What is asked.
    body: T,
}

impl<P: DeserializeOwned + Send, T: DeserializeOwned + Send> FromRequest<Arc<App>> for Change<P, T> {
    type Rejection = Refused;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refused> {
        let (mut parts, body) = request.into_parts();
        let Path(SessionPath { session }) = Path::from_request_parts(&mut parts, app).await?;
        let Path(path) = Path::from_request_parts(&mut parts, app).await?;
        let asker = Asker::from_request_parts(&mut parts, app).await?;
        let Brought(body) = Brought::from_request(Request::from_parts(parts, body), app).await?;
        Ok(Self { live: app.live(&session).await?, path, asker, body })
    }
}

/// A session in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct SessionPath {
    /// The session's id, or `current`: the session that began last among those that live.
    #[param(min_length = 1)]
    session: String,
}

/// An agent in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct AgentPath {
    /// The session's id, or `current`: the session that began last among those that live.
    #[param(min_length = 1)]
    session: String,
    /// Its name.
    #[param(min_length = 1)]
    agent: String,
}

/// A call in the path, beside its session.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct CallPath {
    /// The agent's name.
    #[param(min_length = 1)]
    agent: String,
    /// The call's id.
    #[param(min_length = 1)]
    tool: String,
}

/// A message in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct MessagePath {
    /// The session's id, or `current`: the session that began last among those that live.
    #[param(min_length = 1)]
    session: String,
    /// The message's id.
    #[param(min_length = 1)]
    id: String,
}

/// The interface of a running Midturn.
#[derive(OpenApi)]
#[openapi(
    info(title = "Midturn", description = "The interface of a running Midturn."),
    modifiers(&Bearer),
    security(("token" = []))
)]
struct Document;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        let components = document.components.get_or_insert_with(Default::default);
        components.add_security_scheme("token", scheme);
    }
}

fn described() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(process::health))
        .routes(routes!(process::document))
        .routes(routes!(process::metrics))
        .routes(routes!(process::stats))
        .routes(routes!(sessions::list, sessions::begin))
        .routes(routes!(sessions::one))
        .routes(routes!(sessions::resume))
        .routes(routes!(sessions::shutdown))
        .routes(routes!(agents::list, agents::spawn))
        .routes(routes!(agents::one))
        .routes(routes!(agents::conversation))
        .routes(routes!(agents::plan))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::answer))
        .routes(routes!(work::diff))
        .routes(routes!(work::merge))
        .routes(routes!(work::stop))
        .routes(routes!(work::supersede))
        .routes(routes!(work::resume))
        .routes(routes!(work::agent_limits))
        .routes(routes!(work::session_limits))
        .routes(routes!(work::close))
        .routes(routes!(messages::send))
        .routes(routes!(messages::soft_interrupt))
        .routes(routes!(messages::receipts))
        .routes(routes!(messages::wait))
        .routes(routes!(messages::withdraw))
        .routes(routes!(events::session))
        .routes(routes!(events::run))
}

/// The OpenAPI 3.1 document of the interface, as it is served.
pub fn openapi() -> utoipa::openapi::OpenApi {
    described().split_for_parts().1
}

/// All routes, behind the gate.
pub(crate) fn router(app: Arc<App>) -> Router {
    let (router, _) = described().split_for_parts();
    router
        .method_not_allowed_fallback(wrong_method)
        .fallback(no_route)
        .layer(from_fn_with_state(app.clone(), gate))
        .with_state(app)
}

async fn no_route() -> Refused {
    Refused::not_found("no_route", "there is no such path; `GET /v1/openapi.json` describes all there are")
}

async fn wrong_method() -> Refused {
    let detail = "this path does not take the method; the header `Allow` names those it takes";
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", detail)
}
