//! A model server on loopback that speaks Anthropic's Messages, answers by [`rule`](crate::rule)
//! and looks at every request it gets. It outlives the daemons that ask it.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use futures_util::stream::{self, Stream, StreamExt};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::breach::Breaches;
use crate::prompts::Prompts;
use crate::rule::{Ground, Manner, Reply};

/// How long a slow reply waits before each word, and a late one before it begins.
const PACE: Duration = Duration::from_millis(12);
const LATE: Duration = Duration::from_millis(40);

type Body = BoxBody<Bytes, std::io::Error>;

/// The server; it ends when this is dropped.
pub(crate) struct Model {
    pub(crate) url: String,
    pub(crate) prompts: Arc<Mutex<Prompts>>,
    connections: watch::Receiver<usize>,
    _serving: AbortOnDropHandle<()>,
}

/// A server that says the same to everybody, and looks at nothing.
pub(crate) struct Plain {
    pub(crate) url: String,
    connections: watch::Receiver<usize>,
    _serving: AbortOnDropHandle<()>,
}

impl Plain {
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (tell, connections) = watch::channel(0);
        let serving = AbortOnDropHandle::new(tokio::spawn(accept(listener, tell, says_done)));
        Ok(Self { url, connections, _serving: serving })
    }

    /// How many connections are open, those that wait to be used again among them.
    pub(crate) fn connections(&self) -> usize {
        *self.connections.borrow()
    }
}

async fn says_done(request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    request.into_body().collect().await?;
    Ok(whole(pieces(&Reply { text: "It is done.".to_owned(), calls: Vec::new() }, 10)))
}

struct Shared {
    ground: Ground,
    breaches: Arc<Breaches>,
    prompts: Arc<Mutex<Prompts>>,
    /// Prompts that have had their error.
    failed: Mutex<HashSet<String>>,
}

impl Model {
    pub(crate) async fn start(ground: Ground, breaches: Arc<Breaches>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (tell, connections) = watch::channel(0);
        let prompts = Arc::new(Mutex::new(Prompts::default()));
        let failed = Mutex::default();
        let shared = Arc::new(Shared { ground, breaches, prompts: prompts.clone(), failed });
        let answer = move |request| {
            let shared = shared.clone();
            async move { shared.answer(request).await }
        };
        let serving = AbortOnDropHandle::new(tokio::spawn(accept(listener, tell, answer)));
        Ok(Self { url, prompts, connections, _serving: serving })
    }

    /// Waits until all that a dead daemon has sent is read.
    pub(crate) async fn quiet(&self) -> bool {
        let mut connections = self.connections.clone();
        let quiet = connections.wait_for(|count| *count == 0);
        tokio::time::timeout(Duration::from_secs(10), quiet).await.is_ok_and(|quiet| quiet.is_ok())
    }
}

async fn accept<F>(
    listener: TcpListener,
    connections: watch::Sender<usize>,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Result<Response<Body>, hyper::Error>> + Send + 'static,
{
    while let Ok((stream, _)) = listener.accept().await {
        connections.send_modify(|count| *count += 1);
        let (connections, answer) = (connections.clone(), answer.clone());
        tokio::spawn(async move {
            serve(stream, answer).await;
            connections.send_modify(|count| *count -= 1);
        });
    }
}

async fn serve<F>(stream: TcpStream, answer: impl Fn(Request<Incoming>) -> F)
where
    F: Future<Output = Result<Response<Body>, hyper::Error>>,
{
    let _ = stream.set_nodelay(true);
    let service = service_fn(answer);
    // A connection that a killed daemon leaves ends with an error, and so does one we break.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
        // Half a request of a daemon that was killed is none.
        let body = request.into_body().collect().await?.to_bytes();
        let arrived = self.prompts.lock().unwrap().arrived(&body, &self.ground, &self.breaches);
        let Some(arrived) = arrived else {
            return Ok(refusal(400, "invalid_request_error"));
        };
        let conversation = arrived.conversation();
        let reply = conversation.reply(&self.ground);
        let said = || pieces(&reply, conversation.tokens());
        let first = self.failed.lock().unwrap().insert(reply.text.clone());
        Ok(match conversation.manner() {
            Manner::Refused => refusal(400, "invalid_request_error"),
            Manner::Overloaded if first => refusal(529, "overloaded_error"),
            Manner::Broken if first => broken(said()),
            Manner::Slowly => paced(said(), PACE),
            Manner::Late => paced(vec![said().concat()], LATE),
            Manner::AtOnce | Manner::Overloaded | Manner::Broken => whole(said()),
        })
    }
}

fn refusal(status: u16, kind: &str) -> Response<Body> {
    let said = json!({"type": "error", "error": {"type": kind, "message": "as the harness has it"}});
    let body = Full::new(Bytes::from(said.to_string())).map_err(never).boxed();
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.header("retry-after", "0").body(body).unwrap()
}

fn never(never: Infallible) -> std::io::Error {
    match never {}
}

fn streamed(pieces: impl Stream<Item = std::io::Result<String>> + Send + Sync + 'static) -> Response<Body> {
    let frames = pieces.map(|piece| piece.map(|text| Frame::data(Bytes::from(text))));
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(BodyExt::boxed(StreamBody::new(frames))).unwrap()
}

fn whole(pieces: Vec<String>) -> Response<Body> {
    streamed(stream::iter(pieces.into_iter().map(Ok)))
}

/// Breaks off when half is said.
fn broken(pieces: Vec<String>) -> Response<Body> {
    let half = pieces.len() / 2;
    let said = pieces.into_iter().take(half).map(Ok);
    streamed(stream::iter(said.chain([Err(std::io::Error::other("broken on purpose"))])))
}

fn paced(pieces: Vec<String>, pace: Duration) -> Response<Body> {
    let first = tokio::time::Instant::now() + pace;
    let clock = tokio::time::interval_at(first, pace);
    streamed(stream::unfold((clock, pieces.into_iter()), |(mut clock, mut pieces)| async {
        let piece = pieces.next()?;
        clock.tick().await;
        Some((Ok(piece), (clock, pieces)))
    }))
}

/// A reply as server-sent events, in as many pieces as its text has words.
fn pieces(reply: &Reply, input_tokens: usize) -> Vec<String> {
    let start = json!({"message": {"id": "msg", "type": "message", "role": "assistant", "model": "crash",
        "content": [], "stop_reason": null, "usage": {"input_tokens": input_tokens, "output_tokens": 1}}});
    let mut pieces = vec![event("message_start", start)];
    pieces[0] +=
        &event("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}}));
    for word in reply.text.split_inclusive(' ') {
        let delta = json!({"type": "text_delta", "text": word});
        pieces.push(event("content_block_delta", json!({"index": 0, "delta": delta})));
    }
    let mut end = event("content_block_stop", json!({"index": 0}));
    for (i, call) in reply.calls.iter().enumerate() {
        let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": call.input.to_string()});
        end += &event("content_block_start", json!({"index": i + 1, "content_block": block}));
        end += &event("content_block_delta", json!({"index": i + 1, "delta": delta}));
        end += &event("content_block_stop", json!({"index": i + 1}));
    }
    let reason = if reply.calls.is_empty() { "end_turn" } else { "tool_use" };
    end += &event("message_delta", json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}}));
    end += &event("message_stop", json!({}));
    pieces.push(end);
    pieces
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = kind.into();
    format!("event: {kind}\ndata: {data}\n\n")
}
