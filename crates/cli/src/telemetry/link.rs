//! How traces leave: the exporter's HTTP client, over the client that the model calls use too.
//!
//! The exporter works on a thread of its own that knows no runtime, and it goes on while the
//! process's own runtime ends; so the connection has a small runtime of its own.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use midturn_providers::tls;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use reqwest::Client;
use tokio::runtime::Handle;

use super::settings::Settings;

/// Of an answer no more than this is read: it says which spans were refused.
const ANSWER_MAX: usize = 64 * 1024;

/// A connection to the collector.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    runtime: Handle,
    /// Whether the last request failed: of a row of failures only the first is told.
    failing: AtomicBool,
}

impl Link {
    /// A connection to be made when something is sent.
    ///
    /// # Errors
    /// TLS or the client can't be set up; the text says what to do.
    pub(super) fn new(settings: &Settings, runtime: Handle) -> Result<Self, String> {
        let secure = settings.endpoint.starts_with("https:");
        let client = Client::builder()
            .user_agent(concat!("midturn/", env!("CARGO_PKG_VERSION")))
            .timeout(settings.timeout)
            // Its headers may carry a key, which would go where nobody sent it.
            .redirect(reqwest::redirect::Policy::none())
            .tls_backend_preconfigured(tls(secure)?)
            .build()
            .map_err(|error| format!("the HTTP client can't be made: {error}"))?;
        Ok(Self { client, runtime, failing: AtomicBool::new(false) })
    }

    /// Tells of the first failure after a success, and of nothing else.
    fn remark(&self, answer: &Result<Response<Bytes>, String>) {
        let trouble = match answer {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("the collector answered {}", response.status())),
            Err(error) => Some(error.clone()),
        };
        let failed_before = self.failing.swap(trouble.is_some(), Ordering::Relaxed);
        if let Some(trouble) = trouble.filter(|_| !failed_before) {
            tracing::warn!("traces are not delivered: {trouble}; see the OTEL_EXPORTER_OTLP_ variables");
        }
    }
}

#[async_trait]
impl HttpClient for Link {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let answer = self.runtime.spawn(exchange(self.client.clone(), request)).await;
        let answer = answer.unwrap_or_else(|error| Err(error.to_string()));
        self.remark(&answer);
        answer.map_err(HttpError::from)
    }
}

/// What went wrong at the bottom: "connection refused" says more than "the request failed".
/// The URL is no part of it: it may hold a password.
fn deepest(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// One request and its answer.
async fn exchange(client: Client, request: reqwest::Request) -> Result<Response<Bytes>, String> {
    let mut response = client.execute(request).await.map_err(deepest)?;
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(deepest)? {
        if body.len() + chunk.len() > ANSWER_MAX {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    let mut answer = Response::new(body.freeze());
    *answer.status_mut() = response.status();
    *answer.headers_mut() = std::mem::take(response.headers_mut());
    Ok(answer)
}
