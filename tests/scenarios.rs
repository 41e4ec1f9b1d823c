//! Every scenario is played by the real binary, and holds.

#![expect(clippy::unwrap_used, reason = "a test that can't read its files fails")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use midturn_tests::{binary, root};
use serde_json::Value;

/// What `midturn replay --json` gives for these paths, relative to the root of the checkout.
fn replay(paths: &[&str]) -> Output {
    Command::new(binary()).current_dir(root()).args(["replay", "--json"]).args(paths).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All scenario files below a folder of `scenarios/`. A workspace that a scenario brings along
/// holds the files its agents work on.
fn files(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml") {
            found.insert(path.strip_prefix(root()).unwrap().to_owned());
        }
    }
}

#[test]
fn every_scenario_file_is_played_and_holds() {
    let mut expected = BTreeSet::new();
    files(&root().join("scenarios"), &mut expected);
    let output = replay(&["scenarios"]);
    assert!(output.status.success(), "{}", said(&output));
    let lines = String::from_utf8(output.stdout.clone()).unwrap();
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let played: Vec<PathBuf> = events
        .filter(|event| event["type"] == "session_started")
        .map(|event| event["scenario"].as_str().unwrap().into())
        .collect();
    assert!(expected.len() >= 30, "{} scenarios", expected.len());
    assert_eq!(played.len(), expected.len(), "each file is played once");
    assert_eq!(played.into_iter().collect::<BTreeSet<_>>(), expected);
    let closing = format!("{} passed, 0 failed", expected.len());
    assert_eq!(said(&output).lines().last(), Some(closing.as_str()));
}

#[test]
fn the_simulated_scenarios_give_the_same_bytes_twice() {
    let mut folders: Vec<String> = std::fs::read_dir(root().join("scenarios"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "real")
        .map(|name| format!("scenarios/{name}"))
        .collect();
    folders.sort();
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let (first, second) = (replay(&folders), replay(&folders));
    assert!(first.status.success(), "{}", said(&first));
    assert!(!first.stdout.is_empty());
    assert!(first.stdout == second.stdout, "two replays differ");
}
