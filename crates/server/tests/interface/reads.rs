//! What is only read: health, sessions, conversations, the document; of sessions that live and that are stored.

use std::sync::atomic::Ordering;

use midturn_conformance::maker;
use midturn_core::engine::ports::{ErrorKind, Store};
use midturn_core::engine::scripted::ScriptedReply;
use midturn_core::rules::conversation::Usage;
use midturn_core::rules::id::SessionId;
use midturn_core::rules::time::Span;
use midturn_server::Bounds;
use serde_json::json;

use crate::support::host::record;
use crate::support::{Rig, name};

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
    assert_eq!((&rest["previous"], &rest["as_of"]), (&json!(6), &json!(3)));
    let last = rig.get(&format!("{at}?before=13&limit=5")).await.json();
    assert_eq!(
        (&last["messages"][0]["content"], &last["messages"][4]["content"]),
        (&json!("row 8"), &json!("row 12"))
    );
    assert_eq!((&last["previous"], last.get("next")), (&json!(8), None));
    let before = rig.get(&format!("{at}?before=8")).await.json();
    assert_eq!((before["messages"].as_array().map(Vec::len), before.get("previous")), (Some(7), None));
    for bad in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "after=-1",
        "after=1.5",
        "surprise=1",
        "limit=",
        "after=1&before=3",
    ] {
        let refused = rig.get(&format!("{at}?{bad}")).await;
        assert_eq!((refused.status, refused.code().as_str()), (422, "bad_request"), "{bad}");
    }
}

#[tokio::test]
async fn recorded_events_are_read_in_parts() {
    let rig = Rig::start().await;
    let at = "/v1/sessions/s1/log";
    let first = rig.get(&format!("{at}?limit=2")).await.json();
    let types: Vec<_> = first["events"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
    assert_eq!(
        (types, &first["next"]),
        (vec![&json!("session_started"), &json!("agent_spawned")], &json!(2))
    );
    let rest = rig.get(&format!("{at}?after=2")).await.json();
    assert_eq!((&rest["events"][0]["seq"], rest.get("next"), &rest["as_of"]), (&json!(3), None, &json!(3)));
    assert_eq!((&rest["previous"], first.get("previous")), (&json!(3), None));
    let before = rig.get(&format!("{at}?before=3&limit=1")).await.json();
    assert_eq!((&before["events"], before.get("next")), (&json!([first["events"][1]]), None));
    assert_eq!((&before["previous"], &before["as_of"]), (&json!(2), &json!(3)));
    let begin = rig.get(&format!("{at}?before=2")).await.json();
    assert_eq!((&begin["events"], begin.get("previous")), (&json!([first["events"][0]]), None));
    let of_one = rig.get(&format!("{at}?agent=worker")).await.json();
    assert_eq!(of_one["events"], json!([rest["events"][0]]));
    let last_of_one = rig.get(&format!("{at}?agent=worker&before=4")).await.json();
    assert_eq!((&last_of_one["events"], last_of_one.get("previous")), (&of_one["events"], None));
    assert_eq!(rig.get(&format!("{at}?after=1&before=3")).await.code(), "bad_request");
    assert_eq!(rig.get(&format!("{at}?agent=nobody")).await.code(), "unknown_agent");
    assert_eq!(rig.get(&format!("{at}?limit=0")).await.code(), "bad_request");
    rig.host.live.lock().clear();
    assert_eq!(rig.get(&format!("{at}?after=2")).await.json(), rest, "it is only stored now");
}

#[tokio::test]
async fn an_agent_says_what_it_used_and_how_full_its_context_is() {
    let usage = |input, output, cached| Usage { input, output, cached };
    let said = |usage| ScriptedReply { usage, ..ScriptedReply::says("done") };
    let script = vec![said(usage(100, 20, 60)), said(usage(150, 30, 100))];
    let rig = Rig::with(Bounds::default(), [(name("lead"), script.into())].into()).await;
    for id in ["m1", "m2"] {
        let body = format!(r#"{{"text": "go", "id": "{id}"}}"#);
        rig.post("/v1/sessions/s1/agents/lead/messages", &body).await;
        rig.get(&format!("/v1/sessions/s1/messages/{id}/wait?timeout=1m")).await;
    }
    let lead = rig.get("/v1/sessions/s1/agents/lead").await.json();
    assert_eq!(lead["usage"], json!({"input": 250, "output": 50, "cached": 160}));
    assert_eq!(
        (&lead["tokens"], &lead["context"]["used"], lead.get("cost")),
        (&json!(300), &json!(180), None)
    );
    rig.host.live.lock().clear();
    let stored = rig.get("/v1/sessions/s1/agents/lead").await.json();
    assert_eq!([&stored["usage"], &stored["context"]], [&lead["usage"], &lead["context"]]);
}

#[tokio::test]
async fn who_waits_to_ask_its_model_again_says_until_when() {
    let (error, retry_after) = (Some(ErrorKind::Connection), Some(Span::secs(60)));
    let script = vec![ScriptedReply { error, retry_after, ..ScriptedReply::default() }];
    let rig = Rig::with(Bounds::default(), [(name("lead"), script.into())].into()).await;
    rig.post("/v1/sessions/s1/agents/lead/messages", r#"{"text": "go"}"#).await;
    let activity = loop {
        let lead = rig.get("/v1/sessions/s1/agents/lead").await.json();
        if lead["activity"][0]["what"] == "retry" {
            break lead["activity"][0].clone();
        }
    };
    assert!(activity["until"].as_f64() > activity["since"].as_f64().map(|since| since + 1.0), "{activity}");
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
    // What is left of it can be taken, and removed, by what it is to the host.
    let merged = rig.post("/v1/sessions/s1/agents/worker/merge", "{}").await;
    assert_eq!((merged.status, merged.code().as_str()), (409, "no_branch"));
    let nobody = rig.post("/v1/sessions/s1/agents/nobody/merge", "{}").await;
    assert_eq!((nobody.status, nobody.code().as_str()), (404, "unknown_agent"));
    let seen = r#"{"epoch": 1, "last_seq": 3, "prune": {"older_than": "168h"}}"#;
    let removed = rig.post("/v1/sessions/s1/remove", seen).await;
    assert_eq!((removed.status, removed.json()["session"].as_bool()), (200, Some(true)));
    let unknown = rig.post("/v1/sessions/nowhere/remove", seen).await;
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "unknown_session"));
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
    assert_eq!(paths.len(), 38, "{:?}", paths.keys());
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

#[tokio::test]
async fn who_begins_a_session_or_adds_an_agent_is_told_that_its_agents_share_a_folder() {
    let rig = Rig::start().await;
    let begun = rig.post("/v1/sessions", r#"{"task": "go"}"#).await;
    assert_eq!((begun.status, &begun.json()["shared"]), (201, &"all agents work in this one folder".into()));
    assert!(rig.get("/v1/sessions/s1").await.json().get("shared").is_none(), "those of s1 work apart");
    let shared = begun.json()["shared"].clone();
    for (session, expected) in [("s1", None), ("s2", Some(&shared))] {
        let added = rig.post(&format!("/v1/sessions/{session}/agents"), r#"{"name": "new"}"#).await.json();
        assert_eq!((&added["name"], added.get("shared")), (&"new".into(), expected), "{session}");
    }
}

#[tokio::test]
async fn a_replay_is_of_one_thing_and_the_newest_few_are_kept() {
    let rig = Rig::start().await;
    for body in ["{}", r#"{"session": "s1", "replay": "r1"}"#, r#"{"scenario": "a", "session": "s1"}"#] {
        let refused = rig.post("/v1/replays", body).await;
        assert_eq!((refused.status, refused.code().as_str()), (422, "bad_request"), "{body}");
    }
    let many = format!(r#"{{"scenario": "a", "shift": [{}]}}"#, vec![r#""m=1s""#; 65].join(","));
    assert_eq!(rig.post("/v1/replays", &many).await.status, 422);
    let unknown = rig.post("/v1/replays", r#"{"session": "nowhere"}"#).await;
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "unknown_session"));
    let mut ids = Vec::new();
    for _ in 0..5 {
        let kept = rig.post("/v1/replays/kept", r#"{"scenario": "midturn: 1"}"#).await;
        assert_eq!(kept.status, 201);
        ids.push(kept.json()["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(rig.get(&format!("/v1/replays/{}", ids[0])).await.code(), "unknown_replay");
    // What is kept comes to the host, which has no scenarios here.
    let played = rig.get(&format!("/v1/replays/{}", ids[4])).await;
    assert_eq!((played.status, played.code().as_str()), (422, "bad_request"));
}
