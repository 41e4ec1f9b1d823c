//! What is taken out of texts, whole ones and those that come in pieces.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::rules::conversation::{Block, Opaque, Reply, StopReason, Thinking, ToolUse};
use crate::rules::id::CallId;

const KEY: &str = "sk-ant-Zm9v/Y+1\"q\u{fc}";

fn secrets() -> Secrets {
    Secrets::new([("API_KEY", KEY), ("OTHER_TOKEN", "tok-1234"), ("LONGER_TOKEN", "tok-12345678")]).unwrap()
}

#[test]
fn a_secret_is_replaced_by_its_name_and_all_else_is_left() {
    for (text, expected) in [
        ("nothing to see", "nothing to see".to_owned()),
        ("", String::new()),
        (KEY, "[redacted: API_KEY]".to_owned()),
        ("a tok-1234 b", "a [redacted: OTHER_TOKEN] b".to_owned()),
        ("a tok-123456789", "a [redacted: LONGER_TOKEN]9".to_owned()),
        ("tok-123 4", "tok-123 4".to_owned()),
        ("tok-1234tok-1234", "[redacted: OTHER_TOKEN][redacted: OTHER_TOKEN]".to_owned()),
        ("746f6b2d31323334", "[redacted: OTHER_TOKEN]".to_owned()),
        ("dG9rLTEyMzQ=", "[redacted: OTHER_TOKEN]Q=".to_owned()),
    ] {
        assert_eq!(secrets().redact(text), expected, "{text}");
        assert_eq!(secrets().redact(&expected), expected, "again");
    }
}

#[test]
fn with_no_secrets_nothing_is_copied() {
    let none = Secrets::default();
    assert!(matches!(none.redact(KEY), Cow::Borrowed(KEY)));
    assert!(matches!(Redactor::new(none).push(KEY), Cow::Borrowed(KEY)));
    assert!(matches!(secrets().redact("harmless"), Cow::Borrowed("harmless")));
    assert!(Secrets::new([("A", " "), ("B", "")]).unwrap().0.is_none());
}

#[test]
fn what_everybody_has_is_left_out_and_said() {
    let secrets = Secrets::new([
        ("SHORT", "abc"),
        ("WORD", "production"),
        ("REDACTED_TOKEN", "redacted: REDACTED_TOKEN"),
        ("GOOD", "gooooood-1"),
    ])
    .unwrap();
    let left_out: Vec<_> = secrets.left_out().to_vec();
    assert_eq!(
        left_out,
        [
            ("SHORT".to_owned(), Common::Short),
            ("WORD".to_owned(), Common::Plain),
            ("REDACTED_TOKEN".to_owned(), Common::Mark)
        ]
    );
    assert_eq!(secrets.redact("abc production gooooood-1"), "abc production [redacted: GOOD]");
}

#[test]
fn more_secrets_are_laid_over_those_that_are_known() {
    let more = secrets().with([("TOKEN", "another-1"), ("SAME", "tok-1234")]).unwrap();
    assert_eq!(more.redact("another-1 tok-1234"), "[redacted: TOKEN] [redacted: OTHER_TOKEN]");
    assert_eq!(format!("{more:?}"), r#"["API_KEY", "OTHER_TOKEN", "LONGER_TOKEN", "TOKEN"]"#);
}

/// C19.
#[test]
fn a_mark_of_what_is_known_is_found_and_one_in_a_manual_is_not() {
    let secrets = Secrets::new([("API_KEY", KEY), ("PORT_KEY", "8080")]).unwrap();
    for (value, mark) in [
        (json!({"path": "f", "content": "a\nKEY=[redacted: API_KEY]\n"}), Some("[redacted: API_KEY]")),
        (json!([1, {"old": ["[redacted: API_KEY]"]}]), Some("[redacted: API_KEY]")),
        (json!("`[redacted: NAME]` stands in its place"), None),
        (json!("[redacted: API_KEY"), None),
        (json!("[redacted: PORT_KEY], which everybody has, is never put anywhere"), None),
        (json!({"[redacted: API_KEY]": 1, "n": null}), None),
    ] {
        assert_eq!(secrets.mark_in(&value), mark, "{value}");
    }
    assert_eq!(Secrets::NONE.mark_in(&json!("[redacted: API_KEY]")), None);
}

#[test]
fn a_value_is_redacted_in_texts_names_and_numbers() {
    let secrets = secrets().with([("PIN_TOKEN", "123456789012")]).unwrap();
    let mut value = json!({"a": ["x tok-1234"], "tok-1234": {"n": 123456789012u64, "b": true, "z": null}});
    secrets.redact_value(&mut value);
    let expected = json!({
        "a": ["x [redacted: OTHER_TOKEN]"],
        "[redacted: OTHER_TOKEN]": {"n": "[redacted: PIN_TOKEN]", "b": true, "z": null}
    });
    assert_eq!(value, expected);
}

#[test]
fn what_a_cut_leaves_of_a_secret_is_taken_out_too() {
    let secrets = Secrets::new([("K", "secret-key-0123456789")]).unwrap();
    for (text, expected) in [
        (
            "a secret-key\n[… 5 bytes left out …]\ny-0123456789 b",
            "a [redacted: K]\n[… 5 bytes left out …]\n[redacted: K] b",
        ),
        ("a sec\n[… 5 bytes left out …]\n6789 b", "a sec\n[… 5 bytes left out …]\n6789 b"),
        ("a secret-key\n[… and so on", "a [redacted: K]\n[… and so on"),
        ("a secret-key\nb", "a secret-key\nb"),
    ] {
        assert_eq!(secrets.output(text.to_owned()), expected, "{text}");
    }
}

#[test]
fn a_reply_is_redacted_but_for_what_goes_back_byte_for_byte() {
    let replay = Some(Opaque("signed tok-1234".into()));
    let input = json!({"command": "echo tok-1234"});
    let reply = Reply {
        blocks: vec![
            Block::Text("a tok-1234, tok-".to_owned()),
            Block::Thinking(Thinking { text: "b tok-1234".to_owned(), replay: replay.clone() }),
            Block::ToolUse(ToolUse { id: CallId::new("c"), name: Arc::from("bash"), input }),
            Block::Text("1234".to_owned()),
            Block::ToolUse(ToolUse { id: CallId::new("d"), name: "x_tok-1234".into(), input: json!({}) }),
        ],
        stop_reason: StopReason::Other("tok-1234".to_owned()),
        ..Reply::default()
    };
    let reply = secrets().reply(reply);
    let Block::Thinking(thinking) = &reply.blocks[1] else { panic!("{reply:?}") };
    assert_eq!((thinking.text.as_str(), &thinking.replay), ("b [redacted: OTHER_TOKEN]", &replay));
    let call = reply.calls().next().unwrap();
    assert_eq!(call.input, json!({"command": "echo [redacted: OTHER_TOKEN]"}));
    assert_eq!(reply.text(), "a [redacted: OTHER_TOKEN], [redacted: OTHER_TOKEN]");
    assert_eq!(reply.blocks.len(), 4, "the texts that made a secret together are one");
    assert_eq!(reply.stop_reason.as_str(), "[redacted: OTHER_TOKEN]");
    assert_eq!(&*reply.calls().last().unwrap().name, "redacted");
}

#[test]
fn what_may_begin_a_secret_is_held_back_until_it_is_known() {
    let mut redactor = Redactor::new(secrets());
    for (piece, told) in [
        ("hello tok", "hello "),
        ("-12", ""),
        ("x", "tok-12x"),
        (" tok-1234", " "),
        ("56", ""),
        ("7", ""),
        ("9 ", "[redacted: OTHER_TOKEN]5679 "),
        ("tok-12345678", "[redacted: LONGER_TOKEN]"),
        ("t", ""),
    ] {
        assert_eq!(redactor.push(piece), told, "{piece}");
    }
    assert_eq!((redactor.finish().as_str(), redactor.finish().as_str()), ("t", ""));
}

/// Secrets that overlap, begin one another and repeat themselves.
fn tangled() -> Secrets {
    let values = [
        "abcdabcd1",
        "abcdabcd12ab",
        "bcdabcd1",
        "12ab\u{fc}cd\u{fc}",
        "1212121212ab",
        "\u{fc}\u{fc}ab\u{fc}\u{fc}cd",
    ];
    Secrets::new(values.iter().enumerate().map(|(i, value)| (format!("S{i}"), *value))).unwrap()
}

/// Texts made of the pieces of secrets, of their forms, and of other things.
fn texts() -> impl Strategy<Value = String> {
    let secrets = tangled();
    let forms: Vec<String> = secrets.0.unwrap().forms.iter().map(|(form, _)| form.clone()).collect();
    let whole = prop::sample::select(forms.clone());
    let part = (prop::sample::select(forms), any::<prop::sample::Index>()).prop_map(|(form, at)| {
        let ends: Vec<usize> = form.char_indices().map(|(at, _)| at).collect();
        form[..ends[at.index(ends.len())]].to_owned()
    });
    let piece = prop_oneof![whole, part, "[abcd12\u{fc}]{0,6}", "[ -~]{0,4}"];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn however_a_text_is_cut_the_pieces_give_what_the_whole_gives(
        text in texts(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let secrets = tangled();
        let whole = secrets.redact(&text);
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| ends[cut.index(ends.len())]).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut redactor = Redactor::new(secrets.clone());
        let mut told = String::new();
        for cut in cuts.windows(2) {
            told.push_str(&redactor.push(&text[cut[0]..cut[1]]));
            prop_assert!(redactor.held.len() < secrets.0.as_ref().unwrap().longest);
        }
        told.push_str(&redactor.finish());
        prop_assert_eq!(told, whole);
    }
}
