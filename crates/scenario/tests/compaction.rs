//! Random conversations in small contexts, with mail and stops at random instants: whatever is
//! summarised, cut or parked, every invariant of semantics.md, section 10, holds (the replay's
//! own audit reads every prompt, and holds each compaction against its summary).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use midturn_scenario::{check_text, replay_text};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

/// An answer of the model: how long it takes, what it costs, how many calls it asks for.
fn reply() -> impl Strategy<Value = Value> {
    // Mostly nobody counts, and bytes do.
    let input = prop_oneof![3 => Just(0), 1 => 0..700_u64];
    (0..3_u64, input, 0..3_usize, 0..160_usize, prop::bool::weighted(0.1)).prop_map(
        |(takes, input, calls, words, fails)| {
            if fails {
                return json!({"takes": format!("{takes}s"), "error": "overloaded"});
            }
            let call = |n: usize| {
                json!({"name": (if n == 0 { "read" } else { "edit" }), "takes": "1s", "result": "line ".repeat(words)})
            };
            let usage = json!({"input": input, "output": input / 10});
            let calls: Vec<Value> = (0..calls).map(call).collect();
            json!({"text": "So it is.", "takes": format!("{takes}s"), "usage": usage, "tools": calls})
        },
    )
}

/// What it answers when it is asked for a summary.
fn summary() -> impl Strategy<Value = Value> {
    (1..6_u64, 0..200_usize).prop_map(|(takes, words)| {
        json!({"text": "word ".repeat(words), "takes": format!("{takes}s"),
            "when": {"last_message_contains": "Write a summary"}})
    })
}

/// Something that comes from outside.
fn item() -> impl Strategy<Value = Value> {
    let urgency =
        prop::sample::select(vec!["follow_up", "after_tools", "next_boundary", "urgent", "urgent", "urgent"]);
    (0..50_u64, urgency, prop::bool::weighted(0.05)).prop_map(|(halves, urgency, stops)| {
        let at = format!("{}ms", halves * 500);
        if stops {
            return json!({"at": at, "by": "user", "stop": "worker"});
        }
        json!({"at": at, "from": "user", "to": "worker", "urgency": urgency, "text": "Mind this."})
    })
}

fn scenario() -> impl Strategy<Value = Value> {
    let model = (prop::collection::vec(summary(), 0..6), prop::collection::vec(reply(), 8..30));
    let settings = (600..1_400_u64, 50..90_u32, 0..3_u32, any::<bool>());
    (model, settings, prop::collection::vec(item(), 0..14)).prop_map(
        |((mut model, mut replies), (window, percent, keep, cuts), mut items)| {
            for (at, reply) in replies.iter_mut().enumerate() {
                let calls = reply["tools"].as_array_mut().into_iter().flatten();
                calls.enumerate().for_each(|(n, call)| call["id"] = json!(format!("c{at}-{n}")));
            }
            items.iter_mut().enumerate().for_each(|(n, item)| item["id"] = json!(format!("m{n}")));
            model.extend(replies);
            // A script that runs out is a mistake of its file, and not what is looked for here.
            model.extend(vec![json!({"text": "So it is.", "takes": "1s"}); 60]);
            json!({
                "midturn": 1,
                "name": "at random",
                "settings": {"context_tokens": window, "compact_at": percent, "compact_keep_turns": keep,
                    "urgent_cuts_stream": cuts},
                "agents": [{"name": "worker", "prompt": "Do it.", "model": model}],
                "messages": items,
            })
        },
    )
}

#[test]
fn invariants_1_to_8_hold_whatever_is_summarised_cut_or_parked() {
    let mut runner = TestRunner::deterministic();
    let [mut compacted, mut cut, mut parked] = [0, 0, 0];
    for case in 0..160 {
        let scenario = scenario().new_tree(&mut runner).unwrap().current();
        let text = scenario.to_string();
        let failures = check_text("random", &text).unwrap();
        let told: Vec<String> = failures.iter().map(|failure| failure.to_string()).collect();
        assert!(told.is_empty(), "case {case}: {}\n{scenario:#}", told.join("\n"));
        let settings = &scenario["settings"];
        let percent = settings["compact_at"].as_u64().unwrap();
        let limit = settings["context_tokens"].as_u64().unwrap() * percent / 100;
        let events = replay_text(&text).unwrap();
        let mut summarises = false;
        for event in &events {
            if event["type"] == "model_started" {
                summarises = event["purpose"] == "summary";
            }
            cut += usize::from(summarises && event["reason"] == "message_interrupt");
            let parks = |error: &str| error.starts_with("context_tokens");
            parked += usize::from(event["error"].as_str().is_some_and(parks));
            if event["type"] == "compacted" {
                compacted += 1;
                assert!(event["tokens"]["after"].as_u64().unwrap() < limit, "case {case}: {event}");
                assert!(event["tokens"]["before"].as_u64().unwrap() >= limit, "case {case}: {event}");
            }
        }
    }
    assert!(compacted > 80 && cut > 3 && parked > 30, "{compacted} compacted, {cut} cut, {parked} parked");
}
