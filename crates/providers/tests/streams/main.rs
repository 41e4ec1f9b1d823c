//! Streams of all three wire formats, cut in every way, and what comes of them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod anthropic;
mod chat;
mod responses;
mod told;

use anthropic::{A_END, A_HI, A_START, A_STOP0, A_TEXT};
use chat::{C_HI, C_STOP};
use responses::{R_DONE, R_TEXT};

use midturn_core::engine::ports::model::{ErrorKind, ModelFailure};
use midturn_core::rules::conversation::{Block, Reply};
use midturn_providers::{Dialect, Silent, decode};

const LIMIT: usize = 1 << 20;

/// Events with their names, as Anthropic and OpenAI's Responses send them.
fn named(events: &[&str]) -> String {
    events
        .iter()
        .map(|data| {
            let json: serde_json::Value = serde_json::from_str(data).unwrap();
            format!("event: {}\ndata: {data}\n\n", json["type"].as_str().unwrap_or("x"))
        })
        .collect()
}

/// Events without names, as Chat Completions sends them.
fn bare(events: &[&str]) -> String {
    events.iter().map(|data| format!("data: {data}\n\n")).collect()
}

/// The reply, which must be the same however the stream is cut.
fn read(dialect: Dialect, stream: &str) -> Result<Reply, ModelFailure> {
    let whole = decode(dialect, [stream], LIMIT, &Silent);
    for size in [1, 2, 3, 7, 64, 1021] {
        let cut = decode(dialect, stream.as_bytes().chunks(size), LIMIT, &Silent);
        assert_eq!(cut, whole, "in chunks of {size}");
    }
    whole
}

/// A reply in one line.
fn line(reply: &Reply) -> String {
    let blocks = reply.blocks.iter().map(|block| match block {
        Block::Text(text) => format!("text:{text}"),
        Block::Thinking(thinking) => {
            let replay = thinking.replay.as_ref().map_or("none", |raw| &*raw.0);
            format!("thinking:{} replay:{replay}", thinking.text)
        }
        Block::ToolUse(call) => format!("call:{} {} {}", call.id, call.name, call.input),
        Block::Provider(raw) => format!("provider:{}", raw.0),
    });
    let usage = reply.usage;
    let mut parts: Vec<String> = blocks.collect();
    parts.push(format!("{} {}/{}/{}", reply.stop_reason.as_str(), usage.input, usage.output, usage.cached));
    parts.join(" | ")
}

fn expect(dialect: Dialect, stream: &str, expected: &str) {
    match read(dialect, stream) {
        Ok(reply) => assert_eq!(line(&reply), expected, "{stream}"),
        Err(failure) => panic!("{failure}\n{stream}"),
    }
}

fn expect_failure(dialect: Dialect, stream: &str, kind: ErrorKind) {
    match read(dialect, stream) {
        Ok(reply) => panic!("{}\n{stream}", line(&reply)),
        Err(failure) => assert_eq!(failure.kind, kind, "{failure}\n{stream}"),
    }
}

#[test]
fn unknown_events_change_nothing() {
    let unknown = r#"{"type":"future_event","delta":"a text","usage":{"input_tokens":99},"index":"x"}"#;
    let stream = named(&[unknown, A_STOP0, A_START, A_TEXT, unknown, A_HI, unknown, A_END, unknown]);
    expect(Dialect::Anthropic, &stream, "text:Hé 😀 | end_turn 115/8/100");
    let stream = named(&[unknown, R_TEXT, unknown, R_DONE]);
    expect(Dialect::Responses, &stream, "text:Hi | end_turn 20/5/7");
}

#[test]
fn an_error_event_after_status_200_is_an_error_of_its_kind() {
    for (event, kind) in [
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, ErrorKind::Overloaded),
        (r#"{"type":"error","error":{"type":"api_error","message":"m"}}"#, ErrorKind::Server),
        (r#"{"type":"error","error":{"type":"rate_limit_error","message":"m"}}"#, ErrorKind::RateLimited),
    ] {
        expect_failure(Dialect::Anthropic, &named(&[A_START, A_TEXT, A_HI, event, A_END]), kind);
    }
    for (event, kind) in [
        (r#"{"error":{"message":"m","type":"server_error"}}"#, ErrorKind::Server),
        (r#"{"error":{"message":"m","code":429}}"#, ErrorKind::RateLimited),
        (r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#, ErrorKind::InvalidRequest),
    ] {
        expect_failure(Dialect::Chat, &bare(&[C_HI, event, C_STOP]), kind);
    }
    for (event, kind) in [
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"m","param":null}"#,
            ErrorKind::RateLimited,
        ),
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"m"}}"#,
            ErrorKind::InvalidRequest,
        ),
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}"#,
            ErrorKind::Server,
        ),
    ] {
        expect_failure(Dialect::Responses, &named(&[event, R_DONE]), kind);
    }
}

#[test]
fn an_event_that_is_no_json_is_an_error() {
    expect_failure(Dialect::Anthropic, "data: {\"type\":\"message_start\",\n\n", ErrorKind::Server);
    expect_failure(Dialect::Chat, "data: hello\n\n", ErrorKind::Server);
    expect_failure(Dialect::Responses, "data: {]\n\n", ErrorKind::Server);
    expect_failure(
        Dialect::Anthropic,
        &format!("data: {}\n\n", "x".repeat(LIMIT)),
        ErrorKind::InvalidRequest,
    );
}
