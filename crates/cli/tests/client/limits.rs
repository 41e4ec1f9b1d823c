//! A limit is reached, raised by `midturn limit`, and holds after a restart.

use serde_json::Value;

use super::common::Place;
use super::remote::{Serving, bash, lead};

/// What a command leaves: its status, its output, and what people are told.
fn said(place: &Place, words: &[&str]) -> (Option<i32>, String, String) {
    let said = place.midturn("repo", words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (said.status.code(), text(said.stdout), text(said.stderr))
}

fn good(place: &Place, words: &[&str]) -> String {
    let (status, out, told) = said(place, words);
    assert_eq!(status, Some(0), "{words:?}: {out}{told}");
    out
}

fn bad(place: &Place, words: &[&str]) -> String {
    let (status, out, told) = said(place, words);
    assert_eq!(status, Some(1), "{words:?}: {out}{told}");
    told
}

/// The lead, as `ps` has it.
fn lead_of(place: &Place) -> Value {
    let all: Value = serde_json::from_str(&good(place, &["ps", "--json"])).unwrap();
    all["agents"][0].clone()
}

#[test]
fn a_limit_is_reached_and_raised_and_is_kept_over_a_restart() {
    let place = Place::new();
    let answers = ["One.", "Two.", "Three.", "Four."].map(|text| format!("      - text: {text}\n")).concat();
    let scenario = lead(&format!("      - tools:\n{}{answers}", bash("b", "echo hi > out.txt")));
    place.write("scenario.yaml", &scenario);
    let serving = Serving::start(&place);
    let run = ["run", "the task", "--model", "scripted:../scenario.yaml", "--set", "max_turns=1"];
    assert_eq!(said(&place, &run).0, Some(4));
    assert_eq!(lead_of(&place)["limit"], "max_turns");
    assert!(good(&place, &["ps"]).contains("idle (limit: max_turns)"), "{}", good(&place, &["ps"]));
    let refused = bad(&place, &["send", "lead", "go on"]);
    assert!(refused.contains("max_turns"), "{refused}");

    // Its run goes on where the limit had ended it, without a word from anybody.
    let raised = good(&place, &["limit", "lead", "--max-turns", "3", "--max-cost", "2.5"]);
    assert!(raised.starts_with("lead: max_turns 3, max_cost 2.50"), "{raised}");
    good(&place, &["send", "lead", "more", "--wait", "answered"]);
    let below = bad(&place, &["limit", "lead", "--max-turns", "1"]);
    assert!(below.contains("max_turns can't be less than what is spent"), "{below}");
    assert!(bad(&place, &["limit", "nobody", "--max-turns", "9"]).contains("nobody"));
    assert_eq!(good(&place, &["limit", "--max-turns", "50"]), "all together: max_turns 50\n");
    good(&place, &["limit", "lead", "--max-turns", "4"]);

    // A process that is killed has kept the 4, not the 1 that the session began with.
    drop(serving);
    let _serving = Serving::start(&place);
    good(&place, &["resume"]);
    good(&place, &["send", "lead", "and more", "--wait", "answered"]);
    while lead_of(&place)["limit"].is_null() {
        std::thread::yield_now();
    }
    assert_eq!(lead_of(&place)["turn"], 1);
    let refused = bad(&place, &["send", "lead", "still more"]);
    assert!(refused.contains("max_turns"), "{refused}");
}
