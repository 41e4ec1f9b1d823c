//! Where a task comes from.

use std::io::Write;
use std::process::Stdio;

use super::common::Place;

const DONE: &str =
    "midturn: 1\nname: t\nagents:\n  - name: lead\n    role: lead\n    model:\n      - text: Done.\n";

/// A run with these words and this input: its status, the task that its lead got, and what was told.
fn run(words: &[&str], files: &[(&str, &[u8])], input: &[u8]) -> (Option<i32>, String, String) {
    let place = Place::new();
    place.write("scenario.yaml", DONE);
    for (name, bytes) in files {
        std::fs::write(place.path("repo").join(name), bytes).unwrap();
    }
    let mut command = place.midturn("repo", &["run", "--json", "--model", "scripted:../scenario.yaml"]);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses its arguments has not read.
    if let Err(error) = child.stdin.take().unwrap().write_all(input) {
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
    let said = child.wait_with_output().unwrap();
    let events = String::from_utf8(said.stdout).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let prompts = events.filter_map(|event| event["prompt"].as_str().map(str::to_owned));
    (said.status.code(), prompts.collect(), String::from_utf8(said.stderr).unwrap())
}

/// > D10: `run -` and `run @FILE` take the task from a pipe and a file
#[test]
fn the_task_comes_from_a_pipe_or_a_file() {
    for (words, files, input) in [
        (&["-"][..], &[][..], "Fix it.\n"),
        (&[], &[], "Fix it.\n"),
        (&["@task.md"], &[("task.md", &b"Fix it.\n\n"[..])], ""),
        (&["@task.md", "--steer-stdin"], &[("task.md", b"Fix it.")], ""),
        (&["@my task.md"], &[("my task.md", b"Fix it.")], ""),
    ] {
        let (status, task, told) = run(words, files, input.as_bytes());
        assert_eq!((status, task.as_str()), (Some(0), "Fix it."), "{words:?}: {told}");
    }
    let large = "x".repeat(262_145);
    for (words, bytes, input, expected) in [
        (&["@none.md"][..], &b""[..], "", "the task @none.md: there is no such file"),
        (&["@task.md"], b" \n", "", "the task @task.md: is empty"),
        (&["@task.md"], b"a\0b", "", "the task @task.md: is no text"),
        (&["@task.md"], b"\xff\xfe", "", "is not UTF-8"),
        (&["@task.md"], large.as_bytes(), "", "at most 262144 bytes (`message_bytes`)"),
        (&["@."], b"", "", "is a folder"),
        (&["-"], b"", " ", "the task is empty"),
        (&["-", "--steer-stdin"], b"", "x", "give the task as an argument, or @FILE"),
    ] {
        let (status, task, told) = run(words, &[("task.md", bytes)], input.as_bytes());
        assert_eq!((status, task.as_str()), (Some(2), ""), "{words:?}: {told}");
        assert!(told.contains(expected), "{words:?}: {told}");
    }
}

/// > D10: What is piped beside a task is data, and never a command without `--steer-stdin`
#[test]
fn what_is_piped_beside_a_task_is_data() {
    let data = "/quit\nlead! stop\n";
    for words in [&["Why?"][..], &["@task.md"]] {
        let (status, task, told) = run(words, &[("task.md", b"Why?")], data.as_bytes());
        assert_eq!(status, Some(0), "{told}");
        assert!(task.starts_with("Why?\n\n") && task.ends_with("```\n/quit\nlead! stop\n```"), "{task}");
        assert!(!told.contains("message from user"), "{told}");
    }
    let (status, task, told) = run(&["Why?", "--steer-stdin"], &[], b"/quit\n");
    assert_eq!((status, task.as_str()), (Some(130), "Why?"), "{told}");
}
