//! A client of docs/protocol.md: one connection for each request, and the event stream with its
//! deltas. Every wait in it has a bound.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// How long an answer may take, whatever a hostile program does meanwhile.
const PATIENCE: Duration = Duration::from_secs(20);

/// The way to a daemon.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) socket: PathBuf,
    pub(crate) token: String,
}

impl Api {
    /// Out of `interface.json`.
    pub(crate) fn of(interface: &Value) -> Result<Self> {
        let socket = interface["socket"].as_str().context("interface.json names no socket")?.into();
        let token = interface["token"].as_str().context("interface.json has no token")?.to_owned();
        Ok(Self { socket, token })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        self.ask("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", path, Some(body)).await
    }

    async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let exchange = async {
            let (response, _connection) = self.send(method, path, body).await?;
            let status = response.status();
            let text = response.into_body().collect().await?.to_bytes();
            ensure!(status.is_success(), "{method} {path}: {status}: {}", String::from_utf8_lossy(&text));
            Ok(serde_json::from_slice(&text)?)
        };
        let seconds = PATIENCE.as_secs();
        timeout(PATIENCE, exchange)
            .await
            .with_context(|| format!("{method} {path}: silent for {seconds} s"))?
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(Response<Incoming>, AbortOnDropHandle<()>)> {
        let stream = UnixStream::connect(&self.socket).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let connection = AbortOnDropHandle::new(tokio::spawn(async move {
            // What goes wrong with it is told to the request.
            let _ = connection.await;
        }));
        let mut request = Request::builder().method(method).uri(format!("/v1{path}"));
        request = request.header("host", "midturn").header("authorization", format!("Bearer {}", self.token));
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        Ok((sender.send_request(request.body(Full::new(body))?).await?, connection))
    }

    /// The events from the first on, deltas too.
    pub(crate) async fn events(&self, session: &str, after: u64) -> Result<Events> {
        let path = format!("/sessions/{session}/events?after={after}");
        let (response, connection) = timeout(PATIENCE, self.send("GET", &path, None)).await??;
        ensure!(response.status() == 200, "the event stream has status {}", response.status());
        Ok(Events { body: response.into_body(), text: Vec::new(), _connection: connection })
    }
}

/// An event stream.
pub(crate) struct Events {
    body: Incoming,
    text: Vec<u8>,
    _connection: AbortOnDropHandle<()>,
}

impl Events {
    /// The next event's type and JSON. `None`: the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            while let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.text.drain(..end + 2).collect();
                if let Some(event) = event(&String::from_utf8_lossy(&block)) {
                    return Some(event);
                }
            }
            let frame = self.body.frame().await?.ok()?;
            self.text.extend_from_slice(frame.data_ref()?);
        }
    }
}

fn event(block: &str) -> Option<(String, Value)> {
    let field = |name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim_start())
    };
    Some((field("event")?.to_owned(), serde_json::from_str(field("data")?).ok()?))
}
