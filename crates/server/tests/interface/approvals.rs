//! Requests for a person's word over the wire: who is asked, who answers, and what it does.

use std::num::NonZeroU32;
use std::sync::Arc;

use midturn_core::engine::scripted::{ScriptedCall, ScriptedReply, Scripts};
use midturn_core::rules::approval::{Mode, Policy};
use midturn_core::rules::mail::Sender;
use midturn_server::{Bounds, Rate, Token, Tokens};
use serde_json::{Value, json};

use crate::support::client::{Client, in_time};
use crate::support::{Rig, name};

const AT: &str = "/v1/sessions/asking";
const EVENTS: &str = "/v1/sessions/asking/events";
const LEAD: &str = "/v1/sessions/asking/agents/lead/messages";
const ANSWER: &str = "/v1/sessions/asking/agents/lead/approvals/c1";

/// `lead` runs a command in each of two turns, `worker` one in its only one.
fn scripts() -> Scripts {
    let run = |id: &str| {
        ScriptedReply::calls(ScriptedCall::new(id, "bash", json!({"command": "cargo test -p core"})))
    };
    let lead = vec![run("c1"), run("c2"), ScriptedReply::says("done")];
    let worker = vec![run("c1"), ScriptedReply::says("done")];
    [(name("lead"), lead.into()), (name("worker"), worker.into())].into()
}

/// An interface with a session in which commands are asked about.
async fn rig() -> (Rig, Token) {
    rig_of(scripts()).await
}

/// The same, with other agents.
async fn rig_of(scripts: Scripts) -> (Rig, Token) {
    let (person, agent) = (Token::random().unwrap(), Token::random().unwrap());
    let often = NonZeroU32::new(100_000).unwrap();
    let holders = [(person.clone(), Sender::User), (agent.clone(), Sender::Agent(name("worker")))];
    let tokens = Tokens::new(holders, Rate { per_second: often, burst: often });
    let rig = Rig::of(Bounds::default(), scripts, person, tokens).await;
    rig.host.start_with("asking", Policy { mode: Mode::Ask, ..Policy::default() }).await;
    (rig, agent)
}

/// Reads on up to the event of this type.
async fn until(events: &mut Client, kind: &str) -> Value {
    let read = async {
        loop {
            let told = events.told().await.unwrap();
            if told.name == kind {
                return told.json();
            }
        }
    };
    // A heartbeat now and then would keep a stream that says nothing else going for ever.
    in_time(read).await
}

/// The other end of every event stream has gone, and the server has seen it.
async fn until_nobody_reads(rig: &Rig) {
    in_time(async {
        while rig.get("/v1/stats").await.json()["sse_clients"] != 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Somebody who answers follows the session, and the lead asks for `c1`.
async fn asked(rig: &Rig) -> Client {
    let mut events = rig.events(&format!("{EVENTS}?answers=true"), "").await;
    assert_eq!(rig.post(LEAD, r#"{"text": "go"}"#).await.status, 202);
    assert_eq!(until(&mut events, "approval_requested").await["tool"], "c1");
    events
}

#[tokio::test]
async fn a_request_is_listed_with_what_a_person_needs_to_decide() {
    let (rig, _) = rig().await;
    assert_eq!(rig.get(&format!("{AT}/approvals")).await.json()["approvals"], json!([]));
    let _events = asked(&rig).await;
    let mut listed = rig.get(&format!("{AT}/approvals")).await.json();
    assert!(listed["approvals"][0]["since"].take().is_f64());
    let expected = json!({"session": "asking", "agent": "lead", "tool": "c1", "name": "bash",
        "input": {"command": "cargo test -p core"}, "truncated": false,
        "always": "bash(cargo test -p core)", "since": null});
    assert_eq!(listed["approvals"], json!([expected]));
    assert_eq!(listed["as_of"], rig.get(AT).await.json()["last_seq"]);
    let lead = rig.get(&format!("{AT}/agents/lead")).await.json();
    let activity = &lead["activity"][0];
    assert_eq!((&activity["what"], &activity["tool"]), (&json!("approval"), &json!("c1")));
}

#[tokio::test]
async fn a_persons_word_is_done_and_told() {
    const OWN: &str = r#"{"decision": "session", "rule": "bash(cargo *)"}"#;
    for (body, rule, first, asks_again) in [
        (r#"{"decision": "once"}"#, None, "completed", true),
        (r#"{"decision": "session"}"#, Some("bash(cargo test -p core)"), "completed", false),
        (OWN, Some("bash(cargo *)"), "completed", false),
        (r#"{"decision": "denied"}"#, None, "failed", true),
        (r#"{"decision": "denied", "reason": "use nextest"}"#, None, "failed", true),
    ] {
        let (rig, _) = rig().await;
        let mut events = asked(&rig).await;
        let answered = rig.post(ANSWER, body).await;
        let sent: Value = serde_json::from_str(body).unwrap();
        assert_eq!((answered.status, &answered.json()["decision"]), (200, &sent["decision"]), "{body}");
        assert_eq!(answered.json()["rule"].as_str(), rule, "{body}");
        let resolved = until(&mut events, "approval_resolved").await;
        assert_eq!((&resolved["decision"], &resolved["by"]), (&sent["decision"], &json!("user")));
        let finished = until(&mut events, "tool_finished").await;
        assert_eq!((&finished["tool"], &finished["status"]), (&json!("c1"), &json!(first)), "{body}");
        if let Some(reason) = sent["reason"].as_str() {
            assert!(finished["output"].as_str().unwrap().contains(reason), "{finished}");
        }
        let next = if asks_again { "approval_requested" } else { "tool_finished" };
        assert_eq!(until(&mut events, next).await["tool"], "c2", "{body}");
    }
}

/// A24: a model that uses an id again never gets the answer that was meant for the call before.
#[tokio::test]
async fn an_answer_is_for_the_request_that_was_shown_and_not_for_the_next_of_that_id() {
    let run =
        |command: &str| ScriptedReply::calls(ScriptedCall::new("c1", "bash", json!({"command": command})));
    let lead = vec![run("cargo test"), run("rm -r x"), ScriptedReply::says("done")];
    let (rig, _) = rig_of([(name("lead"), lead.into()), (name("worker"), Vec::new().into())].into()).await;
    let mut events = asked(&rig).await;
    let listed = rig.get(&format!("{AT}/approvals")).await.json();
    let shown = json!({"decision": "once", "since": listed["approvals"][0]["since"]}).to_string();
    assert_eq!(rig.post(ANSWER, &shown).await.status, 200);
    assert_eq!(until(&mut events, "approval_requested").await["input"]["command"], "rm -r x");
    let late = rig.post(ANSWER, &shown).await;
    assert_eq!((late.status, &late.json()["code"]), (409, &json!("not_asked")));
    let session = shown.replace("once", "session");
    assert_eq!(rig.post(ANSWER, &session).await.json()["code"], "not_asked");
    // Who doesn't say which means the only one there is.
    assert_eq!(rig.post(ANSWER, r#"{"decision": "denied"}"#).await.status, 200);
    assert_eq!(until(&mut events, "approval_resolved").await["decision"], "denied");
}

#[tokio::test]
async fn what_is_allowed_for_the_session_answers_the_others_too() {
    let (rig, _) = rig().await;
    let mut events = asked(&rig).await;
    rig.post("/v1/sessions/asking/agents/worker/messages", r#"{"text": "go"}"#).await;
    assert_eq!(until(&mut events, "approval_requested").await["agent"], "worker");
    let listed = rig.get(&format!("{AT}/approvals")).await.json();
    let order = [&listed["approvals"][0]["agent"], &listed["approvals"][1]["agent"]];
    assert_eq!(order, [&json!("lead"), &json!("worker")], "the oldest first");
    rig.post(ANSWER, r#"{"decision": "session"}"#).await;
    let mut who =
        [until(&mut events, "approval_resolved").await, until(&mut events, "approval_resolved").await]
            .map(|resolved| resolved["agent"].as_str().unwrap().to_owned());
    who.sort();
    assert_eq!(who, ["lead", "worker"]);
}

#[tokio::test]
async fn an_answer_that_can_t_be_taken_changes_nothing_and_says_why() {
    let (rig, agent) = rig().await;
    let _events = asked(&rig).await;
    let once = r#"{"decision": "once"}"#;
    let long = json!({"decision": "denied", "reason": "x".repeat(16 * 1024 + 1)}).to_string();
    for (path, body, status, code) in [
        ("/v1/sessions/asking/agents/lead/approvals/c9", once, 409, "not_asked"),
        ("/v1/sessions/asking/agents/lead/approvals/c9", r#"{"decision": "session"}"#, 409, "not_asked"),
        ("/v1/sessions/asking/agents/worker/approvals/c1", once, 409, "not_asked"),
        ("/v1/sessions/asking/agents/nobody/approvals/c1", once, 404, "unknown_agent"),
        ("/v1/sessions/asking/agents/No%20Name/approvals/c1", once, 404, "unknown_agent"),
        ("/v1/sessions/none/agents/lead/approvals/c1", once, 404, "unknown_session"),
        ("/v1/sessions/s1/agents/lead/approvals/c1", once, 409, "not_asked"),
        (ANSWER, r#"{"decision": "session", "rule": "bash("}"#, 422, "bad_rule"),
        (ANSWER, r#"{"decision": "session", "rule": "bash([)"}"#, 422, "bad_rule"),
        (ANSWER, r#"{"decision": "session", "rule": "bash(rm *)"}"#, 422, "bad_rule"),
        (ANSWER, r#"{"decision": "session", "rule": "edit"}"#, 422, "bad_rule"),
        (ANSWER, r#"{"decision": "session", "rule": ""}"#, 422, "bad_rule"),
        (ANSWER, r#"{"decision": "once", "rule": "bash"}"#, 422, "bad_request"),
        (ANSWER, r#"{"decision": "denied", "rule": "bash"}"#, 422, "bad_request"),
        (ANSWER, r#"{"decision": "once", "reason": "why not"}"#, 422, "bad_request"),
        (ANSWER, r#"{"decision": "session", "reason": "why not"}"#, 422, "bad_request"),
        (ANSWER, r#"{"decision": "not_answered"}"#, 422, "bad_request"),
        (ANSWER, r#"{"decision": "once", "by": "user"}"#, 422, "bad_request"),
        (ANSWER, "{}", 422, "bad_request"),
        (ANSWER, "yes", 400, "bad_json"),
        (ANSWER, &long, 422, "too_large"),
    ] {
        let refused = rig.post(path, body).await;
        assert_eq!((refused.status, refused.code().as_str()), (status, code), "{path} {body:.80}");
    }
    let of_agent = rig.posting(ANSWER, once).replace(rig.token.secret(), agent.secret());
    let refused = rig.connect().await.ask(of_agent.as_bytes()).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "not_allowed"));
    assert_eq!(
        rig.get(&format!("{AT}/approvals")).await.json()["approvals"].as_array().map(Vec::len),
        Some(1)
    );
    assert_eq!(rig.post(ANSWER, once).await.status, 200);
    let again = rig.post(ANSWER, once).await;
    assert_eq!((again.status, again.code().as_str()), (409, "not_asked"));
}

/// The lead's first call, of which nobody is asked.
async fn denied(rig: &Rig) {
    let mut events = rig.events(&format!("{EVENTS}?after=0"), "").await;
    rig.post(LEAD, r#"{"text": "go"}"#).await;
    let finished = until(&mut events, "tool_finished").await;
    let output = finished["output"].as_str().unwrap();
    assert!(output.starts_with("[Denied: ") && output.contains("nobody is attached"), "{output}");
}

#[tokio::test]
async fn who_only_reads_is_not_asked() {
    for query in ["", "?answers=false", "?agent=lead"] {
        let (rig, _) = rig().await;
        let _reader = rig.events(&format!("{EVENTS}{query}"), "").await;
        denied(&rig).await;
    }
    let (rig, agent) = rig().await;
    let head = format!("{}\r\n", rig.head("GET", &format!("{EVENTS}?answers=true")));
    let refused = rig.connect().await.ask(head.replace(rig.token.secret(), agent.secret()).as_bytes()).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "not_allowed"), "an agent's token");
    let refused = rig.get(&format!("{EVENTS}?answers=perhaps")).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "bad_request"));
    denied(&rig).await;
}

#[tokio::test]
async fn who_has_left_is_not_asked_any_more() {
    let (rig, _) = rig().await;
    drop(rig.events(&format!("{EVENTS}?answers=true"), "").await);
    until_nobody_reads(&rig).await;
    denied(&rig).await;
}

#[tokio::test]
async fn a_request_stays_open_when_who_was_asked_leaves() {
    let (rig, _) = rig().await;
    drop(asked(&rig).await);
    until_nobody_reads(&rig).await;
    assert_eq!(rig.post(ANSWER, r#"{"decision": "once"}"#).await.status, 200);
}

#[tokio::test]
async fn a_stop_withdraws_a_request_and_an_answer_comes_too_late() {
    let (rig, _) = rig().await;
    let mut events = asked(&rig).await;
    rig.post(&format!("{AT}/agents/lead/stop"), "{}").await;
    let resolved = until(&mut events, "approval_resolved").await;
    assert_eq!((&resolved["decision"], &resolved["by"]), (&json!("not_answered"), &json!("user")));
    assert_eq!(rig.post(ANSWER, r#"{"decision": "once"}"#).await.code(), "not_asked");
    let shared: Arc<_> = rig.host.clone();
    assert!(shared.live.lock().iter().all(|live| live.coordinator.approvals().is_empty()));
}

#[tokio::test]
async fn who_begins_a_session_and_will_answer_is_there_from_its_first_call_on() {
    for (body, attached) in [(r#"{"task": "a"}"#, false), (r#"{"task": "a", "answers": true}"#, true)] {
        let (rig, agent) = rig().await;
        *rig.host.policy.lock() = Policy { mode: Mode::Ask, ..Policy::default() };
        let begun = rig.post("/v1/sessions", body).await.json();
        let at = format!("/v1/sessions/{}", begun["session"].as_str().unwrap());
        let mut events = rig.events(&format!("{at}/events?after=0"), "").await;
        rig.post(&format!("{at}/agents/lead/messages"), r#"{"text": "go"}"#).await;
        let first = if attached { "approval_requested" } else { "tool_finished" };
        assert_eq!(until(&mut events, first).await["tool"], "c1", "{body}");
        let of_agent = rig.posting("/v1/sessions", body).replace(rig.token.secret(), agent.secret());
        let status = rig.connect().await.ask(of_agent.as_bytes()).await.status;
        assert_eq!(status, if attached { 403 } else { 201 }, "an agent's token");
    }
}
