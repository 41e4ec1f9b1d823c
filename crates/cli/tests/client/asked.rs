//! What agents ask, in words, and a person's word on it.

use serde_json::{Value, json};

use super::fake::{Answer, Answers};
use super::words::{Row, answers, check, session_of};

fn request(session: &str, agent: &str, tool: &str, command: &str) -> Value {
    json!({"session": session, "agent": agent, "tool": tool, "name": "bash", "input": {"command": command},
        "truncated": false, "always": format!("bash({command})"), "since": 2.5})
}

fn open(all: &[Value]) -> Vec<Answer> {
    vec![Answer::Json(json!({"approvals": all}))]
}

/// Two sessions that live, in which three requests are open, and one that is only stored.
fn asking(more: Option<(&'static str, Answer)>) -> Answers {
    let session = |id: &str, live: bool| session_of(id, 1e11, live);
    let mut all = answers([
        (
            "GET /sessions",
            vec![Answer::Json(
                json!({"sessions": [session("s-2", true), session("s-1", true), session("s-0", false)]}),
            )],
        ),
        ("GET /sessions/s%2D1", vec![Answer::Json(session("s-1", true))]),
        (
            "GET /sessions/s%2D2/approvals",
            open(&[request("s-2", "lead", "c1", "make"), request("s-2", "lead", "c2", "make check")]),
        ),
        ("GET /sessions/s%2D1/approvals", open(&[request("s-1", "lead", "c1", "rm -r x")])),
    ]);
    all.extend(more.map(|(asked, answer)| (asked, vec![answer])));
    all
}

/// Nobody asks.
fn silent() -> Answers {
    answers([("GET /sessions", vec![Answer::Json(json!({"sessions": []}))])])
}

const ANSWER: &str = "POST /sessions/s%2D1/agents/lead/approvals/c1";

const ONE: &str = "GET /sessions/s%2D1";

const LOOKS: [&str; 3] = ["GET /sessions", "GET /sessions/s%2D2/approvals", "GET /sessions/s%2D1/approvals"];

#[test]
fn what_is_asked_is_listed_for_all_sessions_that_live() {
    check([
        Row {
            words: "approvals",
            answers: asking(None),
            requests: &LOOKS,
            status: 0,
            out: "lead asks in s-2 for 0 ms, call c1: bash\n  command: make\n  always: bash(make)\n\n\
                  lead asks in s-2 for 0 ms, call c2: bash\n  command: make check\n  always: bash(make check)\n\n\
                  lead asks in s-1 for 0 ms, call c1: bash\n  command: rm -r x\n  always: bash(rm -r x)\n",
            told: "",
        },
        Row {
            words: "approvals --session s-1 --json",
            answers: asking(None),
            requests: &["GET /sessions/s%2D1", LOOKS[2]],
            status: 0,
            out: "{\"approvals\":[{\"agent\":\"lead\",\"always\":\"bash(rm -r x)\",\"input\":{\"command\":\"rm -r x\"},\
                  \"name\":\"bash\",\"session\":\"s-1\",\"since\":2.5,\"tool\":\"c1\",\"truncated\":false}]}\n",
            told: "",
        },
        Row {
            words: "approvals",
            answers: silent(),
            requests: &["GET /sessions"],
            status: 0,
            out: "nobody asks for anything now\n",
            told: "",
        },
    ]);
}

/// A word for the first request of `s-1`, and for that one alone.
macro_rules! word {
    ($said:literal) => {
        concat!("POST /sessions/s%2D1/agents/lead/approvals/c1 {", $said, ",\"since\":2.5}")
    };
}

#[test]
fn a_word_goes_to_the_request_that_is_meant_and_says_what_it_did() {
    let taken = || asking(Some((ANSWER, Answer::Json(json!({"decision": "once"})))));
    let second = || {
        asking(Some((
            "POST /sessions/s%2D2/agents/lead/approvals/c2",
            Answer::Json(json!({"decision": "once"})),
        )))
    };
    let row = |words, answers, requests, out| Row { words, answers, requests, status: 0, out, told: "" };
    check([
        row(
            "approve lead --session s-1",
            taken(),
            &[ONE, LOOKS[2], word!(r#""decision":"once""#)],
            "allowed: lead: bash: rm -r x\n",
        ),
        row(
            "approve lead c2",
            second(),
            &[
                LOOKS[0],
                LOOKS[1],
                LOOKS[2],
                r#"POST /sessions/s%2D2/agents/lead/approvals/c2 {"decision":"once","since":2.5}"#,
            ],
            "allowed: lead: bash: make check\n",
        ),
        row(
            "approve lead --session s-1 --always",
            taken(),
            &[ONE, LOOKS[2], word!(r#""decision":"session""#)],
            "allowed, and from now on in this session bash(rm -r x): lead: bash: rm -r x\n",
        ),
        row(
            "approve lead --session s-1 --always bash(rm+*)",
            taken(),
            &[ONE, LOOKS[2], word!(r#""decision":"session","rule":"bash(rm *)""#)],
            "allowed, and from now on in this session bash(rm *): lead: bash: rm -r x\n",
        ),
        row(
            "deny lead c1 --session s-1 --reason not+that",
            taken(),
            &[ONE, LOOKS[2], word!(r#""decision":"denied","reason":"not that""#)],
            "denied (not that): lead: bash: rm -r x\n",
        ),
        row(
            "deny lead --session s-1 --json",
            taken(),
            &[ONE, LOOKS[2], word!(r#""decision":"denied""#)],
            "{\"decision\":\"once\"}\n",
        ),
    ]);
}

#[test]
fn a_word_that_is_not_waited_for_or_not_clear_answers_nothing() {
    const LATE: &str = "`lead` doesn't ask about the call `c1`, or not any more";
    let late = asking(Some((
        "POST /sessions/s%2D1/agents/lead/approvals/c1",
        Answer::Problem(409, "not_asked", LATE),
    )));
    let row = |words, answers, requests, told| Row { words, answers, requests, status: 1, out: "", told };
    check([
        row(
            "approve lead",
            asking(None),
            &LOOKS,
            "midturn: lead asks in s-2 and s-1: name one with --session ID\n",
        ),
        row(
            "deny worker",
            asking(None),
            &LOOKS,
            "midturn: worker doesn't ask for anything now; `midturn approvals` lists what is asked\n",
        ),
        row(
            "approve lead c9",
            asking(None),
            &LOOKS,
            "midturn: lead doesn't ask about the call c9 now; `midturn approvals` lists what is asked\n",
        ),
        row(
            "approve lead --session s-1",
            late,
            &[
                "GET /sessions/s%2D1",
                LOOKS[2],
                r#"POST /sessions/s%2D1/agents/lead/approvals/c1 {"decision":"once","since":2.5}"#,
            ],
            "midturn: `lead` doesn't ask about the call `c1`, or not any more\n",
        ),
    ]);
}
