//! What a reader is told while a reply comes.

use std::sync::Mutex;

use midturn_core::engine::ports::model::Progress;
use midturn_core::rules::conversation::StopReason;
use midturn_providers::{Provider, decode};

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
    fn tokens(&self, so_far: u64) {
        self.say(format!("tokens {so_far}"));
    }
}

#[test]
fn a_figure_from_before_the_reply_is_not_told_as_what_has_come() {
    let (told, delta) =
        (Told::default(), r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":4}}"#);
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
