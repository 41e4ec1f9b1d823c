//! OpenAI's Responses.

use midturn_core::engine::ports::model::ErrorKind;
use midturn_providers::Dialect;

use crate::{expect, expect_failure, named};

pub(crate) const R_TEXT: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","content":[{"type":"output_text","text":"Hi"}]}}"#;
pub(crate) const R_DONE: &str = r#"{"type":"response.completed","response":{"status":"completed","error":null,"output":[],"usage":{"input_tokens":20,"output_tokens":5,"input_tokens_details":{"cached_tokens":7}}}}"#;

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
    expect(Dialect::Responses, &named(&events), &expected);
    for end in 0..events.len() {
        expect_failure(Dialect::Responses, &named(&events[..end]), ErrorKind::Connection);
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
        ("max_output_tokens", r#"text:Hal | call:c n "{\"a\":" | max_tokens 0/0/0"#),
        ("content_filter", r#"text:Hal | call:c n "{\"a\":" | content_filter 0/0/0"#),
    ] {
        let end = incomplete(reason);
        expect(Dialect::Responses, &named(&[added, delta, call, arguments, &end]), expected);
    }
}

#[test]
fn responses_without_item_events_are_read_from_the_end() {
    let end = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"all at once"}]}]}}"#;
    expect(Dialect::Responses, &named(&[end]), "text:all at once | end_turn 0/0/0");
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
        expect(Dialect::Responses, &named(&events), expected);
    }
}

#[test]
fn responses_items_are_told_apart_by_what_there_is() {
    let message =
        r#"{"type":"response.output_item.done","item":{"type":"message","content":[{"text":"Hi"}]}}"#;
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
            &[
                r#"{"type":"response.output_text.delta","item_id":null,"output_index":0,"delta":"H"}"#,
                message,
            ],
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
        expect(Dialect::Responses, &named(&[events, &[R_DONE][..]].concat()), expected);
    }
}

/// C17.
#[test]
fn responses_calls_that_are_cut_have_a_text_for_arguments() {
    let added = r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c","name":"n","arguments":""}}"#;
    for arguments in ["", r#"{\"a\":"#] {
        let expected = format!(r#"call:c n "{arguments}" | max_tokens 0/0/0"#);
        let end = format!(
            r#"{{"type":"response.incomplete","response":{{"status":"incomplete","output":[{{"type":"function_call","status":"incomplete","call_id":"c","name":"n","arguments":"{arguments}"}}]}}}}"#
        );
        expect(Dialect::Responses, &named(&[added, &end]), &expected);
    }
}
