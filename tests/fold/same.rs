//! The page folds as this crate does, and has the same words.
//!
//! `MIDTURN_RANDOM=N` plays N random lists, `MIDTURN_FIRST=S` begins with seed S.

use std::collections::BTreeSet;

use midturn_core::rules::approval::Decision;
use midturn_core::rules::compaction::Purpose;
use midturn_core::rules::conversation::{ToolStatus, Usage};
use midturn_core::rules::event::{CallRef, Event, EventKind, LiveEvent, LiveKind, Place, Trigger, VERSION};
use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::mail::{Point, Refusal, ReturnReason, Urgency};
use midturn_core::rules::time::{Micros, Span};
use midturn_view::{clean, figures, mail, words};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::page::{Page, Told};
use crate::played;
use crate::random::Random;

/// Random lists when the environment names no number.
const LISTS: u64 = 1_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn of_every_scenario_the_page_makes_the_same_and_says_it_in_the_same_words() {
    let Some(mut page) = Page::begin() else { return };
    for (path, events) in played() {
        let told: Vec<Told> = events.iter().cloned().map(Told::Event).collect();
        page.agrees(&path.to_string(), &told);
    }
}

#[test]
fn of_random_lists_the_page_makes_the_same_and_says_it_in_the_same_words() {
    let Some(mut page) = Page::begin() else { return };
    let (first, lists) = (number("MIDTURN_FIRST", 0), number("MIDTURN_RANDOM", LISTS));
    for seed in first..first + lists {
        page.agrees(&format!("MIDTURN_FIRST={seed} MIDTURN_RANDOM=1"), &Random::list(seed));
    }
}

/// All types of an event or a delta, as its reader names them.
fn types<T: DeserializeOwned + std::fmt::Debug>() -> BTreeSet<String> {
    let error = serde_json::from_value::<T>(json!({ "type": "" })).unwrap_err().to_string();
    error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[test]
fn random_lists_tell_everything_that_can_be_told() {
    let all: Vec<Told> = (0..LISTS).flat_map(Random::list).collect();
    let name = |one: &Told| match one {
        Told::Event(event) => Some(event.kind.type_name().to_owned()),
        Told::Live(event) => Some(event.kind.type_name().to_owned()),
        Told::Other(_) | Told::Rejoined => None,
    };
    let told: BTreeSet<String> = all.iter().filter_map(name).collect();
    let known: BTreeSet<String> = types::<EventKind>().union(&types::<LiveKind>()).cloned().collect();
    assert!(known.len() > 20, "{known:?}");
    assert_eq!(told, known);
}

fn at(agent: &str) -> Place {
    Place::of(&AgentName::new(agent).unwrap(), 1, 1)
}

/// These kinds of event of an agent, all in one turn, from the number 1 on.
fn events(kinds: impl IntoIterator<Item = EventKind>) -> Vec<Told> {
    let started = EventKind::RunStarted { trigger: Trigger::Prompt };
    let event = |(seq, kind)| Event { v: VERSION, seq, t: Micros(seq), at: at("w"), kind };
    (1..).zip([started].into_iter().chain(kinds)).map(event).map(Told::Event).collect()
}

fn deltas(kinds: impl IntoIterator<Item = LiveKind>) -> Vec<Told> {
    let delta = |(n, kind)| LiveEvent { v: VERSION, seq: 1, n, t: Micros(n), at: at("w"), kind };
    let deltas = (1..).zip(kinds).map(delta).map(Told::Live);
    events([]).into_iter().chain(deltas).collect()
}

fn replies(text: String, tools: Vec<CallRef>) -> EventKind {
    let (stop_reason, usage, thinking, purpose) =
        ("end_turn".into(), Usage::default(), vec![], Purpose::Turn);
    EventKind::ModelFinished { stop_reason, usage, text, thinking, tools, purpose }
}

fn begins(id: &str, input: Value) -> EventKind {
    EventKind::ToolStarted { tool: CallId::new(id), name: "bash".into(), input, batch: 1 }
}

fn ends(id: &str, output: String) -> EventKind {
    let (tool, status) = (CallId::new(id), ToolStatus::Completed);
    EventKind::ToolFinished { tool, name: "bash".into(), status, is_error: false, bytes: 9, output }
}

fn queued(id: u64) -> EventKind {
    let (message, from) = (MessageId::new(id.to_string()), "user".to_owned());
    EventKind::MessageQueued { message, from, urgency: Urgency::Urgent, text: "x".into() }
}

fn returned(id: u64) -> EventKind {
    EventKind::MessageReturned { message: MessageId::new(id.to_string()), reason: ReturnReason::Withdrawn }
}

fn asks(id: u64) -> EventKind {
    let (tool, name) = (CallId::new(id.to_string()), "bash".into());
    EventKind::ApprovalRequested { tool, name, input: Value::Null, always: "bash".into() }
}

fn text(text: String) -> LiveKind {
    LiveKind::TextDelta { text }
}

fn prints(text: String) -> LiveKind {
    LiveKind::ToolOutput { tool: CallId::new("a"), text }
}

fn setup(text: String) -> LiveKind {
    LiveKind::SetupOutput { text }
}

/// More than is kept, of each thing.
fn too_much() -> Vec<(&'static str, Vec<Told>)> {
    let large = |n: usize| "é".repeat(n << 9);
    let call = |id: &str| CallRef { id: CallId::new(id), name: "bash".into(), input: json!([1, "x"]) };
    let word = EventKind::ApprovalResolved {
        tool: CallId::new("a"),
        decision: Decision::Denied,
        by: "user".into(),
        reason: Some(large(900)),
    };
    let small = Value::Array(vec![json!([]); 100_000]);
    let many = (1..2_500).map(|n| replies(n.to_string(), vec![]));
    let agents = (1..=16_400).map(|n| Event {
        v: VERSION,
        seq: n,
        t: Micros(n),
        at: at(&n.to_string()),
        kind: EventKind::RunStarted { trigger: Trigger::Prompt },
    });
    let mail = |n: u64| [queued(n), returned(n)];
    let counts =
        |n: u64| LiveKind::CallDelta { tool: CallId::new(n.to_string()), name: "a".into(), bytes: n };
    let injected = EventKind::MessageInjected {
        messages: (1..100).map(|n| MessageId::new(n.to_string())).collect(),
        point: Point::D,
        text: "x".into(),
        skipped: [].into(),
        interrupted: [].into(),
    };
    vec![
        ("entries", events(many)),
        ("a byte", events([large(1_024), large(1_024), "x".into()].map(|text| replies(text, vec![])))),
        ("bytes", events([1, 1_000, 900, 300, 3_000, 1].map(|n| replies(large(n), vec![])))),
        (
            "a call's output",
            events([replies(large(1_500), vec![call("a")]), begins("a", json!("é")), ends("a", large(800))]),
        ),
        ("a word", events([replies(large(1_500), vec![call("a")]), word])),
        ("small values", events([replies("Look.".into(), vec![]), begins("a", small)])),
        ("calls", events((1..300).map(|n| begins(&n.to_string(), json!(n))))),
        ("settled mail", events((1..100).flat_map(mail))),
        ("unanswered mail", events((1..100).map(queued).chain([injected]).chain((100..200).flat_map(mail)))),
        ("a mailbox", events((1..4_200).map(queued))),
        ("asks", events((1..4_200).map(asks))),
        ("agents", agents.map(Told::Event).collect()),
        ("pieces", deltas((1..1_100).map(counts))),
        ("a text", deltas([text("a".into()), text(large(1_024)), text("b".into()), text("é".into())])),
        ("an output", deltas([prints("é".into()), prints("x".repeat((64 << 10) - 2)), prints("y".into())])),
        ("a setup's output", deltas(["é".into(), "x".repeat((64 << 10) - 2), "y".into()].map(setup))),
        // All that is kept of it is what is said again.
        ("an output of one letter", deltas(["x".into(), "x".repeat(64 << 10)].map(prints))),
        ("pictures", deltas([prints("👩".repeat(16 << 10)), prints("y".into()), prints("👩y".into())])),
    ]
}

#[test]
fn the_page_keeps_no_more_than_this_crate_does() {
    let Some(mut page) = Page::begin() else { return };
    for (what, mut told) in too_much() {
        assert_eq!(page.difference(&told, false), None, "{what}");
        // Of what is not known from its beginning all is told again.
        if let Some(Told::Live(last)) = told.last().cloned() {
            told.extend([Told::Rejoined, Told::Live(LiveEvent { n: last.n + 1, ..last })]);
            assert_eq!(page.difference(&told, false), None, "{what}");
        }
    }
}

/// What the page has to say, and the call that makes it say that: the function's name, and what it is given.
fn said() -> Vec<(Value, Value)> {
    let mut all = Vec::new();
    for code in
        Refusal::CODES.into_iter().chain(["not_live", "not_asked", "too_many_requests", "not_allowed", "new"])
    {
        for detail in ["", "the engine's\n own"] {
            all.push((json!(["refusal", code, detail]), json!(mail::refusal(code, detail))));
        }
    }
    for reason in ReturnReason::ALL {
        all.push((json!(["returned", reason]), json!(mail::returned(reason))));
    }
    for urgency in Urgency::ALL {
        all.push((json!(["sign", urgency]), json!(mail::sign(urgency))));
        all.push((json!(["level", urgency]), json!(mail::level(urgency))));
    }
    let numbers =
        (0..16).flat_map(|power| [-1, 0, 1].map(|step| 10_u64.pow(power).saturating_add_signed(step)));
    for number in
        numbers.chain([1_290_000, 59_999_999, 3_723_000_000, 86_399_999_999, 86_400_000_000, 273_700_000_000])
    {
        all.push((json!(["count", number]), json!(figures::count(number))));
        all.push((json!(["bytes", number]), json!(figures::bytes(number))));
        all.push((json!(["clock", number]), json!(figures::clock(Span(number)))));
        all.push((json!(["took", number]), json!(figures::short(Span(number)))));
    }
    for (blank, text) in [(8_191, "xy"), (8_192, "x"), (8_191, "é"), (8_500, "x"), (0, "x")] {
        let text = " ".repeat(blank) + text + &" ".repeat(9_000);
        all.push((json!(["short", text]), json!(words::short(&text))));
    }
    let mut random = Random::new(1);
    for _ in 0..1_000 {
        let (text, input) = (random.text(), random.input());
        all.push((json!(["short", text]), json!(words::short(&text))));
        all.push((json!(["whole", text]), json!(words::whole(&text))));
        all.push((json!(["clean", text]), json!(clean::clean(&text))));
        all.push((json!(["visible", text]), json!(clean::visible(&text))));
        all.push((json!(["oneLine", text]), json!(clean::one_line(&text))));
        all.push((json!(["gist", input]), json!(words::gist(&input))));
        all.push((json!(["asked", text, input]), json!(words::asked(&text, &input))));
    }
    all
}

#[test]
fn the_page_has_the_same_words_for_the_same_things() {
    let Some(mut page) = Page::begin() else { return };
    let (asked, expected): (Vec<Value>, Vec<Value>) = said().into_iter().unzip();
    for ((asked, expected), said) in asked.iter().zip(expected).zip(page.say(&asked)) {
        assert_eq!(said, expected, "{asked}");
    }
}
