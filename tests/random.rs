//! Thousands of random scenarios: the engine against the independent reference.
//!
//! `MIDTURN_RANDOM=N` plays N seeds of each level, `MIDTURN_FIRST=S` begins with seed S, `MIDTURN_JOBS=J` plays with J
//! threads a level, `MIDTURN_KINDS=name,…` switches kinds and rules (`reference/kinds.rs`), and `MIDTURN_READING=name,…`
//! flips readings of ambiguous sentences (`reference/ambiguities.md`). A failure prints the scenario made small, what
//! differs, and which single reading, if any, would explain it. What can't be compared is counted and named.

mod reference;

use reference::compare::{Difference, compare, report};
use reference::generate::generate_with;
use reference::kinds::Kinds;
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
    /// The pages don't determine it, or a rule is off.
    NotCompared(String),
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

fn judge(sc: &Scenario, reading: &Reading, kinds: &Kinds) -> Verdict {
    let found = simulate(sc, reading);
    if let Some(broken) = found.broken {
        return Verdict::Broke(format!("the reference itself: {broken}"));
    }
    if let Some(rule) = kinds.off(&found.met).first() {
        return Verdict::NotCompared(rule.to_string());
    }
    if let Some(why) = found.undetermined {
        return Verdict::NotCompared(why);
    }
    match (engine(&reference::yaml::write(sc)), &found.invalid) {
        (Err(_), Some(_)) => Verdict::Agrees,
        (Err(error), None) => Verdict::Broke(error),
        (Ok(_), Some(why)) => Verdict::Broke(format!("the file is taken: {why}")),
        (Ok(events), None) => {
            let diffs = compare(sc, &found, &events);
            if diffs.is_empty() { Verdict::Agrees } else { Verdict::Differs(diffs, events) }
        }
    }
}

/// The readings that alone would make the engine and the reference agree.
fn explanations(sc: &Scenario, reading: &Reading, kinds: &Kinds) -> Vec<&'static str> {
    let explains = |name: &&&str| {
        let mut other = reading.clone();
        if let Some(flag) = other.flag(name) {
            *flag = !*flag;
        }
        matches!(judge(sc, &other, kinds), Verdict::Agrees)
    };
    Reading::NAMES.iter().filter(explains).copied().collect()
}

/// The failure of a scenario, made small.
fn describe(sc: &Scenario, reading: &Reading, kinds: &Kinds) -> String {
    let broke = matches!(judge(sc, reading, kinds), Verdict::Broke(_));
    let small = shrink(sc, &mut |s| match judge(s, reading, kinds) {
        Verdict::Agrees | Verdict::NotCompared(_) => false,
        Verdict::Differs(..) => !broke,
        Verdict::Broke(_) => broke,
    });
    let yaml = reference::yaml::write(&small);
    match judge(&small, reading, kinds) {
        Verdict::Agrees | Verdict::NotCompared(_) => format!("=== {}: no longer differs\n", sc.name),
        Verdict::Broke(error) => format!("=== {}: {error}\n{yaml}", sc.name),
        Verdict::Differs(diffs, events) => {
            let mut out = report(&small, &yaml, &diffs, &events);
            let names = explanations(&small, reading, kinds);
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
        Verdict::Agrees | Verdict::NotCompared(_) => None,
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

/// What came of many seeds: those of each kind of failure, and how many were not compared for which reason.
#[derive(Default)]
struct Tally {
    failed: BTreeMap<String, Vec<u64>>,
    not_compared: BTreeMap<String, u64>,
}

impl Tally {
    fn play(seeds: impl Iterator<Item = u64>, level: u32, reading: &Reading, kinds: &Kinds) -> Tally {
        let mut tally = Tally::default();
        for seed in seeds {
            let verdict = judge(&generate_with(level, seed, &kinds.made), reading, kinds);
            if let Verdict::NotCompared(why) = &verdict {
                *tally.not_compared.entry(why.clone()).or_default() += 1;
            } else if let Some(kind) = kind(&verdict) {
                tally.failed.entry(kind).or_default().push(seed);
            }
        }
        tally
    }

    fn add(&mut self, other: Tally) {
        for (kind, seeds) in other.failed {
            let all = self.failed.entry(kind).or_default();
            all.extend(seeds);
            all.sort_unstable();
        }
        for (why, count) in other.not_compared {
            *self.not_compared.entry(why).or_default() += count;
        }
    }
}

/// Plays the seeds of a level, with several threads if the environment says so.
fn tally(level: u32, reading: &Reading, kinds: &Kinds) -> Tally {
    let first = number("MIDTURN_FIRST", 0);
    let seeds = first..first + number("MIDTURN_RANDOM", DEFAULT_SEEDS);
    let jobs = number("MIDTURN_JOBS", 1).max(1);
    let mut all = Tally::default();
    std::thread::scope(|scope| {
        let play = |job: u64| {
            let mine = seeds.clone().filter(move |seed| seed % jobs == job);
            scope.spawn(move || Tally::play(mine, level, reading, kinds))
        };
        let threads: Vec<_> = (0..jobs).map(play).collect();
        for thread in threads {
            match thread.join() {
                Ok(tally) => all.add(tally),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    all
}

fn level(level: u32) {
    let (reading, kinds) = (Reading::from_env(), Kinds::from_env());
    let Tally { failed, not_compared } = tally(level, &reading, &kinds);
    let seeds = number("MIDTURN_RANDOM", DEFAULT_SEEDS);
    for (why, count) in &not_compared {
        eprintln!("level {level}: {count} of {seeds} scenarios are not compared: {why}");
    }
    if failed.is_empty() {
        return;
    }
    let mut out = String::new();
    // One of each kind, the most frequent kinds first: the rest are likely the same.
    let mut by_count: Vec<(&String, &Vec<u64>)> = failed.iter().collect();
    by_count.sort_by_key(|(_, seeds)| std::cmp::Reverse(seeds.len()));
    for (kind, seeds) in &by_count {
        out.push_str(&format!("{:>5} × {kind} (seeds {:?})\n", seeds.len(), &seeds[..seeds.len().min(5)]));
    }
    for (_, seeds) in by_count.iter().take(SHOWN) {
        out.push_str(&describe(&generate_with(level, seeds[0], &kinds.made), &reading, &kinds));
    }
    let failed: usize = failed.values().map(Vec::len).sum();
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

#[test]
fn level_4_one_kind_or_two() {
    level(4);
}
