//! The stream decoder against its alternatives, in the same run (figures for
//! docs/performance.md): Anthropic deltas, cut into chunks as a TLS connection gives them.
//!
//! `cargo bench -p midturn-providers`

use std::convert::Infallible;
use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::{FutureExt, StreamExt, stream};
use midturn_providers::{Dialect, Silent, decode};
use serde::Deserialize;

const LIMIT: usize = 128 << 20;
const DELTAS: usize = 8_192;

/// Puts the text of a recording together and says how long it is.
type Decoding = fn(&[Bytes]) -> usize;

/// What people usually write: a tagged enum of owned strings.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart,
    ContentBlockStart { index: u32 },
    ContentBlockDelta { index: u32, delta: Delta },
    ContentBlockStop { index: u32 },
    MessageDelta,
    MessageStop,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delta {
    TextDelta { text: String },
}

/// Anthropic's events of one text, in chunks.
fn recording(chunk: usize) -> Vec<Bytes> {
    let mut text = String::from(concat!(
        "event: message_start\n",
        r#"data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"output_tokens":1}}}"#,
        "\n\nevent: content_block_start\n",
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        "\n\n",
    ));
    let words =
        [" the", " function", " `load_config`", " returns", " an error,\\n", " d\u{e9}j\u{e0}", " so"];
    for word in words.iter().cycle().take(DELTAS) {
        text.push_str("event: content_block_delta\n");
        text.push_str(
            r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""#,
        );
        text.push_str(word);
        text.push_str("\"}}\n\n");
    }
    text.push_str(concat!(
        "event: content_block_stop\n",
        r#"data: {"type":"content_block_stop","index":0}"#,
        "\n\nevent: message_delta\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#,
        "\n\nevent: message_stop\n",
        r#"data: {"type":"message_stop"}"#,
        "\n\n",
    ));
    text.as_bytes().chunks(chunk).map(Bytes::copy_from_slice).collect()
}

fn ours(chunks: &[Bytes]) -> usize {
    let reply = decode(Dialect::Anthropic, chunks, LIMIT, &Silent);
    reply.map(|reply| reply.text().len()).unwrap_or_default()
}

fn sse_stream_and_serde_json(chunks: &[Bytes]) -> usize {
    let body = stream::iter(chunks.iter().cloned().map(Ok::<_, Infallible>));
    let mut events = sse_stream::SseStream::from_bytes_stream(body);
    let mut text = String::new();
    while let Some(Some(Ok(event))) = events.next().now_or_never() {
        add(event.data.as_deref().unwrap_or_default(), &mut text);
    }
    text.len()
}

fn eventsource_stream_and_serde_json(chunks: &[Bytes]) -> usize {
    use eventsource_stream::Eventsource;
    let mut events = stream::iter(chunks.iter().cloned().map(Ok::<_, Infallible>)).eventsource();
    let mut text = String::new();
    while let Some(Some(Ok(event))) = events.next().now_or_never() {
        add(&event.data, &mut text);
    }
    text.len()
}

fn add(data: &str, text: &mut String) {
    match serde_json::from_str(data) {
        Ok(Event::ContentBlockDelta { index: 0, delta: Delta::TextDelta { text: delta } }) => {
            text.push_str(&delta)
        }
        Ok(Event::ContentBlockStart { index } | Event::ContentBlockStop { index }) => {
            black_box(index);
        }
        _ => {}
    }
}

fn decoders(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stream decoder, anthropic deltas");
    for chunk in [1_400, 16 << 10] {
        let chunks = recording(chunk);
        let bytes: usize = chunks.iter().map(Bytes::len).sum();
        group.throughput(Throughput::Bytes(bytes as u64));
        assert_eq!(ours(&chunks), sse_stream_and_serde_json(&chunks));
        assert_eq!(ours(&chunks), eventsource_stream_and_serde_json(&chunks));
        let rows: [(&str, Decoding); 3] = [
            ("ours", ours),
            ("sse-stream + serde_json", sse_stream_and_serde_json),
            ("eventsource-stream + serde_json", eventsource_stream_and_serde_json),
        ];
        for (name, decoder) in rows {
            group.bench_with_input(BenchmarkId::new(name, chunk), &chunks, |bencher, chunks| {
                bencher.iter(|| decoder(black_box(chunks)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, decoders);
criterion_main!(benches);
