//! What the pages say is typed as they say it: in an empty home, in somebody's own repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::common::Place;
use super::provider;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// The fenced blocks of a page that have this language, in order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut fences = page.split("\n```");
    let mut found = Vec::new();
    fences.next();
    while let (Some(block), _) = (fences.next(), fences.next()) {
        let (word, text) = block.split_once('\n').unwrap();
        if word == language {
            found.push(format!("{text}\n"));
        }
    }
    found
}

/// Types a block into a shell that stands in this folder; a server answers for the model.
fn typed(place: &Place, folder: &Path, block: &str, requests: usize) -> (Option<i32>, String) {
    let (address, served) = provider::server(requests, |_| provider::reply("Answered.", None));
    let binary = Path::new(env!("CARGO_BIN_EXE_midturn")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &block.replace('…', "sk-of-the-test")]).current_dir(folder).env_clear();
    shell.env("PATH", path).env("HOME", place.path("home"));
    shell.env("ANTHROPIC_BASE_URL", format!("http://{address}")).stdin(std::process::Stdio::null());
    let said = shell.output().unwrap();
    served.join().unwrap();
    (said.status.code(), String::from_utf8([said.stdout, said.stderr].concat()).unwrap())
}

/// A home with a repository of its person's own.
fn home() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("home")).unwrap();
    place.write("repo/main.c", "int main() {}\n");
    place.git(&["add", "."]);
    place.git(&["commit", "--quiet", "-m", "Begin"]);
    std::fs::rename(place.path("repo"), place.path("home/my-project")).unwrap();
    place
}

/// > D20: What the README says to install works, and so does its example in somebody's own repository
#[test]
fn the_readme_can_be_typed() {
    let readme = page("README.md");
    let commands = blocks(&readme[readme.find("## Install").unwrap()..], "");
    assert_eq!(commands[0], "cargo install --locked --path crates/cli\n");
    let manifest = page("crates/cli/Cargo.toml");
    assert!(manifest.contains("[package]\nname = \"midturn\"\n"), "what is installed is called so");
    let place = home();
    let (status, told) = typed(&place, &root(), &commands[1], 0);
    assert_eq!(status, Some(0), "{told}");
    for expected in ["agents can work here", "worker: finished", "lead: finished", "midturn.toml: written"] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let (status, told) = typed(&place, &place.path("home/my-project"), &commands[2], 1);
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("Answered.\n"), "{told}");
}

/// The commands of docs/run.md that begin a run.
#[test]
fn the_runs_of_the_page_can_be_typed() {
    let place = home();
    let project = place.path("home/my-project");
    std::fs::copy(root().join("scenarios/demo.yaml"), project.join("FILE.yaml")).unwrap();
    place.write("home/my-project/task.md", "Say something.\n");
    place.write("home/.config/midturn/midturn.toml", "model = \"sonnet\"\n");
    let page = page("docs/run.md");
    let commands: Vec<String> =
        blocks(&page, "").into_iter().filter(|block| block.contains("midturn run ")).collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    for block in commands {
        let real = block.lines().filter(|line| line.contains("midturn run") && !line.contains("scripted:"));
        let export = "export ANTHROPIC_API_KEY=…\n";
        let (status, told) = typed(&place, &project, &format!("{export}{block}"), real.count());
        assert_eq!(status, Some(0), "{block}\n{told}");
    }
}

/// > D20: `init` writes a commented `midturn.toml`
#[test]
fn init_writes_a_commented_file_that_config_accepts_whole() {
    for (words, file, whose) in [
        (&["init"][..], "repo/midturn.toml", "project"),
        (&["init", "--user"], "config/midturn/midturn.toml", "own"),
    ] {
        let place = Place::new();
        let said = place.midturn("repo", words).output().unwrap();
        let told = String::from_utf8(said.stdout).unwrap();
        assert!(
            said.status.success() && told.contains(&format!("{}: written", place.path(file).display())),
            "{told}"
        );
        let text = std::fs::read_to_string(place.path(file)).unwrap();
        assert!(text.lines().all(|line| line.is_empty() || line.starts_with('#')), "{text}");
        assert_eq!(text.contains("terminal.mouse") && text.contains("retry.base"), whose == "own", "{text}");
        let config = || place.midturn("repo", &["config", "--json"]).output().unwrap();
        assert!(config().status.success());
        // Each key that is there can be taken: with the sign of the comment away the file still holds.
        let is_key = |line: &&str| line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
        let keys: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_key).collect();
        std::fs::write(place.path(file), keys.join("\n")).unwrap();
        let said = config();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let shown: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!(shown["notes"], serde_json::json!([]), "a project's file has nothing that isn't taken");
        let values = shown["values"].as_object().unwrap();
        let missing: Vec<_> =
            values.iter().filter(|(_, entry)| entry["from"]["layer"] == "default").collect();
        if whose == "own" {
            let of_others = |key: &str| key.starts_with("providers.");
            assert!(missing.iter().all(|(key, _)| of_others(key)), "{missing:?}");
        }
        // What is there is nobody's to write over.
        let again = place.midturn("repo", words).output().unwrap();
        assert_eq!(again.status.code(), Some(2));
        assert!(String::from_utf8(again.stderr).unwrap().contains("is there already; nothing was changed"));
        assert_eq!(std::fs::read_to_string(place.path(file)).unwrap(), keys.join("\n"));
    }
}

/// > D20: `schema config` prints the schema of that file
#[test]
fn the_schema_of_the_configuration_has_every_key() {
    let place = Place::new();
    let print = |words: &[&str]| {
        let said = place.midturn("repo", words).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        serde_json::from_slice::<serde_json::Value>(&said.stdout).unwrap()
    };
    let schema = print(&["schema", "config"]);
    assert_eq!(schema["additionalProperties"], false);
    for key in print(&["config", "--json"])["values"].as_object().unwrap().keys() {
        let mut at = &schema;
        for segment in key.split('.') {
            if let Some(name) = at["$ref"].as_str() {
                at = schema.pointer(name.trim_start_matches('#')).unwrap();
            }
            let all = at["anyOf"].as_array().and_then(|all| all.iter().find_map(|one| one["$ref"].as_str()));
            at = all.map_or(at, |name| schema.pointer(name.trim_start_matches('#')).unwrap());
            let free = &at["additionalProperties"];
            at = at["properties"].get(segment).unwrap_or(free);
            assert!(at.is_object(), "{key}: {segment}");
        }
    }
    let description = schema["properties"]["sandbox"]["properties"]["memory"]["description"].as_str();
    assert!(description.is_some_and(|text| text.starts_with("its memory")), "{description:?}");
    assert_eq!(schema["properties"]["sandbox"]["properties"]["tier"]["enum"][2], "bubblewrap");
}

/// What is wrong with a value by a schema, as far as ours go: types, words, keys, and what one of several allows.
fn wrong(schema: &Value, root: &Value, value: &Value, at: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let meant = root.pointer(name.trim_start_matches('#')).unwrap();
        return wrong(meant, root, value, at);
    }
    let is = |kind: &Value| match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        kind => panic!("{at}: a schema of a kind that this test doesn't know: {kind}"),
    };
    let is_its_kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(is),
        Value::Null => true,
        kind => is(kind),
    };
    let is_its_word = schema["enum"].as_array().is_none_or(|words| words.contains(value));
    if !is_its_kind || !is_its_word {
        return Some(format!("{at}: {value}"));
    }
    for several in ["anyOf", "oneOf"] {
        let is_one = |all: &Vec<Value>| all.iter().any(|one| wrong(one, root, value, at).is_none());
        if schema[several].as_array().is_some_and(|all| !is_one(all)) {
            return Some(format!("{at}: {value}"));
        }
    }
    let all = schema["allOf"].as_array().into_iter().flatten();
    let items = value.as_array().into_iter().flatten();
    let inside = all.map(|one| wrong(one, root, value, at));
    let items = items.map(|item| schema.get("items").and_then(|of| wrong(of, root, item, at)));
    let keys = value.as_object().into_iter().flatten().map(|(key, value)| {
        let at = format!("{at}.{key}");
        match schema["properties"].get(key).or(schema.get("additionalProperties")) {
            Some(Value::Bool(false)) => Some(format!("{at}: no such key")),
            Some(Value::Bool(true)) | None => None,
            Some(of) => wrong(of, root, value, &at),
        }
    });
    inside.chain(items).chain(keys).flatten().next()
}

/// The same as a file has it: what is no table is written alike in both languages.
fn lines(value: &Value, key: &str) -> String {
    let Some(table) = value.as_object() else { return format!("{} = {value}\n", &key[1..]) };
    table.iter().map(|(name, value)| lines(value, &format!("{key}.{name:?}"))).collect()
}

/// A file that `midturn config` takes is one by the schema, and one with a slip is none.
#[test]
fn the_schema_of_the_configuration_holds_a_real_file() {
    let place = Place::new();
    let said = place.midturn("repo", &["schema", "config"]).output().unwrap();
    let schema: Value = serde_json::from_slice(&said.stdout).unwrap();
    let file = json!({
        "model": "anthropic/m", "max_turns": 40, "max_cost": "2.50", "session": {"max_cost": "9"}, "undo": {"turns": 7},
        "sandbox": {"tier": "bubblewrap"}, "approvals": {"mode": "ask", "deny": ["bash(git push *)"]},
        "folder": {"setup": "npm ci", "copy": [".env.local"]}, "aliases": {"quick": "anthropic/s"},
        "providers": {"mine": {"base_url": "http://127.0.0.1:1", "dialect": "chat"}},
        "models": {"mine/m": {"input": 3, "output": 15.5}}
    });
    place.write("config/midturn/midturn.toml", &lines(&file, ""));
    let taken = place.midturn("repo", &["config", "--json"]).output().unwrap();
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    assert_eq!(wrong(&schema, &schema, &file, "file"), None);
    for (slip, place) in [
        (json!({"max_turns": "many"}), "file.max_turns: "),
        (json!({"sandbox": {"tier": "bubblwrap"}}), "file.sandbox.tier: "),
        (json!({"folder": {"stup": "npm ci"}}), "file.folder.stup: no such key"),
        (json!({"approvals": {"deny": [1]}}), "file.approvals.deny: "),
    ] {
        let said = wrong(&schema, &schema, &slip, "file");
        assert!(said.as_ref().is_some_and(|said| said.starts_with(place)), "{slip}: {said:?}");
    }
}

/// > D21: An example shows `event` and `never`
#[test]
fn the_scenario_of_the_page_plays() {
    let page = page("docs/scenarios.md");
    let example = blocks(&page, "yaml").into_iter().find(|block| block.starts_with("midturn: 1")).unwrap();
    assert!(example.contains("- event: {event: ") && example.contains("- never: {event: "), "{example}");
    let place = Place::new();
    place.write("repo/example.yaml", &example);
    let said = place.midturn("repo", &["replay", "example.yaml"]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
}

/// > D21: `serve --help` promises nothing that isn't there
#[test]
fn what_help_promises_is_there() {
    let place = Place::new();
    let said = place.midturn("repo", &["--help"]).output().unwrap();
    let help = String::from_utf8(said.stdout).unwrap();
    let names =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"serve") && names.contains(&"init"), "{help}");
    for name in names.iter().filter(|name| **name != "help") {
        let said = place.midturn("repo", &[name, "--help"]).output().unwrap();
        let help = String::from_utf8(said.stdout).unwrap();
        for word in help.split(|c: char| c.is_whitespace() || "`\"'()".contains(c)) {
            let path = word.strip_prefix("scripted:").unwrap_or(word);
            if ["scenarios/", "docs/"].iter().any(|folder| path.starts_with(folder)) {
                assert!(root().join(path).exists(), "{name}: {path}");
            }
        }
        let typed = help
            .split("midturn ")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_ascii_lowercase()).next());
        for command in typed.filter(|word| !word.is_empty()) {
            assert!(names.contains(&command), "`{name} --help` names `midturn {command}`");
        }
    }
}

/// > D21: Each key stands once in `configuration.md`, and instruction files, proxies and piped input are documented
#[test]
fn each_key_stands_once_and_what_surrounds_them_is_documented() {
    let configuration = page("docs/configuration.md");
    // Rows of three cells and more; those of two say who may loosen.
    let rows = configuration.lines().filter(|line| line.matches('|').count() > 3);
    let mut keys: Vec<&str> =
        rows.filter_map(|line| line.strip_prefix("| `")?.split_once("` |")).map(|(key, _)| key).collect();
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert!(count >= 80 && keys.len() == count, "{count} rows, {} keys", keys.len());
    let run = page("docs/run.md");
    for (page, words) in [
        (
            &run,
            &[
                "`AGENTS.md`",
                "`CLAUDE.md`",
                "HTTPS_PROXY",
                "NO_PROXY",
                "midturn run @task.md",
                "disallowedTools",
            ][..],
        ),
        (&configuration, &["HTTPS_PROXY", "midturn init", "midturn schema config"]),
    ] {
        for word in words {
            assert!(page.contains(word), "{word}");
        }
    }
}
