//! Streams of all three wire formats, cut in every way, and what comes of them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail as tests do")]

use std::sync::Mutex;

use midturn_core::engine::ports::model::{ErrorKind, ModelFailure, Progress};
use midturn_core::rules::conversation::{Block, Reply, StopReason};
use midturn_providers::{Provider, Silent, decode};

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
fn read(provider: Provider, stream: &str) -> Result<Reply, ModelFailure> {
    let whole = decode(provider, [stream], LIMIT, &Silent);
    for size in [1, 2, 3, 7, 64, 1021] {
        let cut = decode(provider, stream.as_bytes().chunks(size), LIMIT, &Silent);
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

fn expect(provider: Provider, stream: &str, expected: &str) {
    match read(provider, stream) {
        Ok(reply) => assert_eq!(line(&reply), expected, "{stream}"),
        Err(failure) => panic!("{failure}\n{stream}"),
    }
}

fn expect_failure(provider: Provider, stream: &str, kind: ErrorKind) {
    match read(provider, stream) {
        Ok(reply) => panic!("{}\n{stream}", line(&reply)),
        Err(failure) => assert_eq!(failure.kind, kind, "{failure}\n{stream}"),
    }
}

const A_START: &str = r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}"#;
const A_TEXT: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const A_HI: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hé \ud83d\ude00"}}"#;
const A_STOP0: &str = r#"{"type":"content_block_stop","index":0}"#;
const A_END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":8}}"#;
const A_STOP: &str = r#"{"type":"message_stop"}"#;

#[test]
fn anthropic_text_with_usage_of_the_cache() {
    let stream = named(&[A_START, A_TEXT, r#"{"type":"ping"}"#, A_HI, A_STOP0, A_END, A_STOP]);
    expect(Provider::Anthropic, &stream, "text:Hé 😀 | end_turn 115/8/100");
}

#[test]
fn anthropic_is_whole_once_its_stop_reason_has_come() {
    let whole = named(&[A_START, A_TEXT, A_HI, A_STOP0, A_END]);
    expect(Provider::Anthropic, &whole, "text:Hé 😀 | end_turn 115/8/100");
    let events = [A_START, A_TEXT, A_HI, A_STOP0];
    for end in 0..=events.len() {
        expect_failure(Provider::Anthropic, &named(&events[..end]), ErrorKind::Connection);
    }
    // The event with the stop reason was never terminated.
    expect_failure(Provider::Anthropic, whole.trim_end(), ErrorKind::Connection);
    // Whatever follows, the reply is whole.
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#;
    expect(
        Provider::Anthropic,
        &named(&[A_START, A_TEXT, A_HI, A_STOP0, A_END, error]),
        "text:Hé 😀 | end_turn 115/8/100",
    );
}

#[test]
fn anthropic_calls_in_parallel_are_put_together_from_deltas() {
    let stream = named(&[
        A_START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"read","input":{}}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t2","name":"bash","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"c\": \"l"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"p\":"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"s\"}"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t3","name":"ps","input":{}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
        A_STOP,
    ]);
    expect(
        Provider::Anthropic,
        &stream,
        r#"call:t1 read {"p":1} | call:t2 bash {"c":"ls"} | call:t3 ps {} | tool_use 115/9/100"#,
    );
}

#[test]
fn a_call_whose_json_never_closed_is_no_call() {
    let stream = named(&[
        A_START,
        A_TEXT,
        A_HI,
        A_STOP0,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"write","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"text\": \"abc"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}"#,
    ]);
    expect(Provider::Anthropic, &stream, "text:Hé 😀 | max_tokens 115/9/100");
}

#[test]
fn thinking_is_kept_byte_for_byte_or_not_at_all_without_its_signature() {
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#;
    let think = r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm\n\"é\" "}}"#;
    let sign =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq+/="}}"#;
    let hidden = r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"\u0041bc=" }}"#;
    expect(
        Provider::Anthropic,
        &named(&[start, think, sign, A_STOP0, hidden, A_END]),
        concat!(
            "thinking:Hm\n\"é\"  replay:",
            r#"{"type":"thinking","thinking":"Hm\n\"é\" ","signature":"Eq+/="}"#,
            r#" | thinking: replay:{"type":"redacted_thinking","data":"\u0041bc=" } | end_turn 0/8/0"#,
        ),
    );
    expect(
        Provider::Anthropic,
        &named(&[start, think, A_STOP0, A_END]),
        "thinking:Hm\n\"é\"  replay:none | end_turn 0/8/0",
    );
}

#[test]
fn blocks_of_the_provider_s_own_tools_are_kept_verbatim() {
    expect(
        Provider::Anthropic,
        &named(&[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\": "}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"x\"}"}}"#,
            A_STOP0,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result", "tool_use_id":"s1","content":[{"z":1.0,"a":"\u00e9"}]}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"compaction","content":null}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"compaction_delta","content":"c","encrypted_content":"e"}}"#,
            A_END,
        ]),
        concat!(
            r#"provider:{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query": "x"}}"#,
            r#" | provider:{"type":"web_search_tool_result", "tool_use_id":"s1","content":[{"z":1.0,"a":"\u00e9"}]}"#,
            r#" | provider:{"type":"compaction","content":"c","encrypted_content":"e"} | end_turn 0/8/0"#,
        ),
    );
}

#[test]
fn unknown_events_change_nothing() {
    let unknown = r#"{"type":"future_event","delta":"a text","usage":{"input_tokens":99},"index":"x"}"#;
    let stream = named(&[unknown, A_STOP0, A_START, A_TEXT, unknown, A_HI, unknown, A_END, unknown]);
    expect(Provider::Anthropic, &stream, "text:Hé 😀 | end_turn 115/8/100");
    let stream = named(&[unknown, R_TEXT, unknown, R_DONE]);
    expect(Provider::OpenAi, &stream, "text:Hi | end_turn 20/5/7");
}

#[test]
fn an_error_event_after_status_200_is_an_error_of_its_kind() {
    for (event, kind) in [
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, ErrorKind::Overloaded),
        (r#"{"type":"error","error":{"type":"api_error","message":"m"}}"#, ErrorKind::Server),
        (r#"{"type":"error","error":{"type":"rate_limit_error","message":"m"}}"#, ErrorKind::RateLimited),
    ] {
        expect_failure(Provider::Anthropic, &named(&[A_START, A_TEXT, A_HI, event, A_END]), kind);
    }
    for (event, kind) in [
        (r#"{"error":{"message":"m","type":"server_error"}}"#, ErrorKind::Server),
        (r#"{"error":{"message":"m","code":429}}"#, ErrorKind::RateLimited),
        (r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#, ErrorKind::InvalidRequest),
    ] {
        expect_failure(Provider::OpenAiChat, &bare(&[C_HI, event, C_STOP]), kind);
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
        expect_failure(Provider::OpenAi, &named(&[event, R_DONE]), kind);
    }
}

#[test]
fn an_event_that_is_no_json_is_an_error() {
    expect_failure(Provider::Anthropic, "data: {\"type\":\"message_start\",\n\n", ErrorKind::Server);
    expect_failure(Provider::OpenAiChat, "data: hello\n\n", ErrorKind::Server);
    expect_failure(Provider::OpenAi, "data: {]\n\n", ErrorKind::Server);
    expect_failure(
        Provider::Anthropic,
        &format!("data: {}\n\n", "x".repeat(LIMIT)),
        ErrorKind::InvalidRequest,
    );
}

const C_HI: &str = r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}],"usage":null}"#;
const C_STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const C_USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":7}}}"#;
const DONE: &str = "[DONE]";

#[test]
fn chat_text_with_the_usage_that_follows_the_stop_reason() {
    expect(Provider::OpenAiChat, &bare(&[C_HI, C_STOP, C_USAGE, DONE]), "text:Hi | end_turn 20/5/7");
    expect(Provider::OpenAiChat, &bare(&[C_HI, C_STOP]), "text:Hi | end_turn 0/0/0");
    expect(Provider::OpenAiChat, &bare(&[C_HI, C_STOP, "{"]), "text:Hi | end_turn 0/0/0");
    expect_failure(Provider::OpenAiChat, &bare(&[C_HI, C_USAGE, DONE]), ErrorKind::Connection);
    expect_failure(Provider::OpenAiChat, &bare(&[C_HI]), ErrorKind::Connection);
    expect_failure(Provider::OpenAiChat, "", ErrorKind::Connection);
}

#[test]
fn chat_calls_of_all_the_sorts_that_servers_send() {
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
    let call = |delta: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{delta}]}}}}]}}"#);
    let rows: &[(&[&str], &str)] = &[
        (
            &[
                r#"{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}"#,
                r#"{"index":1,"id":"b","type":"function","function":{"name":"bash","arguments":"{\"c\":"}}"#,
                r#"{"index":0,"function":{"arguments":"{\"p\":1}"}}"#,
                r#"{"index":1,"function":{"arguments":"2}"}}"#,
            ],
            r#"call:a read {"p":1} | call:b bash {"c":2} | tool_use 0/0/0"#,
        ),
        // Two calls under one index, each with an id of its own.
        (
            &[
                r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}"#,
                r#"{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}"#,
            ],
            "call:a x {} | call:b y {} | tool_use 0/0/0",
        ),
        // The id again and again; no index.
        (
            &[
                r#"{"id":"a","function":{"name":"x","arguments":"{\"q\":"}}"#,
                r#"{"id":"a","function":{"name":"x","arguments":"3}"}}"#,
            ],
            r#"call:a x {"q":3} | tool_use 0/0/0"#,
        ),
        // No id at all: one is made.
        (&[r#"{"index":0,"function":{"name":"x","arguments":null}}"#], "call:call_0_0 x {} | tool_use 0/0/0"),
        // Never closed, and closed but wrong.
        (
            &[
                r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{\"q\":"}}"#,
                r#"{"index":1,"id":"b","function":{"name":"y","arguments":"{q}"}}"#,
            ],
            r#"call:b y "{q}" | tool_use 0/0/0"#,
        ),
    ];
    for (deltas, expected) in rows {
        let mut events: Vec<String> = deltas.iter().map(|delta| call(delta)).collect();
        events.push(end.to_owned());
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        expect(Provider::OpenAiChat, &bare(&events), expected);
        // Some servers say `stop` although there are calls.
        let stopped = bare(&events).replace("\"tool_calls\"}", "\"stop\"}");
        expect(Provider::OpenAiChat, &stopped, expected);
    }
}

#[test]
fn chat_reasoning_is_shown_and_cut_characters_are_joined() {
    expect(
        Provider::OpenAiChat,
        &bare(&[
            r#"{"choices":[{"delta":{"reasoning_content":"Hm\ud83d","content":null}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"\ude00"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a\ud83d"}}]}"#,
            r#"{"choices":[{"delta":{"content":"\ude00b"}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
        ]),
        "thinking:Hm😀 replay:none | text:a😀b | max_tokens 0/0/0",
    );
}

const R_TEXT: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","content":[{"type":"output_text","text":"Hi"}]}}"#;
const R_DONE: &str = r#"{"type":"response.completed","response":{"status":"completed","error":null,"output":[],"usage":{"input_tokens":20,"output_tokens":5,"input_tokens_details":{"cached_tokens":7}}}}"#;

#[test]
fn responses_items_are_what_they_were_when_done() {
    let reasoning = r#"{"id":"rs","type":"reasoning", "summary":[{"type":"summary_text","text":"A"},{"type":"summary_text","text":"B"}],"encrypted_content":"gA=="}"#;
    let bare_reasoning = r#"{"id":"rs2","type":"reasoning","summary":[],"encrypted_content":null}"#;
    let done = |index: u32, item: &str| {
        format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
    };
    let events = [
        r#"{"type":"response.created","response":{"status":"in_progress"}}"#.to_owned(),
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}"#.to_owned(),
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"A"}"#.to_owned(),
        done(0, reasoning),
        done(1, bare_reasoning),
        r#"{"type":"response.output_text.delta","output_index":2,"delta":"He"}"#.to_owned(),
        done(2, r#"{"type":"message","content":[{"type":"output_text","text":"He"},{"type":"refusal","refusal":"y"}]}"#),
        done(3, r#"{"type":"function_call","id":"fc","call_id":"c1","name":"read","arguments":"{\"p\":1}"}"#),
        done(4, r#"{"type":"function_call","id":"fc","call_id":"c2","name":"bash","arguments":"{}"}"#),
        done(5, r#"{"type":"web_search_call","id":"ws", "status":"completed"}"#),
        R_DONE.to_owned(),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let expected = format!(
        "thinking:A\n\nB replay:{reasoning} | thinking: replay:none | text:Hey | \
         call:c1 read {{\"p\":1}} | call:c2 bash {{}} | \
         provider:{{\"type\":\"web_search_call\",\"id\":\"ws\", \"status\":\"completed\"}} | tool_use 20/5/7"
    );
    expect(Provider::OpenAi, &named(&events), &expected);
    for end in 0..events.len() {
        expect_failure(Provider::OpenAi, &named(&events[..end]), ErrorKind::Connection);
    }
}

#[test]
fn responses_that_end_early_say_why() {
    let incomplete = |reason: &str| {
        format!(
            r#"{{"type":"response.incomplete","response":{{"status":"incomplete","incomplete_details":{{"reason":"{reason}"}}}}}}"#
        )
    };
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","content":[]}}"#;
    let delta = r#"{"type":"response.output_text.delta","output_index":0,"delta":"Hal"}"#;
    let call = r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"n","arguments":""}}"#;
    let arguments = r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"a\":"}"#;
    for (reason, expected) in [
        ("max_output_tokens", "text:Hal | max_tokens 0/0/0"),
        ("content_filter", "text:Hal | content_filter 0/0/0"),
    ] {
        let end = incomplete(reason);
        expect(Provider::OpenAi, &named(&[added, delta, call, arguments, &end]), expected);
    }
}

#[test]
fn responses_without_item_events_are_read_from_the_end() {
    let end = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"all at once"}]}]}}"#;
    expect(Provider::OpenAi, &named(&[end]), "text:all at once | end_turn 0/0/0");
}

#[test]
fn responses_items_without_an_index_are_known_by_their_ids() {
    // As llama.cpp sends them: a call has no id of its own, its deltas name it by its call id.
    let added = |item: &str| format!(r#"{{"type":"response.output_item.added","item":{item}}}"#);
    let done = |item: &str| format!(r#"{{"type":"response.output_item.done","item":{item}}}"#);
    let delta = |kind: &str, id: &str, delta: &str| {
        format!(r#"{{"type":"response.{kind}.delta","item_id":"{id}","delta":"{delta}"}}"#)
    };
    let call = |id: &str, arguments: &str| {
        format!(r#"{{"type":"function_call","call_id":"{id}","name":"read","arguments":"{arguments}"}}"#)
    };
    let opened = [
        added(r#"{"type":"reasoning","id":"rs_1","summary":[],"content":[],"encrypted_content":""}"#),
        delta("reasoning_text", "rs_1", "Hm"),
        added(r#"{"type":"message","id":"msg_1","content":[]}"#),
        delta("output_text", "msg_1", "He"),
        added(&call("fc_a", "")),
        delta("function_call_arguments", "fc_a", r#"{\"p\":"#),
        delta("function_call_arguments", "fc_a", "1}"),
        added(&call("fc_b", "")),
        delta("function_call_arguments", "fc_b", r#"{\"p\":2}"#),
        delta("output_text", "msg_1", "y"),
    ];
    let whole = [
        r#"{"type":"reasoning","id":"rs_1","summary":[],"content":[{"text":"Hm"}],"encrypted_content":""}"#
            .to_owned(),
        r#"{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"Hey"}]}"#.to_owned(),
        call("fc_a", r#"{\"p\":1}"#),
        call("fc_b", r#"{\"p\":2}"#),
    ];
    let closed = whole.each_ref().map(|item| done(item));
    let end = |output: &str| {
        format!(r#"{{"type":"response.completed","response":{{"status":"completed","output":[{output}]}}}}"#)
    };
    let all = whole.join(",");
    let rows: [(&[&[String]], &str); 4] = [
        (&[&opened, &closed], all.as_str()),
        // No item was ever done: the response as a whole has them, or the deltas.
        (&[&opened], all.as_str()),
        (&[&opened], ""),
        // Nothing was opened.
        (&[&closed], ""),
    ];
    for (events, output) in rows {
        let mut events = events.concat();
        events.push(end(output));
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let expected = "thinking:Hm replay:none | text:Hey | call:fc_a read {\"p\":1} | \
                        call:fc_b read {\"p\":2} | tool_use 0/0/0";
        expect(Provider::OpenAi, &named(&events), expected);
    }
}

#[test]
fn responses_items_are_told_apart_by_what_there_is() {
    let message = r#"{"type":"response.output_item.done","item":{"type":"message","content":[{"text":"Hi"}]}}"#;
    let rows: &[(&[&str], &str)] = &[
        // Deltas that name nothing, and an item that names nothing.
        (&[r#"{"type":"response.output_text.delta","delta":"H"}"#, message], "text:Hi | end_turn 20/5/7"),
        (&[r#"{"type":"response.output_text.delta","delta":"H"}"#, R_TEXT], "text:Hi | end_turn 20/5/7"),
        (&[r#"{"type":"response.output_text.delta","delta":"H"}"#], "text:H | end_turn 20/5/7"),
        (&[message, message], "text:Hi | text:Hi | end_turn 20/5/7"),
        // The index comes with the item only, or with the delta only; ids that are no ids.
        (
            &[r#"{"type":"response.output_text.delta","item_id":"m","delta":"H"}"#, R_TEXT],
            "text:Hi | end_turn 20/5/7",
        ),
        (
            &[r#"{"type":"response.output_text.delta","item_id":null,"output_index":0,"delta":"H"}"#, message],
            "text:Hi | end_turn 20/5/7",
        ),
        (
            &[r#"{"type":"response.output_text.delta","item_id":"","delta":"H"}"#, message],
            "text:Hi | end_turn 20/5/7",
        ),
        // The index holds where ids change from event to event.
        (
            &[r#"{"type":"response.output_text.delta","item_id":"x","output_index":0,"delta":"H"}"#, R_TEXT],
            "text:Hi | end_turn 20/5/7",
        ),
        // Items of several kinds under one id, and two calls under one.
        (
            &[
                r#"{"type":"response.output_item.done","item":{"type":"shell_call","call_id":"c"}}"#,
                r#"{"type":"response.output_item.done","item":{"type":"shell_call_output","call_id":"c"}}"#,
                r#"{"type":"response.output_item.done","item":{"type":"function_call","id":"f","call_id":"a","name":"x","arguments":""}}"#,
                r#"{"type":"response.output_item.done","item":{"type":"function_call","id":"f","call_id":"b","name":"y","arguments":""}}"#,
            ],
            r#"provider:{"type":"shell_call","call_id":"c"} | provider:{"type":"shell_call_output","call_id":"c"} | call:a x {} | call:b y {} | tool_use 20/5/7"#,
        ),
        // Arguments of a call that nobody named.
        (
            &[r#"{"type":"response.function_call_arguments.delta","item_id":"f","delta":"{}"}"#, message],
            "text:Hi | end_turn 20/5/7",
        ),
    ];
    for (events, expected) in rows {
        expect(Provider::OpenAi, &named(&[events, &[R_DONE][..]].concat()), expected);
    }
}

#[test]
fn responses_calls_cut_before_their_arguments_are_no_calls() {
    let added = r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c","name":"n","arguments":""}}"#;
    for arguments in ["", r#"{\"a\":"#] {
        let end = format!(
            r#"{{"type":"response.incomplete","response":{{"status":"incomplete","output":[{{"type":"function_call","status":"incomplete","call_id":"c","name":"n","arguments":"{arguments}"}}]}}}}"#
        );
        expect(Provider::OpenAi, &named(&[added, &end]), "max_tokens 0/0/0");
    }
}

/// Everything a reader is told, in order.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Told {
    fn say(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl Progress for Told {
    fn sent(&self) {
        self.say("sent".to_owned());
    }
    fn text(&self, delta: &str) {
        self.say(format!("text {delta}"));
    }
    fn thinking(&self, delta: &str) {
        self.say(format!("thinking {delta}"));
    }
    fn thinking_done(&self) {
        self.say("thought".to_owned());
    }
    fn tokens(&self, so_far: u64) {
        self.say(format!("tokens {so_far}"));
    }
}

#[test]
fn a_figure_from_before_the_reply_is_not_told_as_what_has_come() {
    let (told, delta) = (Told::default(), r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":4}}"#);
    let cut = named(&[A_START, A_TEXT, A_HI]);
    decode(Provider::Anthropic, [&cut], LIMIT, &told).unwrap_err();
    assert_eq!(told.0.lock().unwrap().join(","), "text Hé 😀");
    decode(Provider::Anthropic, [cut + &named(&[delta])], LIMIT, &told).unwrap_err();
    assert_eq!(told.0.into_inner().unwrap().join(","), "text Hé 😀,text Hé 😀,tokens 4");
}

#[test]
fn a_reply_is_told_while_it_comes() {
    let think =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"Hm"}}"#;
    let text = A_TEXT.replace(":0,", ":1,");
    let hi = A_HI.replace(":0,", ":1,");
    let rows = [
        (
            Provider::Anthropic,
            named(&[A_START, think, A_STOP0, &text, &hi, A_END]),
            "thinking Hm,thought,text Hé 😀,tokens 8",
        ),
        (
            Provider::OpenAiChat,
            bare(&[r#"{"choices":[{"delta":{"reasoning":"Hm"}}]}"#, C_HI, C_STOP, C_USAGE]),
            "thinking Hm,thought,text Hi,tokens 5",
        ),
        (
            Provider::OpenAi,
            named(&[
                r#"{"type":"response.output_text.delta","output_index":0,"delta":"Hi"}"#,
                R_TEXT,
                R_DONE,
            ]),
            "text Hi,tokens 5",
        ),
        (Provider::OpenAi, named(&[R_TEXT, R_DONE]), "text Hi,tokens 5"),
        // What deltas told is not told again, by whatever they are known.
        (
            Provider::OpenAi,
            named(&[
                r#"{"type":"response.output_text.delta","item_id":"m","delta":"Hi"}"#,
                &R_TEXT.replace(r#""output_index":0,"#, ""),
                R_DONE,
            ]),
            "text Hi,tokens 5",
        ),
    ];
    for (provider, stream, expected) in rows {
        let told = Told::default();
        let reply = decode(provider, [stream], LIMIT, &told).unwrap();
        assert_eq!(told.0.into_inner().unwrap().join(","), expected);
        assert_eq!(reply.stop_reason, StopReason::EndTurn);
    }
}
