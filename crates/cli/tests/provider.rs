//! From the configuration to the wire: a run against a server on loopback that speaks
//! Anthropic's protocol. What a provider's crate does with a stream is tested there; here it
//! is what the command line put into the request.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use common::Place;
use serde_json::Value;

const REPLY: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"x","stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// Answers one request and hands over its head and its body.
fn server() -> (String, JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answered = std::thread::spawn(move || {
        common::until_ready(&listener, "a request");
        answer(listener.accept().unwrap().0)
    });
    (url, answered)
}

fn answer(stream: TcpStream) -> (String, Value) {
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let mut reader = BufReader::new(&stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
        head.push('\n');
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let headers = "content-type: text/event-stream\r\nconnection: close";
    write!(&stream, "HTTP/1.1 200 OK\r\n{headers}\r\n\r\n{REPLY}").unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

#[test]
fn a_run_asks_the_configured_server_with_the_key_of_the_environment() {
    let (url, answered) = server();
    let place = Place::new();
    place.write("repo/AGENTS.md", "Indent with tabs.");
    place.write("repo/midturn.toml", "model = \"quick\"\naliases.quick = \"anthropic/small\"\nproviders.anthropic.max_output_tokens = 77\n");
    let said = place
        .midturn("repo", &["run", "Say hello"])
        .env("ANTHROPIC_BASE_URL", &url)
        .env("ANTHROPIC_API_KEY", "sk-of-the-test")
        .output()
        .unwrap();
    let told = String::from_utf8(said.stderr).unwrap();
    assert_eq!((said.status.code(), said.stdout.as_slice()), (Some(0), &b"Hello.\n"[..]), "{told}");
    let (head, body) = answered.join().unwrap();
    assert!(head.starts_with("post /v1/messages") && head.contains("x-api-key: sk-of-the-test"), "{head}");
    assert_eq!((body["model"].as_str(), body["max_tokens"].as_u64()), (Some("small"), Some(77)));
    let system = body["system"].to_string();
    assert!(system.contains("Indent with tabs.") && system.contains("`lead`"), "{system}");
    let tools: Vec<&str> =
        body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    for tool in ["bash", "read", "edit", "write", "grep", "glob", "spawn_agent", "send_message"] {
        assert!(tools.contains(&tool), "{tools:?}");
    }
    assert!(told.contains(&url) && !told.contains("sk-of-the-test"), "{told}");
}
