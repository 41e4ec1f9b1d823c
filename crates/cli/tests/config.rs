//! Configuration as a person meets it: the real binary, files, variables, flags and refusals.

mod common;

use common::Place;

#[test]
fn each_value_is_shown_with_the_layer_it_came_from() {
    let place = Place::new();
    place.write(
        "config/midturn/midturn.toml",
        "max_turns = 1\nmax_tokens = 200\nmax_depth = 300\non_error = \"return\"\n",
    );
    place.write(
        "repo/midturn.toml",
        "# the project's\n[settings]\nmax_tokens = 20\nmax_depth = 30\nmax_agents = 40\nmax_turns = 2\n",
    );
    place.write("repo/sub/midturn.toml", "max_depth = 3\n");
    let said = place
        .midturn("repo/sub", &["config", "--json", "--set", "max_agents=400", "--model", "haiku"])
        .env("MIDTURN_RETRY_ATTEMPTS", "2")
        .env("ANTHROPIC_API_KEY", "sk-hidden")
        .output()
        .unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    assert_eq!((said.status.code(), text.contains("sk-hidden")), (Some(0), false));
    let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (key, value, layer, place) in [
        ("max_turns", "1", "file", "config/midturn/midturn.toml"),
        ("max_tokens", "20", "file", "repo/midturn.toml"),
        ("max_depth", "3", "file", "sub/midturn.toml"),
        ("max_agents", "400", "flag", "--set"),
        ("retry.attempts", "2", "environment", "MIDTURN_RETRY_ATTEMPTS"),
        ("model", "\"haiku\"", "flag", "--model"),
        ("concurrency", "\"safe\"", "default", ""),
    ] {
        let entry = &shown["values"][key];
        assert_eq!(entry["value"].to_string(), value, "{key}");
        assert_eq!(entry["from"]["layer"], layer, "{key}");
        assert!(entry["from"].to_string().contains(place), "{entry}");
    }
    assert_eq!(shown["values"]["max_tokens"]["from"]["line"], 3);
    assert_eq!(shown["keys_set"]["ANTHROPIC_API_KEY"], true);
}

#[test]
fn an_unknown_key_stops_every_command_with_its_place_and_the_nearest_name() {
    for command in [&["config"][..], &["run", "x"]] {
        let place = Place::new();
        place.write("repo/midturn.toml", "model = \"haiku\"\n[retry]\nattempt = 3\n");
        let said = place.midturn("repo", command).output().unwrap();
        let error = String::from_utf8(said.stderr).unwrap();
        assert_eq!((said.status.code(), said.stdout.is_empty()), (Some(2), true), "{error}");
        let expected =
            "midturn.toml:3:1: unknown key `retry.attempt`; the nearest known name is `retry.attempts`\n";
        assert!(error.ends_with(expected), "{error}");
    }
}

#[test]
fn bad_usage_is_status_2_and_says_so_on_standard_error() {
    for (arguments, expected) in [
        (&[][..], "Usage: midturn"),
        (&["rum"], "unrecognized subcommand"),
        (&["run"], "the task is empty"),
        (&["run", "--steer-stdin"], "the task is missing: with --steer-stdin"),
        (&["replay", "--view", "a", "b"], "give one file"),
        (&["replay", "--view", "."], "is a folder"),
        (&["replay", "--view", "a", "--json"], "cannot be used with"),
        (&["run", " ", "--model", "haiku"], "the task is empty"),
        (&["run", "\u{200b}", "--model", "haiku"], "the task is empty"),
        (&["run", "x"], "no model is configured"),
        (&["run", "x", "--cwd", "nowhere"], "the working folder nowhere"),
        (&["replay"], "<PATH>"),
        (&["completions", "csh"], "invalid value"),
        (&["schema", "colours"], "invalid value"),
        (&["config", "--set", "max_turns"], "expected KEY=VALUE"),
    ] {
        let said = Place::new().midturn("repo", arguments).output().unwrap();
        let error = String::from_utf8(said.stderr).unwrap();
        assert_eq!((said.status.code(), said.stdout.is_empty()), (Some(2), true), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn completions_and_schemas_are_printed() {
    for (arguments, expected) in [
        (&["completions", "bash"][..], "_midturn()"),
        (&["completions", "zsh"], "#compdef midturn"),
        (&["completions", "fish"], "complete -c midturn"),
        (&["schema", "scenario"], "\"$schema\""),
        (&["schema", "config"], "\"$schema\""),
    ] {
        let said = Place::new().midturn("repo", arguments).output().unwrap();
        let text = String::from_utf8(said.stdout).unwrap();
        assert_eq!(said.status.code(), Some(0));
        assert!(text.contains(expected) && !text.contains("__supervise"), "{arguments:?}");
    }
}
