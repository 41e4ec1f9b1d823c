//! The routes, and the document that describes them, made of the same code.

mod agents;
mod approvals;
mod events;
mod messages;
mod page;
mod process;
mod replays;
mod sessions;
mod work;

use std::sync::Arc;

use async_trait::async_trait;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::on;
use axum::{Json, Router};
use midturn_wire::problem::Problem;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, RefOr, Response};
use utoipa::{IntoParams, OpenApi as _, PartialSchema as _};
use utoipa_axum::{PathItemExt as _, paste};

use crate::app::App;
use crate::extract::{Brought, Path};
use crate::host::Live;
use crate::problem::Refused;
use crate::security::{Asker, gate, headed, host_and_origin};

/// What a route replies.
type Reply<T> = Result<Json<T>, Refused>;

/// What a route replies that has made or accepted something.
type Made<T> = Result<(StatusCode, Json<T>), Refused>;

/// A change that is asked of a session that lives.
struct Change<P, T, S = Live> {
    /// The session; it is looked up last, when all of the request has come.
    live: S,
    /// What is meant in it.
    path: P,
    asker: Asker,
    /// What is asked.
    body: T,
}

/// What a session has to be for a change.
#[async_trait]
trait Meant: Sized {
    /// The session of that id.
    async fn named(app: &App, session: &str) -> Result<Self, Refused>;
}

#[async_trait]
impl Meant for Live {
    async fn named(app: &App, session: &str) -> Result<Self, Refused> {
        app.live(session).await
    }
}

impl<P, T, S> FromRequest<Arc<App>> for Change<P, T, S>
where
    P: DeserializeOwned + Send,
    T: DeserializeOwned + Send,
    S: Meant,
{
    type Rejection = Refused;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refused> {
        let (mut parts, body) = request.into_parts();
        let Path(SessionPath { session }) = Path::from_request_parts(&mut parts, app).await?;
        let Path(path) = Path::from_request_parts(&mut parts, app).await?;
        let asker = Asker::from_request_parts(&mut parts, app).await?;
        let Brought(body) = Brought::from_request(Request::from_parts(parts, body), app).await?;
        Ok(Self { live: S::named(app, &session).await?, path, asker, body })
    }
}

/// A session in the path.
#[derive(Deserialize, IntoParams)]
struct SessionPath {
    /// The session's id, or `current`: the session that began last among those that live.
    #[param(min_length = 1)]
    session: String,
}

/// An agent in the path.
#[derive(Deserialize, IntoParams)]
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
struct MessagePath {
    /// The session's id, or `current`: the session that began last among those that live.
    #[param(min_length = 1)]
    session: String,
    /// The message's id.
    #[param(min_length = 1)]
    id: String,
}

/// How a question can be refused: with which status, and which codes.
const UNANSWERED: &[(&str, &str)] = &[
    ("401", "`no_token`, `wrong_token`."),
    ("403", "`wrong_origin`."),
    (
        "404",
        "`unknown_session`, `unknown_agent`, `unknown_message`, `unknown_replay`, `no_session`, `no_lead`.",
    ),
    ("409", "What was asked for can't be had now: `no_branch`, `git_failed`."),
    ("421", "`wrong_host`."),
    ("422", "`bad_request`: the place is in the sentence."),
    ("429", "`too_many_requests`, `too_many_streams`, `too_many_waits`."),
    ("503", "`store`: it can't be read; the sentence says why."),
];

/// How a change can be refused. Nothing was changed then.
const UNCHANGED: &[(&str, &str)] = &[
    ("400", "`bad_json`."),
    ("401", "`no_token`, `wrong_token`."),
    ("403", "`wrong_origin`, `urgent_not_allowed`, `not_allowed`, `wrong_code`."),
    (
        "404",
        "`unknown_session`, `unknown_agent`, `unknown_message`, `unknown_replay`, `no_session`, `no_lead`, `not_found`.",
    ),
    ("408", "`slow_body`."),
    (
        "409",
        "`duplicate_id`, `stale_run`, `too_late`, `limit`, `below_spent`, `not_asked`, `ambiguous`, \
        `too_many_rules`, `not_live`, `joined`, `deaf`, `already_live`, `gone_on`, `unsaved_work`, `not_replayable`, `no_branch`, `git_failed`, and what the process \
        says.",
    ),
    ("413", "`body_too_large`."),
    ("415", "`not_json`."),
    ("421", "`wrong_host`."),
    ("422", "`bad_request`, `bad_rule`, `empty`, `too_large`, `invalid_name`, `no_parent`, `to_self`."),
    ("429", "`too_many_requests`, `mailbox_full`, `urgent_rate`."),
    (
        "503",
        "`store`, `failed`: it could not be done; the sentence says why. `shutting_down`: the process \
        ends.",
    ),
];

/// Handlers below a path: their routes, and their part of the document. Whoever wants routes has nothing described:
/// the document takes 6 MB while it is made, and longer than all else that a daemon does at its start.
macro_rules! part {
    (
        $(#[$about:meta])*
        $name:ident($($said:tt)*) { $($module:ident::$handler:ident,)* $($path:literal: $inner:ident)? }
    ) => {
        paste! {
            $(#[$about])*
            #[derive(utoipa::OpenApi)]
            #[openapi($($said)* paths($($module::$handler),*), nest($((path = $path, api = $inner))?))]
            struct $name;

            impl $name {
                fn routes() -> Router<Arc<App>> {
                    Router::new()
                        $(.merge(route::<$module::[<__path_ $handler>], _, _>($module::$handler)))*
                        $(.nest($path, $inner::routes()))?
                }
            }
        }
    };
}

part! {
    /// The interface of a running Midturn.
    OfTheProcess(
        info(title = "Midturn", description = "The interface of a running Midturn."),
        security(("token" = [])),
    ) {
        process::health,
        process::document,
        process::metrics,
        process::stats,
        page::open,
        replays::play,
        replays::keep,
        replays::one,
        sessions::list,
        sessions::begin,
        "/v1/sessions/{session}": OfASession
    }
}

part! {
    /// What is there without a token.
    OfTheDoor() {
        page::sign_in,
    }
}

part! {
    OfASession() {
        sessions::one,
        sessions::resume,
        sessions::shutdown,
        sessions::remove,
        page::leave,
        page::unseen,
        agents::list,
        agents::spawn,
        approvals::list,
        approvals::answer,
        work::session_limits,
        messages::soft_interrupt,
        messages::receipts,
        messages::wait,
        messages::withdraw,
        events::session,
        events::log,
        "/agents/{agent}": OfAnAgent
    }
}

part! {
    OfAnAgent() {
        agents::one,
        agents::conversation,
        agents::plan,
        work::diff,
        work::merge,
        work::stop,
        work::supersede,
        work::resume,
        work::agent_limits,
        work::close,
        messages::queued,
        messages::send,
        events::run,
    }
}

/// A handler, where and how it is asked as its description says.
fn route<P: utoipa::Path, H: Handler<T, Arc<App>>, T: 'static>(handler: H) -> Router<Arc<App>> {
    P::methods().iter().fold(Router::new(), |router, method| {
        router.route(&P::path(), on(method.to_method_filter(), handler.clone()))
    })
}

/// The OpenAPI 3.1 document of the interface, as it is served.
pub fn openapi() -> OpenApi {
    let mut document = OfTheProcess::openapi();
    document.merge(OfTheDoor::openapi());
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().add_security_scheme("token", scheme);
    for (path, mut item) in std::mem::take(&mut document.paths.paths) {
        // What is nested at the top of a part has no slash behind it, as axum routes it.
        let path = path.trim_end_matches('/').to_owned();
        let operations = [(&mut item.get, UNANSWERED), (&mut item.post, UNCHANGED)];
        for (operation, refusals) in operations {
            let Some(operation) = operation else { continue };
            // They would be the names of our modules.
            operation.tags = None;
            operation.responses.responses.extend(refusals.iter().map(refusal));
            let given = named_in(&path).into_iter().map(RefOr::T);
            let others = operation.parameters.take().into_iter().flatten();
            operation.parameters = Some(given.chain(others).collect()).filter(|all: &Vec<_>| !all.is_empty());
        }
        document.paths.paths.insert(path, item);
    }
    document
}

/// A refusal, as the document has it.
fn refusal((status, codes): &(&str, &str)) -> (String, RefOr<Response>) {
    let content = Content::new(Some(Problem::schema()));
    let refusal = Response::builder().description(*codes).content("application/problem+json", content);
    ((*status).to_owned(), refusal.build().into())
}

/// What a path names.
fn named_in(path: &str) -> Vec<Parameter> {
    let of_path = || Some(ParameterIn::Path);
    if path.contains("{tool}") {
        [SessionPath::into_params(of_path), CallPath::into_params(of_path)].concat()
    } else if path.contains("{agent}") {
        AgentPath::into_params(of_path)
    } else if path.contains("{id}") {
        MessagePath::into_params(of_path)
    } else if path.contains("{session}") {
        SessionPath::into_params(of_path)
    } else {
        Vec::new()
    }
}

/// All routes: behind the gate, but for the page's door.
pub(crate) fn router(app: Arc<App>) -> Router {
    let door = OfTheDoor::routes().merge(page::files());
    let door = door.method_not_allowed_fallback(wrong_method).layer(from_fn(host_and_origin));
    OfTheProcess::routes()
        .method_not_allowed_fallback(wrong_method)
        .fallback(no_route)
        .layer(from_fn_with_state(app.clone(), gate))
        .merge(door)
        .layer(from_fn(headed))
        .with_state(app)
}

async fn no_route() -> Refused {
    Refused::not_found("no_route", "there is no such path; `GET /v1/openapi.json` describes all there are")
}

async fn wrong_method() -> Refused {
    let detail = "this path does not take the method; the header `Allow` names those it takes";
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", detail)
}
