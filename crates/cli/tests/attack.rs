//! `midturn doctor --attack` as a person runs it: the real binary, in every sandbox that this machine has.

#![allow(clippy::unwrap_used, reason = "a test that can't go on panics")]

mod common;
#[path = "../../../tests/needs.rs"]
mod needs;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use common::Place;
use needs::{Need, has};
use serde_json::Value;

/// Small limits, so that nobody else misses what is taken.
const SMALL: [&str; 6] = [
    "--set",
    "sandbox.memory=268435456",
    "--set",
    "sandbox.processes=64",
    "--set",
    "sandbox.file_size=16777216",
];

/// What a person has that no command is to see.
fn furnished() -> Place {
    let place = Place::new();
    for file in ["home/.ssh/id_ed25519", "home/.aws/credentials", "state/midturn/kept"] {
        place.write(file, "canary\n");
    }
    place.write("config/midturn/midturn.toml", "# mine\n");
    std::fs::set_permissions(
        place.path("state/midturn"),
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .unwrap();
    place
}

/// What the table says, line by line: what was tried, how that is, and what was met.
struct Table {
    status: Option<i32>,
    text: String,
    rows: BTreeMap<String, (String, String)>,
}

fn attacked(mut command: Command) -> Table {
    let said = command.output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    let told = String::from_utf8_lossy(&said.stderr);
    let shown: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{told}"));
    let word = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    let row = |finding: &Value| (word(finding, "about"), (word(finding, "state"), word(finding, "found")));
    let rows: BTreeMap<_, _> = shown["findings"].as_array().unwrap().iter().map(row).collect();
    assert_eq!(shown["ok"], said.status.success(), "{text}");
    Table { status: said.status.code(), text, rows }
}

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["doctor", "--attack", "--json"][..], &SMALL, more].concat()
}

/// What is left in a folder of ours or of the system's.
fn traces(folder: &Path) -> Vec<String> {
    let names =
        folder.read_dir().unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("midturn-attack")).collect()
}

/// Whoever is root in there, and may make no namespaces of its own.
fn without_namespaces(place: &Place, words: &[&str]) -> Option<Command> {
    let can = |words: &[&str]| {
        Command::new(words[0]).args(&words[1..]).output().is_ok_and(|end| end.status.success())
    };
    if !can(&["unshare", "-Ur", "setpriv", "--bounding-set", "-all", "true"]) {
        return None;
    }
    place.write(
        "alone.sh",
        "exec unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --bounding-set -all \"$@\"' sh \"$@\"\n",
    );
    let mut command = place.shell("repo", place.path("alone.sh").to_str().unwrap());
    command.arg(env!("CARGO_BIN_EXE_midturn")).args(words);
    Some(command)
}

fn is_as_promised(place: &Place, table: &Table, kind: &str) {
    let Table { status, text, rows } = table;
    assert!(rows["sandbox"].1.starts_with(kind), "{text}");
    assert!(*status == Some(0) && rows.values().all(|(state, _)| state != "broken"), "{text}");
    // What is weak wasn't promised, or couldn't be tried.
    for (what, (state, found)) in rows.iter().filter(|(what, _)| *what != "sandbox") {
        let unpromised = ["see other processes: this one", "have any number of processes"].contains(&&**what);
        assert!(state == "ok" || unpromised || found.starts_with("not tried: "), "{what}: {found}");
        assert_ne!(found, "there is none here", "{what}");
    }
    // A machine that is busy may keep some from their time, and not most of them.
    let untried = rows.values().filter(|(_, found)| found.starts_with("not tried: ")).count();
    assert!(untried < 10, "{text}");
    assert_eq!(traces(&place.path("home")), [""; 0]);
}

#[test]
fn with_namespaces_an_attack_meets_what_is_promised() {
    let place = furnished();
    let table = attacked(place.midturn("repo", &words(&["--set", "sandbox.tier=landlock"])));
    is_as_promised(&place, &table, "Landlock");
}

#[test]
fn in_bubblewrap_an_attack_meets_what_is_promised() {
    let place = furnished();
    let table = attacked(place.midturn("repo", &words(&["--set", "sandbox.tier=bubblewrap"])));
    if !has(Need::Bubblewrap, table.rows["sandbox"].0 != "missing") {
        assert_eq!(table.status, Some(1), "{}", table.text);
        return;
    }
    is_as_promised(&place, &table, "bubblewrap");
}

#[test]
fn by_landlock_alone_an_attack_meets_what_is_promised() {
    let place = furnished();
    let command = without_namespaces(&place, &words(&[]));
    if !has(Need::Setpriv, command.is_some()) {
        return;
    }
    let command = command.unwrap();
    let table = attacked(command);
    is_as_promised(&place, &table, "Landlock, no namespaces");
    assert_eq!(table.rows["make a git hook in the project"].1, "taken back after the command");
}

#[test]
fn without_a_sandbox_it_says_what_can_be_done_and_leaves_nothing() {
    let place = furnished();
    let table = attacked(place.midturn("repo", &words(&["--no-sandbox"])));
    let Table { status, text, rows } = &table;
    assert_eq!(*status, Some(0), "{text}");
    assert_eq!(rows["sandbox"], ("weak".to_owned(), "none: commands can do all that you can".to_owned()));
    for what in ["write in your home", "look into ~/.ssh", "make a git hook in the project"] {
        assert_eq!(rows[what], ("weak".to_owned(), "can".to_owned()), "{what}");
    }
    // Limits hold all the same.
    for what in ["leave a process running", "write a file of any size"] {
        assert_eq!(rows[what].0, "ok", "{what}: {text}");
    }
    for folder in [&*place.path("home"), Path::new("/etc"), Path::new("/usr"), Path::new("/dev/shm")] {
        assert_eq!(traces(folder), [""; 0], "{}", folder.display());
    }
}

/// A weakness that is planted is found, and the status says so.
#[test]
fn what_is_not_as_promised_is_marked_and_the_status_says_so() {
    let place = furnished();
    let home = format!("sandbox.writable=[\"{}\"]", place.path("home").display());
    let table = attacked(place.midturn("repo", &words(&["--set", &home])));
    assert_eq!(table.status, Some(1), "{}", table.text);
    assert_eq!(table.rows["write in your home"], ("broken".to_owned(), "can".to_owned()));
    assert_eq!(table.rows["write in /etc"].0, "ok", "{}", table.text);
    assert_eq!(traces(&place.path("home")), [""; 0]);

    let without_json: Vec<&str> =
        words(&["--set", &home]).into_iter().filter(|word| *word != "--json").collect();
    let said = place.midturn("repo", &without_json).output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(text.contains("\nbroken  write in your home "), "{text}");
    assert!(text.trim_end().ends_with("not as docs/security.md says for this sandbox"), "{text}");
}

#[test]
fn an_attack_and_a_question_about_rules_are_two_things() {
    let said = Place::new().midturn("repo", &["doctor", "--attack", "--rules", "ls"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
}
