//! `midturn replay` through the binary: its exit statuses and what goes where. What a replay
//! checks is tested in `midturn-scenario`.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use common::Place;

const SCENARIO: &str = "midturn: 1
name: a correction between two edits
agents:
  - {name: lead, role: lead}
  - name: worker
    parent: lead
    prompt: Rename the call sites.
    model:
      - tools:
          - {id: e1, name: edit, takes: 1s}
          - {id: e2, name: edit, takes: 1s}
      - text: Done as corrected.
messages:
  - {id: fix, at: 500ms, from: lead, to: worker, text: Use the new name.}
expect:
  - {agent: worker, outcome: finished, tools: {e1: completed, e2: OUTCOME}}
";

#[test]
fn the_exit_status_says_whether_all_holds() {
    for (name, text, status, closing) in [
        ("good.yaml", SCENARIO.replace("OUTCOME", "skipped"), 0, "1 passed, 0 failed"),
        ("false.yaml", SCENARIO.replace("OUTCOME", "completed"), 1, "0 passed, 1 failed"),
        ("bad.yaml", "midturn: 1\nnmae: x\n".to_owned(), 2, "bad.yaml:2:1"),
    ] {
        let place = Place::new();
        place.write(name, &text);
        let said = place.midturn(".", &["replay", name, "--junit", "report.xml"]).output().unwrap();
        let told = String::from_utf8([said.stdout, said.stderr].concat()).unwrap();
        assert_eq!(said.status.code(), Some(status), "{told}");
        assert!(told.contains(closing), "{told}");
        assert!(std::fs::read_to_string(place.path("report.xml")).unwrap().contains("<testsuite"));
    }
    let said = Place::new().midturn("repo", &["replay", "nowhere.yaml"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
}

#[test]
fn with_json_standard_output_has_events_only_and_the_same_bytes_each_time() {
    let place = Place::new();
    place.write("a.yaml", &SCENARIO.replace("OUTCOME", "skipped"));
    let play = || place.midturn(".", &["replay", "--json", "a.yaml"]).output().unwrap();
    let (first, second) = (play(), play());
    assert_eq!((first.status.code(), &first.stdout), (Some(0), &second.stdout));
    for line in String::from_utf8(first.stdout).unwrap().lines() {
        assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap()["v"], 1);
    }
    assert!(String::from_utf8(first.stderr).unwrap().contains("1 passed, 0 failed"));
}

#[test]
fn a_replay_that_takes_its_time_tells_lines_on_standard_error_and_nothing_else_where_there_is_no_terminal() {
    let place = Place::new();
    place.write("a.yaml", &SCENARIO.replace("OUTCOME", "skipped"));
    // It comes when somebody writes it: that is when the replay has told how far it is.
    let late = place.path("late.yaml");
    assert!(Command::new("mkfifo").arg(&late).status().unwrap().success());
    let mut replay = place.midturn(".", &["replay", "--json", "a.yaml", "late.yaml"]);
    let mut replay = replay.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(replay.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = told.find(|line| line.starts_with("midturn: ")).unwrap();
    assert!(line.starts_with("midturn: replaying: 1 of 2, "), "{line}");
    place.write("late.yaml", &SCENARIO.replace("OUTCOME", "skipped"));
    let rest: Vec<String> = told.collect();
    let said = replay.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(0), "{rest:?}");
    let all = String::from_utf8(said.stdout).unwrap() + &rest.concat();
    assert!(!all.contains('\u{1b}') && !all.contains('\r'), "{all}");
    assert!(all.lines().next().unwrap().starts_with('{') && rest.concat().contains("2 passed"), "{all}");
}

#[test]
fn a_shift_shows_what_changes_and_a_bad_one_is_an_error() {
    let place = Place::new();
    place.write("a.yaml", &SCENARIO.replace("OUTCOME", "skipped"));
    for (shift, status, expected) in [
        ("fix=+1s", 0, "e2"),
        ("fix=-10s", 2, "before"),
        ("fix", 2, "--shift: `fix` is not a shift"),
        ("fox=1s", 2, "fox"),
    ] {
        let said = place.midturn(".", &["replay", "a.yaml", "--shift", shift]).output().unwrap();
        let told = String::from_utf8([said.stdout, said.stderr].concat()).unwrap();
        assert_eq!(said.status.code(), Some(status), "{shift}: {told}");
        assert!(told.contains(expected), "{shift}: {told}");
    }
}

#[test]
fn real_tools_are_there_for_scenarios_that_ask_for_them() {
    let place = Place::new();
    place.write("workspace/a.txt", "one\n");
    let scenario = "midturn: 1
name: a file in a worktree
tools: real
workspace: workspace
agents:
  - name: worker
    prompt: Go.
    model:
      - tools:
          - {id: b, name: bash, input: {command: \"cat a.txt > b.txt\"}}
      - text: Done.
expect:
  - {agent: worker, outcome: finished, tools: {b: completed}}
  - file: {agent: worker, path: b.txt, contains: one}
";
    place.write("real.yaml", scenario);
    let said = place.midturn(".", &["replay", "real.yaml"]).output().unwrap();
    assert_eq!(said.status.code(), Some(0), "{}", String::from_utf8_lossy(&said.stdout));
    assert!(!place.path("workspace/b.txt").exists());
}
