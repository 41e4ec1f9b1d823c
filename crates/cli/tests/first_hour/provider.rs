//! A provider's server on loopback, and a proxy: each connection is answered as a test says.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::common;

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) body: Value,
}

/// Answers so many requests, each on a connection of its own, and hands them over.
pub(crate) fn server(
    requests: usize,
    answer: impl Fn(&Asked) -> String + Send + 'static,
) -> (SocketAddr, JoinHandle<Vec<Asked>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = std::thread::spawn(move || {
        let one = |_| {
            common::until_ready(&listener, "a request");
            let mut stream = listener.accept().unwrap().0;
            let asked = read(&stream);
            stream.write_all(answer(&asked).as_bytes()).unwrap();
            asked
        };
        (0..requests).map(one).collect()
    });
    (address, served)
}

fn read(stream: &TcpStream) -> Asked {
    let (_, body) = common::request(stream);
    Asked { body: serde_json::from_slice(&body).unwrap_or_default() }
}

/// A response of a status that is not 200, with headers besides.
pub(crate) fn refused(status: &str, headers: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
}

/// A whole reply in Anthropic's dialect: words, or a call.
pub(crate) fn reply(text: &str, call: Option<(&str, Value)>) -> String {
    let event = |kind: &str, mut data: Value| {
        data["type"] = kind.into();
        format!("event: {kind}\ndata: {data}\n\n")
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "content": [], "model": "x",
                         "stop_reason": null, "usage": usage});
    let (block, delta, reason) = match &call {
        None => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}), "end_turn")
        }
        Some((name, input)) => (
            json!({"type": "tool_use", "id": "t1", "name": name, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            "tool_use",
        ),
    };
    let events = [
        event("message_start", json!({"message": message})),
        event("content_block_start", json!({"index": 0, "content_block": block})),
        event("content_block_delta", json!({"index": 0, "delta": delta})),
        event("content_block_stop", json!({"index": 0})),
        event("message_delta", json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}})),
        event("message_stop", json!({})),
    ];
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{}",
        events.concat()
    )
}
