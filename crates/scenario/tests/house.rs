//! The scenarios of the house, played whole: all hold, and twice they give the same bytes.

#![allow(clippy::unwrap_used, reason = "a test's own helpers may panic")]

use std::path::PathBuf;

use midturn_scenario::{Exit, Options, replay};

/// The folders with simulated tools: real ones are played where the crates are joined.
fn folders() -> Vec<PathBuf> {
    let scenarios = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let folders = std::fs::read_dir(scenarios).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir() && !path.ends_with("real")).collect();
    folders.sort();
    folders
}

fn played(options: &Options<'_>) -> (Exit, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = replay(&folders(), options, &mut out, &mut err).unwrap();
    (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn every_scenario_holds() {
    let (exit, out, _) = played(&Options::default());
    let wrong: Vec<&str> = out.lines().filter(|line| !line.starts_with("ok ")).collect();
    assert_eq!(exit, Exit::Holds, "{}", wrong.join("\n"));
    let last = out.lines().last().unwrap();
    assert!(last.ends_with(" passed, 0 failed"), "{last}");
}

#[test]
fn played_twice_they_give_the_same_bytes() {
    let options = Options { json: true, ..Options::default() };
    let (first, second) = (played(&options), played(&options));
    assert!(first.1.lines().all(|line| line.starts_with("{\"v\":1,\"seq\":")));
    assert_eq!(first.1, second.1);
}
