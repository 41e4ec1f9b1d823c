//! What is only read: health, sessions, conversations, the document; of sessions that live and that are stored.

use std::sync::atomic::Ordering;

use midturn_conformance::maker;
use midturn_core::engine::ports::Store;
use midturn_core::rules::id::SessionId;
use serde_json::json;

use crate::support::Rig;
use crate::support::host::record;

#[tokio::test]
async fn health_and_sessions_say_what_there_is() {
    let rig = Rig::start().await;
    rig.archive.add(record("old", "an old task"));
    let health = rig.get("/v1/health").await.json();
    assert_eq!((&health["sessions"], &health["store"]), (&json!(1), &json!("memory")));
    assert_eq!(health["safety"], "mode auto; sandbox: none");
    let sessions = rig.get("/v1/sessions").await.json();
    let brief: Vec<_> = sessions["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["session"].clone(), one["live"].clone()))
        .collect();
    assert_eq!(brief, [(json!("s1"), json!(true)), (json!("old"), json!(false))]);
    let current = rig.get("/v1/sessions/current").await.json();
    assert_eq!((&current["session"], &current["lead"]), (&json!("s1"), &json!("lead")));
    assert_eq!((&current["began_at"], &current["agents"]), (&json!(1_795_000_000.0), &json!(2)));
}

#[tokio::test]
async fn a_conversation_is_read_in_parts() {
    let rig = Rig::start().await;
    let s1 = rig.archive.find(&SessionId::new("s1")).unwrap().unwrap();
    let rows = (1..=12).map(|n| maker::said("lead", &format!("row {n}"))).collect();
    s1.submit(maker::rows(rows)).await.unwrap();
    let at = "/v1/sessions/s1/agents/lead/conversation";
    let first = rig.get(&format!("{at}?limit=5")).await.json();
    assert_eq!((first["messages"].as_array().map(Vec::len), &first["next"]), (Some(5), &json!(5)));
    let rest = rig.get(&format!("{at}?after=5")).await.json();
    assert_eq!((rest["messages"].as_array().map(Vec::len), rest.get("next")), (Some(7), None));
    assert_eq!(rest["messages"][0]["content"], "row 6");
    for bad in ["limit=0", "limit=1001", "limit=x", "after=-1", "after=1.5", "surprise=1", "limit="] {
        let refused = rig.get(&format!("{at}?{bad}")).await;
        assert_eq!((refused.status, refused.code().as_str()), (422, "bad_request"), "{bad}");
    }
}

#[tokio::test]
async fn a_session_that_is_only_stored_is_read_and_not_changed() {
    let rig = Rig::start().await;
    // What lived is now only stored.
    rig.host.live.lock().clear();
    for path in
        ["", "/approvals", "/agents", "/agents/lead", "/agents/lead/plan", "/agents/lead/conversation"]
    {
        let answer = rig.get(&format!("/v1/sessions/s1{path}")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.json());
    }
    assert_eq!(rig.get("/v1/sessions/current").await.code(), "no_session");
    for (path, body) in [
        ("/agents/lead/messages", r#"{"text": "a"}"#),
        ("/agents/lead/stop", "{}"),
        ("/agents/lead/approvals/c1", r#"{"decision": "once"}"#),
        ("/agents", r#"{"name": "a"}"#),
        ("/messages/m1/withdraw", "{}"),
        ("/shutdown", "{}"),
    ] {
        let refused = rig.post(&format!("/v1/sessions/s1{path}"), body).await;
        assert_eq!((refused.status, refused.code().as_str()), (409, "not_live"), "{path}");
    }
    let mut events = rig.events("/v1/sessions/s1/events?after=0", "").await;
    let names: Vec<_> = events.all().await.into_iter().map(|told| told.name).collect();
    assert_eq!(names, ["session_started", "agent_spawned", "agent_spawned"]);
    let resumed = rig.post("/v1/sessions/s1/resume", "{}").await;
    assert_eq!((resumed.status, resumed.code().as_str()), (409, "not_resumable"));
}

#[tokio::test]
async fn a_store_that_fails_is_said_so() {
    let rig = Rig::start().await;
    rig.archive.broken.store(true, Ordering::Relaxed);
    for path in ["/v1/sessions", "/v1/sessions/old", "/v1/sessions/s1/agents/lead/conversation"] {
        let answer = rig.get(path).await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "store"), "{path}");
    }
}

#[tokio::test]
async fn the_document_describes_every_route_with_its_errors() {
    let rig = Rig::start().await;
    let served = rig.get("/v1/openapi.json").await.json();
    assert_eq!(served["openapi"], "3.1.0");
    let paths = served["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 29, "{:?}", paths.keys());
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            let expected: &[&str] = if method == "post" {
                &["400", "401", "403", "404", "409", "413", "415", "421", "422", "429", "503"]
            } else {
                &["401", "403", "404", "421", "422", "429", "503"]
            };
            for status in expected {
                assert!(responses.contains_key(*status), "{method} {path}: {status}");
            }
        }
    }
    assert_eq!(served, serde_json::to_value(midturn_server::openapi()).unwrap());
}

#[tokio::test]
async fn figures_are_given_in_both_forms() {
    let rig = Rig::start().await;
    assert_eq!(rig.get("/metrics").await.status, 200);
    assert!(rig.get("/v1/stats").await.json().is_object());
}
