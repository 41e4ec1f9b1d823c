//! OpenAI's Chat Completions.

use midturn_core::engine::ports::model::ErrorKind;
use midturn_providers::Dialect;

use crate::{bare, expect, expect_failure};

pub(crate) const C_HI: &str = r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}],"usage":null}"#;
pub(crate) const C_STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
pub(crate) const C_USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":7}}}"#;
pub(crate) const DONE: &str = "[DONE]";

#[test]
fn chat_text_with_the_usage_that_follows_the_stop_reason() {
    expect(Dialect::Chat, &bare(&[C_HI, C_STOP, C_USAGE, DONE]), "text:Hi | end_turn 20/5/7");
    expect(Dialect::Chat, &bare(&[C_HI, C_STOP]), "text:Hi | end_turn 0/0/0");
    expect(Dialect::Chat, &bare(&[C_HI, C_STOP, "{"]), "text:Hi | end_turn 0/0/0");
    expect_failure(Dialect::Chat, &bare(&[C_HI, C_USAGE, DONE]), ErrorKind::Connection);
    expect_failure(Dialect::Chat, &bare(&[C_HI]), ErrorKind::Connection);
    expect_failure(Dialect::Chat, "", ErrorKind::Connection);
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
            r#"call:a x "{\"q\":" | call:b y "{q}" | tool_use 0/0/0"#,
        ),
    ];
    for (deltas, expected) in rows {
        let mut events: Vec<String> = deltas.iter().map(|delta| call(delta)).collect();
        events.push(end.to_owned());
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        expect(Dialect::Chat, &bare(&events), expected);
        // Some servers say `stop` although there are calls.
        let stopped = bare(&events).replace("\"tool_calls\"}", "\"stop\"}");
        expect(Dialect::Chat, &stopped, expected);
    }
}

#[test]
fn chat_reasoning_is_shown_and_cut_characters_are_joined() {
    expect(
        Dialect::Chat,
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
