//! Canary keys in the environment of the real binary, and a model that tells all it finds: the
//! canaries are in nothing that people, programs or files get.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::{Ended, Place, Running};

/// What of the canaries may be nowhere. A page of the store may end within a value, so both
/// ends of each are looked for.
const CANARIES: [&str; 6] =
    ["canary-7f3a", "tail-b04d", "canary-51e2", "tail-9c07", "canary-c6d8", "tail-e119"];

const KEY: &str = "sk-ant-canary-7f3a9c51e2d84f60a7b3-tail-b04d";
const TOKEN: &str = "ghp_canary-51e2f3a4/b5c6+d7e8-tail-9c07";
const PASSWORD: &str = "canary-c6d8.99-tail-e119";

/// The canaries are where an agent can come by them: in the environment of all our processes,
/// and in a file of the project.
fn armed(place: &Place) {
    let json = serde_json::json!({ "key": KEY, "nested": format!("token={TOKEN}") });
    place.write("repo/keys.txt", &format!("ANTHROPIC_API_KEY={KEY}\nDEPLOY_TOKEN={TOKEN}\n{PASSWORD}\n"));
    place.write("repo/keys.json", &json.to_string());
    place.write("repo/AGENTS.md", &format!("Deploy with {TOKEN}.\n"));
}

fn with_canaries(command: &mut Command) -> &mut Command {
    command
        .env("ANTHROPIC_API_KEY", KEY)
        .env("DEPLOY_TOKEN", TOKEN)
        .env("DATABASE_URL", format!("postgres://ann:{PASSWORD}@db.example.org/x"))
}

/// The commands of an agent that looks for keys.
const LOOKS: [&str; 8] = [
    "env; export -p; cat keys.txt keys.json; echo done",
    "cat /proc/self/environ /proc/$PPID/environ /proc/$PPID/cmdline | tr '\\0' '\\n'; echo done",
    "for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do tr '\\0' '\\n' <$f; done 2>/dev/null | grep -a canary; echo done",
    "base64 -w0 keys.json; echo; tr -d '\\n' <keys.txt | base64 -w0; od -An -v -tx1 keys.txt | tr -d ' \\n'; echo done",
    "cat \"$HOME\"/../state/midturn/projects/*/interface.json; echo done",
    "head -c 31 keys.txt; cat /dev/null; tail -c +32 keys.txt; echo done",
    // The middle of a long output is cut out: here the cuts go through the key.
    "yes | head -c 16340; cat keys.txt; yes | head -c 99000; head -n 1 keys.txt; yes | head -c 16370",
    "cp keys.txt \"$(tail -n 1 keys.txt)\"; ls; cat no-such-$(head -c 70 keys.txt); echo done",
];

fn scenario() -> String {
    let call = |id: String, name: &str, input: serde_json::Value| {
        format!("      - tools: [{{id: {id}, name: {name}, input: {input}}}]\n")
    };
    let looks = LOOKS.iter().enumerate();
    let mut entries: String = looks
        .map(|(number, command)| {
            call(format!("look{number}"), "bash", serde_json::json!({"command": command}))
        })
        .collect();
    entries += &call("read".into(), "read", serde_json::json!({"path": "keys.txt"}));
    entries += &call("grep".into(), "grep", serde_json::json!({"pattern": "canary"}));
    entries += &call("told".into(), "bash", serde_json::json!({"command": format!("echo {KEY} >told.txt")}));
    let plan = serde_json::json!({"steps": [{"text": format!("Use {TOKEN}"), "status": "pending"}]});
    entries += &call("plan".into(), "update_plan", plan);
    let spawn = serde_json::json!({"name": "worker", "prompt": format!("Log in with {PASSWORD}")});
    entries += &call("spawn".into(), "spawn_agent", spawn);
    let ask = serde_json::json!({"to": "worker", "text": format!("or with {KEY}")});
    entries += &call("send".into(), "send_message", ask);
    entries += &call("wait".into(), "wait_agents", serde_json::json!({"names": ["worker"]}));
    // As often as the worker can tell of an end: who reads the message in a run of its own tells twice.
    entries += &format!("      - text: 'The key is {KEY}, the token {TOKEN}.'\n").repeat(3);
    let lead = format!("  - name: lead\n    role: lead\n    model:\n{entries}");
    let said = format!("      - text: 'I have {PASSWORD} and {KEY}'\n").repeat(3);
    let worker = format!("  - name: worker\n    parent: lead\n    start: spawned\n    model:\n{said}");
    format!("midturn: 1\nname: canaries\nagents:\n{lead}{worker}")
}

/// Fails if a canary is in there.
fn no_canary(place: &str, bytes: &[u8]) {
    for canary in CANARIES {
        let found = bytes.windows(canary.len()).position(|window| window == canary.as_bytes());
        if let Some(at) = found {
            let around = &bytes[at.saturating_sub(300)..bytes.len().min(at + 100)];
            panic!("{canary} is in {place}:\n{}", String::from_utf8_lossy(around));
        }
    }
}

/// All files below a folder, but for worktrees and what is kept to undo turns: what agents write there is theirs.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !["worktrees", "undo"].iter().any(|theirs| path.ends_with(theirs)) {
            files(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}

fn run(place: &Place) -> Ended {
    place.write("scenario.yaml", &scenario());
    let task = format!("deploy with {TOKEN}");
    let words = ["run", &task, "--json", "--steer-stdin", "--model", "scripted:../scenario.yaml"];
    let mut command = place.midturn("repo", &words);
    with_canaries(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::of(command);
    running.until("tool_started", &[("tool", "look0")]);
    running.say(&format!("lead: my key is {KEY}"));
    running.say(&format!("{TOKEN}: is this an agent?"));
    running.end()
}

#[test]
fn canary_keys_are_in_nothing_that_anybody_gets() {
    let place = Place::new();
    armed(&place);
    let Ended { status, events, told } = run(&place);
    assert_eq!(status, Some(0), "{told}");
    no_canary("standard error", told.as_bytes());
    for event in &events {
        no_canary("the events", event.to_string().as_bytes());
        // The token of the interface is made anew at each start: nobody knows it here.
        let output = event["output"].as_str().or(event["text"].as_str()).unwrap_or_default();
        let shown = output.split("\"token\":\"").nth(1);
        assert!(shown.is_none_or(|token| token.starts_with("[redacted: ")), "{output}");
    }
    let all: String = events.iter().map(|event| format!("{event}\n")).collect();
    for name in ["ANTHROPIC_API_KEY", "DEPLOY_TOKEN", "DATABASE_URL"] {
        assert!(all.contains(&format!("[redacted: {name}]")), "{name} was found by nobody: {all}");
    }
    let mut kept = Vec::new();
    files(&place.path("state"), &mut kept);
    assert!(kept.iter().any(|path| path.ends_with("store.db")), "{kept:?}");
    for path in kept {
        no_canary(&path.display().to_string(), &std::fs::read(&path).unwrap());
    }
    // Who reads has no keys in its environment, so that it takes nothing out itself.
    for words in
        [&["log", "last"][..], &["log", "last", "--json"], &["export", "last"], &["sessions", "--json"]]
    {
        let said = place.midturn("repo", words).output().unwrap();
        assert!(said.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
        assert!(!said.stdout.is_empty(), "{words:?}");
        no_canary(&words.join(" "), &said.stdout);
        no_canary(&words.join(" "), &said.stderr);
    }
}

#[test]
fn an_error_that_repeats_a_secret_is_told_without_it() {
    let place = Place::new();
    let given = format!("postgres://ann:{PASSWORD}@/%zz");
    for words in [
        &["run", "x", "--model", KEY][..],
        &["run", "x", "--model", &format!("scripted:{TOKEN}.yaml")],
        &["sessions", "--store", &given],
        &["log", TOKEN],
    ] {
        let said = with_canaries(&mut place.midturn("repo", words)).output().unwrap();
        assert!(!said.status.success(), "{words:?}");
        assert!(!said.stderr.is_empty(), "{words:?}");
        no_canary(&words.join(" "), &said.stdout);
        no_canary(&words.join(" "), &said.stderr);
    }
}
