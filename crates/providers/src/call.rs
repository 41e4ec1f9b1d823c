//! One call: from the limiter to the whole reply, or to what went wrong.
//!
//! Whoever cancels the call's token gets the connection dropped at once. A reply that is whole
//! stands, whatever happens to the connection afterwards.

use std::error::Error;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use midturn_core::engine::ports::model::{ErrorKind, ModelFailure, Progress, Request};
use midturn_core::rules::conversation::Reply;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Response, StatusCode};
use tokio::time::{Instant, sleep_until, timeout};

use crate::body::Body;
use crate::config::Endpoint;
use crate::decode::Stream;
use crate::dialect::ended_early;
use crate::failure::{retry_after, said_in_body, shorten, status_kind};
use crate::link::Link;

/// How long figures may take to follow a reply that is whole.
const SETTLE: Duration = Duration::from_secs(1);

/// How long the end of the response is waited for, so that the connection can be used again.
const DRAIN: Duration = Duration::from_millis(10);

/// How much of an error's body is read.
const ERROR_BODY: usize = 64 << 10;

/// Makes one attempt.
pub(crate) async fn call(
    link: &Link,
    body: Vec<Bytes>,
    request: &Request<'_>,
) -> Result<Reply, ModelFailure> {
    let Endpoint { dialect, max_event_bytes, .. } = *link.endpoint;
    let mut stream = Stream::new(dialect, max_event_bytes, request.call, request.progress);
    let reply = async {
        let turn = link.limiter.enter().await;
        let mut response = send(link, body, request.progress).await?;
        if let Some(failure) = refusal(link, &response) {
            return Err(with_body(link, failure, &mut response).await);
        }
        stream.read(link, &mut response).await?;
        Ok((turn, response))
    };
    let cancelled = request.cancel.cancelled();
    let mut cancelled = std::pin::pin!(cancelled);
    let whole = tokio::select! {
        biased;
        () = &mut cancelled => Err(ModelFailure::new(ErrorKind::Cancelled, "the call was cut")),
        whole = reply => whole,
    };
    let (_turn, mut response) = whole.map_err(|failure| told(link, failure))?;
    // Either way the reply is whole: all that is won is figures, and the connection.
    tokio::select! {
        biased;
        () = &mut cancelled => {}
        () = stream.settle(&mut response) => {}
    }
    stream.finish()
}

/// Everything that leaves this crate passes here: keys are taken out, and a wish to wait
/// holds the other calls under the key back, too.
pub(crate) fn told(link: &Link, failure: ModelFailure) -> ModelFailure {
    let limited = matches!(failure.kind, ErrorKind::RateLimited | ErrorKind::Overloaded);
    if let (true, Some(wait)) = (limited, failure.retry_after) {
        link.limiter.hold(wait.duration());
    }
    ModelFailure { message: link.redact(failure.message), ..failure }
}

fn connection(message: String) -> ModelFailure {
    ModelFailure::new(ErrorKind::Connection, message)
}

/// Sends the request and waits for the head of the response.
async fn send(link: &Link, body: Vec<Bytes>, progress: &dyn Progress) -> Result<Response, ModelFailure> {
    let (body, all_taken) = Body::new(body);
    let mut request = reqwest::Request::new(Method::POST, link.url.clone());
    *request.headers_mut() = link.headers.clone();
    *request.body_mut() = Some(reqwest::Body::wrap(body));
    let sending = link.client.execute(request);
    let mut sending = std::pin::pin!(sending);
    let mut all_taken = std::pin::pin!(all_taken);
    let mut is_sent = false;
    let mut silent_until = Instant::now() + link.idle_timeout();
    loop {
        tokio::select! {
            biased;
            taken = &mut all_taken, if !is_sent => {
                is_sent = true;
                silent_until = Instant::now() + link.idle_timeout();
                // A body that was dropped was never handed over; what became of the request,
                // `sending` says.
                if taken.is_ok() {
                    progress.sent();
                }
            }
            response = &mut sending => return response.map_err(|error| broken(link, &error)),
            () = sleep_until(silent_until) => return Err(silent(link)),
        }
    }
}

pub(crate) fn silent(link: &Link) -> ModelFailure {
    let (name, after) = (&link.name, link.idle_timeout().as_secs_f64());
    connection(format!("{name} sent nothing for {after} s; `timeouts.idle` sets how long that may take"))
}

pub(crate) fn broken(link: &Link, error: &reqwest::Error) -> ModelFailure {
    let host = format!("{}{}", link.url.host_str().unwrap_or_default(), link.way());
    let what = if error.is_connect() {
        format!("no connection to {host} (is the base URL right, and the network up?)")
    } else {
        format!("the connection to {host} broke")
    };
    connection(shorten(&format!("{what}: {}", causes(error))))
}

/// The causes alone: the error itself names the whole URL.
fn causes(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (**cause).source());
    let causes: Vec<_> = causes.map(ToString::to_string).collect();
    if causes.is_empty() && error.is_timeout() { "timed out".to_owned() } else { causes.join(": ") }
}

/// What a response says that is not a stream of events; its body hasn't been read.
pub(crate) fn refusal(link: &Link, response: &Response) -> Option<ModelFailure> {
    let status = response.status();
    if status == StatusCode::OK {
        return not_a_stream(response);
    }
    let hint = match status.as_u16() {
        300..=399 => " (redirects are not followed: set the base URL to where it leads)".to_owned(),
        401 | 403 => format!(" ({})", link.login()),
        404 => " (check the model's name and the base URL)".to_owned(),
        _ => String::new(),
    };
    let retry_after = retry_after(response.headers(), SystemTime::now());
    let wait = retry_after.map(|wait| format!(", and asks to wait {wait}")).unwrap_or_default();
    let (name, way, status) = (&link.name, link.way(), (status.as_u16(), status_kind(status)));
    let message = format!("{name} answered {}{way}{wait}{hint}", status.0);
    Some(ModelFailure { retry_after, ..ModelFailure::new(status.1, message) })
}

/// A server that doesn't stream will not do better next time.
fn not_a_stream(response: &Response) -> Option<ModelFailure> {
    let kind = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let wrong = ["text/html", "application/json"].iter().any(|wrong| kind.starts_with(wrong));
    wrong.then(|| {
        let message = format!(
            "the server answered with {kind} where a stream of events was expected (check the base URL)"
        );
        ModelFailure::new(ErrorKind::InvalidRequest, shorten(&message))
    })
}

/// The failure with what the body says, as far as it comes.
pub(crate) async fn with_body(
    link: &Link,
    mut failure: ModelFailure,
    response: &mut Response,
) -> ModelFailure {
    let mut body = Vec::new();
    while body.len() < ERROR_BODY {
        match timeout(link.idle_timeout(), response.chunk()).await {
            Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
            // The status alone says what the failure is: its text may be incomplete.
            Ok(Ok(None) | Err(_)) | Err(_) => break,
        }
    }
    let said = said_in_body(&body);
    if !said.is_empty() {
        failure.message = format!("{}: {said}", failure.message);
    }
    let ids = ["request-id", "x-request-id"].iter().find_map(|name| response.headers().get(*name));
    if let Some(id) = ids.and_then(|id| id.to_str().ok()) {
        failure.message = format!("{} [request {}]", failure.message, shorten(id));
    }
    failure
}

impl Stream<'_> {
    /// Reads until the reply is whole.
    async fn read(&mut self, link: &Link, response: &mut Response) -> Result<(), ModelFailure> {
        while !self.is_whole() {
            let chunk = timeout(link.idle_timeout(), response.chunk()).await.map_err(|_| silent(link))?;
            self.take(&chunk.map_err(|error| broken(link, &error))?.ok_or_else(ended_early)?)?;
        }
        Ok(())
    }

    /// Reads the figures that follow, and the end. Whatever fails now, the reply is whole.
    async fn settle(&mut self, response: &mut Response) {
        let figures = async {
            while !self.is_done {
                match response.chunk().await {
                    Ok(Some(bytes)) if self.take(&bytes).is_ok() => {}
                    _ => self.is_done = true,
                }
            }
        };
        if timeout(SETTLE, figures).await.is_ok() {
            // Whether the end came in time only decides whether the connection is used again.
            let _end = timeout(DRAIN, response.chunk()).await;
        }
    }
}
