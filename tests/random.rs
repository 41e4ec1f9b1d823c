//! Thousands of random scenarios: the engine against the independent reference.
//!
//! `MIDTURN_RANDOM=N` plays N seeds of each level, `MIDTURN_FIRST=S` begins with seed S, and `MIDTURN_READING=name,…`
//! flips readings of ambiguous sentences (`reference/ambiguities.md`). A failure prints the scenario made small, what
//! differs, and which single reading, if any, would explain it.

mod reference;

use reference::compare::{Difference, compare, report};
use reference::generate::generate;
use reference::model::Scenario;
use reference::reading::Reading;
use reference::shrink::shrink;
use reference::simulate::simulate;
use serde_json::Value;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds of each level when the environment names no number.
const DEFAULT_SEEDS: u64 = 400;
/// Failures that are made small and printed; the others are only counted.
const SHOWN: usize = 3;

/// What became of one scenario.
enum Verdict {
    Agrees,
    Differs(Vec<Difference>, Vec<Value>),
    /// The engine refused the file, broke an invariant or panicked.
    Broke(String),
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn engine(yaml: &str) -> Result<Vec<Value>, String> {
    let played =
        catch_unwind(AssertUnwindSafe(|| midturn_scenario::replay_text(yaml).map_err(|e| e.to_string())));
    match played {
        Ok(result) => result,
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
            Err(format!("panic: {}", words.unwrap_or_default()))
        }
    }
}

fn judge(sc: &Scenario, reading: &Reading) -> Verdict {
    let events = match engine(&reference::yaml::write(sc)) {
        Ok(events) => events,
        Err(error) => return Verdict::Broke(error),
    };
    let found = simulate(sc, reading);
    if let Some(broken) = found.broken {
        return Verdict::Broke(format!("the reference itself: {broken}"));
    }
    let diffs = compare(sc, &found, &events);
    if diffs.is_empty() { Verdict::Agrees } else { Verdict::Differs(diffs, events) }
}

/// The readings that alone would make the engine and the reference agree.
fn explanations(sc: &Scenario, reading: &Reading) -> Vec<&'static str> {
    let explains = |name: &&&str| {
        let mut other = reading.clone();
        if let Some(flag) = other.flag(name) {
            *flag = !*flag;
        }
        matches!(judge(sc, &other), Verdict::Agrees)
    };
    Reading::NAMES.iter().filter(explains).copied().collect()
}

/// The failure of a scenario, made small.
fn describe(sc: &Scenario, reading: &Reading) -> String {
    let broke = matches!(judge(sc, reading), Verdict::Broke(_));
    let small = shrink(sc, &mut |s| match judge(s, reading) {
        Verdict::Agrees => false,
        Verdict::Differs(..) => !broke,
        Verdict::Broke(_) => broke,
    });
    let yaml = reference::yaml::write(&small);
    match judge(&small, reading) {
        Verdict::Agrees => format!("=== {}: no longer differs\n", sc.name),
        Verdict::Broke(error) => format!("=== {}: {error}\n{yaml}", sc.name),
        Verdict::Differs(diffs, events) => {
            let mut out = report(&small, &yaml, &diffs, &events);
            let names = explanations(&small, reading);
            if !names.is_empty() {
                out.push_str(&format!("--- explained by the other reading of: {}\n", names.join(" or ")));
            }
            out
        }
    }
}

/// Names the kind of a failure, so that the count says how many there are of each.
fn kind(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Agrees => None,
        Verdict::Broke(error) => Some(error.lines().next().unwrap_or("").chars().take(80).collect()),
        Verdict::Differs(diffs, _) => {
            let what = diffs.first().map_or("", |d| d.what.as_str());
            let mut parts = what.splitn(3, ": ");
            let subject = parts.next().and_then(|s| s.split(' ').next()).unwrap_or("");
            let field = parts.next().unwrap_or("");
            Some(format!("{subject}: {}", field.chars().take(40).collect::<String>()))
        }
    }
}

fn level(level: u32) {
    let reading = Reading::from_env();
    let first = number("MIDTURN_FIRST", 0);
    let seeds = number("MIDTURN_RANDOM", DEFAULT_SEEDS);
    let mut kinds: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for seed in first..first + seeds {
        if let Some(kind) = kind(&judge(&generate(level, seed), &reading)) {
            kinds.entry(kind).or_default().push(seed);
        }
    }
    if kinds.is_empty() {
        return;
    }
    let mut out = String::new();
    // One of each kind, the most frequent kinds first: the rest are likely the same.
    let mut by_count: Vec<(&String, &Vec<u64>)> = kinds.iter().collect();
    by_count.sort_by_key(|(_, seeds)| std::cmp::Reverse(seeds.len()));
    for (kind, seeds) in &by_count {
        out.push_str(&format!("{:>5} × {kind} (seeds {:?})\n", seeds.len(), &seeds[..seeds.len().min(5)]));
    }
    for (_, seeds) in by_count.iter().take(SHOWN) {
        out.push_str(&describe(&generate(level, seeds[0]), &reading));
    }
    let failed: usize = kinds.values().map(Vec::len).sum();
    panic!("level {level}: {failed} of {seeds} scenarios differ\n{out}");
}

#[test]
fn level_1_one_worker_and_mail() {
    level(1);
}

#[test]
fn level_2_stops_and_settings() {
    level(2);
}

#[test]
fn level_3_many_agents() {
    level(3);
}
