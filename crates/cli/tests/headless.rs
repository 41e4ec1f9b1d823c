//! What a script and a job meet: scenarios that fail as they should, what models read, the events' schema.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod common;
#[path = "../../scenario/tests/misfit/mod.rs"]
mod misfit;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use common::{Place, Running};

/// Plays a scenario: its exit status, and all that it says.
fn replayed(text: &str, more: &[&str]) -> (Option<i32>, String) {
    let place = Place::new();
    place.write("a.yaml", text);
    let said = place.midturn(".", &[&["replay", "a.yaml"], more].concat()).output().unwrap();
    (said.status.code(), String::from_utf8([said.stdout, said.stderr].concat()).unwrap())
}

const RAN_OUT: &str = "midturn: 1
agents:
  - {name: lead, role: lead, prompt: Go., model: [{tools: [{id: b, name: bash, takes: 1s}]}]}
";

const ABSENT: &str = "midturn: 1
agents:
  - name: lead
    role: lead
    prompt: Go.
    model:
      - {tools: [{id: s, name: spawn_agent, input: {name: helper, prompt: Help.}}]}
      - {text: Nobody helps.}
";

/// > D19: A script that ran out, and a spawn of a name that is not there, fail a scenario without `expect` too
#[test]
fn what_a_script_lacks_fails_a_scenario_that_does_not_expect_it() {
    for (text, lack, expected) in [
        (RAN_OUT, "run 1: script exhausted", "expect: [{agent: lead, outcome: failed}]\n"),
        (ABSENT, "the scenario has no agent `helper`", "expect: [{agent: lead, tools: {s: failed}}]\n"),
    ] {
        let (status, told) = replayed(text, &[]);
        assert!(status == Some(1) && told.contains(lack) && told.contains("FAIL  a.yaml"), "{told}");
        let (status, told) = replayed(&format!("{text}expect: [{{agent: lead, run: 1, turns: 2}}]\n"), &[]);
        assert!(status == Some(1) && told.contains(lack), "an expectation of something else: {told}");
        let (status, told) = replayed(&format!("{text}{expected}"), &[]);
        assert_eq!((status, told.as_str()), (Some(0), "ok    a.yaml\n1 passed, 0 failed\n"));
    }
}

/// > D19: `--shift` doesn't say `ok`
#[test]
fn a_scenario_that_was_moved_passes_nothing() {
    let text = format!(
        "{RAN_OUT}messages:\n  - {{id: m, at: 3s, from: user, to: lead, text: Hello.}}\nexpect: [{{agent: lead, run: 9, turns: 7}}]\n"
    );
    let (status, told) = replayed(&text, &["--shift", "m=-2.5s", "--junit", "report.xml"]);
    assert_eq!(status, Some(0), "{told}");
    assert!(told.starts_with("moved a.yaml\n") && !told.contains("ok "), "{told}");
    assert!(told.ends_with("1 moved, 0 failed; expectations were not checked\n"), "{told}");
}

/// What a command leaves: its status, its output, and what people are told.
fn said(mut command: std::process::Command) -> (Option<i32>, String, String) {
    let said = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (said.status.code(), text(said.stdout), text(said.stderr))
}

const COUNTED: &str = "midturn: 1
agents:
  - name: lead
    role: lead
    model:
      - {tools: [{id: b, name: bash, input: {command: 'echo hi'}}], usage: {input: 100000, output: 2000}}
      - {text: Done., usage: {input: 100000, output: 2000}}
";

/// The session's events as the job's own schema has them, those that are told while they happen among them.
#[test]
fn the_events_of_a_run_fit_the_schema_that_is_printed() {
    let (status, schema, _) = said(Place::new().midturn("repo", &["schema", "events"]));
    assert_eq!(status, Some(0));
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let ended = Running::start(&Place::new(), COUNTED, &["--once"]).end();
    assert_eq!(ended.status, Some(0), "{}", ended.told);
    let is_live = |event: &&serde_json::Value| event.get("n").is_some();
    assert!(ended.events.iter().any(|event| is_live(&event)), "{:?}", ended.events);
    for event in &ended.events {
        assert_eq!(misfit::misfit(&schema, &schema, event), None, "{event}");
    }
}

#[test]
fn a_limit_in_money_ends_a_run_and_counts_with_a_price_or_says_what_is_missing() {
    let place = Place::new();
    place.write("scenario.yaml", COUNTED);
    let words = ["run", "x", "--once", "--model", "scripted:../scenario.yaml", "--max-cost", "0.2"];
    let (status, _, told) = said(place.midturn("repo", &words));
    assert_eq!(status, Some(2), "{told}");
    assert!(told.contains("`session.max_cost` is set (") && told.contains("nothing says what"), "{told}");
    let prices = ["--set", "models.scripted.input=3", "--set", "models.scripted.output=15"];
    let (status, _, told) = said(place.midturn("repo", &[&words[..], &prices].concat()));
    assert_eq!(status, Some(4), "{told}");
    assert!(
        told.contains("session.max_cost") && told.contains("used: 100000 tokens read, 2000 written, $0.33"),
        "{told}"
    );
    // A price out of the table is said with its date. Nothing is reached: the proxy isn't there.
    let words = [
        "run",
        "x",
        "--model",
        "anthropic/claude-sonnet-4-5",
        "--max-cost",
        "1",
        "--set",
        "retry.attempts=1",
    ];
    let mut run = place.midturn("repo", &words);
    run.env("ANTHROPIC_API_KEY", "sk-of-the-test").env("HTTPS_PROXY", "http://127.0.0.1:1");
    let (status, _, told) = said(run);
    assert_eq!(status, Some(1), "{told}");
    assert_eq!(told.matches("`session.max_cost` is counted with prices of 20").count(), 1, "{told}");
    assert!(told.contains("anthropic/claude-sonnet-4-5 $3.00 read and $15.00 written"), "{told}");
}

#[test]
fn the_first_start_without_a_key_says_what_to_do_in_four_lines() {
    let place = Place::new();
    let (status, out, told) = said(place.midturn("repo", &["run", "Fix it"]));
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert_eq!(told.lines().count(), 4, "{told}");
    for what in ["ANTHROPIC_API_KEY", "--model sonnet", "scripted:FILE", "docs/run.md"] {
        assert!(told.contains(what), "{what}: {told}");
    }
    let mut run = place.midturn("repo", &["run", "Fix it"]);
    run.env("OPENAI_API_KEY", "sk-of-the-test");
    assert!(said(run).2.contains("OPENAI_API_KEY is set, so only the model is missing"));
}

/// Answers requests for a list of models, a page each, and gives their heads back.
fn listing(pages: &'static [&'static str]) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = move |page: &&str| {
        common::until_ready(&listener, "a request");
        let stream = listener.accept().unwrap().0;
        let lines = BufReader::new(&stream).lines().map(Result::unwrap);
        let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let headers = "content-type: application/json\r\nconnection: close";
        let length = page.len();
        write!(&stream, "HTTP/1.1 200 OK\r\n{headers}\r\ncontent-length: {length}\r\n\r\n{page}").unwrap();
        head.join("\n").to_lowercase()
    };
    (url, std::thread::spawn(move || pages.iter().map(answer).collect()))
}

#[test]
fn a_long_list_of_models_is_read_page_by_page() {
    let (url, answered) = listing(&[
        r#"{"data": [{"id": "one", "max_input_tokens": 7}], "has_more": true, "last_id": "one"}"#,
        r#"{"data": [{"id": "two"}], "has_more": false, "last_id": "two"}"#,
    ]);
    let place = Place::new();
    let mut models = place.midturn("repo", &["models", "anthropic"]);
    models.env("ANTHROPIC_BASE_URL", &url).env("ANTHROPIC_API_KEY", "sk-of-the-test");
    let (status, out, told) = said(models);
    let heads = answered.join().unwrap();
    assert_eq!(status, Some(0), "{told}");
    assert!(out.contains("anthropic/one        7") && out.contains("anthropic/two        -"), "{out}");
    assert!(heads[0].starts_with("get /v1/models?limit=1000 http"), "{heads:?}");
    assert!(heads[1].starts_with("get /v1/models?limit=1000&after_id=one http"), "{heads:?}");
    assert!(heads[1].contains("x-api-key: sk-of-the-test"), "{heads:?}");
}

#[test]
fn models_are_listed_with_what_is_known_of_each() {
    let place = Place::new();
    // Without a key, and without network: the table.
    let (status, out, told) = said(place.midturn("repo", &["models", "anthropic"]));
    assert_eq!(status, Some(0), "{told}");
    let line = out.lines().find(|line| line.starts_with("anthropic/claude-sonnet-4-5 ")).unwrap();
    assert_eq!(line.split_whitespace().skip(1).collect::<Vec<_>>(), ["200000", "~3.00", "~15.00", "~0.30"]);
    assert!(out.contains("US dollars per million tokens; ~ as they were on 20"), "{out}");
    assert!(told.contains("anthropic has given no list (ANTHROPIC_API_KEY is not set)"), "{told}");
    // With one: what its server says, and what a person says before that.
    let (url, answered) = listing(&[
        r#"{"data": [{"id": "qwen3", "max_model_len": 32768}, {"id": "other"}, {"id": "mine", "max_model_len": 5}]}"#,
    ]);
    place.write(
        "config/midturn/midturn.toml",
        &format!(
            "[providers.local]\ndialect = \"chat\"\nbase_url = \"{url}/v1\"\nkey_env = \"LOCAL_KEY\"\n\
                  [models.\"local/mine\"]\ninput = 1\noutput = 2\ncontext_tokens = 99\n"
        ),
    );
    let mut models = place.midturn("repo", &["models", "local", "--json"]);
    models.env("LOCAL_KEY", "key-of-the-test");
    let (status, out, told) = said(models);
    assert_eq!(status, Some(0), "{told}");
    let head = &answered.join().unwrap()[0];
    assert!(
        head.starts_with("get /v1/models http") && head.contains("authorization: bearer key-of-the-test"),
        "{head}"
    );
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let expected = serde_json::json!([
        {"name": "local/qwen3", "context_tokens": 32768},
        {"name": "local/other"},
        {"name": "local/mine", "context_tokens": 99, "input": "1.00", "output": "2.00"},
    ]);
    assert_eq!((&found["models"], &found["providers"][0]["listed"]), (&expected, &true.into()));
    assert_eq!(said(place.midturn("repo", &["models", "nobody"])).0, Some(2));
}

/// The script of docs/ci.md, as it is printed there.
fn script() -> String {
    let page = include_str!("../../../docs/ci.md");
    page.split_once("```sh\n").unwrap().1.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_job_of_the_docs_leaves_a_comment_of_three_agents() {
    let place = Place::new();
    place.write("repo/a.txt", "one\n");
    place.git(&["add", "."]);
    place.git(&["commit", "--quiet", "-m", "One"]);
    place.git(&["checkout", "--quiet", "-b", "change"]);
    place.write("repo/a.txt", "two\n");
    place.git(&["commit", "--quiet", "-a", "-m", "Two"]);
    let names = ["correctness", "tests", "docs"];
    let spawns = names.map(|name| {
        format!("          - {{id: s-{name}, name: spawn_agent, input: {{name: {name}, prompt: Read.}}}}\n")
    });
    let agents = names.map(|name| {
        format!("  - {{name: {name}, parent: lead, start: spawned, model: [{{text: '{name} is fine.'}}]}}\n")
    });
    let wait = "          - {id: w, name: wait_agents, input: {names: [correctness, tests, docs]}}\n";
    place.write("review.yaml", &format!(
        "midturn: 1\nagents:\n  - name: lead\n    role: lead\n    model:\n      - tools:\n{}      - tools:\n{wait}      - {{text: Looks good to all three.}}\n{}",
        spawns.concat(), agents.concat()
    ));
    place.write("repo/review.sh", &script());
    place.write("config/midturn/midturn.toml", "[models.scripted]\ninput = 3\noutput = 15\n");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_midturn"));
    let folders = [program.parent().unwrap().to_owned()];
    let path = std::env::var_os("PATH").unwrap();
    let folders = folders.into_iter().chain(std::env::split_paths(&path));
    let mut job = place.shell("repo", "review.sh");
    job.env("PATH", std::env::join_paths(folders).unwrap());
    job.env("BASE", "main").env("MIDTURN_MODEL", "scripted:../review.yaml");
    let (status, out, told) = said(job);
    assert_eq!(status, Some(0), "{out}{told}");
    assert_eq!(std::fs::read_to_string(place.path("repo/comment.md")).unwrap(), "Looks good to all three.\n");
    let events = std::fs::read_to_string(place.path("repo/events.jsonl")).unwrap();
    for name in names {
        assert!(events.contains(&format!("{name} is fine.")), "{events}");
    }
}
