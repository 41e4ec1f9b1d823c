//! What was kept, read from a real store, with and without a process that holds it.

use serde_json::Value;

use super::common::{Place, Running};
use super::remote::Serving;

const SCENARIO: &str = "midturn: 1\nname: test\nagents:\n  - name: lead\n    role: lead\n    model:\n      - text: Well.\n        \
     tools: [{id: b, name: bash, input: {command: echo hi}}]\n      - text: Done.\n";

fn say(place: &Place, words: &[&str]) -> (Option<i32>, String, String) {
    let said = place.midturn("repo", words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (said.status.code(), text(said.stdout), text(said.stderr))
}

#[test]
fn where_nothing_was_kept_that_is_said_and_nothing_is_made() {
    let place = Place::new();
    let (status, out, told) = say(&place, &["sessions"]);
    assert_eq!((status, told.as_str()), (Some(0), ""));
    assert!(
        out.starts_with("no session is kept in ") && out.ends_with(": `midturn run` begins one\n"),
        "{out}"
    );
    assert_eq!(say(&place, &["sessions", "--json"]).1, "{\"sessions\":[]}\n");
    let (status, _, told) = say(&place, &["log", "last"]);
    assert_eq!((status, told.starts_with("midturn: no session is kept in ")), (Some(2), true), "{told}");
    assert!(!place.path("state").exists());
}

#[test]
fn a_log_has_the_events_as_the_run_told_them() {
    let place = Place::new();
    let ran = Running::start(&place, SCENARIO, &[]).end();
    let live: Vec<Value> = ran.events.into_iter().filter(|event| event.get("n").is_none()).collect();
    let (status, out, told) = say(&place, &["log", "last", "--json"]);
    let kept: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((status, told.as_str(), kept), (Some(0), "", live.clone()));
    let id = live[0]["session"].as_str().unwrap();
    let (status, out, _) = say(&place, &["log", &id[..10], "--agent", "lead"]);
    let lines: Vec<&str> = out.lines().map(|line| line.split_once(" s  ").unwrap().1).collect();
    assert_eq!(
        (status, lines),
        (Some(0), vec!["lead: Well.", "lead: bash echo hi", "lead: Done.", "lead: finished after 2 turns"])
    );
    let (status, out, _) = say(&place, &["sessions"]);
    let row: Vec<&str> = out.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((status, row[0], &row[row.len() - 4..]), (Some(0), id, &["1", "ended", "the", "task"][..]));
    for (words, expected) in [
        (&["log", "x"][..], "there is no session `x`"),
        (&["log", "last", "--agent", "nobody"], "nothing is kept of an agent `nobody`"),
        (&["sessions", "--store", "mysql://x/y"], "`mysql://` is not a store"),
    ] {
        let (status, _, told) = say(&place, words);
        assert_eq!((status, told.contains(expected)), (Some(2), true), "{told}");
    }
}

#[test]
fn what_a_process_holds_can_be_read_while_it_runs() {
    let place = Place::new();
    assert!(std::process::Command::new("mkfifo").arg(place.path("repo/go")).status().unwrap().success());
    let mut run = Running::start(&place, &SCENARIO.replace("echo hi", "cat go"), &[]);
    run.until("tool_started", &[]);
    assert!(say(&place, &["log", "last"]).1.ends_with("lead: bash cat go\n"));
    assert!(say(&place, &["sessions"]).1.contains("running (1 at work)"));
    std::fs::write(place.path("repo/go"), "go").unwrap();
    run.end();
}

/// E7, E8: nobody takes a damaged store for an empty one, or begins to work with it.
#[test]
fn every_command_refuses_a_damaged_store() {
    let place = Place::new();
    let path = place.path("kept/store.db");
    let store = path.to_str().unwrap();
    Running::start(&place, SCENARIO, &["--store", store]).end();
    let commands = [&["sessions"][..], &["log", "last"], &["resume", "last"], &["serve"]];
    let all_refuse = |why: &str| {
        for command in commands {
            let (status, out, told) = say(&place, &[command, &["--store", store]].concat());
            assert_eq!((status, out.as_str()), (Some(1), ""), "{command:?}: {told}");
            assert!(told.contains("is damaged") && told.contains(why), "{command:?}: {told}");
            assert!(!told.contains("ready"), "{command:?}: {told}");
        }
    };
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1_000]).unwrap();
    all_refuse("Nothing was changed");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(place.path("kept/store.db-wal"), "frames").unwrap();
    all_refuse("the file itself is gone");
}

const TWO: &str = r#"midturn: 1
name: test
agents:
  - name: lead
    role: lead
    model:
      - tools:
          - {id: s, name: spawn_agent, input: {name: worker, prompt: Go.}}
          - {id: b, name: bash, input: {command: echo mine > mine.txt}}
          - {id: w, name: wait_agents, input: {mode: all}}
      - text: Done.
  - name: worker
    parent: lead
    model:
      - tools:
          - {id: e, name: bash, input: {command: echo theirs > theirs.txt}}
      - text: Done.
"#;

/// What agents changed can be seen when their session is only stored, the lead's too.
#[test]
fn what_agents_of_a_stored_session_changed_is_shown() {
    let place = Place::new();
    place.git(&["commit", "--quiet", "--allow-empty", "--message", "first"]);
    let ran = Running::start(&place, TWO, &[]).end();
    let id = ran.events[0]["session"].as_str().unwrap().to_owned();
    let _serving = Serving::start(&place);
    for (agent, changed) in [("worker", "theirs"), ("lead", "mine")] {
        let (status, patch, told) = say(&place, &["diff", agent, "--session", &id]);
        assert_eq!((status, told.as_str()), (Some(0), ""), "{agent}: {patch}");
        assert!(
            patch.contains(&format!("+++ b/{changed}.txt")) && patch.contains(&format!("+{changed}")),
            "{patch}"
        );
        assert_eq!(patch.matches("+++ ").count(), 1, "{patch}");
    }
    let (status, _, told) = say(&place, &["diff", "nobody", "--session", &id]);
    assert_eq!((status, told.contains("there is no agent `nobody`")), (Some(1), true), "{told}");
}
