//! Anthropic's Messages.

use midturn_core::engine::ports::model::ErrorKind;
use midturn_providers::Dialect;

use crate::{expect, expect_failure, named};

pub(crate) const A_START: &str = r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}"#;
pub(crate) const A_TEXT: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
pub(crate) const A_HI: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hé \ud83d\ude00"}}"#;
pub(crate) const A_STOP0: &str = r#"{"type":"content_block_stop","index":0}"#;
pub(crate) const A_END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":8}}"#;
pub(crate) const A_STOP: &str = r#"{"type":"message_stop"}"#;

#[test]
fn anthropic_text_with_usage_of_the_cache() {
    let stream = named(&[A_START, A_TEXT, r#"{"type":"ping"}"#, A_HI, A_STOP0, A_END, A_STOP]);
    expect(Dialect::Anthropic, &stream, "text:Hé 😀 | end_turn 115/8/100");
}

#[test]
fn anthropic_is_whole_once_its_stop_reason_has_come() {
    let whole = named(&[A_START, A_TEXT, A_HI, A_STOP0, A_END]);
    expect(Dialect::Anthropic, &whole, "text:Hé 😀 | end_turn 115/8/100");
    let events = [A_START, A_TEXT, A_HI, A_STOP0];
    for end in 0..=events.len() {
        expect_failure(Dialect::Anthropic, &named(&events[..end]), ErrorKind::Connection);
    }
    // The event with the stop reason was never terminated.
    expect_failure(Dialect::Anthropic, whole.trim_end(), ErrorKind::Connection);
    // Whatever follows, the reply is whole.
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#;
    expect(
        Dialect::Anthropic,
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
        Dialect::Anthropic,
        &stream,
        r#"call:t1 read {"p":1} | call:t2 bash {"c":"ls"} | call:t3 ps {} | tool_use 115/9/100"#,
    );
}

/// C17: its result is an error that the model reads, and the run goes on.
#[test]
fn a_call_whose_json_never_closed_has_a_text_for_arguments() {
    let stream = named(&[
        A_START,
        A_TEXT,
        A_HI,
        A_STOP0,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"write","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"text\": \"abc"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}"#,
    ]);
    expect(
        Dialect::Anthropic,
        &stream,
        r#"text:Hé 😀 | call:t1 write "{\"text\": \"abc" | max_tokens 115/9/100"#,
    );
}

#[test]
fn thinking_is_kept_byte_for_byte_or_not_at_all_without_its_signature() {
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#;
    let think = r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm\n\"é\" "}}"#;
    let sign =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq+/="}}"#;
    let hidden = r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"\u0041bc=" }}"#;
    expect(
        Dialect::Anthropic,
        &named(&[start, think, sign, A_STOP0, hidden, A_END]),
        concat!(
            "thinking:Hm\n\"é\"  replay:",
            r#"{"type":"thinking","thinking":"Hm\n\"é\" ","signature":"Eq+/="}"#,
            r#" | thinking: replay:{"type":"redacted_thinking","data":"\u0041bc=" } | end_turn 0/8/0"#,
        ),
    );
    expect(
        Dialect::Anthropic,
        &named(&[start, think, A_STOP0, A_END]),
        "thinking:Hm\n\"é\"  replay:none | end_turn 0/8/0",
    );
}

#[test]
fn blocks_of_the_provider_s_own_tools_are_kept_verbatim() {
    expect(
        Dialect::Anthropic,
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
