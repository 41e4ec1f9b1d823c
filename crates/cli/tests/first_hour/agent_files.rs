//! Definition files as people find them elsewhere.

use std::path::Path;

use serde_json::json;

use super::common::Place;
use super::provider;

const FOLDER: &str = "repo/.claude/agents";

fn told(said: std::process::Output) -> (Option<i32>, String) {
    (said.status.code(), String::from_utf8(said.stderr).unwrap())
}

fn scripted(place: &Place, scenario: &str) -> (Option<i32>, String) {
    place.write("scenario.yaml", scenario);
    let words = ["run", "x", "--model", "scripted:../scenario.yaml", "--set", "agents.isolation=none"];
    told(place.midturn("repo", &words).output().unwrap())
}

const DONE: &str =
    "midturn: 1\nname: t\nagents:\n  - name: lead\n    role: lead\n    model:\n      - text: Done.\n";

/// > D4: An agent file that can't be used is left out with a note, and all such files are named at once
#[test]
fn files_that_cannot_be_used_are_left_out_and_all_are_named_at_once() {
    let place = Place::new();
    let good = "---\nname: good\ndescription: Good.\n---\nYou are good.\n";
    for (file, text) in [
        ("good.md", good),
        ("README.md", "# Our agents\n\nCopy what you like.\n"),
        ("no-end.md", "---\nname: no-end\n"),
        ("parent.md", "---\nname: user\ndescription: x\n---\n"),
        ("same.md", good),
        ("silent.md", "---\nname: silent\n---\n"),
        ("yaml.md", "---\n- one\n- two\n---\n"),
    ] {
        place.write(&format!("{FOLDER}/{file}"), text);
    }
    std::fs::write(place.path(&format!("{FOLDER}/latin.md")), b"---\nname: caf\xe9\n---\n").unwrap();
    let (status, told) = scripted(&place, DONE);
    assert_eq!(status, Some(0), "{told}");
    for expected in [
        "README.md:1:1: it has no front matter, so it is no agent; this agent file is left out",
        "no-end.md:1:1: the front matter has no end",
        "parent.md:2:1: `parent` is reserved",
        "same.md: the agent `good` is defined in",
        "silent.md:1:1: it has neither a `description` nor a text",
        "yaml.md:2:1: ",
        "latin.md:2: is not UTF-8",
    ] {
        assert!(told.contains(expected), "{expected}\n{told}");
    }
    assert_eq!(told.matches("this agent file is left out").count(), 7, "{told}");
    let doctor = place.midturn("repo", &["doctor", "--model", "scripted:../scenario.yaml"]).output().unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("ok      agents: good\n"), "{doctor}");
    assert_eq!(doctor.matches("this agent file is left out").count(), 7, "{doctor}");
}

/// What the files of the folder are called here.
const NAMES: [&str; 20] = [
    "api-designer",
    "bug-hunter",
    "code_reviewer",
    "data-engineer",
    "devops-sre",
    "dialogue-writer",
    "docs-writer",
    "explorer",
    "frontend-developer",
    "guard",
    "handbook",
    "indented",
    "japanese",
    "the-very-patient-person-who-reads-all-of-the-logs-of-the-night-a",
    "migrator",
    "optimizer",
    "quoted",
    "remote",
    "prufer-ubersetzer",
    "zero-tools",
];

/// A lead that spawns each of them as `a0`, `a1` …, and each does one turn.
fn spawns_all() -> String {
    let mut scenario =
        "midturn: 1\nname: t\nagents:\n  - name: lead\n    role: lead\n    model:\n      - tools:\n"
            .to_owned();
    for (number, agent) in NAMES.iter().enumerate() {
        let input = json!({"agent": agent, "name": format!("a{number}"), "prompt": "Begin."});
        scenario.push_str(&format!("          - {{id: s{number}, name: spawn_agent, input: {input}}}\n"));
    }
    // Reports come one by one or several at once: each may wake the lead.
    scenario.push_str(&"      - text: Done.\n".repeat(NAMES.len() + 1));
    for number in 0..NAMES.len() {
        scenario.push_str(&format!("  - {{name: a{number}, start: spawned, model: [{{text: Here.}}]}}\n"));
    }
    scenario
}

/// > D4: Twenty agent files as they are published can be used
#[test]
fn twenty_agent_files_as_they_are_published_can_be_used() {
    let place = Place::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/first_hour/agents");
    std::fs::create_dir_all(place.path(FOLDER)).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(fixtures).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), place.path(FOLDER).join(entry.file_name())).unwrap();
        count += 1;
    }
    assert_eq!(count, NAMES.len());
    let (status, told) = scripted(&place, &spawns_all());
    assert_eq!(status, Some(0), "{told}");
    for (number, name) in NAMES.iter().enumerate() {
        assert!(told.contains(&format!("a{number}: finished after 1 turn")), "{name}: {told}");
    }
    assert!(!told.contains("left out"), "{told}");
    for expected in [
        "no valid YAML, so read line by line: ",
        "`DevOps / SRE` is `devops-sre` (devops.md:2)",
        "no description, so the first line of text stands for it: `handbook` (handbook.md:1)",
        "`mcp__github__add_comment` (code_reviewer.md:9)",
        "`WebFetch` (bug-hunter.md:4)",
        "`Bash(git diff:*)` (migrator.md:4)",
        "tools forbidden in part, so taken away whole: `Bash(rm *)` (guard.md:4)",
        "tools that can't be taken away: `Task` (guard.md:4)",
        "`permissionMode` (code_reviewer.md:14)",
        "`color` (api-designer.md:5, dialogue.md:8)",
        "`isolation: remote` (remote.md:4)",
        "`hooks` (guard.md:5)",
    ] {
        assert!(told.contains(expected), "{expected}\n{told}");
    }
}

/// > D4: A name becomes a slug, a vendor's id of a model is understood, `disallowedTools` is obeyed
#[test]
fn names_models_and_tools_of_other_programs_are_understood() {
    let place = Place::new();
    let file = "---\nname: \"Frontend Developer\"\ndescription: Builds: what people see\ntools: Read, Grep, Shell, Write\n\
                disallowedTools: Bash, Write\nmodel: claude-sonnet-4-5\n---\nYou build.\n";
    place.write(&format!("{FOLDER}/a.md"), file);
    place.write(&format!("{FOLDER}/b.md"), "---\nname: b\ndescription: x\nmodel: gpt-5\n---\n");
    let (address, served) = provider::server(4, |asked| {
        let is_first = asked.body["messages"].as_array().unwrap().len() == 1;
        match asked.body["model"].as_str() {
            Some("claude-opus-4-5") if is_first => {
                let input = json!({"agent": "frontend-developer", "name": "w", "prompt": "Build."});
                provider::reply("", Some(("spawn_agent", input)))
            }
            _ => provider::reply("Done.", None),
        }
    });
    let (status, told) = told(
        place
            .midturn("repo", &["run", "x", "--model", "claude-opus-4-5", "--set", "agents.isolation=none"])
            .env("ANTHROPIC_BASE_URL", format!("http://{address}"))
            .env("ANTHROPIC_API_KEY", "sk-of-the-test")
            .output()
            .unwrap(),
    );
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("names made fit: `Frontend Developer` is `frontend-developer` (a.md:2)"), "{told}");
    assert!(told.contains("so the parent's is used: `gpt-5`: ") && told.contains("OPENAI_API_KEY"), "{told}");
    let requests = served.join().unwrap();
    let subagents = requests.iter().find(|asked| asked.body["model"] == "claude-sonnet-4-5").unwrap();
    let has =
        |name: &str| subagents.body["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == name);
    assert_eq!(["read", "grep", "bash", "write", "edit"].map(has), [true, true, false, false, false]);
}
