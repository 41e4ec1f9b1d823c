//! What comes in, checked before a handler sees it: JSON bodies, paths, queries. Each refusal
//! names the place.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use midturn_wire::BODY_MAX;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::problem::Refused;

/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(30);

/// What a request brings, in JSON.
pub(crate) struct Brought<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Brought<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        if !is_json(request.headers()) {
            let detail = "send `Content-Type: application/json`";
            return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail));
        }
        let body = whole(request.into_body()).await?;
        parse(&body).map(Self)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(first), None) = (types.next(), types.next()) else { return false };
    let media = first.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    let is_encoded = headers.contains_key(header::CONTENT_ENCODING);
    media.trim().eq_ignore_ascii_case("application/json") && !is_encoded
}

async fn whole(body: Body) -> Result<Bytes, Refused> {
    let too_large = || {
        let detail = format!("a body has at most {BODY_MAX} bytes; send less at once");
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    };
    let size = axum::body::HttpBody::size_hint(&body).lower();
    if size > BODY_MAX as u64 {
        return Err(too_large());
    }
    let collected = tokio::time::timeout(BODY_TIME, Limited::new(body, BODY_MAX).collect()).await;
    match collected {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => {
            let detail = "the body broke off; send it whole";
            Err(Refused::new(StatusCode::BAD_REQUEST, "bad_json", detail))
        }
        Err(_) => {
            let detail = format!("the body did not come within {} s", BODY_TIME.as_secs());
            Err(Refused::new(StatusCode::REQUEST_TIMEOUT, "slow_body", detail))
        }
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let place = error.path().to_string();
        refused(error.inner(), &place)
    })?;
    reader.end().map_err(|error| refused(&error, "."))?;
    // A list of a type's fields in their order would fit too, says serde; nobody means that.
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') { Ok(value) } else { Err(Refused::bad_request("send an object: `{…}`")) }
}

fn refused(error: &serde_json::Error, place: &str) -> Refused {
    let at = if place == "." { String::new() } else { format!("`{place}`: ") };
    match error.classify() {
        Category::Data => Refused::bad_request(format!("{at}{error}")),
        Category::Syntax | Category::Eof | Category::Io => {
            let detail = format!("the body is not JSON: {at}{error}");
            Refused::new(StatusCode::BAD_REQUEST, "bad_json", detail)
        }
    }
}

/// What is in the path.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Refused))]
pub(crate) struct Path<T>(pub(crate) T);

/// What is in the query.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Refused))]
pub(crate) struct Query<T>(pub(crate) T);

impl From<PathRejection> for Refused {
    fn from(rejection: PathRejection) -> Self {
        Self::not_found("no_route", format!("there is no such path: {}", rejection.body_text()))
    }
}

impl From<QueryRejection> for Refused {
    fn from(rejection: QueryRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}
