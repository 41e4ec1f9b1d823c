//! From the configuration to the wire: runs against servers on loopback that speak a provider's
//! protocol. What a provider's crate does with a stream is tested there; here it
//! is what the command line put into the request.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod common;

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use common::Place;
use serde_json::Value;

const REPLY: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"x","stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// Answers one request and hands over its head and its body.
fn server() -> (String, JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answered = std::thread::spawn(move || {
        common::until_ready(&listener, "a request");
        answer(listener.accept().unwrap().0, REPLY)
    });
    (url, answered)
}

fn answer(stream: TcpStream, reply: &str) -> (String, Value) {
    let (head, body) = common::request(&stream);
    let headers = "content-type: text/event-stream\r\nconnection: close";
    write!(&stream, "HTTP/1.1 200 OK\r\n{headers}\r\n\r\n{reply}").unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

#[test]
fn a_run_asks_the_configured_server_with_the_key_of_the_environment() {
    let (url, answered) = server();
    let place = Place::new();
    place.write("repo/AGENTS.md", "Indent with tabs.");
    place.write("repo/midturn.toml", "model = \"quick\"\naliases.quick = \"anthropic/small\"\nproviders.anthropic.max_output_tokens = 77\n");
    let said = place
        .midturn("repo", &["run", "Say hello"])
        .env("ANTHROPIC_BASE_URL", &url)
        .env("ANTHROPIC_API_KEY", "sk-of-the-test")
        .output()
        .unwrap();
    let told = String::from_utf8(said.stderr).unwrap();
    assert_eq!((said.status.code(), said.stdout.as_slice()), (Some(0), &b"Hello.\n"[..]), "{told}");
    let (head, body) = answered.join().unwrap();
    assert!(head.starts_with("post /v1/messages") && head.contains("x-api-key: sk-of-the-test"), "{head}");
    assert_eq!((body["model"].as_str(), body["max_tokens"].as_u64()), (Some("small"), Some(77)));
    let system = body["system"].to_string();
    assert!(system.contains("Indent with tabs.") && system.contains("`lead`"), "{system}");
    let tools: Vec<&str> =
        body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    for tool in ["bash", "read", "edit", "write", "grep", "glob", "spawn_agent", "send_message"] {
        assert!(tools.contains(&tool), "{tools:?}");
    }
    assert!(told.contains(&url) && !told.contains("sk-of-the-test"), "{told}");
}

/// > D17: What models read cites no page of ours
#[test]
fn what_a_model_reads_cites_no_page() {
    let (url, answered) = server();
    let place = Place::new();
    let mut run = place.midturn("repo", &["run", "Say hello", "--model", "anthropic/small"]);
    let said =
        run.env("ANTHROPIC_BASE_URL", &url).env("ANTHROPIC_API_KEY", "sk-of-the-test").output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let (_, body) = answered.join().unwrap();
    assert!(body["tools"].as_array().unwrap().len() > 12);
    let read = format!("{} {} {}", body["tools"], body["system"], body["messages"]);
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = std::fs::read_dir(docs).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap());
    for cited in
        pages.filter(|page| page.ends_with(".md")).chain([", section".to_owned(), "decisions/".to_owned()])
    {
        let around = read.find(&cited).map(|at| read[..at].chars().rev().take(120).collect::<Vec<_>>());
        let around: Option<String> = around.map(|signs| signs.into_iter().rev().collect());
        assert_eq!(around, None, "{cited}");
    }
}

/// A chat's whole reply, of words or of a call.
fn chat(delta: &Value, finish: &str) -> String {
    let chunk = serde_json::json!({"choices": [{"delta": delta, "finish_reason": finish}]});
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

/// Answers as many requests as there are replies, each on a connection of its own.
fn scripted(replies: Vec<String>) -> (String, JoinHandle<Vec<(String, Value)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answered = std::thread::spawn(move || {
        let answer_next = |reply: String| {
            common::until_ready(&listener, "a request");
            answer(listener.accept().unwrap().0, &reply)
        };
        replies.into_iter().map(answer_next).collect()
    });
    (url, answered)
}

/// What of a head goes to one server alone.
const NORTH: [&str; 2] = ["authorization: bearer key-of-north-7f3a", "x-tenant: blue tenant-of-north-51e2"];
const SOUTH: [&str; 2] = ["authorization: bearer key-of-south-9c07", "x-tenant: red"];

#[test]
fn two_compatible_servers_serve_one_session_and_none_gets_the_others_key_or_headers() {
    let spawn =
        serde_json::json!({"name": "worker", "prompt": "Say what x-tenant you have.", "agent": "helper"});
    let call = |id: &str, name: &str, arguments: Value| {
        let function = serde_json::json!({"name": name, "arguments": arguments.to_string()});
        chat(&serde_json::json!({"tool_calls": [{"index": 0, "id": id, "function": function}]}), "tool_calls")
    };
    let (north, at_north) = scripted(vec![
        call("a", "spawn_agent", spawn),
        call("b", "wait_agents", serde_json::json!({"names": ["worker"]})),
        chat(&serde_json::json!({"content": "All said: tenant-of-north-51e2."}), "stop"),
    ]);
    let words = serde_json::json!({"content": "I have key-of-south-9c07, they key-of-north-7f3a."});
    let (south, at_south) = scripted(vec![chat(&words, "stop")]);
    let place = Place::new();
    place.write(
        "config/midturn/midturn.toml",
        &format!(
            "model = 'north/lead'\n\
             [providers.north]\ndialect = 'chat'\nbase_url = '{north}'\nkey_env = 'NORTH'\n\
             headers = {{X-Tenant = 'blue ${{NORTH_TENANT}}'}}\nquery = {{v = '1'}}\n\
             [providers.south]\ndialect = 'chat'\nbase_url = '{south}'\nkey_env = 'SOUTH'\n\
             headers = {{X-Tenant = 'red'}}\n"
        ),
    );
    place.write(
        "repo/.claude/agents/helper.md",
        "---\nname: helper\ndescription: helps\nmodel: south/small\n---\n",
    );
    let said = place
        .midturn("repo", &["run", "Ask the other", "--json"])
        .env("NORTH", "key-of-north-7f3a")
        .env("NORTH_TENANT", "tenant-of-north-51e2")
        .env("SOUTH", "key-of-south-9c07")
        .env("OPENAI_API_KEY", "key-of-openai-b04d")
        .output()
        .unwrap();
    let (events, told) = (String::from_utf8(said.stdout).unwrap(), String::from_utf8(said.stderr).unwrap());
    assert_eq!(said.status.code(), Some(0), "{told}\n{events}");
    let (at_north, at_south) = (at_north.join().unwrap(), at_south.join().unwrap());
    for (asked, line, own, others, model) in [
        (&at_north, "post /v1/chat/completions?v=1 ", NORTH, SOUTH, "lead"),
        (&at_south, "post /v1/chat/completions ", SOUTH, NORTH, "small"),
    ] {
        for (head, body) in asked {
            assert!(head.starts_with(line) && body["model"] == model, "{head}");
            assert!(own.iter().all(|header| head.contains(header)), "{head}");
            assert!(!others.iter().any(|header| head.contains(header)), "{head}");
            assert!(!format!("{head}{body}").contains("b04d"), "{head}");
        }
    }
    assert!(events.contains("[redacted: SOUTH]") && events.contains("[redacted: NORTH_TENANT]"), "{events}");
    for secret in ["7f3a", "9c07", "51e2"] {
        assert!(!format!("{events}{told}").contains(secret), "{told}\n{events}");
    }
}

#[test]
fn what_a_login_lacks_or_has_of_another_is_told_before_anything_starts() {
    let own = "model = 'mine/m'\n[providers.mine]\ndialect = 'chat'\nbase_url = 'http://127.0.0.1:9'\n";
    for (more, variables, expected) in [
        (
            "key_env = 'MINE'",
            &[][..],
            "midturn.toml:5: there is no key for mine models: set the environment variable MINE",
        ),
        ("headers.x-login = 'Bearer ${MINE}'", &[], "midturn.toml:5: there is no key for mine models"),
        (
            "headers.x-login = 'Bearer ${MINE}'",
            &[("MINE", "sk-hidden-key"), ("OPENAI_API_KEY", "sk-hidden-key")],
            "midturn.toml:5: `providers.mine.headers.x-login` would send the key of openai to mine",
        ),
        ("query.v = '${MINE}'", &[], "which `providers.mine.query.v` names"),
    ] {
        let place = Place::new();
        place.write("config/midturn/midturn.toml", &format!("{own}{more}\n"));
        let said = place.midturn("repo", &["run", "x"]).envs(variables.iter().copied()).output().unwrap();
        let error = String::from_utf8(said.stderr).unwrap();
        assert_eq!((said.status.code(), said.stdout.is_empty()), (Some(2), true), "{error}");
        assert!(error.contains(expected) && !error.contains("sk-hidden"), "{error}\n{expected}");
        assert!(!place.path("state").exists(), "{error}");
    }
}

#[test]
fn the_doctor_and_config_name_the_variables_of_every_provider() {
    let place = Place::new();
    let own = "[providers.mine]\ndialect = 'chat'\nbase_url = 'http://127.0.0.1:9'\nkey_env = 'MINE'\n";
    place.write("config/midturn/midturn.toml", own);
    for (command, expected) in [
        ("doctor", "ANTHROPIC_API_KEY is not set, MINE is set, OPENAI_API_KEY is not set"),
        ("config", "# environment MINE: set\n"),
        ("config", "providers.mine.key_env = \"MINE\""),
    ] {
        let said = place.midturn("repo", &[command]).env("MINE", "sk-hidden-key").output().unwrap();
        let text = String::from_utf8(said.stdout).unwrap();
        assert!(text.contains(expected) && !text.contains("sk-hidden"), "{text}");
    }
}
