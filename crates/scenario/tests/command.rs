//! The command as its callers see it: lines, exit statuses, reports.

#![allow(clippy::unwrap_used, reason = "a test's own helpers may panic")]

use std::path::{Path, PathBuf};

use midturn_scenario::{Exit, Options, replay, replay_text};

const GOOD: &str = "midturn: 1\nname: good\nagents:\n  - {name: a, prompt: Go., model: [{text: Done., takes: 1s}]}\n\
                    expect:\n  - {agent: a, outcome: finished}\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    std::fs::create_dir_all(at("b/c")).unwrap();
    std::fs::create_dir_all(at(".hidden")).unwrap();
    std::fs::write(at("z.yaml"), GOOD).unwrap();
    std::fs::write(at("b/c/x.yml"), GOOD.replace("good", "deep")).unwrap();
    std::fs::write(at("b/a.yaml"), GOOD.replace("finished", "stopped").replace("good", "wrong")).unwrap();
    std::fs::write(at("b/notes.txt"), "no scenario").unwrap();
    std::fs::write(at(".hidden/h.yaml"), "no scenario").unwrap();
    folder
}

fn run(paths: &[&Path], options: &Options<'_>) -> (Exit, String, String) {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = replay(&paths, options, &mut out, &mut err).unwrap();
    (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn folders_are_played_sorted_and_the_exit_status_is_that_of_the_worst() {
    let folder = folder();
    let (exit, out, err) = run(&[folder.path()], &Options::default());
    let names: Vec<&str> =
        out.lines().filter_map(|line| line.split(": ").nth(1)).filter(|name| !name.contains(' ')).collect();
    assert_eq!(names, ["wrong", "deep", "good"], "{out}");
    assert!(out.ends_with("2 passed, 1 failed\n") && err.is_empty(), "{out}{err}");
    assert_eq!((exit, exit.code()), (Exit::Fails, 1));
    let missing = folder.path().join("missing.yaml");
    let (exit, out, _) = run(&[&folder.path().join("z.yaml"), &missing], &Options::default());
    assert_eq!((exit, exit.code()), (Exit::Unreadable, 2), "{out}");
    let (exit, out, _) = run(&[&folder.path().join("z.yaml")], &Options::default());
    assert_eq!((exit, exit.code()), (Exit::Holds, 0), "{out}");
    assert!(out.ends_with(": good\n1 passed, 0 failed\n"), "{out}");
}

#[test]
fn a_folder_without_scenarios_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (exit, out, _) = run(&[folder.path()], &Options::default());
    assert_eq!(exit, Exit::Unreadable);
    assert!(out.contains("no scenario files"), "{out}");
}

#[test]
fn with_json_the_output_is_events_and_nothing_else() {
    let folder = folder();
    let (exit, out, err) = run(&[folder.path()], &Options { json: true, ..Options::default() });
    assert_eq!(exit, Exit::Fails);
    assert!(err.ends_with("2 passed, 1 failed\n"), "{err}");
    let events: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let begins = events.iter().filter(|event| event["type"] == "session_started").count();
    assert_eq!(begins, 3);
    assert!(events[0]["scenario"].as_str().unwrap().ends_with("b/a.yaml"));
    assert!(out.contains("\"t\":1.0,"), "{out}");
}

#[test]
fn a_junit_report_is_written() {
    let folder = folder();
    let junit = folder.path().join("report.xml");
    run(&[folder.path()], &Options { junit: Some(junit.clone()), ..Options::default() });
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"0\""), "{xml}");
    assert!(xml.contains("expected: a run 1: outcome stopped"), "{xml}");
}

#[test]
fn a_shift_checks_nothing_and_tells_what_changed() {
    let folder = folder();
    let path = folder.path().join("z.yaml");
    let text =
        format!("{GOOD}  - {{agent: a, outcome: stopped}}\nmessages:\n  - {{id: s, at: 2s, stop: a}}\n");
    std::fs::write(&path, text).unwrap();
    let shift = vec!["s=-1.5s".parse().unwrap()];
    let (exit, out, _) = run(&[&path], &Options { shift, ..Options::default() });
    assert_eq!(exit, Exit::Holds, "{out}");
    assert!(out.contains("  a: run 1: finished at 1.0 s -> stopped at 0.5 s\n"), "{out}");
    let shift = vec!["t=-1s".parse().unwrap()];
    let (exit, out, _) = run(&[&path], &Options { shift, ..Options::default() });
    assert_eq!(exit, Exit::Unreadable, "{out}");
}

#[test]
fn a_text_gives_its_events_and_they_are_the_same_each_time() {
    let events = replay_text(GOOD).unwrap();
    assert_eq!(events, replay_text(GOOD).unwrap());
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        [
            "session_started",
            "agent_spawned",
            "run_started",
            "model_started",
            "model_finished",
            "run_finished"
        ]
    );
    assert!(replay_text("midturn: 2").is_err());
}
