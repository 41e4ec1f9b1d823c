//! The obedient model as a server on loopback that speaks Anthropic's Messages. It keeps all
//! that it is sent.

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

use crate::orders::{Order, orders};

/// How many turns of one conversation are obeyed.
const TURNS: usize = 12;

/// The server; it ends when this is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) seen: Arc<Mutex<Seen>>,
    _serving: AbortOnDropHandle<()>,
}

/// What came.
#[derive(Default)]
pub(crate) struct Seen {
    /// The bodies of requests for a reply.
    pub(crate) prompts: Vec<String>,
    /// How many knocked who are no coordinator.
    pub(crate) strangers: usize,
}

impl Server {
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let serving = AbortOnDropHandle::new(tokio::spawn(accept(listener, seen.clone())));
        Ok(Self { port, seen, _serving: serving })
    }
}

async fn accept(listener: TcpListener, seen: Arc<Mutex<Seen>>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, seen.clone()));
    }
}

async fn serve(stream: TcpStream, seen: Arc<Mutex<Seen>>) {
    let service = service_fn(move |request| answer(request, seen.clone()));
    // A connection that a process leaves ends with an error.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<Seen>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let said = match serde_json::from_slice::<Value>(&body) {
        Ok(prompt) => {
            seen.lock().unwrap().prompts.push(String::from_utf8_lossy(&body).into_owned());
            reply(&wanted(&prompt), prompt["messages"].as_array().map_or(0, Vec::len))
        }
        Err(_) => {
            seen.lock().unwrap().strangers += 1;
            String::new()
        }
    };
    let response = Response::builder().header("content-type", "text/event-stream");
    Ok(response.body(Full::new(Bytes::from(said))).unwrap())
}

/// The orders in what has come since the model last spoke.
fn wanted(prompt: &Value) -> Vec<Order> {
    let messages = prompt["messages"].as_array().cloned().unwrap_or_default();
    let spoke = messages.iter().filter(|message| message["role"] == "assistant").count();
    let last = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
    let text: Vec<String> = messages[last..].iter().map(|message| texts(&message["content"])).collect();
    if spoke < TURNS { orders(&text.join("\n"), "agent") } else { Vec::new() }
}

/// All words of a content, those in results too.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Object(block) => texts(block.get("text").or(block.get("content")).unwrap_or(&Value::Null)),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// A reply as server-sent events.
fn reply(orders: &[Order], turn: usize) -> String {
    let start = json!({"message": {"id": "msg", "type": "message", "role": "assistant", "model": "obey",
        "content": [], "stop_reason": null, "usage": {"input_tokens": 10, "output_tokens": 1}}});
    let mut said = event("message_start", start);
    said += &event("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}}));
    said += &event(
        "content_block_delta",
        json!({"index": 0, "delta": {"type": "text_delta", "text": "As you say."}}),
    );
    said += &event("content_block_stop", json!({"index": 0}));
    for (i, order) in orders.iter().enumerate() {
        let block =
            json!({"type": "tool_use", "id": format!("t{turn}-{i}"), "name": order.tool, "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": order.input.to_string()});
        said += &event("content_block_start", json!({"index": i + 1, "content_block": block}));
        said += &event("content_block_delta", json!({"index": i + 1, "delta": delta}));
        said += &event("content_block_stop", json!({"index": i + 1}));
    }
    let reason = if orders.is_empty() { "end_turn" } else { "tool_use" };
    let end = json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}});
    said + &event("message_delta", end) + &event("message_stop", json!({}))
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = kind.into();
    format!("event: {kind}\ndata: {data}\n\n")
}
