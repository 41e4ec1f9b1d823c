//! What some tests need that not every machine has, and what becomes of them without it: they don't
//! run, and the last line that their program says is how many those were, and why.
//!
//! `MIDTURN_TESTS_NEED=postgresql,python3` makes it a failure where one of these is missing; `.ci/run`
//! names all but Go. The crates' tests take this file in by `#[path]`: a crate may depend on the core
//! alone, in its tests too.
#![allow(dead_code, reason = "each program needs its part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, Once, PoisonError};

/// Something that a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// A server of the store's second kind.
    Postgresql,
    /// What ends a server with its test, and starts it as somebody else.
    Setpriv,
    /// The language of the programs that try to get out.
    Python3,
    /// The first tier of the sandbox, working.
    Bubblewrap,
    /// The second tier of the sandbox, working.
    Landlock,
    /// The right to be somebody else.
    Root,
    /// The right to mount a file system, as root or in a user namespace.
    Mount,
    /// The shell of SQLite, with which a damaged store is saved.
    Sqlite3,
    /// What counts the calls of a program to the system.
    Strace,
    /// The terminal in which the program is looked at.
    Tmux,
    /// What runs the page's code where there is no browser.
    Node,
    /// What keeps large files beside git.
    Lfs,
    /// A target folder where nobody else can write: no program of ours is taken from another.
    Apart,
    /// The compiler of Go, which `.ci/run` doesn't install: it fills half a gigabyte.
    Go,
}

use Need::{
    Apart, Bubblewrap, Go, Landlock, Lfs, Mount, Node, Postgresql, Python3, Root, Setpriv, Sqlite3, Strace,
    Tmux,
};

/// Each with its word in the variable and with what is said where it is missing.
const ALL: [(Need, &str, &str); 14] = [
    (Postgresql, "postgresql", "PostgreSQL's initdb is not here (Debian: postgresql)"),
    (Setpriv, "setpriv", "setpriv is not here (Debian: util-linux)"),
    (Python3, "python3", "python3 is not here (Debian: python3)"),
    (Bubblewrap, "bubblewrap", "bubblewrap is not here or doesn't work (Debian: bubblewrap)"),
    (Landlock, "landlock", "Landlock doesn't work here (Linux 5.13)"),
    (Root, "root", "only root can start programs as somebody else"),
    (Mount, "mount", "nobody may mount a file system here (root, or user namespaces)"),
    (Sqlite3, "sqlite3", "sqlite3 is not here (Debian: sqlite3)"),
    (Strace, "strace", "strace is not here (Debian: strace)"),
    (Tmux, "tmux", "tmux is not here (Debian: tmux)"),
    (Node, "node", "node is not here (Debian: nodejs)"),
    (Lfs, "lfs", "git-lfs is not here (Debian: git-lfs)"),
    (Apart, "apart", "the target folder is where everybody can write (/tmp)"),
    (Go, "go", "go is not here (Debian: golang-go)"),
];

/// How much of a test goes without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Share {
    /// All of it.
    Whole,
    /// A part: what is here is tried.
    Part,
}

/// The tests that went without something, as their threads are named.
static MISSED: Mutex<BTreeMap<(Share, Need), BTreeSet<String>>> = Mutex::new(BTreeMap::new());

/// Whether this test can run. Where it can't, it is counted as one that did not, or fails where the
/// need is named.
#[must_use]
pub(crate) fn has(need: Need, is_here: bool) -> bool {
    goes_without(Share::Whole, need, is_here)
}

/// Whether this part of the test can run.
#[must_use]
pub(crate) fn has_for_a_part(need: Need, is_here: bool) -> bool {
    goes_without(Share::Part, need, is_here)
}

/// Whether a program that a test makes below the target folder can be one of ours.
#[must_use]
pub(crate) fn has_place_apart() -> bool {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let of_all = ["/tmp", "/var/tmp", "/dev/shm"].map(Into::into);
    has(Apart, !of_all.into_iter().chain([std::env::temp_dir()]).any(|folder| target.starts_with(folder)))
}

fn goes_without(share: Share, need: Need, is_here: bool) -> bool {
    static AT_THE_END: Once = Once::new();
    let named = named(&std::env::var("MIDTURN_TESTS_NEED").unwrap_or_default());
    if is_here {
        return true;
    }
    let Some((_, word, why)) = ALL.into_iter().find(|(one, ..)| *one == need) else {
        unreachable!("{need:?} is in the table");
    };
    assert!(!named.contains(&need), "MIDTURN_TESTS_NEED names {word}, and {why}");
    AT_THE_END.call_once(|| assert!(shutdown_hooks::add_shutdown_hook(say)));
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    MISSED.lock().unwrap_or_else(PoisonError::into_inner).entry((share, need)).or_default().insert(test);
    false
}

/// What the variable names. A word that no test knows would demand nothing.
fn named(words: &str) -> Vec<Need> {
    let words = words.split(',').map(str::trim).filter(|word| !word.is_empty());
    let need = |word: &str| match ALL.into_iter().find(|(_, known, _)| *known == word) {
        Some((need, ..)) => need,
        None => panic!("MIDTURN_TESTS_NEED names {word}, which no test needs; they need {}", all_words()),
    };
    words.map(need).collect()
}

fn all_words() -> String {
    ALL.map(|(_, word, _)| word).join(", ")
}

/// Says it when the program ends. It is no `print!`: what is printed by these is kept from whoever
/// looks on while a test runs.
extern "C" fn say() {
    let missed = MISSED.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = writeln!(std::io::stderr(), "{}", line(&missed));
}

fn line(missed: &BTreeMap<(Share, Need), BTreeSet<String>>) -> String {
    let mut line = String::new();
    let whole = missed.iter().filter(|((share, _), _)| *share == Share::Whole);
    let whole: BTreeSet<&String> = whole.flat_map(|(_, tests)| tests).collect();
    for ((share, need), tests) in missed {
        let (what, count) = match share {
            Share::Whole => ("not run", tests.len()),
            Share::Part => ("run in part", tests.iter().filter(|test| !whole.contains(test)).count()),
        };
        if count > 0 {
            let why = ALL.into_iter().find(|(one, ..)| one == need).map_or("", |(_, _, why)| why);
            let between = if line.is_empty() { "" } else { "; " };
            let s = if count == 1 { "" } else { "s" };
            let _ = write!(line, "{between}{what}: {count} test{s}, because {why}");
        }
    }
    line
}
