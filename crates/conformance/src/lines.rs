//! Claims about the conversation: what is kept of it, and how others read it.

use std::sync::Arc;

use midturn_core::engine::ports::Transaction;
use midturn_core::engine::ports::archive::Rows;
use midturn_core::engine::ports::store::Row;
use midturn_core::rules::compaction::Compaction;
use midturn_core::rules::conversation::{
    Block, Injected, InterruptReason, MessageKey, Opaque, Partial, Reply, StopReason, Thinking, ToolResult,
    ToolStatus, ToolUse, Usage,
};
use midturn_core::rules::event::Sizes;
use midturn_core::rules::id::{CallId, MessageId};
use midturn_core::rules::mail::{Point, Sender};
use midturn_core::rules::record::Line;
use midturn_core::rules::time::Micros;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::Given;
use super::maker::*;

fn texts() -> Vec<String> {
    let mut texts: Vec<String> =
        ["", "plain", "\0", "␀0\0␀", "\\u0000 \" \n\t", "\u{1f980}\u{200d}é\u{fffd}"]
            .into_iter()
            .map(str::to_owned)
            .collect();
    // 256 KiB, as much as a message may have.
    texts.push("\u{1f980}\0ab".repeat((256 << 10) / 7));
    texts.push(format!("{{\"deep\": {}1{}}}", "[".repeat(5_000), "]".repeat(5_000)));
    texts.push(r#"{"huge": 1e999, "n": [1e16, 0.1, -0.0]}"#.to_owned());
    texts
}

fn keys(text: &str) -> Arc<[MessageKey]> {
    let from = [Sender::User, Sender::Agent(name("coordinator")), Sender::Coordinator(name("worker"))];
    from.into_iter().map(|from| MessageKey { from, id: MessageId::new(text) }).collect()
}

fn reply(text: &str, input: Value, stop_reason: StopReason) -> Arc<Reply> {
    let thinking = |replay: Option<&str>| {
        let replay = replay.map(|json| Opaque(json.into()));
        Block::Thinking(Thinking { text: text.to_owned(), replay })
    };
    Arc::new(Reply {
        blocks: vec![
            thinking(Some(text)),
            Block::Text(text.to_owned()),
            Block::ToolUse(ToolUse { id: CallId::new(text), name: text.into(), input }),
            Block::Text(String::new()),
            Block::Provider(Opaque(r#"{ "type" : "x",  "n": 1.0 }"#.into())),
            Block::Text(format!("{text}more")),
            thinking(None),
        ],
        stop_reason,
        usage: Usage { input: u64::MAX, output: 2, cached: 1 },
    })
}

fn lines(text: &str) -> Vec<Line> {
    let injected = || Injected { text: text.into(), messages: keys(text) };
    let result = |status, messages| {
        Line::Result(ToolResult {
            id: CallId::new(text),
            name: text.into(),
            status,
            is_error: status != ToolStatus::Completed,
            text: text.into(),
            messages,
            cost: Default::default(),
        })
    };
    let input = json!({text: [text, 1e16, 0.1, -0.0, 5e-324, u64::MAX, i64::MIN, 0.30000000000000004, null]});
    vec![
        Line::Prompt(text.into()),
        Line::Alone(injected(), Point::B),
        Line::Alone(Injected::prompt(text), Point::Start),
        Line::Beside(injected(), Point::D),
        Line::Reply(reply(text, input, StopReason::ToolUse)),
        Line::Reply(reply(text, json!({}), StopReason::Other(text.to_owned()))),
        Line::Reply(Arc::default()),
        Line::Interrupted(Arc::new(Partial {
            text: text.to_owned(),
            thinking: format!("{text}!"),
            reason: InterruptReason::MessageInterrupt,
            stream_run_id: 7,
            partial_tokens: u64::MAX,
            interrupted_at: Micros(1_234_567_890_123),
        })),
        result(ToolStatus::Completed, Arc::default()),
        result(ToolStatus::Completed, keys(text)),
        result(ToolStatus::Failed, Arc::default()),
        result(ToolStatus::Interrupted, Arc::default()),
        result(ToolStatus::Skipped, Arc::default()),
        result(ToolStatus::Stopped, Arc::default()),
        result(ToolStatus::Unknown, Arc::default()),
        Line::Unused(reply(text, json!({}), StopReason::MaxTokens)),
        Line::Compacted(Arc::new(Compaction {
            summary: text.into(),
            usage: Usage { input: 1, output: u64::MAX, cached: 0 },
            kept: 3,
            messages: Sizes { before: 12, after: 4 },
            tokens: Sizes { before: u64::MAX, after: 0 },
        })),
    ]
}

/// Keeps the lines and finds them again.
async fn come_back(given: Given<'_>, lines: Vec<Line>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let agents = vec![agent(0, "lead")];
    store.submit(Arc::new(Transaction { agents, ..Transaction::default() })).await.unwrap();
    let kept: Vec<Row> = lines
        .into_iter()
        .zip(1..)
        .map(|(line, n)| Row { agent: name("lead"), run: u64::from(n), turn: n, line })
        .collect();
    for part in kept.chunks(10) {
        store.submit(rows(part.to_vec())).await.unwrap();
    }
    drop(store);
    let given = given.reopened().await;
    let journal = given.archive.journal(&record.id).await.unwrap().unwrap();
    let found = &journal.agents[0].rows;
    assert_eq!(found.len(), kept.len());
    for (found, kept) in found.iter().zip(&kept) {
        assert_eq!(found, kept);
        // `==` of numbers is not enough: -0.0 is 0.0, and what goes to a provider is text.
        assert_eq!(serde_json::to_string(&found.line).unwrap(), serde_json::to_string(&kept.line).unwrap());
    }
}

pub(crate) async fn every_kind_of_line_comes_back_byte_for_byte(given: Given<'_>) {
    come_back(given, texts().iter().flat_map(|text| lines(text)).collect()).await;
}

pub(crate) async fn any_line_comes_back_byte_for_byte(given: Given<'_>) {
    let letter = prop_oneof![
        Just('\0'),
        Just('␀'),
        Just('0'),
        Just('\\'),
        Just('"'),
        Just('u'),
        Just('\u{1f980}'),
        any::<char>()
    ];
    let text =
        proptest::collection::vec(letter, 0..12).prop_map(|letters| letters.into_iter().collect::<String>());
    let leaf = prop_oneof![
        any::<f64>().prop_filter("JSON has no others", |n| n.is_finite()).prop_map(|n| json!(n)),
        any::<u64>().prop_map(|n| json!(n)),
        any::<i64>().prop_map(|n| json!(n)),
        text.clone().prop_map(Value::String),
    ];
    let input = leaf.prop_recursive(3, 20, 4, move |inner| {
        proptest::collection::hash_map("[a-c\0␀]{0,3}", inner, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    });
    let line = (text, input).prop_map(|(text, input)| {
        let mut all = lines(&text);
        all.push(Line::Reply(reply(&text, input, StopReason::EndTurn)));
        all
    });
    let mut runner = TestRunner::deterministic();
    let some = (0..60).flat_map(|_| line.new_tree(&mut runner).unwrap().current());
    come_back(given, some.collect()).await;
}

pub(crate) async fn chat_messages_are_what_semantics_section_6_says(given: Given<'_>) {
    let record = session("s");
    let store = given.archive.begin(record.clone()).await.unwrap();
    let kept = lines(r#"{"a": [1]}"#).into_iter();
    let kept = kept.map(|line| Row { agent: name("lead"), run: 7, turn: 2, line });
    store.submit(rows(kept.collect())).await.unwrap();
    let page = given.archive.conversation(&record.id, &name("lead"), Rows::After(0), 100).await.unwrap();
    let types: Vec<_> = page.iter().map(|row| (row.role.as_str(), row.message_type.as_str())).collect();
    let mut expected = vec![("user", "user"); 4];
    expected.extend([("assistant", "assistant"); 3]);
    expected.push(("assistant", "assistant_interrupted"));
    expected.extend([("tool", "tool_result"); 3]);
    expected.push(("tool", "tool_partial"));
    expected.push(("tool", "tool_result"));
    expected.extend([("tool", "tool_partial"); 2]);
    expected.extend([("assistant", "summary_unused"), ("user", "summary")]);
    assert_eq!(types, expected);
    let cut = &page[7].metadata;
    assert_eq!(
        *cut,
        json!({"interrupted": true, "interrupted_reason": "message_interrupt", "stream_run_id": 7,
            "partial_tokens": u64::MAX, "interrupted_at": 1_234_567.890123, "thinking": "{\"a\": [1]}!"})
    );
    let partial = &page[11];
    assert_eq!(
        partial.metadata,
        json!({"status": "interrupted", "is_error": true, "partial": true, "interrupted": true,
            "interrupted_reason": "message_interrupt", "stream_run_id": 7})
    );
    assert_eq!(page[8].metadata, json!({"status": "completed", "is_error": false}));
    assert_eq!(page[8].content, r#"{"a": [1]}"#);
    assert_eq!(
        (page[8].tool_name.as_deref(), page[8].tool_call_id.as_deref()),
        (Some("{\"a\": [1]}"), Some("{\"a\": [1]}"))
    );
    let structured = json!({"status": "completed", "is_error": false, "output": {"a": [1]}});
    assert_eq!(page[8].tool_result, Some(structured));
    assert!(page[0].tool_result.is_none() && page[0].tool_name.is_none());
    assert!(page.iter().all(|row| row.run == 7 && row.created_at > 1_700_000_000_000_000));
    let after = given.archive.conversation(&record.id, &name("lead"), Rows::After(3), 2).await.unwrap();
    assert_eq!(after, page[3..5]);
    assert!(
        given
            .archive
            .conversation(&record.id, &name("lead"), Rows::After(u64::MAX), 2)
            .await
            .unwrap()
            .is_empty()
    );
    for (rows, expected) in [
        (Rows::Before(4), &page[1..3]),
        (Rows::Before(2), &page[..1]),
        (Rows::Before(1), &page[..0]),
        (Rows::Before(u64::MAX), &page[page.len() - 2..]),
    ] {
        let found = given.archive.conversation(&record.id, &name("lead"), rows, 2).await.unwrap();
        assert_eq!(found, expected, "{rows:?}");
    }
}
