//! What a reader is told while a reply comes.

use std::sync::Mutex;

use midturn_core::engine::ports::model::Progress;
use midturn_core::rules::conversation::StopReason;
use midturn_providers::{Dialect, decode};

use crate::anthropic::{A_END, A_HI, A_START, A_STOP0, A_TEXT};
use crate::chat::{C_HI, C_STOP, C_USAGE};
use crate::responses::{R_DONE, R_TEXT};
use crate::{LIMIT, bare, named};

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
    fn call(&self, id: &str, name: &str, bytes: u64) {
        self.say(format!("call {id} {name} {bytes}"));
    }
    fn tokens(&self, so_far: u64) {
        self.say(format!("tokens {so_far}"));
    }
}

#[test]
fn a_figure_from_before_the_reply_is_not_told_as_what_has_come() {
    let (told, delta) =
        (Told::default(), r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":4}}"#);
    let cut = named(&[A_START, A_TEXT, A_HI]);
    decode(Dialect::Anthropic, [&cut], LIMIT, &told).unwrap_err();
    assert_eq!(told.0.lock().unwrap().join(","), "text Hé 😀");
    decode(Dialect::Anthropic, [cut + &named(&[delta])], LIMIT, &told).unwrap_err();
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
            Dialect::Anthropic,
            named(&[A_START, think, A_STOP0, &text, &hi, A_END]),
            "thinking Hm,thought,text Hé 😀,tokens 8",
        ),
        (
            Dialect::Chat,
            bare(&[r#"{"choices":[{"delta":{"reasoning":"Hm"}}]}"#, C_HI, C_STOP, C_USAGE]),
            "thinking Hm,thought,text Hi,tokens 5",
        ),
        (
            Dialect::Responses,
            named(&[
                r#"{"type":"response.output_text.delta","output_index":0,"delta":"Hi"}"#,
                R_TEXT,
                R_DONE,
            ]),
            "text Hi,tokens 5",
        ),
        (Dialect::Responses, named(&[R_TEXT, R_DONE]), "text Hi,tokens 5"),
        // What deltas told is not told again, by whatever they are known.
        (
            Dialect::Responses,
            named(&[
                r#"{"type":"response.output_text.delta","item_id":"m","delta":"Hi"}"#,
                &R_TEXT.replace(r#""output_index":0,"#, ""),
                R_DONE,
            ]),
            "text Hi,tokens 5",
        ),
    ];
    for (dialect, stream, expected) in rows {
        let told = Told::default();
        let reply = decode(dialect, [stream], LIMIT, &told).unwrap();
        assert_eq!(told.0.into_inner().unwrap().join(","), expected);
        assert_eq!(reply.stop_reason, StopReason::EndTurn);
    }
}

/// What is told of calls, of a stream that is whole or is cut.
fn calls(dialect: Dialect, stream: String) -> String {
    let told = Told::default();
    // Whether it is whole is not what this is about.
    let _ = decode(dialect, [stream], LIMIT, &told);
    let told = told.0.into_inner().unwrap().into_iter();
    told.filter_map(|told| Some(told.strip_prefix("call ")?.to_owned())).collect::<Vec<_>>().join(",")
}

#[test]
fn a_call_of_anthropics_is_told_of_from_its_name_on() {
    let stream = named(&[
        A_START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"read","input":{}}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t2","name":"bash","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"c\": \"l"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"p\":"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"s\"}"}}"#,
        // What the provider runs itself is no call of ours.
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"q\": "}}"#,
    ]);
    assert_eq!(calls(Dialect::Anthropic, stream), "t1 read 0,t2 bash 0,t2 bash 8,t1 read 5,t2 bash 11");
}

#[test]
fn a_call_of_chat_completions_is_told_of_once_its_name_is_there() {
    let call = |delta: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{delta}]}}}}]}}"#);
    let events = [
        call(r#"{"index":0,"id":"a","function":{"arguments":""}}"#),
        call(r#"{"index":0,"function":{"name":"read","arguments":""}}"#),
        call(r#"{"index":1,"function":{"name":"bash","arguments":"{\"c\":"}}"#),
        call(r#"{"index":0,"function":{"arguments":"{\"p\":1}"}}"#),
        call(r#"{"index":1,"function":{"arguments":"2}"}}"#),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    // The second has no id: it is told by the one that it will have.
    let expected = "a read 0,call_0_1 bash 5,a read 7,call_0_1 bash 7";
    assert_eq!(calls(Dialect::Chat, bare(&events)), expected);
}

#[test]
fn a_call_of_responses_is_told_of_by_the_id_that_it_will_have() {
    let events = [
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","content":[]}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"c","name":"write","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"fc","delta":"{\"a\":"}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"fc","delta":"1}"}"#,
        // Nobody has said yet what this one calls.
        r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{}"}"#,
    ];
    assert_eq!(calls(Dialect::Responses, named(&events)), "c write 0,c write 5,c write 7");
}
