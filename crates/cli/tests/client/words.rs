//! What each command asks, what it prints, and how it ends.

use serde_json::{Value, json};

use super::common::Place;
use super::fake::{Answer, Answers, Fake};

struct Said {
    status: Option<i32>,
    out: String,
    told: String,
}

fn say(place: &Place, words: &str) -> Said {
    // A blank within a word is written `+` here.
    let words: Vec<String> = words.split(' ').map(|word| word.replace('+', " ")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = place.midturn("repo", &words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { status: said.status.code(), out: text(said.stdout), told: text(said.stderr) }
}

pub(crate) fn session_of(id: &str, began_at: f64, live: bool) -> Value {
    json!({"session": id, "title": "Rename open()", "folder": "/w", "began_at": began_at, "epoch": 1, "live": live,
        "lead": "lead", "agents": 1, "running": 1, "busy": live, "last_seq": 4})
}

fn session(live: bool) -> Answer {
    Answer::Json(session_of("s-1", 1.5, live))
}

pub(crate) fn answers<const N: usize>(rows: [(&'static str, Vec<Answer>); N]) -> Answers {
    rows.into()
}

fn one(asked: &'static str, answer: Value) -> Answers {
    answers([(asked, vec![Answer::Json(answer)])])
}

pub(crate) struct Row {
    pub(crate) words: &'static str,
    pub(crate) answers: Answers,
    pub(crate) requests: &'static [&'static str],
    pub(crate) status: i32,
    pub(crate) out: &'static str,
    pub(crate) told: &'static str,
}

pub(crate) fn check(rows: impl IntoIterator<Item = Row>) {
    for row in rows {
        let place = Place::new();
        let fake = Fake::start(&place, row.answers);
        let said = say(&place, row.words);
        assert_eq!((said.out.as_str(), said.told.as_str()), (row.out, row.told), "{}", row.words);
        assert_eq!(said.status, Some(row.status), "{}", row.words);
        assert_eq!(fake.requests(), row.requests, "{}", row.words);
    }
}

#[test]
fn send_prints_the_receipt() {
    let messages = "POST /sessions/current/agents/worker/messages";
    let queued = || json!({"id": "auto-1", "to": "worker", "state": "queued"});
    check([
        Row {
            words: "send worker use+load()",
            answers: one(messages, queued()),
            requests: &[r#"POST /sessions/current/agents/worker/messages {"text":"use load()"}"#],
            status: 0,
            out: "auto-1: queued for worker\n",
            told: "",
        },
        Row {
            words: "send worker -+x --urgency next_boundary --id m1 --expires-after 90s --supersedes m0 --if-queued --session s-1 --json",
            answers: one("POST /sessions/s%2D1/agents/worker/messages", queued()),
            requests: &[
                r#"POST /sessions/s%2D1/agents/worker/messages {"expires_after":"90s","id":"m1","if_queued":true,"supersedes":"m0","text":"- x","urgency":"next_boundary"}"#,
            ],
            status: 0,
            out: "{\"id\":\"auto-1\",\"state\":\"queued\",\"to\":\"worker\"}\n",
            told: "",
        },
        Row {
            words: "send worker stop! --urgent",
            answers: one(
                messages,
                json!({"id": "m", "to": "worker", "state": "returned", "reason": "closed"}),
            ),
            requests: &[r#"POST /sessions/current/agents/worker/messages {"text":"stop!","urgent":true}"#],
            status: 1,
            out: "m: returned, worker never reads it: the agent is closed\n",
            told: "midturn: the message will not be read\n",
        },
        Row {
            words: "send all hi",
            answers: one(
                "POST /sessions/current/agents/all/messages",
                json!({"deliveries": [
                    {"id": "m", "to": "a", "state": "queued"},
                    {"to": "b", "type": "about:blank", "title": "x", "status": 429, "code": "mailbox_full", "detail": "the mailbox of `b` is full"},
                ]}),
            ),
            requests: &[r#"POST /sessions/current/agents/all/messages {"text":"hi"}"#],
            status: 1,
            out: "m: queued for a\nnot sent to b: the mailbox of `b` is full\n",
            told: "midturn: 1 of 2 agents will not read the message\n",
        },
    ]);
}

#[test]
fn send_waits_until_the_message_is_where_it_was_to_get() {
    let wait = "GET /sessions/current/messages/m%2F1/wait";
    let waiting = |receipt: Value, reached: bool| {
        answers([
            (
                "POST /sessions/current/agents/worker/messages",
                vec![Answer::Json(json!({"id": "m/1", "to": "worker", "state": "queued"}))],
            ),
            (wait, vec![Answer::Json(json!({"reached": reached, "receipt": receipt}))]),
        ])
    };
    for (receipt, reached, timeout, status, out, told) in [
        (
            json!({"id": "m/1", "to": "worker", "state": "injected", "point": "C", "run": 1, "turn": 2, "skipped": ["e2"], "interrupted": ["b1"]}),
            true,
            "1h",
            0,
            "m/1: in the conversation of worker after X ms\n  at C, in the middle of the turn's tools: run 1, turn 2\n  \
             interrupted: b1\n  skipped: e2\n",
            "",
        ),
        (
            json!({"id": "m/1", "to": "worker", "state": "returned", "reason": "stopped"}),
            false,
            "1h",
            1,
            "m/1: returned after X ms, worker never reads it: the agent was stopped\n",
            "midturn: the message will not be read\n",
        ),
        (
            json!({"id": "m/1", "to": "worker", "state": "queued"}),
            false,
            "0",
            1,
            "",
            "midturn: m/1 is not injected after X ms: it is still queued (worker); `midturn ps` tells what worker does\n",
        ),
    ] {
        let place = Place::new();
        let fake = Fake::start(&place, waiting(receipt, reached));
        let said = say(&place, &format!("send worker hi --wait injected --timeout {timeout}"));
        assert_eq!((timeless(&said.out), timeless(&said.told)), (out.to_owned(), told.to_owned()));
        assert_eq!(said.status, Some(status));
        let asked = &fake.requests()[1];
        assert!(
            asked.starts_with("GET /sessions/current/messages/m%2F1/wait?state=injected&timeout="),
            "{asked}"
        );
        assert!(asked.ends_with("&to=worker"), "{asked}");
        let asked_for = asked.split("timeout=").nth(1).unwrap().split('&').next().unwrap();
        assert_eq!(asked_for, if timeout == "0" { "0" } else { "10m" }, "one request waits at most so long");
    }
}

/// How long a test's own machine took is not what it is about.
fn timeless(text: &str) -> String {
    let Some((before, rest)) = text.split_once("after ") else { return text.to_owned() };
    let (number, unit) = rest.split_once(' ').unwrap();
    assert!(number.parse::<f64>().is_ok(), "{text}");
    let unit = unit.strip_prefix("ms").or_else(|| unit.strip_prefix('s')).unwrap();
    format!("{before}after X ms{unit}")
}

#[test]
fn withdraw_stop_diff_merge_and_stats_say_what_was_done() {
    let merge = "POST /sessions/current/agents/worker/merge";
    check([
        Row {
            words: "withdraw m1",
            answers: one("POST /sessions/current/messages/m1/withdraw", json!({"returned": 1})),
            requests: &["POST /sessions/current/messages/m1/withdraw {}"],
            status: 0,
            out: "m1: taken back; nobody has read it\n",
            told: "",
        },
        Row {
            words: "stop worker --subtree",
            answers: one(
                "POST /sessions/current/agents/worker/stop",
                json!({"stopped": ["worker"], "still_queued": ["m1"]}),
            ),
            requests: &[r#"POST /sessions/current/agents/worker/stop {"scope":"subtree"}"#],
            status: 0,
            out: "stopped: worker\nstill queued for the next run: m1\n",
            told: "",
        },
        Row {
            words: "diff worker",
            answers: one(
                "GET /sessions/current/agents/worker/diff",
                json!({"branch": "b", "start": "0", "patch": "+\u{1b}[31m\r\n", "truncated": false}),
            ),
            requests: &["GET /sessions/current/agents/worker/diff"],
            status: 0,
            out: "+\u{1b}[31m\r\n",
            told: "",
        },
        Row {
            words: "diff worker",
            answers: one(
                "GET /sessions/current/agents/worker/diff",
                json!({"branch": "b", "start": "0", "patch": "", "truncated": false}),
            ),
            requests: &["GET /sessions/current/agents/worker/diff"],
            status: 0,
            out: "",
            told: "midturn: worker has changed nothing on b\n",
        },
        Row {
            words: "merge worker",
            answers: one(merge, json!({"result": "conflicts", "files": ["a.txt"]})),
            requests: &["POST /sessions/current/agents/worker/merge {}"],
            status: 1,
            out: "conflict: a.txt\n",
            told: "midturn: nothing was merged: 1 file is in conflict. `midturn merge worker --resolve` has worker resolve it; or merge by hand\n",
        },
        Row {
            words: "stats",
            answers: one("GET /stats", json!({"agents": {"live": 2}})),
            requests: &["GET /stats"],
            status: 0,
            out: "agents.live  2\n",
            told: "",
        },
    ]);
}

#[test]
fn ps_is_a_table_below_the_session() {
    let agents = json!({"agents": [
        {"name": "lead", "role": "lead", "state": "running", "run": 1, "turn": 2, "pending": 1, "tokens": 1500,
         "activity": [], "plan": []},
    ]});
    let other = session_of("s-0", 1.0, true);
    let safety = "mode ask; sandbox: landlock";
    let health = json!({"version": "9.9.9", "pid": 7, "sessions": 2, "store": "s", "safety": safety});
    let place = Place::new();
    let _fake = Fake::start(
        &place,
        answers([
            ("GET /sessions/current/agents", vec![Answer::Json(agents.clone())]),
            ("GET /sessions/current", vec![session(true)]),
            ("GET /sessions", vec![Answer::Json(json!({"sessions": [other]}))]),
            ("GET /health", vec![Answer::Json(health)]),
        ]),
    );
    let said = say(&place, "ps");
    assert_eq!((said.status, said.told.as_str()), (Some(0), ""));
    let (head, table) = said.out.split_once("\n\n").unwrap();
    let (begun, held) = head.split_once('\n').unwrap();
    assert!(begun.starts_with("s-1, begun ") && begun.ends_with(" ago: Rename open()"), "{head}");
    assert_eq!(held, safety);
    assert_eq!(
        table,
        "AGENT  STATE    RUN  TURN  MAIL  TOKENS\nlead   running    1     2     1    1.5k\n\n\
         also running here: s-0 (`--session ID` shows them)\n"
    );
    assert_eq!(say(&place, "ps --json").out, format!("{agents}\n"));
}

#[test]
fn where_nobody_answers_it_is_said_what_to_start() {
    for words in [
        "ps",
        "send a hi",
        "withdraw m",
        "stop a",
        "approvals",
        "approve a",
        "deny a",
        "watch",
        "stats --json",
    ] {
        let place = Place::new();
        for left_behind in [false, true] {
            if left_behind {
                // A process that was killed leaves its file and its socket.
                drop(Fake::start(&place, Answers::default()));
            }
            let said = say(&place, words);
            assert_eq!((said.status, said.out.as_str()), (Some(1), ""), "{words}");
            assert_eq!(
                said.told,
                "midturn: no Midturn is running in this project: start one with `midturn serve` or `midturn run`\n"
            );
        }
    }
}

#[test]
fn a_refusal_is_its_sentence_and_for_programs_its_object() {
    let refused = || {
        answers([(
            "POST /sessions/current/messages/m/withdraw",
            vec![Answer::Problem(409, "too_late", "the message `m` was read already")],
        )])
    };
    check([
        Row {
            words: "withdraw m",
            answers: refused(),
            requests: &["POST /sessions/current/messages/m/withdraw {}"],
            status: 1,
            out: "",
            told: "midturn: the message `m` was read already\n",
        },
        Row {
            words: "withdraw m --json",
            answers: refused(),
            requests: &["POST /sessions/current/messages/m/withdraw {}"],
            status: 1,
            out: "{\"code\":\"too_late\",\"detail\":\"the message `m` was read already\",\"status\":409,\"title\":\"No\",\"type\":\"about:blank\"}\n",
            told: "midturn: the message `m` was read already\n",
        },
        Row {
            words: "withdraw m",
            answers: one("POST /sessions/current/messages/m/withdraw", json!({"strange": true})),
            requests: &["POST /sessions/current/messages/m/withdraw {}"],
            status: 1,
            out: "",
            told: "midturn: the running Midturn (version 9.9.9) answered what this one (version 0.1.0) can't read: missing field \
                   `returned`; start it anew with this version\n",
        },
    ]);
}

/// A frame of an event: `lead` runs this command.
fn runs(seq: u64, command: &str) -> String {
    let event = json!({"v": 1, "seq": seq, "t": 1.0, "agent": "lead", "run": 1, "turn": 1, "type": "tool_started",
        "tool": "b", "name": "bash", "input": {"command": command}, "batch": 1});
    format!("id: {seq}\nevent: tool_started\ndata: {event}\n\n")
}

fn says(n: u64, text: &str) -> String {
    let event = json!({"v": 1, "seq": 4, "n": n, "t": 1.0, "agent": "lead", "run": 1, "turn": 1, "type": "text_delta", "text": text});
    format!("event: text_delta\ndata: {event}\n\n")
}

const EVENTS: &str = "GET /sessions/s%2D1/events";

/// A session that lives while these streams are given, one after the other.
fn watched(streams: Vec<String>) -> Answers {
    // It is asked once before each stream, and by the command itself before the first.
    let mut asked = vec![session(true); streams.len()];
    asked.push(session(false));
    let mut streams: Vec<Answer> = streams.into_iter().map(Answer::Stream).collect();
    streams.push(Answer::Stream(String::new()));
    answers([
        ("GET /sessions/current", vec![session(true)]),
        ("GET /sessions/current/agents/lead", vec![Answer::Json(json!({}))]),
        ("GET /sessions/s%2D1", asked),
        (EVENTS, streams),
    ])
}

#[test]
fn watch_takes_a_lost_stream_up_again_and_tells_everything_once() {
    let place = Place::new();
    let resync = "event: resync\ndata: {\"last\":6}\n\n".to_owned();
    let fake = Fake::start(
        &place,
        watched(vec![
            format!("{}{}", runs(5, "one"), says(1, "Hel")),
            // What was told is told again, and the reply so far in one piece.
            format!(":\n\n{}{}{}", runs(5, "one"), runs(6, "two"), resync),
            format!("{}{}", says(1, "Hel"), says(2, "lo\nyou")),
            runs(7, "three"),
        ]),
    );
    let said = say(&place, "watch");
    assert_eq!((said.status, said.told.as_str()), (Some(0), ""));
    let expected = "watching s-1: Rename open() (Ctrl-C ends)\nlead: bash one\nlead | Hel\nlead: bash two\n\
                    lead | lo\nlead | you\nlead: bash three\n";
    assert_eq!(said.out, expected);
    let streams: Vec<String> =
        fake.requests().into_iter().filter(|asked| asked.starts_with(EVENTS)).collect();
    assert_eq!(streams, [4, 5, 6, 6, 7].map(|after| format!("{EVENTS} after {after}")));
}

#[test]
fn watch_json_has_the_events_as_they_came_and_nothing_else() {
    let place = Place::new();
    let fake = Fake::start(&place, watched(vec![runs(5, "one") + &says(1, "x")]));
    let said = say(&place, "watch lead --json");
    assert_eq!((said.status, said.told.as_str()), (Some(0), ""));
    let lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), lines[0]["seq"].as_u64(), lines[1]["text"].as_str()), (2, Some(5), Some("x")));
    assert!(fake.requests().contains(&format!("{EVENTS}?agent=lead after 4")), "{:?}", fake.requests());
}

#[test]
fn watch_of_what_can_not_be_watched_says_why() {
    for (words, answers, expected) in [
        (
            "watch",
            answers([("GET /sessions/current", vec![session(false)])]),
            "the session s-1 is not running: `midturn log s-1` shows what happened in it",
        ),
        (
            "watch",
            answers([(
                "GET /sessions/current",
                vec![Answer::Problem(404, "no_session", "no session lives here")],
            )]),
            "no session lives here",
        ),
        (
            "watch nobody",
            answers([
                ("GET /sessions/current", vec![session(true)]),
                (
                    "GET /sessions/current/agents/nobody",
                    vec![Answer::Problem(404, "unknown_agent", "there is no agent `nobody`")],
                ),
            ]),
            "there is no agent `nobody`",
        ),
    ] {
        let place = Place::new();
        let _fake = Fake::start(&place, answers);
        let said = say(&place, words);
        assert_eq!((said.status, said.told), (Some(1), format!("midturn: {expected}\n")));
    }
}
