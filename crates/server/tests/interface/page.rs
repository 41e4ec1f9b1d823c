//! The page's door: who is let in, with what, and where (docs/protocol.md, "The page").

use std::time::Duration;

use serde_json::json;

use crate::support::Rig;
use crate::support::client::{Answer, Client};

/// A page that was opened: where it is, and its code.
async fn opened(rig: &Rig) -> (String, String) {
    let answer = rig.post("/v1/page", "{}").await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    let page = answer.json();
    assert_eq!(page["seconds"], 60);
    (page["address"].as_str().unwrap().to_owned(), page["code"].as_str().unwrap().to_owned())
}

/// Asks at an address, with these lines in the head.
async fn ask(address: &str, method: &str, path: &str, lines: &[&str], body: &str) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !lines.iter().any(|line| line.starts_with("Host:")) {
        head.push_str(&format!("Host: {address}\r\n"));
    }
    for line in lines {
        head.push_str(&format!("{line}\r\n"));
    }
    if method == "POST" {
        head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
    }
    Client::tcp(address).await.ask(format!("{head}\r\n{body}").as_bytes()).await
}

async fn sign_in(address: &str, code: &str) -> Answer {
    ask(address, "POST", "/v1/sign_in", &[], &json!({"code": code}).to_string()).await
}

#[tokio::test]
async fn a_code_buys_one_page_a_token_of_its_own() {
    let rig = Rig::start().await;
    let (address, code) = opened(&rig).await;
    let answer = sign_in(&address, &code).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    let token = answer.json()["token"].as_str().unwrap().to_owned();
    assert_ne!(token, rig.token.secret());
    let bearer = format!("Authorization: Bearer {token}");
    let sessions = ask(&address, "GET", "/v1/sessions", &[&bearer], "").await;
    assert_eq!(sessions.json()["sessions"][0]["session"], "s1");
    // It is a person's: it answers and sets limits.
    let set = ask(&address, "POST", "/v1/sessions/s1/limits", &[&bearer], "{\"max_turns\": 9}").await;
    assert_eq!(set.status, 200, "{}", set.json());
    // The code is used up, and the next page has another door key to the same door.
    assert_eq!(sign_in(&address, &code).await.code(), "wrong_code");
    let (again, other) = opened(&rig).await;
    assert_eq!(again, address);
    let second = sign_in(&address, &other).await.json()["token"].as_str().unwrap().to_owned();
    assert_ne!(second, token);
    rig.end().await;
}

#[tokio::test]
async fn who_has_no_code_or_comes_from_elsewhere_is_refused_with_the_reason() {
    let rig = Rig::start().await;
    let (address, code) = opened(&rig).await;
    let port = address.rsplit(':').next().unwrap();
    let body = json!({"code": code}).to_string();
    let host = format!("Host: evil.example:{port}");
    let cases: &[(&[&str], u16, &str)] = &[
        (&["Origin: https://evil.example"], 403, "wrong_origin"),
        (&["Origin: null"], 403, "wrong_origin"),
        (&[&format!("Origin: http://127.0.0.1:{}", port.parse::<u16>().unwrap() ^ 1)], 403, "wrong_origin"),
        (&[&host], 421, "wrong_host"),
        (&["Host: midturn"], 421, "wrong_host"),
    ];
    for (lines, status, refused) in cases {
        let answer = ask(&address, "POST", "/v1/sign_in", lines, &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (*status, *refused), "{lines:?}");
    }
    assert_eq!(sign_in(&address, &"0".repeat(64)).await.code(), "wrong_code");
    // Nothing else is there without a token, at this door as at the other.
    for path in ["/v1/sessions", "/v1/health", "/metrics", "/v1/openapi.json"] {
        assert_eq!(ask(&address, "GET", path, &[], "").await.code(), "no_token", "{path}");
    }
    assert_eq!(ask(&address, "POST", "/v1/page", &[], "{}").await.code(), "no_token");
    // None of that used the code up.
    let own = format!("Origin: http://{address}");
    assert_eq!(ask(&address, "POST", "/v1/sign_in", &[&own], &body).await.status, 200);
    rig.end().await;
}

#[tokio::test]
async fn who_guesses_codes_is_slowed_down() {
    let rig = Rig::start().await;
    let (address, _) = opened(&rig).await;
    let mut codes = Vec::new();
    for _ in 0..40 {
        let answer = sign_in(&address, &"0".repeat(64)).await;
        let waits = answer.header("retry-after").is_some();
        assert_eq!(waits, answer.status == 429);
        codes.push(answer.code());
    }
    assert_eq!(codes[0], "wrong_code");
    assert!(codes.contains(&"too_many_requests".to_owned()), "{codes:?}");
    rig.end().await;
}

#[tokio::test]
async fn the_files_are_open_and_may_do_nothing_but_themselves() {
    let rig = Rig::start().await;
    let (address, _) = opened(&rig).await;
    let page = ask(&address, "GET", "/", &[], "").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    for (path, kind) in [
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/app.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/vendor/lit-html/lit-html.js", "text/javascript; charset=utf-8"),
    ] {
        let file = ask(&address, "GET", path, &[], "").await;
        assert_eq!((file.status, file.header("content-type")), (200, Some(kind)), "{path}");
    }
    assert_eq!(ask(&address, "GET", "/vendor/README.md", &[], "").await.code(), "no_token");
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(part), "{part}: {policy}");
    }
    assert!(!policy.contains("unsafe"));
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    assert_eq!(page.header("set-cookie"), None, "a cookie would go to every port");
    let framed = ask(&address, "GET", "/", &["Host: evil.example"], "").await;
    assert_eq!(framed.code(), "wrong_host");
    rig.end().await;
}

/// How often a stop was asked for in a session.
async fn stops(rig: &Rig, session: &str) -> usize {
    let log = rig.get(&format!("/v1/sessions/{session}/log?after=0")).await.json();
    let events = log["events"].as_array().unwrap().iter();
    events.filter(|event| event["type"] == "stop_requested").count()
}

async fn work(rig: &Rig, session: &str) {
    rig.post(&format!("/v1/sessions/{session}/agents/worker/messages"), r#"{"text": "go", "id": "m"}"#).await;
    let waited =
        rig.get(&format!("/v1/sessions/{session}/messages/m/wait?state=sent&timeout=1m")).await.json();
    assert_eq!(waited["reached"], true);
}

#[tokio::test]
async fn a_session_that_its_page_has_left_is_stopped_unless_somebody_follows_it_then() {
    let rig = Rig::that_stops_when_left(Duration::from_millis(100)).await;
    rig.host.start_session("s2").await;
    work(&rig, "s1").await;
    work(&rig, "s2").await;
    // As another tab of `s1` does, and as a page does that was only loaded anew.
    let mut follower = rig.events("/v1/sessions/s1/events?answers=true&after=0", "").await;
    follower.told().await.unwrap();
    let mut events = rig.events("/v1/sessions/s2/events?after=0", "").await;
    for session in ["s1", "s2"] {
        let left = rig.post(&format!("/v1/sessions/{session}/leave"), "{}").await;
        assert_eq!((left.status, &left.json()["stops_in"]), (200, &json!(0)));
    }
    // `s1` was left before `s2`: once this one is stopped, that one is too, if it ever is.
    let end = loop {
        let told = events.told().await.unwrap();
        if told.name == "run_finished" {
            break told.json();
        }
    };
    assert_eq!((&end["agent"], &end["outcome"]), (&json!("worker"), &json!("stopped")));
    assert_eq!((stops(&rig, "s1").await, stops(&rig, "s2").await), (0, 1));
    rig.end().await;
}

#[tokio::test]
async fn where_nothing_was_configured_a_page_leaves_and_its_session_goes_on() {
    let rig = Rig::start().await;
    work(&rig, "s1").await;
    let left = rig.post("/v1/sessions/s1/leave", "{}").await;
    assert_eq!((left.status, left.json()), (200, json!({})));
    assert_eq!(rig.post("/v1/sessions/none/leave", "{}").await.status, 404);
    rig.end().await;
}
