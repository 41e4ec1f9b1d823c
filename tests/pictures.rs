//! Timelines of every scenario: the same bytes for the same events, valid, and no text over another; and what if a
//! message had come at another time. `MIDTURN_TIDY_WRITE=1` draws the README's picture.

#![expect(clippy::unwrap_used, reason = "a test that can't read its files fails")]

use std::path::{Path, PathBuf};

use midturn_core::rules::event::Event;
use midturn_core::rules::time::Micros;
use midturn_scenario::{Options, Shift, what_if};
use midturn_tests::root;
use midturn_view::fold::Session;
use midturn_view::svg::svg;
use midturn_view::timeline::Timeline;
use serde_json::{Value, json};

/// What a text is wide beyond what it says, and high above and below its line.
const HEIGHT: (f64, f64) = (9.0, 3.0);

/// The scenarios that need no real tools.
fn scenarios() -> Vec<PathBuf> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path != root().join("scenarios/real") {
                below(&path, found);
            } else if path.extension().is_some_and(|end| end == "yaml") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    below(&root().join("scenarios"), &mut found);
    assert!(found.len() > 200, "{}", found.len());
    found.sort();
    found
}

fn events(text: &str) -> Vec<Event> {
    let events = midturn_scenario::replay_text(text).unwrap();
    events.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect()
}

fn drawn(events: &[Event], title: &str) -> String {
    svg(&Timeline::of(events).picture(Micros::default(), Micros::default()), title)
}

/// A text's box, and what it says.
#[derive(Debug)]
struct Text {
    left: f64,
    right: f64,
    y: f64,
    #[expect(dead_code, reason = "it is said by tests that fail")]
    says: String,
}

/// All texts of a picture, each within it.
fn texts(svg: &str) -> Vec<Text> {
    let picture = roxmltree::Document::parse(svg).unwrap();
    let number =
        |node: &roxmltree::Node<'_, '_>, name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
    let whole = picture.root_element();
    let (width, height) = (number(&whole, "width"), number(&whole, "height"));
    let mut texts: Vec<Text> = Vec::new();
    for node in whole.descendants().filter(|node| node.has_tag_name("text")) {
        let (left, y) = (number(&node, "x"), number(&node, "y"));
        let text = Text {
            left,
            right: left + number(&node, "textLength"),
            y,
            says: node.text().unwrap_or_default().to_owned(),
        };
        assert!(
            text.left >= 0.0 && text.right <= width && y > HEIGHT.0 && y + HEIGHT.1 <= height,
            "{text:?} leaves it"
        );
        texts.push(text);
    }
    texts
}

/// No two texts overlap.
fn stand_apart(texts: &mut [Text], what: &str) {
    texts.sort_by(|a, b| (a.y, a.left).partial_cmp(&(b.y, b.left)).unwrap());
    for (at, text) in texts.iter().enumerate() {
        let near = texts[at + 1..].iter().take_while(|other| other.y - text.y < HEIGHT.0 + HEIGHT.1);
        let over = near.into_iter().find(|other| text.left < other.right && other.left < text.right);
        assert!(over.is_none(), "{what}: {text:?} is over {over:?}");
    }
}

#[test]
fn of_every_scenario_the_picture_is_valid_and_the_same_each_time_and_no_text_is_over_another() {
    for path in scenarios() {
        let name = path.display().to_string();
        let events = events(&std::fs::read_to_string(&path).unwrap());
        let picture = drawn(&events, "a title");
        assert_eq!(picture, drawn(&events, "a title"), "{name}");
        assert!(!picture.contains("<script") && !picture.contains("href"), "{name}");
        let document = roxmltree::Document::parse(&picture).unwrap();
        assert!(document.descendants().filter(|node| node.has_tag_name("title")).count() > 1, "{name}");
        stand_apart(&mut texts(&picture), &name);
    }
}

#[test]
fn what_the_terminal_draws_is_the_picture_that_is_written() {
    for path in scenarios() {
        let events = events(&std::fs::read_to_string(&path).unwrap());
        let mut session = Session::default();
        events.iter().for_each(|event| {
            session.event(event);
            // What is told twice changes nothing.
            session.event(event);
        });
        let now = Micros::default();
        let of = |timeline: &Timeline| json!(timeline.picture(now, now));
        assert_eq!(of(session.timeline()), of(&Timeline::of(&events)), "{}", path.display());
    }
}

/// A session of `agents` agents, each of which makes `calls` calls that end in different ways, with names as long as they may be.
fn large(agents: usize, calls: usize) -> Vec<Event> {
    let mut all = Vec::new();
    let mut event = |t: usize, mut fields: Value| {
        (fields["v"], fields["seq"], fields["t"]) =
            (json!(1), json!(all.len() + 1), json!(t as f64 / 1_000.0));
        all.push(serde_json::from_value(fields).unwrap());
    };
    let names: Vec<String> = (0..agents).map(|n| format!("{n:w<64}")).collect();
    for name in &names {
        event(
            0,
            json!({"type": "agent_spawned", "agent": name, "parent": null, "role": "subagent", "model": null, "prompt": null}),
        );
        event(0, json!({"type": "run_started", "agent": name, "run": 1, "turn": 1, "trigger": "prompt"}));
    }
    for call in 0..calls {
        for (at, name) in names.iter().enumerate() {
            let (t, tool) = (1 + call * 700 + at * 3, "読".repeat(64));
            let status = ["completed", "failed", "interrupted", "unknown"][(call + at) % 4];
            let place = json!({"agent": name, "run": 1, "turn": 1, "tool": format!("c{call}"), "name": tool});
            let with = |more: Value| {
                let mut fields = place.clone();
                fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                fields
            };
            event(t, with(json!({"type": "tool_started", "input": {"command": tool}, "batch": 1})));
            event(
                t + 2,
                with(
                    json!({"type": "tool_finished", "status": status, "is_error": false, "bytes": 0, "output": ""}),
                ),
            );
        }
    }
    all
}

#[test]
fn ten_thousand_events_and_five_hundred_agents_are_drawn_within_bounds_and_no_text_is_over_another() {
    for (agents, calls) in [(1, 5_000), (500, 8), (12, 400)] {
        let events = large(agents, calls);
        assert!(events.len() >= 9_000, "{}", events.len());
        let picture = drawn(&events, &"名".repeat(500));
        assert!(picture.len() < 12 << 20, "{} bytes", picture.len());
        stand_apart(&mut texts(&picture), &format!("{agents} agents"));
    }
}

#[test]
fn more_agents_and_calls_than_are_drawn_are_said() {
    for (agents, calls, says) in
        [(600, 0, "88 more agents are not drawn."), (1, 20_010, "10 calls before these are not drawn.")]
    {
        let picture = drawn(&large(agents, calls), "large");
        assert!(picture.contains(says), "{says}");
    }
}

#[test]
fn the_readmes_picture_is_as_it_is_drawn_now() {
    let scenario = root().join("scenarios/boundaries/the-picture-of-seed-002.yaml");
    let events = events(&std::fs::read_to_string(scenario).unwrap());
    let picture =
        drawn(&events, "A message in the middle of a turn: two edits done, the third and bash never start");
    let path = root().join("docs/pictures/timeline.svg");
    if std::env::var_os("MIDTURN_TIDY_WRITE").is_some() {
        std::fs::write(&path, &picture).unwrap();
    }
    let how = "MIDTURN_TIDY_WRITE=1 cargo test --workspace --test pictures readme";
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), picture, "{how} draws it anew");
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains("(docs/pictures/timeline.svg)"));
}

/// The messages and actions of a scenario that a person moved.
fn ids(text: &str) -> Vec<String> {
    let id = |line: &str| Some(line.trim().strip_prefix("- {id: ")?.split([',', '}']).next()?.to_owned());
    text.lines().skip_while(|line| !line.starts_with("messages:")).filter_map(id).collect()
}

/// What `midturn replay --shift` plays.
fn shifted(path: &Path, shift: &Shift) -> Option<Vec<Value>> {
    let options = Options { json: true, shift: vec![shift.clone()], ..Options::default() };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    midturn_scenario::replay(&[path.to_owned()], &options, &mut out, &mut err).unwrap();
    let lines = String::from_utf8(out).unwrap();
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (!events.is_empty()).then_some(events)
}

#[test]
fn what_if_plays_of_every_scenario_with_a_message_what_replay_shift_plays() {
    let mut played = 0;
    for path in scenarios() {
        let text = std::fs::read_to_string(&path).unwrap();
        let Some(id) = ids(&text).into_iter().next() else { continue };
        for by in ["+300ms", "-200ms"] {
            let shift: Shift = format!("{id}={by}").parse().unwrap();
            let name = path.display().to_string();
            let there = what_if(&name, &text, std::slice::from_ref(&shift));
            let Some(expected) = shifted(&path, &shift) else {
                assert!(there.is_err(), "{name} {shift}");
                continue;
            };
            let after: Vec<Value> = there.unwrap().after.iter().map(|event| json!(event)).collect();
            // Times are written as they are read: they are no value of their own.
            let plain: Vec<Value> = serde_json::from_str(&serde_json::to_string(&after).unwrap()).unwrap();
            assert_eq!(plain[1..], expected[1..], "{name} {shift}");
            played += 1;
        }
    }
    assert!(played > 100, "{played}");
}
