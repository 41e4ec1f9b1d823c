//! The crash harness: the real daemon, a real store, `kill -9` at every fail point and at random
//! instants, while agents wait for each other, a person is asked, conversations are compacted and
//! guests come, and a checker that sees only what anybody could see: the interface, the events,
//! and what the model server was sent. A marker file says what each command really did.
//!
//! `MIDTURN_CRASH_CYCLES=N` kills the daemon N times (500), `MIDTURN_CRASH_SEED=S` begins with
//! another seed, `MIDTURN_CRASH_FAULTS=word,…` looks for these planted faults only.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test program; what goes wrong in it is to be seen"
)]

#[path = "../real/mod.rs"]
mod real;

mod answering;
mod api;
mod breach;
mod checker;
mod daemon;
mod dice;
mod faults;
mod history;
mod ledger;
mod life;
mod load;
mod mail;
mod met;
mod model;
mod prompts;
mod rule;
mod soak;
mod story;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use anyhow::Result;
use futures_util::stream::{self, StreamExt};
use midturn_core::fail::POINTS;

use faults::{FAULTS, Fault};
use history::{Plan, Report, play};
use met::Met;
use story::Ways;

/// How often the daemon is killed when the environment names no number.
const CYCLES: u64 = 500;
/// How many lives one history has: so many that a conversation goes through several crashes.
const LIVES: u64 = 25;
/// How many histories go on beside each other: a daemon waits for its disk most of the time.
const BESIDE: usize = 3;
/// How often a daemon with a planted fault is killed at most until the fault has to be found.
const FAULT_CYCLES: u64 = 480;
/// The lives of a history with a planted fault: its end tells most.
const FAULT_LIVES: u64 = 8;
/// The same where a conversation has to grow before there is anything to find.
const GROWING_LIVES: u64 = 24;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn on_a_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// All points that no daemon has met yet.
fn all_points() -> Mutex<BTreeSet<&'static str>> {
    Mutex::new(POINTS.iter().copied().collect())
}

#[test]
fn invariants_1_to_9_hold_however_often_the_daemon_is_killed() {
    let (cycles, seed) = (number("MIDTURN_CRASH_CYCLES", CYCLES), number("MIDTURN_CRASH_SEED", 1));
    let wanted = all_points();
    let histories = (0..cycles.div_ceil(LIVES)).map(|n| {
        let lives = LIVES.min(cycles - n * LIVES);
        let plan = Plan { seed: seed.wrapping_mul(1_000_003) + n, lives, planted: None, ways: Ways::nth(n) };
        let wanted = &wanted;
        async move { play(&plan, wanted).await.map_err(|error| error.context(format!("seed {}", plan.seed))) }
    });
    let reports: Result<Vec<Report>> = on_a_runtime(async {
        stream::iter(histories).buffer_unordered(BESIDE).collect::<Vec<_>>().await.into_iter().collect()
    });
    let reports = reports.unwrap();
    println!("{}", summary(&reports));
    let broken: Vec<String> = reports.iter().filter(|report| !report.breaches.is_empty()).map(told).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
    if cycles >= CYCLES {
        let never = wanted.lock().unwrap();
        assert!(never.is_empty(), "no daemon came to these fail points: {never:?}");
        let never = met(&reports).never();
        assert!(never.is_empty(), "no daemon was killed beside these: {never:?}");
    }
}

#[test]
fn every_planted_fault_is_found() {
    let only = std::env::var("MIDTURN_CRASH_FAULTS").unwrap_or_default();
    let only: Vec<&str> = only.split(',').filter(|word| !word.is_empty()).collect();
    let faults = FAULTS.iter().filter(|fault| only.is_empty() || only.contains(&fault.word));
    let missed: Vec<String> = on_a_runtime(async {
        let looks = faults.map(look_for);
        let found: Vec<Result<(), String>> = stream::iter(looks).buffer_unordered(BESIDE).collect().await;
        found.into_iter().filter_map(Result::err).collect()
    });
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}

/// Plays histories with a fault until it is found. The error says what was found instead.
async fn look_for(fault: &Fault) -> Result<(), String> {
    let mut killed = 0;
    let mut seed = dice::hashed(fault.word);
    let lives = if fault.ways.compacts { GROWING_LIVES } else { FAULT_LIVES };
    while killed < FAULT_CYCLES {
        let plan = Plan { seed, lives, planted: Some(fault.word.to_owned()), ways: fault.ways };
        let report =
            play(&plan, &all_points()).await.map_err(|error| format!("{}: {error:#}", fault.word))?;
        killed += report.killed.max(1);
        if let Some(first) = report.breaches.first() {
            let found = report.breaches.iter().find(|breach| fault.breaks.contains(&breach.promise));
            let shown = found.unwrap_or(first);
            println!("{}: found after {killed} ends: {shown:.300}", fault.word);
            return found.map(|_| ()).ok_or_else(|| format!("{}: {}", fault.word, told(&report)));
        }
        seed = seed.wrapping_add(1);
    }
    Err(format!("{}: not found in {killed} ends", fault.word))
}

fn met(reports: &[Report]) -> Met {
    reports.iter().fold(Met::default(), |met, report| met.and(&report.met))
}

fn summary(reports: &[Report]) -> String {
    let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
    let mut broken = BTreeMap::new();
    for breach in reports.iter().flat_map(|report| &report.breaches) {
        *broken.entry(breach.promise).or_insert(0) += 1;
    }
    format!(
        "{} ends of a daemon, {} of them at fail points; {} messages, {} events, {} requests; {:?}; broken: {broken:?}",
        sum(|report| report.killed),
        sum(|report| report.points.len() as u64),
        sum(|report| report.messages),
        sum(|report| report.events),
        sum(|report| report.requests),
        met(reports),
    )
}

/// What was found in a history, for whoever has to mend it.
fn told(report: &Report) -> String {
    let breaches: Vec<String> =
        report.breaches.iter().take(8).map(|breach| format!("{breach:.2000}")).collect();
    let kept = report.kept.as_deref().unwrap_or("nowhere");
    format!("{} breaches, kept in {kept}:\n{}", report.breaches.len(), breaches.join("\n"))
}
