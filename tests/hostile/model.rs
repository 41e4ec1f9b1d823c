//! A model server on loopback that speaks Anthropic's Messages and does as it is told: the last
//! text that a person wrote has the calls of each turn, [`STEPS`] before them. It keeps what it
//! is sent, so that secrets in it are found.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use crate::canary::Canaries;

/// Before the turns of a task: `[[{"name": …, "input": …}, …], …]`.
pub(crate) const STEPS: &str = "@steps ";

/// The server; it ends when this is dropped.
pub(crate) struct Model {
    pub(crate) port: u16,
    _serving: AbortOnDropHandle<()>,
}

impl Model {
    pub(crate) async fn start(canaries: Arc<Mutex<Canaries>>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        Ok(Self { port, _serving: AbortOnDropHandle::new(tokio::spawn(accept(listener, canaries))) })
    }
}

async fn accept(listener: TcpListener, canaries: Arc<Mutex<Canaries>>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, canaries.clone()));
    }
}

async fn serve(stream: TcpStream, canaries: Arc<Mutex<Canaries>>) {
    let service = service_fn(move |request| answer(request, canaries.clone()));
    // A connection that a daemon leaves ends with an error.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    canaries: Arc<Mutex<Canaries>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    canaries.lock().unwrap().look("a prompt", &body);
    let said = match serde_json::from_slice::<Value>(&body) {
        Ok(prompt) => reply(&calls(&prompt)),
        // A hostile program may knock here too.
        Err(_) => String::new(),
    };
    let response = Response::builder().header("content-type", "text/event-stream");
    Ok(response.body(Full::new(Bytes::from(said))).unwrap())
}

/// The calls of the turn that the conversation has come to.
fn calls(prompt: &Value) -> Vec<Value> {
    let mut turn = 0;
    for message in prompt["messages"].as_array().into_iter().flatten().rev() {
        if message["role"] == "assistant" {
            turn += 1;
        } else if let Some(steps) = steps(message) {
            return steps.get(turn).and_then(Value::as_array).cloned().unwrap_or_default();
        }
    }
    Vec::new()
}

fn steps(message: &Value) -> Option<Vec<Value>> {
    let texts =
        message["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    let given = texts.rev().find_map(|text| text.split_once(STEPS))?.1;
    // A bracket may follow that was put around the text.
    serde_json::Deserializer::from_str(given).into_iter::<Vec<Value>>().next()?.ok()
}

/// A reply as server-sent events.
fn reply(calls: &[Value]) -> String {
    let start = json!({"message": {"id": "msg", "type": "message", "role": "assistant", "model": "hostile",
        "content": [], "stop_reason": null, "usage": {"input_tokens": 10, "output_tokens": 1}}});
    let mut said = event("message_start", start);
    let text = if calls.is_empty() { "Done." } else { "As you say." };
    said += &event("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}}));
    let delta = json!({"type": "text_delta", "text": text});
    said += &event("content_block_delta", json!({"index": 0, "delta": delta}));
    said += &event("content_block_stop", json!({"index": 0}));
    for (i, call) in calls.iter().enumerate() {
        let block = json!({"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": call["input"].to_string()});
        said += &event("content_block_start", json!({"index": i + 1, "content_block": block}));
        said += &event("content_block_delta", json!({"index": i + 1, "delta": delta}));
        said += &event("content_block_stop", json!({"index": i + 1}));
    }
    let reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
    let end = json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}});
    said + &event("message_delta", end) + &event("message_stop", json!({}))
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = kind.into();
    format!("event: {kind}\ndata: {data}\n\n")
}
