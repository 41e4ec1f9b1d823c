//! The process that holds a project is stopped by Ctrl-Z: whoever needs it is told so, and what is kept is
//! read beside it.

use std::process::Stdio;

use super::common::{Place, Running};
use super::remote::{bash, lead};

/// A run that is stopped in the middle of a call, and its process.
fn suspended(place: &Place) -> (Running, String) {
    let scenario =
        lead(&format!("      - text: Well.\n        tools:\n{}      - text: Done.\n", bash("b", "cat go")));
    assert!(std::process::Command::new("mkfifo").arg(place.path("repo/go")).status().unwrap().success());
    let mut run = Running::start(place, &scenario, &["--no-sandbox"]);
    run.until("tool_started", &[("tool", "b")]);
    run.signal("STOP");
    let pid = run.pid().to_string();
    // The signal is on its way: a process that doesn't stop would never be called suspended.
    let state = || std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    while !state().contains("State:\tT") {
        std::thread::yield_now();
    }
    (run, pid)
}

fn say(place: &Place, words: &[&str]) -> (Option<i32>, String, String) {
    let said = place.midturn("repo", words).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (said.status.code(), text(said.stdout), text(said.stderr))
}

/// > D6: What needs a suspended holder says within seconds that it is suspended
#[test]
fn whoever_needs_a_suspended_holder_is_told_and_it_goes_on_as_if_nobody_had_asked() {
    let place = Place::new();
    let (run, pid) = suspended(&place);
    for words in [
        &["ps"][..],
        &["send", "lead", "hello"],
        &["stop", "lead"],
        &["watch"],
        &["limit", "lead", "--max-turns", "9"],
        &["resume", "last"],
        &["run", "another task", "--no-sandbox", "--model", "scripted:../scenario.yaml"],
    ] {
        let (status, _, told) = say(&place, words);
        assert_eq!(status, Some(1), "{words:?}: {told}");
        let expected = format!(
            "is suspended (process {pid}): `fg` in its terminal, or `kill -CONT {pid}`, lets it go on"
        );
        assert!(told.contains(&expected), "{words:?}: {told}");
    }
    run.signal("CONT");
    std::fs::write(place.path("repo/go"), "").unwrap();
    let ended = run.end();
    assert_eq!(ended.status, Some(0), "{}", ended.told);
    // Nothing of what was refused is done later.
    assert!(!ended.told.contains("hello") && !ended.told.contains("stop"), "{}", ended.told);
}

/// > D6: `sessions`, `log` and `diff` read the store beside a suspended holder
#[test]
fn what_is_kept_is_read_beside_a_suspended_holder() {
    let place = Place::new();
    place.git(&["commit", "--quiet", "--allow-empty", "--message", "begin"]);
    let (run, pid) = suspended(&place);
    place.write("repo/new", "by hand\n");
    let (status, out, told) = say(&place, &["sessions"]);
    assert_eq!(status, Some(0), "{told}");
    assert!(out.contains("running (1 at work)  the task"), "{out}");
    assert!(told.contains(&format!("is suspended (process {pid})")), "{told}");
    for (words, expected) in [
        (&["log", "last"][..], "lead: bash cat go"),
        (&["show", "lead"], "command: cat go"),
        (&["diff", "lead"], "+by hand"),
    ] {
        let (status, out, told) = say(&place, words);
        assert_eq!((status, told.as_str()), (Some(0), ""), "{words:?}");
        assert!(out.contains(expected), "{words:?}: {out}");
    }
    run.signal("CONT");
    std::fs::write(place.path("repo/go"), "").unwrap();
    assert_eq!(run.end().status, Some(0));
}
