//! `midturn ps --waiting`: what waits for a person, a line for each.

use serde_json::{Value, json};

use super::common::Place;
use super::fake::{Answer, Answers};
use super::words::{Row, answers, check, session_of};

fn agent(name: &str, more: Value) -> Value {
    let role = if name == "lead" { "lead" } else { "subagent" };
    let mut agent = json!({"name": name, "role": role, "state": "idle", "run": 1, "turn": 2, "pending": 0,
        "activity": [], "tokens": 0, "plan": []});
    agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent
}

fn ended(outcome: &str, text: &str) -> Value {
    json!({"last_end": {"run": 1, "outcome": outcome, "text": text}})
}

/// A merge of its branch would not go.
fn conflict(mut more: Value) -> Value {
    more["conflict"] = json!({"run": 1, "since": 4.0, "files": ["a.txt", "b\u{1b}[31m.txt"]});
    more
}

fn asks(agent: &str, tool: &str, command: &str, since: f64) -> Value {
    json!({"session": "s", "agent": agent, "tool": tool, "name": "bash", "input": {"command": command},
        "truncated": false, "always": "bash", "since": since})
}

/// Two sessions that live and one that is only stored.
fn sessions() -> Answers {
    let session = |id: &str, began: f64, live: bool| session_of(id, began, live);
    let list = |all: &[Value]| vec![Answer::Json(json!({ "agents": all }))];
    let open = |all: &[Value]| vec![Answer::Json(json!({ "approvals": all }))];
    answers([
        (
            "GET /sessions",
            vec![Answer::Json(
                json!({"sessions": [session("s-2", 100.0, true), session("s-1", 50.0, true), session("s-0", 1.0, false)]}),
            )],
        ),
        (
            "GET /sessions/s%2D2/agents",
            list(&[
                agent("lead", json!({"state": "running", "last_end": null})),
                agent("a", ended("failed", "over\u{1b}[31mloaded")),
                agent("b", conflict(json!({"last_end": {"run": 1, "outcome": "finished", "text": "done"}}))),
                agent("c", conflict(json!({"state": "running"}))),
            ]),
        ),
        ("GET /sessions/s%2D2/approvals", open(&[asks("lead", "c1", "make", 3.0)])),
        (
            "GET /sessions/s%2D1/agents",
            list(&[
                agent("lead", ended("finished", "All is renamed.")),
                agent("w", ended("limit", "max_turns")),
                agent(
                    "x",
                    json!({"state": "closed", "last_end": {"run": 1, "outcome": "failed", "text": "x"}}),
                ),
            ]),
        ),
        (
            "GET /sessions/s%2D1/approvals",
            open(&[asks("w", "c1", "rm -r x", 60.0), asks("w", "c2", "ls", 2.0)]),
        ),
    ])
}

const LOOKS: [&str; 5] = [
    "GET /sessions",
    "GET /sessions/s%2D2/agents",
    "GET /sessions/s%2D2/approvals",
    "GET /sessions/s%2D1/agents",
    "GET /sessions/s%2D1/approvals",
];

#[test]
fn what_waits_in_all_sessions_that_live_is_a_line_each_with_the_newest_request_first() {
    check([
        Row {
            words: "ps --waiting",
            answers: sessions(),
            requests: &LOOKS,
            status: 0,
            out: "w asks: bash: rm -r x (s-1)\n\
                  b could not be merged: conflicts in a.txt, b‹U+001B›[31m.txt (s-2)\n\
                  lead asks: bash: make (s-2)\n\
                  w asks: bash: ls (s-1)\n\
                  a failed: overloaded (s-2)\n\
                  lead has ended: All is renamed. (s-1)\n\
                  w is at a limit: max_turns (s-1)\n",
            told: "",
        },
        Row {
            words: "ps --waiting --session s-1",
            answers: sessions(),
            requests: &["GET /sessions", LOOKS[3], LOOKS[4]],
            status: 0,
            out: "w asks: bash: rm -r x\nw asks: bash: ls\nlead has ended: All is renamed.\nw is at a limit: max_turns\n",
            told: "",
        },
    ]);
}

#[test]
fn programs_get_the_same_as_json() {
    let mut rows = sessions();
    rows.insert("GET /sessions", vec![Answer::Json(json!({"sessions": [session_of("s-2", 100.0, true)]}))]);
    check([Row {
        words: "ps --waiting --json",
        answers: rows,
        requests: &LOOKS[..3],
        status: 0,
        out: "{\"waiting\":[{\"agent\":\"b\",\"id\":\"b conflict 1\",\"line\":\"b could not be merged: conflicts in a.txt, \
              b‹U+001B›[31m.txt\",\"session\":\"s-2\",\"since\":104.0,\"what\":\"conflict\",\"words\":\"a.txt, b‹U+001B›[31m.txt\"},\
              {\"agent\":\"lead\",\"id\":\"lead asks 3000000 c1\",\"line\":\"lead asks: bash: make\",\
              \"session\":\"s-2\",\"since\":103.0,\"what\":\"asks\",\"words\":\"bash: make\"},\
              {\"agent\":\"a\",\"id\":\"a failed 1\",\"line\":\"a failed: overloaded\",\"session\":\"s-2\",\
              \"what\":\"failed\",\"words\":\"overloaded\"}]}\n",
        told: "",
    }]);
}

#[test]
fn where_no_midturn_runs_nothing_waits_and_that_is_no_failure() {
    for (words, out) in
        [(&["ps", "--waiting"][..], ""), (&["ps", "--waiting", "--json"], "{\"waiting\":[]}\n")]
    {
        let said = Place::new().midturn("repo", words).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(
            (text(&said.stdout).as_str(), text(&said.stderr).as_str(), said.status.code()),
            (out, "", Some(0))
        );
    }
}
