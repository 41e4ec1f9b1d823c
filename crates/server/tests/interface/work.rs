//! Stop, supersede, resume, close, spawn over the wire.

use serde_json::json;

use crate::support::Rig;

async fn busy(rig: &Rig) {
    rig.post("/v1/sessions/s1/agents/worker/messages", r#"{"text": "work", "id": "busy"}"#).await;
    let waited = rig.get("/v1/sessions/s1/messages/busy/wait?state=sent&timeout=1m").await.json();
    assert_eq!(waited["reached"], true);
}

#[tokio::test]
async fn two_stops_at_once_are_one_stop() {
    let rig = Rig::start().await;
    busy(&rig).await;
    let stop = rig.posting("/v1/sessions/s1/agents/worker/stop", "{}");
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(rig.connect().await);
    }
    for client in &mut clients {
        client.write(stop.as_bytes()).await;
    }
    let mut stopped = 0;
    for client in &mut clients {
        let reply = client.answer().await.json();
        match reply["stopped"].as_array().map(Vec::len) {
            Some(1) => stopped += 1,
            _ => assert!(reply["note"].is_string(), "{reply}"),
        }
    }
    assert_eq!(stopped, 1);
    let late = rig.post("/v1/sessions/s1/agents/worker/stop", "{}").await.json();
    assert_eq!((&late["stopped"], late["note"].is_string()), (&json!([]), true));
    let mut events = rig.events("/v1/sessions/s1/events?after=0", "").await;
    let mut stops = 0;
    let end = loop {
        let told = events.told().await.unwrap();
        stops += usize::from(told.name == "stop_requested");
        if told.name == "run_finished" {
            break told.json();
        }
    };
    assert_eq!((stops, &end["outcome"]), (1, &json!("stopped")));
}

#[tokio::test]
async fn a_supersede_stops_and_starts_as_one_action() {
    let rig = Rig::start().await;
    busy(&rig).await;
    let body = r#"{"text": "do this instead", "id": "new", "stream_run_id": 1}"#;
    let sent = rig.post("/v1/sessions/s1/agents/worker/supersede", body).await;
    assert_eq!((sent.status, &sent.json()["id"]), (202, &json!("new")));
    let waited = rig.get("/v1/sessions/s1/messages/new/wait?state=sent&timeout=1m").await.json();
    let receipt = &waited["receipt"];
    assert_eq!((&receipt["run"], &receipt["point"]), (&json!(2), &json!("start")), "{waited}");
    let empty = rig.post("/v1/sessions/s1/agents/worker/supersede", r#"{"text": "  "}"#).await;
    assert_eq!((empty.status, empty.code().as_str()), (422, "empty"));
    let agent = rig.get("/v1/sessions/s1/agents/worker").await.json();
    assert_eq!((&agent["state"], &agent["run"]), (&json!("running"), &json!(2)));
    assert_eq!((&agent["activity"][0]["what"], &agent["activity"][0]["call"]), (&json!("model"), &json!(2)));
}

#[tokio::test]
async fn a_stopped_agent_is_resumed_and_a_closed_one_is_not() {
    let rig = Rig::start().await;
    busy(&rig).await;
    rig.post("/v1/sessions/s1/agents/worker/stop", "{}").await;
    let resumed = rig.post("/v1/sessions/s1/agents/worker/resume", "{}").await.json();
    assert_eq!(resumed, json!({"started": true, "wakeable": true}));
    let again = rig.post("/v1/sessions/s1/agents/lead/resume", "{}").await.json();
    assert_eq!((&again["started"], &again["wakeable"]), (&json!(false), &json!(false)), "{again}");
    assert!(again["note"].as_str().unwrap().contains("nothing was changed"), "{again}");
    let closed = rig.post("/v1/sessions/s1/agents/lead/close", "{}").await.json();
    assert_eq!(closed["closed"], json!(["worker", "lead"]));
    let late = rig.post("/v1/sessions/s1/agents/worker/messages", r#"{"text": "hello"}"#).await.json();
    assert_eq!((&late["state"], &late["reason"]), (&json!("returned"), &json!("closed")));
}

#[tokio::test]
async fn agents_are_spawned_once_each_by_their_name() {
    let rig = Rig::start().await;
    let at = "/v1/sessions/s1/agents";
    let spawned = rig.post(at, r#"{"name": "helper", "prompt": "go", "parent": "worker"}"#).await;
    assert_eq!((spawned.status, &spawned.json()["parent"]), (201, &json!("worker")));
    for (body, status, code) in [
        (r#"{"name": "helper"}"#, 409, "not_spawned"),
        (r#"{"name": "user"}"#, 422, "invalid_name"),
        (r#"{"name": "Not A Name"}"#, 422, "invalid_name"),
        (r#"{"name": "h2", "prompt": "\u200b"}"#, 422, "empty"),
        (r#"{"name": "h2", "parent": "../.."}"#, 422, "invalid_name"),
        (r#"{"name": "h2", "parent": "nobody"}"#, 422, "bad_request"),
        (r#"{"name": "h2", "agent": "no-such"}"#, 422, "bad_request"),
    ] {
        let refused = rig.post(at, body).await;
        assert_eq!((refused.status, refused.code().as_str()), (status, code), "{body}");
    }
    let agents = rig.get(at).await.json();
    assert_eq!(agents["agents"].as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn an_agent_without_a_branch_has_neither_diff_nor_merge() {
    let rig = Rig::start().await;
    let diff = rig.get("/v1/sessions/s1/agents/worker/diff").await;
    assert_eq!((diff.status, diff.code().as_str()), (409, "no_branch"));
    let merge = rig.post("/v1/sessions/s1/agents/worker/merge", "{}").await;
    assert_eq!((merge.status, merge.code().as_str()), (409, "no_branch"));
}

#[tokio::test]
async fn a_session_is_begun_and_shut_down() {
    let rig = Rig::start().await;
    let begun = rig.post("/v1/sessions", r#"{"task": "do it"}"#).await;
    assert_eq!((begun.status, &begun.json()["session"]), (201, &json!("s2")));
    for (body, status, code) in [
        (r#"{"task": "  "}"#, 422, "empty"),
        (r#"{"task": "\u200b"}"#, 422, "empty"),
        (r#"{"task": "a", "folder": "relative"}"#, 422, "bad_request"),
        (r#"{"task": "a", "model": "gpt"}"#, 422, "bad_request"),
    ] {
        let refused = rig.post("/v1/sessions", body).await;
        assert_eq!((refused.status, refused.code().as_str()), (status, code), "{body}");
    }
    busy(&rig).await;
    let stopped = rig.post("/v1/sessions/s1/shutdown", "{}").await.json();
    assert_eq!(stopped["stopped"], json!(["worker"]));
    let resumed = rig.post("/v1/sessions/s1/resume", "{}").await;
    assert_eq!((resumed.status, resumed.code().as_str()), (409, "already_live"));
}

/// A3: a shutdown is a fence. What would begin something is to be asked for again of the next process; what
/// ends something is done.
#[tokio::test]
async fn from_the_first_moment_of_a_shutdown_on_nothing_begins_and_what_ends_is_done() {
    let rig = Rig::start().await;
    let worker = "/v1/sessions/s1/agents/worker";
    assert_eq!(rig.post(&format!("{worker}/messages"), r#"{"text": "go", "id": "m1"}"#).await.status, 202);
    let live = rig.host.live.lock()[0].clone();
    live.coordinator.shutdown().await;
    for (path, body) in [
        (format!("{worker}/messages"), r#"{"text": "more"}"#),
        ("/v1/sessions/s1/agents/all/messages".to_owned(), r#"{"text": "more"}"#),
        (format!("{worker}/supersede"), r#"{"text": "instead"}"#),
        (format!("{worker}/resume"), "{}"),
        ("/v1/sessions/s1/agents".to_owned(), r#"{"name": "new", "prompt": "go"}"#),
        ("/v1/sessions/s1/soft_interrupt".to_owned(), r#"{"id": 1, "content": "stop"}"#),
    ] {
        let refused = rig.post(&path, body).await;
        assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("shutting_down")), "{path}");
        assert_eq!(refused.header("retry-after"), Some("1"), "{path}");
    }
    for path in ["stop", "close"] {
        assert_eq!(rig.post(&format!("{worker}/{path}"), "{}").await.status, 200, "{path}");
    }
}
