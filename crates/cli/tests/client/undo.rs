//! `midturn undo`, as a person types it.

use super::common::{Place, Running};

const SCENARIO: &str = "midturn: 1\nname: test\nagents:\n  - name: lead\n    role: lead\n    model:\n      - text: First.\n        \
     tools: [{id: a, name: bash, input: {command: echo lead > a.txt; echo lead > b.txt}}]\n      - text: Second.\n        \
     tools: [{id: b, name: write, input: {path: a.txt, content: again}}]\n      - text: Done.\n";

fn say(place: &Place, words: &[&str]) -> (Option<i32>, String) {
    let said = place.midturn("repo", words).output().unwrap();
    (said.status.code(), String::from_utf8([said.stdout, said.stderr].concat()).unwrap())
}

fn read(place: &Place, file: &str) -> String {
    std::fs::read_to_string(place.path("repo").join(file)).unwrap_or_else(|_| "gone".to_owned())
}

/// The point 4: turn by turn, and what a person changed since stays and is named.
#[test]
fn what_the_lead_changed_is_undone_turn_by_turn() {
    let place = Place::new();
    place.write("repo/a.txt", "mine\n");
    Running::start(&place, SCENARIO, &[]).end();
    assert_eq!((read(&place, "a.txt"), read(&place, "b.txt")), ("again".to_owned(), "lead\n".to_owned()));
    let (status, out) = say(&place, &["undo", "--list"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((status, lines.len()), (Some(0), 2), "{out}");
    assert!(lines[0].starts_with("lead, run 1 turn 2, ") && lines[0].ends_with(", 1 file"), "{out}");
    assert!(lines[1].starts_with("lead, run 1 turn 1, ") && lines[1].ends_with(", 2 files"), "{out}");

    let (status, out) = say(&place, &["undo", "--dry-run"]);
    assert_eq!(
        (status, out.contains("would undo lead, run 1 turn 2"), read(&place, "a.txt")),
        (Some(0), true, "again".to_owned())
    );
    let (status, out) = say(&place, &["undo"]);
    assert_eq!(
        (status, out.contains("  restored  a.txt\n"), read(&place, "a.txt")),
        (Some(0), true, "lead\n".to_owned()),
        "{out}"
    );

    place.write("repo/b.txt", "mine since\n");
    let (status, out) = say(&place, &["undo", "9"]);
    assert!(
        out.contains("  kept      b.txt: it was changed since\n") && out.contains("  restored  a.txt\n"),
        "{out}"
    );
    assert_eq!(
        (status, read(&place, "a.txt"), read(&place, "b.txt")),
        (Some(0), "mine\n".to_owned(), "mine since\n".to_owned())
    );

    let (status, out) = say(&place, &["undo"]);
    assert_eq!((status, out.contains("there is nothing to undo in session")), (Some(1), true), "{out}");
}

#[test]
fn nothing_is_kept_where_a_person_says_so_and_a_repository_cannot() {
    for (of_person, kept) in [(&["--set", "undo.turns=0"][..], false), (&[], true)] {
        let place = Place::new();
        place.write("repo/midturn.toml", "[undo]\nturns = 0\n");
        Running::start(&place, SCENARIO, of_person).end();
        let (status, out) = say(&place, &["undo"]);
        assert_eq!(status, Some(i32::from(!kept)), "{out}");
    }
}

#[test]
fn in_the_middle_of_a_turn_it_says_so_and_changes_nothing() {
    let place = Place::new();
    assert!(std::process::Command::new("mkfifo").arg(place.path("repo/go")).status().unwrap().success());
    let mut run =
        Running::start(&place, &SCENARIO.replace("echo lead > a.txt;", "echo lead > a.txt; cat go;"), &[]);
    run.until("tool_started", &[]);
    // Once it reads, it has written.
    let go = std::fs::File::options().write(true).open(place.path("repo/go")).unwrap();
    let (status, out) = say(&place, &["undo"]);
    assert_eq!((status, out.contains("an agent is in the middle of a turn")), (Some(1), true), "{out}");
    assert_eq!(read(&place, "a.txt"), "lead\n");
    drop(go);
    run.end();
    assert_eq!(say(&place, &["undo"]).0, Some(0));
}
