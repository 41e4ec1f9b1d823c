//! The corpus of hostile programs: each is run by an agent of the real daemon, in every tier that
//! the machine offers, and afterwards the harness looks at the world instead of believing the
//! program. Outside writes 0, survivors 0, secrets found 0, the daemon's growth under 32 MiB, and
//! the interface answers meanwhile. What docs/security.md says
//! doesn't hold is in a table (declared.rs).
//!
//! `MIDTURN_TESTS_NEED=bubblewrap,landlock,python3,root` makes it a failure when one of them is not
//! there (needs.rs); `MIDTURN_HOSTILE_ONLY=name,…` runs these programs only; `MIDTURN_HOSTILE_SHOW=1` shows what
//! they say. Every program is bounded well above our limits (programs/common.py), so that a test
//! that fails doesn't take the machine down.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test program; what goes wrong in it is to be seen"
)]

#[path = "../needs.rs"]
mod needs;
#[path = "../real/mod.rs"]
mod real;

mod api;
mod canary;
mod case;
mod corpus;
mod daemon;
mod declared;
mod disk;
mod doors;
mod links;
mod model;
mod person;
mod play;
mod snapshot;
mod targets;
mod tree;
mod watch;
mod world;

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::geteuid;

use case::Case;
use corpus::{corpus, seen};
use daemon::Tier;
use declared::undeclared;
use needs::Need;
use play::{Outcome, Place, play};
use world::NOBODY;

/// Orphans come to this process, and a bomb takes the machine: one round at a time.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    tree::adopt_orphans();
    one
}

fn on_a_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// Most programs that try to get out are written in it, and so is what starts the daemon.
fn has_python() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_here = std::env::split_paths(&path).any(|folder| folder.join("python3").exists());
    needs::has(Need::Python3, is_here)
}

/// The programs that are played; none: all.
fn only() -> Vec<String> {
    let named = std::env::var("MIDTURN_HOSTILE_ONLY").unwrap_or_default();
    named.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// What a great deal of output does to the daemon is the same for every user.
const SLOW: [&str; 3] = ["yes", "a-line-of-1-gib", "noise"];

fn cases(user: Option<u32>) -> Vec<Case> {
    let only = only();
    let is_played = |name: &str| match only.as_slice() {
        [] => user.is_none() || !SLOW.contains(&name),
        only => only.iter().any(|only| only == name),
    };
    corpus().into_iter().filter(|case| is_played(case.name)).collect()
}

/// Plays all programs in a place; what is found fails the test.
fn nothing_gets_out(place: Place) {
    let _one = one_at_a_time();
    let may_be_others = place.user.is_none() || needs::has(Need::Root, geteuid().is_root());
    if !may_be_others || !has_python() {
        return;
    }
    match on_a_runtime(play(place, &cases(place.user))).unwrap() {
        Outcome::Played(found) => {
            let found = undeclared(place, found, only().is_empty());
            assert!(found.is_empty(), "{} findings:\n{}", found.len(), found.join("\n"))
        }
        Outcome::NotOffered(said) => {
            let for_want_of_it = said.contains("no sandbox") && place.tier != Tier::None;
            assert!(for_want_of_it, "the daemon does not start:\n{said}");
            let tier = match place.tier {
                Tier::Bubblewrap => Need::Bubblewrap,
                Tier::Landlock | Tier::None => Need::Landlock,
            };
            println!("{said}");
            let _ = needs::has(tier, false);
        }
    }
}

/// As whoever runs the tests, in CI root.
const US: Place = Place { tier: Tier::None, user: None, namespaces: true };

/// As somebody without privileges.
const ORDINARY: Place = Place { user: Some(NOBODY), ..US };

#[test]
fn nothing_gets_out_of_bubblewrap() {
    nothing_gets_out(Place { tier: Tier::Bubblewrap, ..US });
}

#[test]
fn nothing_gets_out_of_landlock() {
    nothing_gets_out(Place { tier: Tier::Landlock, ..US });
}

#[test]
fn nothing_of_an_ordinary_user_gets_out_of_bubblewrap() {
    nothing_gets_out(Place { tier: Tier::Bubblewrap, ..ORDINARY });
}

#[test]
fn nothing_of_an_ordinary_user_gets_out_of_landlock() {
    nothing_gets_out(Place { tier: Tier::Landlock, ..ORDINARY });
}

#[test]
fn nothing_gets_out_of_landlock_where_there_are_no_namespaces() {
    nothing_gets_out(Place { tier: Tier::Landlock, namespaces: false, ..ORDINARY });
}

#[test]
fn what_needs_no_sandbox_holds_without_one() {
    nothing_gets_out(US);
}

#[test]
fn what_gets_out_is_seen() {
    let _one = one_at_a_time();
    if !has_python() {
        return;
    }
    let Outcome::Played(found) = on_a_runtime(play(US, &seen())).unwrap() else {
        panic!("a daemon without a sandbox starts");
    };
    let found = found.join("\n");
    for expected in [
        "outside/canary.txt is gone",
        "outside/hostile-",
        "~/.ssh/id_ed25519 is in the output",
        "the neighbour's word",
    ] {
        assert!(found.contains(expected), "{expected} is not among:\n{found}");
    }
}

#[test]
fn a_link_that_comes_and_goes_leads_no_tool_out() {
    let _one = one_at_a_time();
    on_a_runtime(links::flipped()).unwrap();
}

#[test]
fn a_full_disk_leaves_a_daemon_that_answers_and_ends() {
    let _one = one_at_a_time();
    if !has_python() {
        return;
    }
    on_a_runtime(disk::filled()).unwrap();
}
