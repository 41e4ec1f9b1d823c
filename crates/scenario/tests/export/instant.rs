//! What is told of one instant, and what no event tells of: small sessions, one for each rule of the export.

use midturn_scenario::export::scenario as export;
use midturn_scenario::file;

use crate::differences;
use crate::recorded::played;

/// Plays a session with a lead and what else the file has, and holds the replay of its export against it.
fn comes_back(rest: &str) {
    let text = format!("midturn: 1\nagents:\n  - {{name: lead, role: lead}}\n{rest}");
    let scenario = file::parse("instant.yaml".into(), text.as_bytes()).unwrap();
    let session = played(&scenario).unwrap();
    let exported = export(&session.journal, &session.events).unwrap();
    let wrong = differences(&session, &exported);
    assert!(wrong.is_empty(), "{}\n{exported}", wrong.join("\n"));
}

#[test]
fn a_resume_between_a_stop_and_a_message_is_there_before_the_message() {
    comes_back(
        "  - {name: worker, prompt: Go., model: [{text: One., takes: 1s}, {text: Two., takes: 1s}]}
  - {name: peer}
messages:
  - {at: 500ms, stop: worker}
  - {at: 500ms, resume: worker}
  - {id: m, at: 500ms, from: peer, to: worker, text: Hello.}
",
    );
}

#[test]
fn a_resume_after_which_a_stop_finds_a_run_is_there_before_the_stop() {
    comes_back(
        "  - {name: worker, prompt: Go., model: [{error: invalid_request}, {text: Two.}]}
messages:
  - {at: 1s, resume: worker}
  - {id: s, at: 1s, supersede: worker, text: Instead.}
",
    );
}

#[test]
fn a_call_of_the_coordinator_starts_beside_no_call_but_its_continuation() {
    comes_back(
        "  - {name: worker, prompt: Go., model: [{text: One., takes: 500ms}]}
  - name: other
    prompt: Go.
    model:
      - tools:
          - {id: e, name: edit, continues: 1s}
          - {id: w, name: wait_agents, input: {names: [other], timeout: 100ms}}
          - {id: f, name: edit, takes: 100ms}
      - text: Done.
messages:
  - {id: m, at: 250ms, from: user, to: other, text: Hello., urgency: next_boundary}
",
    );
}

#[test]
fn edits_of_a_file_wait_for_each_other_until_a_continuation() {
    comes_back(
        "  - name: worker
    prompt: Go.
    settings: {concurrency: all}
    model:
      - tools:
          - {id: e, name: write, input: {path: f}, takes: 500ms, continues: 2s}
          - {id: f, name: write, input: {path: f}, takes: 250ms}
          - {id: g, name: grep, takes: 250ms}
      - text: Done.
messages:
  - {at: 1s, stop: worker}
",
    );
}

#[test]
fn a_close_of_the_parent_comes_behind_the_start_of_the_childs_calls() {
    comes_back(
        "  - {name: worker}
  - name: child
    parent: worker
    prompt: Go.
    model:
      - {takes: 1s, tools: [{id: g, name: glob, takes: 1s}, {id: h, name: glob, takes: 1s}]}
messages:
  - {after: {agent: child, tool_started: h}, close: worker}
",
    );
}

#[test]
fn closes_of_two_trees_in_one_instant_are_two() {
    comes_back(
        "  - {name: worker, prompt: Go., model: [{text: One., takes: 2s}]}
  - {name: other, prompt: Go., model: [{text: One., takes: 2s}]}
messages:
  - {at: 1s, close: other}
  - {at: 1s, close: worker}
",
    );
}

#[test]
fn what_a_message_replaces_right_behind_a_stop_is_not_given_back_by_the_stop() {
    comes_back(
        "  - {name: worker, prompt: Go., model: [{text: One., takes: 2s}, {text: Two.}]}
messages:
  - {id: m, at: 500ms, from: user, to: worker, text: Hello., urgency: follow_up}
  - {at: 1s, stop: worker}
  - {id: n, at: 1s, from: user, to: worker, text: Better., supersedes: m}
",
    );
}

#[test]
fn a_shutdown_comes_behind_the_start_of_a_call_of_its_instant() {
    comes_back(
        "  - {name: other, prompt: Go., model: [{text: One., takes: 9s}, {text: Two.}]}
  - name: worker
    prompt: Go.
    model:
      - takes: 1s
        tools: [{id: e, name: edit}, {id: f, name: edit, takes: 1s}, {id: g, name: edit}]
      - text: Done.
messages:
  - {after: {agent: worker, tool_started: f}, shutdown: 1s}
",
    );
}
