//! What goes wrong is said whole, and what could be done about it in words that can be typed.

use std::net::TcpListener;

use serde_json::json;

use super::common::Place;
use super::provider::{refused, server};

/// A run with a model of a provider at this address.
fn run(place: &Place, environment: &[(&str, String)], more: &[&str]) -> (Option<i32>, String) {
    let mut command = place.midturn("repo", &["run", "x", "--model", "anthropic/x"]);
    command.args(more).env("ANTHROPIC_API_KEY", "sk-of-the-test");
    let said = command.envs(environment.iter().cloned()).output().unwrap();
    (said.status.code(), String::from_utf8(said.stderr).unwrap())
}

/// > D7: An error is said whole, in the last line of a run too
#[test]
fn an_error_is_said_whole_in_the_last_line_too() {
    let reason = format!("{} and so the reason stands at the very end", "a long preface, ".repeat(20));
    let said = json!({"error": {"type": "invalid_request_error", "message": reason}});
    let (address, served) = server(1, move |_| refused("400 Bad Request", "", &said));
    let place = Place::new();
    let (status, told) = run(&place, &[("ANTHROPIC_BASE_URL", format!("http://{address}"))], &[]);
    assert_eq!(status, Some(1), "{told}");
    let last = told.lines().last().unwrap();
    assert!(last.starts_with("lead: failed after 1 turn: ") && last.ends_with("at the very end"), "{told}");
    served.join().unwrap();
}

/// > D7: The proxy is named that a request went through
#[test]
fn the_proxy_is_named_at_the_start_and_in_what_fails() {
    let (address, served) = server(1, |_| refused("407 Proxy Authentication Required", "", &json!({})));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let base = ("ANTHROPIC_BASE_URL", "http://models.example".to_owned());
    for (proxy, expected) in [
        (
            format!("http://me:hush@{address}"),
            format!("anthropic answered 407 through the proxy http://{address}"),
        ),
        (
            format!("http://{closed}"),
            format!("no connection to models.example through the proxy http://{closed} "),
        ),
    ] {
        let place = Place::new();
        let environment = [base.clone(), ("http_proxy", proxy)];
        let (status, told) = run(&place, &environment, &["--set", "retry.attempts=1"]);
        assert_eq!(status, Some(1), "{told}");
        assert!(
            told.contains("note: requests for anthropic/… go through the proxy http://127.0.0.1:"),
            "{told}"
        );
        assert!(
            told.lines().last().unwrap().contains(&expected) && !told.contains("hush"),
            "{expected}\n{told}"
        );
    }
    served.join().unwrap();
}

/// > D7: A long wait that a provider asks for, and a limit, come with their figures
#[test]
fn waits_and_limits_come_with_their_figures() {
    let said = json!({"error": {"type": "rate_limit_error", "message": "slow down"}});
    let (address, served) =
        server(1, move |_| refused("429 Too Many Requests", "retry-after: 3600\r\n", &said));
    let place = Place::new();
    let (status, told) = run(&place, &[("ANTHROPIC_BASE_URL", format!("http://{address}"))], &[]);
    assert_eq!(status, Some(1), "{told}");
    assert!(told.lines().last().unwrap().contains("answered 429, and asks to wait 1h: slow down"), "{told}");
    served.join().unwrap();

    let place = Place::new();
    let calls = "      - tools: [{id: a, name: bash, input: {command: 'true'}}]\n";
    let scenario = format!(
        "midturn: 1\nname: t\nagents:\n  - name: lead\n    role: lead\n    model:\n{}",
        calls.replace("id: a", "id: b") + calls
    );
    place.write("scenario.yaml", &scenario);
    let words = ["run", "x", "--model", "scripted:../scenario.yaml", "--set", "max_turns=2"];
    let said = place.midturn("repo", &words).output().unwrap();
    let told = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(4), "{told}");
    assert!(told.contains("lead is at its limit max_turns: 2 of 2 turns are used"), "{told}");
}

/// > D8: An advice names a key as a file has it
#[test]
fn what_an_advice_names_is_a_key() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = ("ANTHROPIC_BASE_URL", format!("http://{}", silent.local_addr().unwrap()));
    let place = Place::new();
    let (_, told) = run(&place, &[base], &["--set", "timeouts.idle=50ms", "--set", "retry.attempts=1"]);
    assert!(told.contains("anthropic sent nothing for 0.05 s; `timeouts.idle` sets how long"), "{told}");
}

/// > D8: `--set` refuses a key whose quotes are none of TOML's, and understands those that are
#[test]
fn a_key_with_quotes_is_read_as_in_a_file_or_refused() {
    let shown = |said: &str| {
        let place = Place::new();
        let said = place.midturn("repo", &["config", "--json", "--set", said]).output().unwrap();
        (said.status.code(), String::from_utf8([said.stdout, said.stderr].concat()).unwrap())
    };
    for (said, key) in [
        ("models.\"a/b.c=d\".input=3", "models.a/b.c=d.input"),
        ("models.'a/b'.input = 3", "models.a/b.input"),
        ("models.a/b.c.input=3", "models.a/b.c.input"),
    ] {
        let (status, text) = shown(said);
        assert_eq!(status, Some(0), "{said}: {text}");
        let config: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(config["values"][key]["value"], 3, "{said}: {text}");
    }
    for said in
        ["models.\"a/b.input=3", "models.\"a\"/b.input=3", "models.a/b\".input=3", "\"max_turns\" x=3"]
    {
        let (status, text) = shown(said);
        assert_eq!(status, Some(2), "{said}: {text}");
        assert!(text.contains("is no key as a file has it"), "{said}: {text}");
    }
}

/// > D8: `doctor` sends nobody to `doctor`
#[test]
fn doctor_sends_nobody_to_doctor() {
    for tier in ["bubblewrap", "landlock"] {
        let place = Place::new();
        let set = format!("sandbox.tier={tier}");
        let said = place.midturn("repo", &["doctor", "--set", &set]).output().unwrap();
        let text = String::from_utf8(said.stdout).unwrap();
        assert!(text.contains("landlock: ") && !text.contains("midturn doctor"), "{text}");
    }
}
