//! Decodes a recorded stream of events and prints what came of it as one JSON object.
//!
//! `cargo run -p midturn-providers --example decode -- anthropic --chunk 7 < stream.txt`
//!
//! The first argument is a provider (`anthropic`, `openai-chat`, `openai`), or `sse` for the
//! bare frames; `--chunk N` feeds the stream N bytes at a time.

use std::error::Error;
use std::io::Read;

use midturn_core::rules::conversation::{Block, Reply};
use midturn_core::sse::{Decoder, TooLarge};
use midturn_providers::{BUILT_IN, Dialect, Silent, decode};
use serde_json::{Value, json};

const USAGE: &str = "usage: decode anthropic|openai-chat|openai|sse [--chunk N] < stream";
const MAX_EVENT_BYTES: usize = 128 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (what, size) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [what] => (what, usize::MAX),
        [what, "--chunk", size] => (what, size.parse::<usize>()?.max(1)),
        _ => return Err(USAGE.into()),
    };
    let mut stream = Vec::new();
    std::io::stdin().read_to_end(&mut stream)?;
    let provider = BUILT_IN.into_iter().find(|provider| provider.name == what);
    let answer = match (what, provider) {
        ("sse", _) => frames(&stream, size),
        (_, Some(provider)) => reply(provider.dialect, &stream, size),
        _ => return Err(USAGE.into()),
    };
    println!("{answer}");
    Ok(())
}

fn frames(stream: &[u8], size: usize) -> Value {
    let mut decoder = Decoder::new(MAX_EVENT_BYTES);
    let mut frames = Vec::new();
    for chunk in stream.chunks(size) {
        let fed = decoder.feed(chunk, |frame| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            frames.push(json!({"event": text(frame.event), "data": text(frame.data)}));
            Ok::<_, TooLarge>(())
        });
        if let Err(error) = fed {
            return json!({"error": error.to_string()});
        }
    }
    frames.into()
}

fn reply(dialect: Dialect, stream: &[u8], size: usize) -> Value {
    match decode(dialect, stream.chunks(size), MAX_EVENT_BYTES, &Silent) {
        Ok(reply) => reply_json(&reply),
        Err(failure) => json!({"error": failure.to_string()}),
    }
}

fn reply_json(reply: &Reply) -> Value {
    json!({
        "blocks": reply.blocks.iter().map(block_json).collect::<Vec<_>>(),
        "stop_reason": reply.stop_reason.as_str(),
        "usage": {"input": reply.usage.input, "output": reply.usage.output, "cached": reply.usage.cached},
    })
}

fn block_json(block: &Block) -> Value {
    let raw = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    match block {
        Block::Text(text) => json!({"type": "text", "text": text}),
        Block::Thinking(thinking) => json!({
            "type": "thinking",
            "text": thinking.text,
            "replay": thinking.replay.as_ref().map(|opaque| raw(&opaque.0)),
        }),
        Block::ToolUse(call) => {
            json!({"type": "tool_use", "id": call.id.as_str(), "name": &*call.name, "input": call.input})
        }
        Block::Provider(opaque) => json!({"type": "provider", "raw": raw(&opaque.0)}),
    }
}
