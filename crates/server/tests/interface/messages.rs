//! Messages and receipts over the wire.

use serde_json::json;

use crate::support::Rig;

#[tokio::test]
async fn a_message_is_accepted_once_and_its_receipt_can_be_followed_to_the_answer() {
    let rig = Rig::start().await;
    let at = "/v1/sessions/current/agents/lead/messages";
    let sent = rig.post(at, r#"{"text": "hello", "id": "m1"}"#).await;
    assert_eq!(sent.status, 202, "{}", sent.json());
    assert_eq!((&sent.json()["id"], &sent.json()["to"]), (&json!("m1"), &json!("lead")));

    let waited = rig.get("/v1/sessions/s1/messages/m1/wait?state=answered&timeout=1m").await.json();
    assert_eq!(waited["reached"], true, "{waited}");
    let receipt = &waited["receipt"];
    assert_eq!([&receipt["state"], &receipt["point"]], [&json!("answered"), &json!("start")]);
    assert_eq!([&receipt["run"], &receipt["call"]], [&json!(1), &json!(1)]);

    let again = rig.post(at, r#"{"text": "hello", "id": "m1"}"#).await;
    assert_eq!((again.status, &again.json()["state"]), (202, &json!("answered")));
    let other = rig.post(at, r#"{"text": "something else", "id": "m1"}"#).await;
    assert_eq!((other.status, other.code().as_str()), (409, "duplicate_id"));
    let all = rig.get("/v1/sessions/s1/messages/m1").await.json();
    assert_eq!(all["receipts"].as_array().map(Vec::len), Some(1), "{all}");
}

#[tokio::test]
async fn who_waits_too_short_is_told_where_the_message_stands() {
    let rig = Rig::start().await;
    // The worker's first call takes hours: what comes after it stays queued.
    rig.post("/v1/sessions/s1/agents/worker/messages", r#"{"text": "work", "id": "m1"}"#).await;
    rig.get("/v1/sessions/s1/messages/m1/wait?state=sent&timeout=1m").await;
    let sent =
        rig.post("/v1/sessions/s1/agents/worker/messages", r#"{"text": "and then", "id": "m2"}"#).await;
    assert_eq!(sent.json()["state"], "queued");
    for timeout in ["0", "20ms"] {
        let path = format!("/v1/sessions/s1/messages/m2/wait?state=injected&timeout={timeout}");
        let waited = rig.get(&path).await.json();
        assert_eq!((&waited["reached"], &waited["receipt"]["state"]), (&json!(false), &json!("queued")));
    }
    let queued = rig.get("/v1/sessions/s1/messages/m2/wait?state=queued&timeout=10m").await.json();
    assert_eq!(queued["reached"], true);
}

#[tokio::test]
async fn who_waits_for_what_can_never_come_is_told_at_once() {
    let rig = Rig::start().await;
    rig.post("/v1/sessions/s1/agents/worker/messages", r#"{"text": "work", "id": "m1"}"#).await;
    rig.get("/v1/sessions/s1/messages/m1/wait?state=sent&timeout=1m").await;
    rig.post("/v1/sessions/s1/agents/worker/messages", r#"{"text": "and", "id": "m2"}"#).await;
    let mut waits = rig.connect().await;
    let head = rig.head("GET", "/v1/sessions/s1/messages/m2/wait?state=answered&timeout=10m");
    waits.write(format!("{head}\r\n").as_bytes()).await;
    let back = rig.post("/v1/sessions/s1/messages/m2/withdraw", "{}").await;
    assert_eq!((back.status, &back.json()["returned"]), (200, &json!(1)));
    let waited = waits.answer().await.json();
    assert_eq!((&waited["reached"], &waited["receipt"]["reason"]), (&json!(false), &json!("withdrawn")));
    let late = rig.post("/v1/sessions/s1/messages/m2/withdraw", "{}").await;
    assert_eq!((late.status, late.code().as_str()), (409, "too_late"));
}

#[tokio::test]
async fn a_message_to_all_has_a_delivery_for_each_and_a_wait_needs_to_know_which() {
    let rig = Rig::start().await;
    let sent = rig.post("/v1/sessions/s1/agents/all/messages", r#"{"text": "news", "id": "m1"}"#).await;
    let deliveries = sent.json()["deliveries"].as_array().cloned().unwrap();
    let names: Vec<_> = deliveries.iter().map(|one| one["to"].as_str().unwrap()).collect();
    assert_eq!((sent.status, names), (202, vec!["lead", "worker"]));
    let both = rig.get("/v1/sessions/s1/messages/m1/wait?timeout=0").await;
    assert_eq!((both.status, both.code().as_str()), (422, "bad_request"));
    let one = rig.get("/v1/sessions/s1/messages/m1/wait?timeout=1m&to=lead").await.json();
    assert_eq!(one["reached"], true, "{one}");
}

#[tokio::test]
async fn a_refusal_for_one_of_all_is_a_problem_beside_the_receipts() {
    let rig = Rig::start().await;
    rig.post("/v1/sessions/s1/agents/lead/messages", r#"{"text": "a", "id": "m1"}"#).await;
    rig.get("/v1/sessions/s1/messages/m1/wait?timeout=1m").await;
    let body = r#"{"text": "for run 1 only", "stream_run_id": 1}"#;
    let sent = rig.post("/v1/sessions/s1/agents/all/messages", body).await.json();
    assert!(sent["deliveries"][0]["state"].is_string(), "{sent}");
    assert_eq!(sent["deliveries"][1]["code"], "stale_run", "{sent}");
    assert_eq!(sent["deliveries"][1]["status"], 409, "{sent}");
}

/// A message that nobody took was not sent, whomever it was for: who sends it may send it again.
#[tokio::test]
async fn what_every_one_of_all_refuses_is_a_problem_and_no_delivery() {
    let rig = Rig::start().await;
    let body = r#"{"text": "for run 7 only", "stream_run_id": 7}"#;
    let refused = rig.post("/v1/sessions/s1/agents/all/messages", body).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "stale_run"));
}

#[tokio::test]
async fn the_plain_and_the_full_form_of_urgency_reach_the_engine() {
    let rig = Rig::start().await;
    let at = "/v1/sessions/s1/agents/worker/messages";
    rig.post(at, r#"{"text": "work", "id": "m0"}"#).await;
    rig.get("/v1/sessions/s1/messages/m0/wait?state=sent&timeout=1m").await;
    let mut events = rig.events("/v1/sessions/s1/events", "").await;
    for (body, urgency) in [
        (r#"{"text": "a"}"#, "next_boundary"),
        (r#"{"text": "a", "urgent": false}"#, "next_boundary"),
        (r#"{"text": "a", "urgency": "follow_up"}"#, "follow_up"),
        (r#"{"text": "a", "urgency": "after_tools"}"#, "after_tools"),
        (r#"{"text": "a", "urgency": "next_boundary"}"#, "next_boundary"),
        (r#"{"text": "a", "urgent": true}"#, "urgent"),
    ] {
        let sent = rig.post(at, body).await;
        assert_eq!(sent.status, 202, "{body}");
        let told = events.told().await.unwrap().json();
        assert_eq!((&told["type"], &told["urgency"]), (&json!("message_queued"), &json!(urgency)));
        assert_eq!(told["from"], "user");
    }
}

#[tokio::test]
async fn seed_000_s_soft_interrupt_goes_to_the_lead() {
    let rig = Rig::start().await;
    let mut events = rig.events("/v1/sessions/s1/events?agent=lead", "").await;
    // A25: the seed counts its messages.
    for (id, given, urgent, urgency) in [
        ("a", "\"a\"", "false", "after_tools"),
        ("b", "\"b\"", "true", "next_boundary"),
        ("7", "7", "true", "next_boundary"),
    ] {
        let body = format!(r#"{{"id": {given}, "content": "stop it", "urgent": {urgent}}}"#);
        let sent = rig.post("/v1/sessions/current/soft_interrupt", &body).await;
        assert_eq!((sent.status, &sent.json()["to"]), (202, &json!("lead")));
        let queued = loop {
            let told = events.told().await.unwrap();
            if told.name == "message_queued" {
                break told.json();
            }
        };
        assert_eq!((&queued["message"], &queued["urgency"]), (&json!(id), &json!(urgency)));
        let path = format!("/v1/sessions/s1/messages/{id}/wait?timeout=1m");
        assert_eq!(rig.get(&path).await.json()["reached"], true);
    }
}

#[tokio::test]
async fn a_stale_stream_run_id_is_a_conflict_and_changes_nothing() {
    let rig = Rig::start().await;
    rig.post("/v1/sessions/s1/agents/worker/messages", r#"{"text": "work", "id": "m0"}"#).await;
    rig.get("/v1/sessions/s1/messages/m0/wait?state=sent&timeout=1m").await;
    let before = rig.archive.count();
    for (what, body) in [
        ("messages", r#"{"text": "a", "stream_run_id": 2}"#),
        ("messages", r#"{"text": "a", "stream_run_id": 0}"#),
        ("messages", r#"{"text": "a", "urgent": true, "stream_run_id": 7}"#),
        ("stop", r#"{"stream_run_id": 2}"#),
        ("stop", r#"{"stream_run_id": 9, "scope": "subtree"}"#),
        ("supersede", r#"{"text": "a", "stream_run_id": 2}"#),
    ] {
        let answer = rig.post(&format!("/v1/sessions/s1/agents/worker/{what}"), body).await;
        assert_eq!((answer.status, answer.code().as_str()), (409, "stale_run"), "{what} {body}");
    }
    let agent = rig.get("/v1/sessions/s1/agents/worker").await.json();
    assert_eq!((&agent["state"], &agent["run"]), (&json!("running"), &json!(1)));
    assert!(rig.archive.count() - before <= 6, "at most that they were refused");
    let stop = rig.post("/v1/sessions/s1/agents/worker/stop", r#"{"stream_run_id": 1}"#).await;
    assert_eq!(stop.json()["stopped"], json!(["worker"]));
}

#[tokio::test]
async fn a_client_that_hangs_up_in_the_middle_has_its_message_delivered_or_not_at_all() {
    let rig = Rig::start().await;
    let mut events = rig.events("/v1/sessions/s1/events?agent=worker", "").await;
    for n in 0..20 {
        let request = rig.posting(
            "/v1/sessions/s1/agents/worker/messages",
            &format!(r#"{{"text": "number {n}", "id": "h{n}"}}"#),
        );
        let mut client = rig.connect().await;
        client.write(request.as_bytes()).await;
        drop(client);
        let cut = &request.as_bytes()[..request.len() - 1];
        let mut client = rig.connect().await;
        client.write(cut).await;
        drop(client);
        // The whole one comes, and its receipt with it; the half one was never a message.
        let told = loop {
            let told = events.told().await.unwrap().json();
            if told["type"] == "message_queued" {
                break told;
            }
        };
        assert_eq!(told["message"], format!("h{n}"));
        let receipts = rig.get(&format!("/v1/sessions/s1/messages/h{n}")).await;
        assert_eq!(receipts.status, 200);
    }
}

/// What waits can be seen, in the order in which it came, also of a session that is only stored.
#[tokio::test]
async fn what_waits_in_a_mailbox_is_listed_until_it_is_taken_back() {
    let rig = Rig::start().await;
    let at = "/v1/sessions/s1/agents/worker/messages";
    rig.post(at, r#"{"text": "work", "id": "m1"}"#).await;
    rig.get("/v1/sessions/s1/messages/m1/wait?state=sent&timeout=1m").await;
    rig.post(at, r#"{"text": "and then", "id": "m2"}"#).await;
    rig.post(at, r#"{"text": "at last", "id": "m3", "urgency": "follow_up"}"#).await;
    let queue = rig.get(at).await.json();
    let brief = |queue: &serde_json::Value| -> Vec<serde_json::Value> {
        let messages = queue["messages"].as_array().unwrap().iter();
        let keys = ["id", "to", "from", "text", "urgency", "state"];
        messages.map(|message| keys.iter().map(|key| message[key].clone()).collect()).collect()
    };
    let expected = vec![
        json!(["m2", "worker", "user", "and then", "next_boundary", "queued"]),
        json!(["m3", "worker", "user", "at last", "follow_up", "queued"]),
    ];
    assert_eq!(brief(&queue), expected);
    assert!(queue["messages"].as_array().unwrap().iter().all(|message| message["since"].is_number()));
    assert_eq!(queue["as_of"], rig.get("/v1/sessions/s1").await.json()["last_seq"]);
    assert_eq!(brief(&rig.get("/v1/sessions/s1/agents/all/messages").await.json()), expected);
    assert_eq!(rig.get("/v1/sessions/s1/agents/lead/messages").await.json()["messages"], json!([]));
    assert_eq!(rig.get("/v1/sessions/s1/agents/nobody/messages").await.code(), "unknown_agent");
    rig.post("/v1/sessions/s1/messages/m2/withdraw", "{}").await;
    assert_eq!(brief(&rig.get(at).await.json()), expected[1..]);
    rig.host.live.lock().clear();
    assert_eq!(brief(&rig.get(at).await.json()), expected[1..], "it is only stored now");
}

/// Who edits a message that was read meanwhile is refused, and nothing is sent twice.
#[tokio::test]
async fn a_replacement_that_comes_too_late_is_refused_where_the_sender_says_so() {
    let rig = Rig::start().await;
    let at = "/v1/sessions/s1/agents/worker/messages";
    rig.post(at, r#"{"text": "work", "id": "m1"}"#).await;
    rig.get("/v1/sessions/s1/messages/m1/wait?state=sent&timeout=1m").await;
    let late = rig.post(at, r#"{"text": "not that", "supersedes": "m1", "if_queued": true}"#).await;
    assert_eq!((late.status, late.code().as_str()), (409, "too_late"), "{}", late.json());
    assert_eq!(rig.get(at).await.json()["messages"], json!([]));
    rig.post(at, r#"{"text": "and then", "id": "m2"}"#).await;
    let edited =
        rig.post(at, r#"{"text": "instead", "id": "m3", "supersedes": "m2", "if_queued": true}"#).await;
    assert_eq!(edited.status, 202, "{}", edited.json());
    let queue = rig.get(at).await.json();
    assert_eq!(
        (&queue["messages"][0]["id"], queue["messages"].as_array().map(Vec::len)),
        (&json!("m3"), Some(1))
    );
    let anyway = rig.post(at, r#"{"text": "and", "supersedes": "m1"}"#).await.json();
    assert_eq!(anyway["too_late_to_supersede"], true, "{anyway}");
}
