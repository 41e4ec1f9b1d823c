//! The interface, written from docs/protocol.md alone: one connection for each request, because
//! whoever answers may be killed at any moment, and the event stream, block by block.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio_util::task::AbortOnDropHandle;

/// What a request goes over; kept as long as its answer is read.
pub(crate) type Connection = AbortOnDropHandle<()>;

/// The way to a daemon.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) socket: PathBuf,
    pub(crate) token: String,
}

impl Door {
    /// Out of `interface.json`.
    pub(crate) fn of(interface: &Value) -> Result<Self> {
        let socket = interface["socket"].as_str().context("interface.json names no socket")?.into();
        let token = interface["token"].as_str().context("interface.json has no token")?.to_owned();
        Ok(Self { socket, token })
    }

    /// Sends a request and waits for the head of its answer, as long as that takes.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(Response<Incoming>, Connection)> {
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

    /// The events of a session after a number, deltas among them, for one who `answers` or only reads.
    pub(crate) async fn events(&self, session: &str, after: u64, answers: bool) -> Result<Blocks> {
        let path = format!("/sessions/{session}/events?after={after}&answers={answers}");
        let (response, connection) = self.send("GET", &path, None).await?;
        ensure!(response.status() == 200, "the event stream has status {}", response.status());
        Ok(Blocks { body: response.into_body(), text: Vec::new(), _connection: connection })
    }
}

/// One block of an event stream, as far as it has these fields.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) id: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) data: Option<Value>,
}

impl Block {
    pub(crate) fn read(text: &str) -> Self {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            Some(line.trim_start().to_owned())
        };
        let data = field("data").and_then(|data| serde_json::from_str(&data).ok());
        Self { id: field("id"), event: field("event"), data }
    }
}

/// An event stream.
pub(crate) struct Blocks {
    body: Incoming,
    text: Vec<u8>,
    _connection: Connection,
}

impl Blocks {
    /// The next block. `None`: the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Block> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.text, b"\n\n") {
                let block: Vec<u8> = self.text.drain(..end + 2).collect();
                return Some(Block::read(&String::from_utf8_lossy(&block)));
            }
            let frame = self.body.frame().await?.ok()?;
            self.text.extend_from_slice(frame.data_ref()?);
        }
    }
}
