//! A client of docs/protocol.md, written from that page alone: one connection for each request,
//! because whoever answers may be killed at any moment.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// How long an answer may take: a daemon that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came of a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A status and a body.
    Said(u16, Value),
    /// The connection broke: nobody knows what came of it.
    Lost(#[allow(dead_code, reason = "shown where an answer is shown")] String),
    /// The daemon lives and says nothing.
    Silent,
}

impl Answer {
    pub(crate) fn ok(self) -> Option<Value> {
        match self {
            Self::Said(200..300, body) => Some(body),
            Self::Said(..) | Self::Lost(_) | Self::Silent => None,
        }
    }

    /// The stable word of a refusal.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Said(400.., body) => body["code"].as_str(),
            Self::Said(..) | Self::Lost(_) | Self::Silent => None,
        }
    }
}

/// The way to a daemon.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    socket: PathBuf,
    token: String,
}

impl Api {
    /// Out of `interface.json`.
    pub(crate) fn of(interface: &Value) -> Result<Self> {
        let socket = interface["socket"].as_str().context("interface.json names no socket")?.into();
        let token = interface["token"].as_str().context("interface.json has no token")?.to_owned();
        Ok(Self { socket, token })
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, Some(body)).await
    }

    async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        match timeout(PATIENCE, self.exchange(method, path, body)).await {
            Ok(Ok((status, body))) => Answer::Said(status, body),
            Ok(Err(error)) => Answer::Lost(format!("{error:#}")),
            Err(_) => Answer::Silent,
        }
    }

    async fn exchange(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let (response, _connection) = self.send(method, path, body).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        let body = serde_json::from_slice(&body).with_context(|| format!("status {status} and no JSON"))?;
        Ok((status, body))
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

    /// The events after a number, as they come.
    pub(crate) async fn events(&self, session: &str, after: u64) -> Result<Events> {
        let path = format!("/sessions/{session}/events?after={after}");
        let (response, connection) = timeout(PATIENCE, self.send("GET", &path, None)).await??;
        anyhow::ensure!(response.status() == 200, "the event stream has status {}", response.status());
        Ok(Events { body: response.into_body(), text: Vec::new(), _connection: connection })
    }
}

/// An event as it came.
#[derive(Debug)]
pub(crate) enum Told {
    /// A stored one: its number as the stream has it, and its JSON.
    Stored(u64, Value),
    /// The stream has to be begun anew.
    Resync(Value),
}

/// An event stream.
pub(crate) struct Events {
    body: Incoming,
    text: Vec<u8>,
    _connection: AbortOnDropHandle<()>,
}

impl Events {
    /// The next event that is no delta. `None`: the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.text.drain(..end + 2).collect();
                match told(&String::from_utf8_lossy(&block)) {
                    Some(told) => return Some(told),
                    None => continue,
                }
            }
            let frame = self.body.frame().await?.ok()?;
            self.text.extend_from_slice(frame.data_ref()?);
        }
    }
}

fn told(block: &str) -> Option<Told> {
    let field = |name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim_start())
    };
    let data = || serde_json::from_str(field("data")?).ok();
    match (field("id"), field("event")) {
        (Some(id), _) => Some(Told::Stored(id.parse().ok()?, data()?)),
        (None, Some("resync")) => Some(Told::Resync(data().unwrap_or_default())),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_events_have_an_id_and_deltas_have_none() {
        assert!(matches!(told("id: 3\nevent: a\ndata: {\"seq\":3}\n\n"), Some(Told::Stored(3, _))));
        assert!(matches!(told("event: resync\ndata: {\"last\":2}\n\n"), Some(Told::Resync(_))));
        assert!(told("event: text_delta\ndata: {}\n\n").is_none());
        assert!(told(": still here\n\n").is_none());
    }
}
