//! What a script and a job meet: scenarios that fail as they should, what models read, the events' schema.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod common;

use common::Place;

/// Plays a scenario: its exit status, and all that it says.
fn replayed(text: &str, more: &[&str]) -> (Option<i32>, String) {
    let place = Place::new();
    place.write("a.yaml", text);
    let said = place.midturn(".", &[&["replay", "a.yaml"], more].concat()).output().unwrap();
    (said.status.code(), String::from_utf8([said.stdout, said.stderr].concat()).unwrap())
}

const RAN_OUT: &str = "midturn: 1
agents:
  - {name: lead, role: lead, prompt: Go., model: [{tools: [{id: b, name: bash, takes: 1s}]}]}
";

const ABSENT: &str = "midturn: 1
agents:
  - name: lead
    role: lead
    prompt: Go.
    model:
      - {tools: [{id: s, name: spawn_agent, input: {name: helper, prompt: Help.}}]}
      - {text: Nobody helps.}
";

/// > D19: A script that ran out, and a spawn of a name that is not there, fail a scenario without `expect` too
#[test]
fn what_a_script_lacks_fails_a_scenario_that_does_not_expect_it() {
    for (text, lack, expected) in [
        (RAN_OUT, "run 1: script exhausted", "expect: [{agent: lead, outcome: failed}]\n"),
        (ABSENT, "the scenario has no agent `helper`", "expect: [{agent: lead, tools: {s: failed}}]\n"),
    ] {
        let (status, told) = replayed(text, &[]);
        assert!(status == Some(1) && told.contains(lack) && told.contains("FAIL  a.yaml"), "{told}");
        let (status, told) = replayed(&format!("{text}expect: [{{agent: lead, run: 1, turns: 2}}]\n"), &[]);
        assert!(status == Some(1) && told.contains(lack), "an expectation of something else: {told}");
        let (status, told) = replayed(&format!("{text}{expected}"), &[]);
        assert_eq!((status, told.as_str()), (Some(0), "ok    a.yaml\n1 passed, 0 failed\n"));
    }
}

/// > D19: `--shift` doesn't say `ok`
#[test]
fn a_scenario_that_was_moved_passes_nothing() {
    let text = format!(
        "{RAN_OUT}messages:\n  - {{id: m, at: 3s, from: user, to: lead, text: Hello.}}\nexpect: [{{agent: lead, run: 9, turns: 7}}]\n"
    );
    let (status, told) = replayed(&text, &["--shift", "m=-2.5s", "--junit", "report.xml"]);
    assert_eq!(status, Some(0), "{told}");
    assert!(told.starts_with("moved a.yaml\n") && !told.contains("ok "), "{told}");
    assert!(told.ends_with("1 moved, 0 failed; expectations were not checked\n"), "{told}");
}
