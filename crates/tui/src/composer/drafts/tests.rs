//! Drafts of terminals that live, that are gone, and of two that come at once.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Barrier;

use tempfile::TempDir;

use super::*;

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

fn folder() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("drafts/session");
    (dir, path)
}

fn open(path: &Path) -> Opened {
    Drafts::open(path).unwrap()
}

fn saved(texts: &[&str]) -> Saved {
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    Saved { drafts: vec![SavedDraft { agent: name("lead"), texts, cursor: (0, 0) }], ..Saved::default() }
}

fn files(path: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn what_a_terminal_left_is_taken_over_once() {
    let (_dir, path) = folder();
    let mut first = open(&path);
    assert_eq!(first.saved, Saved::default());
    let left = Saved { history: vec!["sent".into()], ..saved(&["one", "two"]) };
    assert_eq!(first.drafts.save(&left).unwrap(), 0);
    drop(first);
    let second = open(&path);
    assert_eq!(second.saved, left);
    let third = open(&path);
    assert_eq!(third.saved, Saved::default());
    drop(second);
    assert_eq!(open(&path).saved, left, "it was saved as it was taken over");
}

#[test]
fn of_two_that_come_at_once_one_takes_a_file_over() {
    for _ in 0..30 {
        let (_dir, path) = folder();
        drop(open(&path));
        let text = serde_json::to_string(&saved(&["mine"])).unwrap();
        std::fs::write(path.join("killed.json"), text).unwrap();
        let together = Barrier::new(2);
        let come = || {
            together.wait();
            open(&path)
        };
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(come);
            (come(), other.join().unwrap())
        });
        let found = [one.saved, other.saved];
        assert_eq!(found.iter().filter(|found| **found == saved(&["mine"])).count(), 1, "{found:?}");
        assert_eq!(found.iter().filter(|found| **found == Saved::default()).count(), 1, "{found:?}");
    }
}

#[test]
fn terminals_that_live_keep_their_files_and_those_of_the_gone_are_stacked() {
    let (_dir, path) = folder();
    let (mut one, mut other) = (open(&path), open(&path));
    one.drafts.save(&saved(&["one"])).unwrap();
    other.drafts.save(&saved(&["other", "one"])).unwrap();
    assert_eq!(open(&path).saved, Saved::default());
    one.drafts.save(&saved(&["one", "more"])).unwrap();
    drop((one, other));
    // `one` is in both, as after a crash amid a take-over.
    assert_eq!(open(&path).saved, saved(&["one", "more", "other"]));
}

#[test]
fn a_terminal_that_left_nothing_leaves_no_files() {
    let (_dir, path) = folder();
    drop(open(&path));
    drop(open(&path));
    let living = open(&path);
    assert_eq!(files(&path), [path.join(lock_file(&living.drafts.name))]);
}

#[test]
fn only_the_user_reads_them() {
    let (_dir, path) = folder();
    std::fs::create_dir_all(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut opened = open(&path);
    opened.drafts.save(&saved(&["secret"])).unwrap();
    assert_eq!(mode(&path), 0o700);
    let files = files(&path);
    assert_eq!(files.len(), 2);
    files.iter().for_each(|file| assert_eq!(mode(file), 0o600, "{file:?}"));
}

#[test]
fn a_damaged_file_is_put_aside_and_named() {
    let long = format!(
        r#"{{"drafts":[{{"agent":"a","texts":["{}"],"cursor":[0,0]}}],"history":[]}}"#,
        "x".repeat(DRAFT_MAX + 1)
    );
    for text in
        ["", "{", "{}", r#"{"drafts":[{"agent":"A b","texts":[],"cursor":[0,0]}],"history":[]}"#, &long]
    {
        let (_dir, path) = folder();
        drop(open(&path));
        std::fs::write(path.join("x.json"), text).unwrap();
        let opened = open(&path);
        let aside = path.join("x.damaged");
        let note = format!(
            "drafts of another terminal are damaged and were not taken over: look into {}",
            aside.display()
        );
        assert_eq!(opened.notes, [note]);
        assert_eq!(std::fs::read_to_string(aside).unwrap(), text);
        assert_eq!(open(&path).notes, Vec::<String>::new());
    }
}

#[test]
fn links_are_not_followed() {
    let (dir, path) = folder();
    drop(open(&path));
    let elsewhere = dir.path().join("elsewhere.json");
    std::fs::write(&elsewhere, serde_json::to_string(&saved(&["planted"])).unwrap()).unwrap();
    symlink(&elsewhere, path.join("x.json")).unwrap();
    let opened = open(&path);
    assert_eq!((opened.saved, opened.notes.len()), (Saved::default(), 1));
    assert!(elsewhere.exists());
    let link = dir.path().join("link");
    symlink(&path, &link).unwrap();
    let refused = Drafts::open(&link).unwrap_err().to_string();
    assert!(refused.starts_with(&format!("drafts can't be kept in {} (", link.display())), "{refused}");
}

#[test]
fn what_is_too_much_is_counted_and_stays_with_its_file() {
    let (_dir, path) = folder();
    let mut opened = open(&path);
    let longest: Vec<String> = (0..66).map(|n| format!("{n:02}{}", "x".repeat(DRAFT_MAX - 2))).collect();
    let texts: Vec<&str> = longest.iter().map(String::as_str).collect();
    assert_eq!(opened.drafts.save(&saved(&texts)).unwrap(), 2);
    drop(opened);
    std::fs::write(path.join("x.json"), serde_json::to_string(&saved(&["more"])).unwrap()).unwrap();
    let opened = open(&path);
    assert_eq!(opened.saved, saved(&texts[..64]));
    assert_eq!(opened.notes.len(), 1);
    assert!(opened.notes[0].contains("there are too many"), "{:?}", opened.notes);
    assert!(path.join("x.json").exists());
}

#[test]
fn a_save_that_fails_leaves_what_was_saved() {
    let (_dir, path) = folder();
    let mut opened = open(&path);
    opened.drafts.save(&saved(&["first"])).unwrap();
    std::fs::create_dir(path.join(beside(&opened.drafts.name))).unwrap();
    let refused = opened.drafts.save(&saved(&["second"])).unwrap_err().to_string();
    assert!(refused.ends_with("what is typed here is lost if this terminal is killed"), "{refused}");
    drop(opened);
    assert_eq!(open(&path).saved, saved(&["first"]));
}
