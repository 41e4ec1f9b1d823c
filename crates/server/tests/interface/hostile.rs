//! Two hundred hostile requests by table: each is refused with the right status and a code,
//! and nothing is changed by any of them.

use serde_json::Value;

use crate::support::Rig;

/// A request, and what it gets. Without a code the head is none that HTTP knows.
struct Row {
    what: String,
    raw: Vec<u8>,
    status: u16,
    code: &'static str,
}

const HEALTH: &str = "/v1/health";
const AGENT: &str = "/v1/sessions/s1/agents/worker";
const MESSAGES: &str = "/v1/sessions/s1/agents/worker/messages";
const STOP: &str = "/v1/sessions/s1/agents/worker/stop";
const LIMITS: [&str; 2] = ["/v1/sessions/s1/agents/worker/limits", "/v1/sessions/s1/limits"];
const EVENTS: &str = "/v1/sessions/s1/events";
const GOOD: &str = r#"{"text": "hello"}"#;

/// A request of these parts; a part may be several header lines, or none.
fn request(line: &str, host: &str, token: &str, more: &str, body: &str) -> Vec<u8> {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    format!("{line} HTTP/1.1\r\n{host}{token}{more}{length}\r\n{body}").into_bytes()
}

struct Table {
    secret: String,
    rows: Vec<Row>,
}

impl Table {
    fn token(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.secret)
    }

    fn add(&mut self, what: impl Into<String>, raw: Vec<u8>, status: u16, code: &'static str) {
        self.rows.push(Row { what: what.into(), raw, status, code });
    }

    /// A read and a change with this host, these further lines and this token.
    fn both(&mut self, what: &str, host: &str, token: &str, more: &str, status: u16, code: &'static str) {
        let read = request(&format!("GET {HEALTH}"), host, token, more, "");
        self.add(format!("GET, {what}"), read, status, code);
        let json = format!("{more}Content-Type: application/json\r\n");
        let change = request(&format!("POST {MESSAGES}"), host, token, &json, GOOD);
        self.add(format!("POST, {what}"), change, status, code);
    }

    fn get(&mut self, path: &str, status: u16, code: &'static str) {
        let raw = request(&format!("GET {path}"), "Host: midturn\r\n", &self.token(), "", "");
        self.add(format!("GET {path}"), raw, status, code);
    }

    fn post(&mut self, path: &str, body: &str, status: u16, code: &'static str) {
        let json = "Content-Type: application/json\r\n";
        let raw = request(&format!("POST {path}"), "Host: midturn\r\n", &self.token(), json, body);
        let short: String = body.chars().take(60).collect();
        self.add(format!("POST {path} {short}"), raw, status, code);
    }

    fn hosts(&mut self) {
        let token = self.token();
        for host in [
            "",
            "localhost",
            "127.0.0.1",
            "127.0.0.1:80",
            "[::1]",
            "0.0.0.0",
            "midturn:80",
            "MIDTURN",
            "midturn.",
            "midturn,midturn",
            "evil.example",
            "midturn.evil.example",
            "evil.example/midturn",
            "user@midturn",
            "169.254.169.254",
        ] {
            self.both(&format!("Host: {host}"), &format!("Host: {host}\r\n"), &token, "", 421, "wrong_host");
        }
        self.both("no host", "", &token, "", 421, "wrong_host");
        self.both("two hosts", "Host: midturn\r\nHost: midturn\r\n", &token, "", 421, "wrong_host");
        self.both("two hosts", "Host: midturn\r\nHost: evil.example\r\n", &token, "", 421, "wrong_host");
        let line = format!("GET http://evil.example{HEALTH}");
        let raw = request(&line, "Host: midturn\r\n", &token, "", "");
        self.add("another host in the request line", raw, 421, "wrong_host");
        let raw = request("CONNECT evil.example:443", "Host: midturn\r\n", &token, "", "");
        self.add("a tunnel", raw, 421, "wrong_host");
    }

    fn origins(&mut self) {
        let token = self.token();
        for origin in [
            "null",
            "",
            "http://evil.example",
            "https://midturn",
            "http://midturn:80",
            "http://midturn/",
            "http://midturn.evil.example",
            "http://MIDTURN",
            "HTTP://midturn",
            "midturn",
            "file://",
            "http://localhost:3000",
            "chrome-extension://abc",
            "http://midturn\r\nOrigin: http://midturn",
        ] {
            let more = format!("Origin: {origin}\r\n");
            self.both(&format!("Origin: {origin}"), "Host: midturn\r\n", &token, &more, 403, "wrong_origin");
        }
        let preflight = "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n";
        let raw = request(&format!("OPTIONS {MESSAGES}"), "Host: midturn\r\n", "", preflight, "");
        self.add("a preflight", raw, 403, "wrong_origin");
    }

    fn tokens(&mut self) {
        let secret = self.secret.clone();
        let zeros = "0".repeat(64);
        for (value, code) in [
            (String::new(), "no_token"),
            ("Bearer".to_owned(), "no_token"),
            ("Bearer ".to_owned(), "no_token"),
            (secret.clone(), "no_token"),
            (format!("Basic {secret}"), "no_token"),
            (format!("Token {secret}"), "no_token"),
            (format!("Bearer:{secret}"), "no_token"),
            ("Bearer x".to_owned(), "wrong_token"),
            (format!("Bearer {zeros}"), "wrong_token"),
            (format!("Bearer {}", &secret[1..]), "wrong_token"),
            (format!("Bearer {secret}0"), "wrong_token"),
            (format!("Bearer  {secret}"), "wrong_token"),
            (format!("Bearer \"{secret}\""), "wrong_token"),
            (format!("Bearer {secret},{secret}"), "wrong_token"),
            (format!("Bearer {}", "x".repeat(8_000)), "wrong_token"),
        ] {
            let lines = format!("Authorization: {value}\r\n");
            let what = format!(
                "Authorization: {}",
                value.replace(&secret, "TOKEN").chars().take(40).collect::<String>()
            );
            self.both(&what, "Host: midturn\r\n", &lines, "", 401, code);
        }
        let twice = self.token().repeat(2);
        self.both("two tokens", "Host: midturn\r\n", &twice, "", 401, "no_token");
        let cookie = format!("Cookie: token={secret}\r\n");
        self.both("a cookie", "Host: midturn\r\n", &cookie, "", 401, "no_token");
        for path in [HEALTH, EVENTS, "/metrics", "/v1/openapi.json", "/v1/sessions", "/v1/page", "/no/such"] {
            let raw = request(&format!("GET {path}"), "Host: midturn\r\n", "", "", "");
            self.add(format!("GET {path}, no token"), raw, 401, "no_token");
        }
        for key in ["token", "access_token", "TOKEN"] {
            let line = format!("GET {EVENTS}?{key}={secret}");
            let raw = request(&line, "Host: midturn\r\n", "", "", "");
            self.add(format!("a token in the query, {key}"), raw, 401, "no_token");
            let raw = request(&line, "Host: midturn\r\n", &self.token(), "", "");
            self.add(format!("a token in the query too, {key}"), raw, 401, "no_token");
        }
    }

    fn methods(&mut self) {
        for (method, path) in [
            ("OPTIONS", HEALTH),
            ("OPTIONS", MESSAGES),
            ("OPTIONS", EVENTS),
            ("PUT", MESSAGES),
            ("DELETE", MESSAGES),
            ("PATCH", MESSAGES),
            ("TRACE", MESSAGES),
            ("POST", "/v1/sessions/s1/log"),
            ("HEAD", STOP),
            ("GET", STOP),
            ("GET", LIMITS[0]),
            ("GET", LIMITS[1]),
            ("PUT", LIMITS[0]),
            ("GET", "/v1/sessions/s1/shutdown"),
            ("GET", "/v1/sessions/s1/soft_interrupt"),
            ("DELETE", "/v1/sessions/s1"),
            ("DELETE", AGENT),
            ("PUT", "/v1/sessions"),
            ("POST", HEALTH),
            ("POST", EVENTS),
            ("POST", AGENT),
            ("POST", "/metrics"),
            ("POST", "/v1/openapi.json"),
            ("PROPFIND", HEALTH),
            ("FOO", MESSAGES),
        ] {
            let raw = request(&format!("{method} {path}"), "Host: midturn\r\n", &self.token(), "", "");
            let code = if method == "HEAD" { "" } else { "wrong_method" };
            self.add(format!("{method} {path}"), raw, 405, code);
        }
    }

    fn content_types(&mut self) {
        for lines in [
            "",
            "Content-Type:\r\n",
            "Content-Type: text/plain\r\n",
            "Content-Type: application/x-www-form-urlencoded\r\n",
            "Content-Type: multipart/form-data; boundary=x\r\n",
            "Content-Type: application/jsonp\r\n",
            "Content-Type: application/problem+json\r\n",
            "Content-Type: text/json\r\n",
            "Content-Type: application/json, text/plain\r\n",
            "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
            "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
        ] {
            for path in [MESSAGES, "/v1/sessions/s1/shutdown"] {
                let token = self.token();
                let body = if path == MESSAGES { GOOD } else { "{}" };
                let raw = request(&format!("POST {path}"), "Host: midturn\r\n", &token, lines, body);
                self.add(format!("POST {path} {lines:?}"), raw, 415, "not_json");
            }
        }
    }

    fn bodies(&mut self) {
        let arrays = format!("{{\"text\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let objects = format!("{}1{}", r#"{"text":"#.repeat(50_000), "}".repeat(50_000));
        let broken =
            ["", "{", "nul", "{\"text\": \"a\"", "{'text': 'a'}", "{\"text\": \"a\"} {}", "\u{feff}{}"];
        let numbers = [r#"{"only_run": 1e400}"#, r#"{"text": "a", "only_run": 01}"#, r#"{"text": NaN}"#];
        let texts =
            ["{\"text\": \"a\nb\"}", r#"{"text": "\ud800"}"#, r#"{"text": "\x41"}"#, r#"{"text": "a",}"#];
        for body in broken.iter().chain(&numbers).chain(&texts) {
            self.post(MESSAGES, body, 400, "bad_json");
        }
        self.post(MESSAGES, &arrays, 422, "bad_request");
        self.post(MESSAGES, &format!("{{\"text\": \"a\", \"id\": {}", &objects), 422, "bad_request");
        self.post(MESSAGES, &format!("{{\"surprise\": {}", &arrays[8..]), 422, "bad_request");
        self.post("/v1/sessions", &arrays.replace("text", "set"), 422, "bad_request");
        for body in [
            "[]",
            r#"["hello"]"#,
            r#"["hello", true, null, null, null, null, null, null]"#,
            "null",
            "3",
            "\"text\"",
            "{}",
            r#"{"text": 3}"#,
            r#"{"text": null}"#,
            r#"{"text": ["a"]}"#,
            r#"{"text": {"text": "a"}}"#,
            r#"{"text": "a\u0000b"}"#,
            r#"{"text": "a", "text": "b"}"#,
            r#"{"text": "a", "from": "lead"}"#,
            r#"{"text": "a", "sender": "user"}"#,
            r#"{"text": "a", "to": "lead"}"#,
            r#"{"text": "a", "urgent": "yes"}"#,
            r#"{"text": "a", "urgent": 1}"#,
            r#"{"text": "a", "urgency": "now"}"#,
            r#"{"text": "a", "urgency": "URGENT"}"#,
            r#"{"text": "a", "urgent": true, "urgency": "follow_up"}"#,
            r#"{"text": "a", "id": ""}"#,
            r#"{"text": "a", "id": "a\u0000b"}"#,
            r#"{"text": "a", "id": "a\nb"}"#,
            r#"{"text": "a", "id": 7}"#,
            r#"{"text": "a", "expires_after": "soon"}"#,
            r#"{"text": "a", "expires_after": 5}"#,
            r#"{"text": "a", "expires_after": "-1s"}"#,
            r#"{"text": "a", "expires_after": "99999999999999999999h"}"#,
            r#"{"text": "a", "only_run": -1}"#,
            r#"{"text": "a", "only_run": 1.5}"#,
            r#"{"text": "a", "only_run": 99999999999999999999999999}"#,
            r#"{"text": "a", "only_run": 18446744073709551615}"#,
            r#"{"text": "a", "stream_run_id": "1"}"#,
            r#"{"text": "a", "stream_run_id": true}"#,
            r#"{"text": "a", "if_queued": true}"#,
            r#"{"text": "a", "supersedes": "m0", "if_queued": "yes"}"#,
        ] {
            self.post(MESSAGES, body, 422, "bad_request");
        }
        let long_id = format!(r#"{{"text": "a", "id": "{}"}}"#, "i".repeat(129));
        self.post(MESSAGES, &long_id, 422, "bad_request");
        for id in ["a\u{202e}b", "\u{200b}", "a\\nb"] {
            self.post(MESSAGES, &format!(r#"{{"text": "a", "id": "{id}"}}"#), 422, "bad_request");
        }
    }

    fn refusals(&mut self) {
        for text in ["", " ", "\\n\\t ", "\u{a0}\u{2003}", "\u{200b}", "\u{202e} \u{feff}"] {
            self.post(MESSAGES, &format!(r#"{{"text": "{text}"}}"#), 422, "empty");
        }
        let large = format!(r#"{{"text": "{}"}}"#, "a".repeat(256 * 1024 + 1));
        self.post(MESSAGES, &large, 422, "too_large");
        let huge = format!(r#"{{"text": "{}"}}"#, "a".repeat(1024 * 1024));
        self.post(MESSAGES, &huge, 413, "body_too_large");
        self.post(MESSAGES, r#"{"text": "a", "only_run": 77}"#, 409, "stale_run");
        self.post(MESSAGES, r#"{"text": "a", "stream_run_id": 77}"#, 409, "stale_run");
        self.post(MESSAGES, r#"{"text": "a", "supersedes": ""}"#, 422, "bad_request");
        self.post(STOP, r#"{"scope": "everything"}"#, 422, "bad_request");
        self.post(STOP, r#"{"by": "lead"}"#, 422, "bad_request");
        self.post(STOP, "[null, null]", 422, "bad_request");
        self.post("/v1/sessions/s1/shutdown", "[]", 422, "bad_request");
        self.post(STOP, r#"{"stream_run_id": 3}"#, 409, "stale_run");
        for path in LIMITS {
            for body in [
                "[]",
                "{}",
                r#"{"max_turns": null}"#,
                r#"{"max_turns": -1}"#,
                r#"{"max_turns": "7"}"#,
                r#"{"max_tokens": 1.5}"#,
                r#"{"max_tokens": 18446744073709551616}"#,
                r#"{"max_cost": "-1"}"#,
                r#"{"max_cost": "1e3"}"#,
                r#"{"max_cost": 2.5}"#,
                r#"{"max_cost": "99999999999999999999"}"#,
                r#"{"max_time": "soon"}"#,
                r#"{"max_time": 60}"#,
                r#"{"max_turns": 5, "by": "lead"}"#,
                r#"{"max_depth": 9}"#,
            ] {
                self.post(path, body, 422, "bad_request");
            }
        }
        self.post("/v1/sessions/s1/soft_interrupt", r#"{"id": "a", "content": ""}"#, 422, "empty");
        self.post("/v1/sessions/s1/soft_interrupt", r#"{"content": "a"}"#, 422, "bad_request");
        self.post("/v1/sessions", r#"{"task": "a", "folder": "../.."}"#, 422, "bad_request");
        self.post("/v1/sessions", r#"{"task": "a", "folder": "/a\u0000b"}"#, 422, "bad_request");
        self.post("/v1/sessions/s1/agents", r#"{"name": "all"}"#, 422, "invalid_name");
        self.post("/v1/sessions/s1/agents", r#"{"name": "a\u0007b"}"#, 422, "invalid_name");
    }

    fn places(&mut self) {
        for path in
            ["/x", "//", "/v1", "/v1/", "/v2/health", "/v1/health/", "/v1/sessions/s1/agents/worker/no"]
        {
            self.get(path, 404, "no_route");
        }
        self.get("/v1/%2e%2e/etc/passwd", 404, "no_route");
        self.get("/v1/sessions/%ff%fe", 404, "no_route");
        for id in [
            "nobody",
            "..",
            "%2e%2e%2fstore.db",
            "a%00b",
            "%0d%0aX:%20y",
            "S1",
            "s1%20",
            "-1",
            "%F0%9F%92%A9",
        ] {
            self.get(&format!("/v1/sessions/{id}"), 404, "unknown_session");
        }
        self.get(&format!("/v1/sessions/{}", "x".repeat(4_000)), 404, "unknown_session");
        for agent in ["nobody", "WORKER", "worker%00", "worker%2Fstop", "all", "user", "parent", "%2e%2e"] {
            self.get(&format!("/v1/sessions/s1/agents/{agent}"), 404, "unknown_agent");
        }
        for agent in ["nobody", "a%00b", "Worker", "user", "parent", "worker%20"] {
            self.post(&format!("/v1/sessions/s1/agents/{agent}/messages"), GOOD, 404, "unknown_agent");
            self.post(&format!("/v1/sessions/s1/agents/{agent}/stop"), "{}", 404, "unknown_agent");
            let limits = format!("/v1/sessions/s1/agents/{agent}/limits");
            self.post(&limits, r#"{"max_turns": 5}"#, 404, "unknown_agent");
        }
        for id in ["nobody", "a%00b", "%0a", "%ef%bf%bf"] {
            self.get(&format!("/v1/sessions/s1/messages/{id}"), 404, "unknown_message");
            self.get(&format!("/v1/sessions/s1/messages/{id}/wait"), 404, "unknown_message");
            self.post(&format!("/v1/sessions/s1/messages/{id}/withdraw"), "{}", 404, "unknown_message");
        }
        self.get(&format!("{AGENT}/diff"), 409, "no_branch");
        self.get(&format!("{EVENTS}?agent=nobody"), 404, "unknown_agent");
    }

    fn queries(&mut self) {
        for query in [
            "after=-1",
            "after=x",
            "after=",
            "after=1e3",
            "after=99999999999999999999",
            "surprise=1",
            "after=1&after=2",
        ] {
            self.get(&format!("{EVENTS}?{query}"), 422, "bad_request");
        }
        for query in
            ["timeout=soon", "timeout=11m", "timeout=-1s", "state=eaten", "state=", "timeout=1s&timeout=2s"]
        {
            self.get(&format!("/v1/sessions/s1/messages/any/wait?{query}"), 422, "bad_request");
        }
        for value in ["x", "-1", "1.5", "", "99999999999999999999", "1, 2"] {
            let more = format!("Last-Event-ID: {value}\r\n");
            let raw = request(&format!("GET {EVENTS}"), "Host: midturn\r\n", &self.token(), &more, "");
            self.add(format!("Last-Event-ID: {value}"), raw, 422, "bad_request");
        }
    }

    /// What isn't HTTP gets a bare status.
    fn noise(&mut self) {
        let head = format!("POST {MESSAGES} HTTP/1.1\r\nHost: midturn\r\n{}", self.token());
        for (what, raw, status) in [
            ("a negative length", format!("{head}Content-Length: -1\r\n\r\n"), 400),
            ("two lengths", format!("{head}Content-Length: 1\r\nContent-Length: 2\r\n\r\n{{}}"), 400),
            ("a folded header", format!("{head}X: a\r\n b: c\r\n\r\n"), 400),
            ("a header without a name", format!("{head}: a\r\n\r\n"), 400),
            ("a header with NUL", format!("{head}X: a\0b\r\n\r\n"), 400),
            ("a header too large", format!("{head}X: {}\r\n\r\n", "a".repeat(64 * 1024)), 431),
            ("too many headers", format!("{head}{}\r\n", "X: a\r\n".repeat(200)), 431),
            ("no HTTP", "hello\r\n\r\n".to_owned(), 400),
            ("TLS", "\u{16}\u{3}\u{1}\r\n\r\n".to_owned(), 400),
            ("a space in the path", "GET /v1/he alth HTTP/1.1\r\nHost: midturn\r\n\r\n".to_owned(), 400),
        ] {
            self.add(what, raw.into_bytes(), status, "");
        }
        let mut raw =
            format!("{head}Content-Type: application/json\r\nContent-Length: 12\r\n\r\n").into_bytes();
        raw.extend_from_slice(b"{\"text\":\"\xff\"}");
        self.add("invalid UTF-8", raw, 400, "bad_json");
        let chunked = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        self.add("a chunk of no size", format!("{head}{chunked}zz\r\n").into_bytes(), 400, "bad_json");
        let mut raw = format!("{head}{chunked}110000\r\n").into_bytes();
        raw.extend(std::iter::repeat_n(b'a', 0x11_0000));
        self.add("chunks without end", raw, 413, "body_too_large");
    }
}

fn table(secret: &str) -> Vec<Row> {
    let mut table = Table { secret: secret.to_owned(), rows: Vec::new() };
    table.hosts();
    table.origins();
    table.tokens();
    table.methods();
    table.content_types();
    table.bodies();
    table.refusals();
    table.places();
    table.queries();
    table.noise();
    table.rows
}

/// All that a request could have changed.
async fn state(rig: &Rig) -> (usize, Value, Value) {
    let agents = rig.get("/v1/sessions/s1/agents").await.json()["agents"].clone();
    let sessions = rig.get("/v1/sessions").await.json()["sessions"].as_array().map(Vec::len).into();
    (rig.archive.count(), agents, sessions)
}

/// > A5: A page of another origin that writes to Midturn's port is refused, whatever it writes to: a joined agent's mailbox has no other address
#[tokio::test]
async fn two_hundred_hostile_requests_are_refused_and_change_nothing() {
    let rig = Rig::start().await;
    let rows = table(rig.token.secret());
    assert!(rows.len() >= 200, "{}", rows.len());
    let before = state(&rig).await;
    let mut wrong = Vec::new();
    for row in &rows {
        let answer = rig.connect().await.ask(&row.raw).await;
        let is_problem = answer.header("content-type") == Some("application/problem+json");
        let says = answer.json()["detail"].as_str().is_some_and(|detail| detail.len() > 10);
        let is_right = row.code.is_empty() || (is_problem && says && answer.code() == row.code);
        let is_open = answer.headers.iter().any(|(name, _)| name.starts_with("access-control"));
        let leaks = String::from_utf8_lossy(&answer.body).contains(rig.token.secret());
        if answer.status != row.status || !is_right || is_open || leaks {
            wrong.push(format!("{}: {} {}", row.what, answer.status, String::from_utf8_lossy(&answer.body)));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    let told = |row: &Row| matches!(row.code, "stale_run" | "unknown_message" | "empty" | "too_large");
    let after = state(&rig).await;
    let refused = rows.iter().filter(|row| told(row)).count();
    assert!(after.0 - before.0 <= refused, "nothing is recorded but refusals");
    assert_eq!((after.1, after.2), (before.1, before.2));
}

#[tokio::test]
async fn what_is_allowed_says_which_methods_are() {
    let rig = Rig::start().await;
    let raw = request(
        &format!("PUT {AGENT}"),
        "Host: midturn\r\n",
        &format!("Authorization: Bearer {}\r\n", rig.token.secret()),
        "",
        "",
    );
    let answer = rig.connect().await.ask(&raw).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET,HEAD")));
    let answer = rig.get(HEALTH).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
}

#[tokio::test]
async fn an_origin_that_is_ours_may_ask() {
    let rig = Rig::start().await;
    let token = format!("Authorization: bearer {}\r\n", rig.token.secret());
    let raw =
        request(&format!("GET {HEALTH}"), "Host: midturn\r\n", &token, "Origin: http://midturn\r\n", "");
    assert_eq!(rig.connect().await.ask(&raw).await.status, 200);
}
