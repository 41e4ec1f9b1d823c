//! The gate that every request passes before anything else looks at it: host, origin, token,
//! rate, in this order. It never looks at the body.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use midturn_core::rules::mail::Sender;

use crate::app::App;
use crate::problem::Refused;
use crate::serve::Peer;

/// Who asks: what the token says, and nothing else.
#[derive(Clone, Debug)]
pub(crate) struct Asker(pub(crate) Sender);

impl Asker {
    /// Refuses who is an agent: its word approves nothing and raises no limit (semantics.md,
    /// sections 7 and 9).
    pub(crate) fn must_be_a_person(&self) -> Result<(), Refused> {
        if self.0 == Sender::User {
            return Ok(());
        }
        let detail = "only a person answers requests and sets limits: this token is an agent's";
        Err(Refused::new(StatusCode::FORBIDDEN, "not_allowed", detail))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asker {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        parts.extensions.get::<Self>().cloned().ok_or_else(no_token)
    }
}

/// Lets through who may ask, and says who it is.
pub(crate) async fn gate(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    match admitted(&app, &request) {
        Ok(asker) => {
            request.extensions_mut().insert(asker);
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    }
}

/// Nothing of this interface is kept by a browser, or taken for something else than it says it is.
pub(crate) async fn headed(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The first half of the gate, for what is there without a token: the page itself, and its signing in.
pub(crate) async fn host_and_origin(request: Request, next: Next) -> Response {
    match comes_from_here(&request) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

fn comes_from_here(request: &Request) -> Result<(), Refused> {
    let names = request.extensions().get::<Peer>().map(|peer| peer.names.clone()).unwrap_or_default();
    let host = host(request, &names)?;
    origin(request.headers(), host)
}

fn admitted(app: &App, request: &Request) -> Result<Asker, Refused> {
    comes_from_here(request)?;
    let holder = app.tokens.holder(token(request)?).ok_or_else(|| {
        let detail =
            "the token is not this process's: read it again from interface.json, it changes with each start; a page signs in with `midturn open`";
        Refused::new(StatusCode::UNAUTHORIZED, "wrong_token", detail)
    })?;
    holder.meter.count().map_err(|seconds| {
        Refused::too_many("too_many_requests", "too many requests with this token; wait", seconds)
    })?;
    Ok(Asker(holder.sender.clone()))
}

/// The one header of that name; several count as none.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut all = headers.get_all(name).iter();
    all.next().filter(|_| all.next().is_none())
}

fn host<'a>(request: &'a Request, names: &[String]) -> Result<&'a str, Refused> {
    let wrong = || {
        let detail = format!("this interface answers to `Host: {}` only", names.join("`, `"));
        Refused::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", detail)
    };
    let ours = |name: &str| names.iter().any(|known| known == name);
    // What the request line says, if it says anything, counts like the header.
    let line = request.uri().authority().map(axum::http::uri::Authority::as_str);
    let host = single(request.headers(), &header::HOST).and_then(|host| host.to_str().ok());
    let host = host.filter(|host| ours(host)).ok_or_else(wrong)?;
    if line.is_some_and(|line| line != host) { Err(wrong()) } else { Ok(host) }
}

fn origin(headers: &HeaderMap, host: &str) -> Result<(), Refused> {
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = single(headers, &header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let is_ours = origin.and_then(|origin| origin.strip_prefix("http://")).is_some_and(|of| of == host);
    if is_ours {
        return Ok(());
    }
    let detail = "no other page may use this interface";
    Err(Refused::new(StatusCode::FORBIDDEN, "wrong_origin", detail))
}

fn no_token() -> Refused {
    let detail =
        "send `Authorization: Bearer TOKEN`, once, with the token of interface.json; never in the URL";
    Refused::new(StatusCode::UNAUTHORIZED, "no_token", detail)
}

fn token(request: &Request) -> Result<&[u8], Refused> {
    if has_token(request.uri()) {
        return Err(no_token());
    }
    let given = single(request.headers(), &header::AUTHORIZATION).ok_or_else(no_token)?.as_bytes();
    let (scheme, token) = given.split_at_checked(7).ok_or_else(no_token)?;
    if scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty() { Ok(token) } else { Err(no_token()) }
}

/// Whether somebody put a token where logs and histories keep it.
fn has_token(uri: &Uri) -> bool {
    let pairs = uri.query().unwrap_or_default().split('&');
    let mut keys = pairs.map(|pair| pair.split('=').next().unwrap_or_default());
    keys.any(|key| ["token", "access_token"].iter().any(|word| key.eq_ignore_ascii_case(word)))
}
