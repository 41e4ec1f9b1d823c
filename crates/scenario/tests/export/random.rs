//! Random sessions come back from their exports: those of the generators of `tests/reference`,
//! on virtual time as they are, and on machines whose store takes its time.
//!
//! `MIDTURN_RANDOM=N` exports N seeds of each level, `MIDTURN_FIRST=S` begins with seed S.

use std::collections::BTreeMap;

use midturn_core::rules::time::Span;
use midturn_scenario::export::{ExportError, scenario as export};
use midturn_scenario::file;

use crate::differences;
use crate::recorded::{Recorded, is_unfinished, played, played_slowly};
use crate::reference::generate::generate_with;
use crate::reference::kinds::Kinds;
use crate::reference::yaml;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// What doesn't come back; `None` when the session can't be exported, since somebody works.
fn lost(session: &Recorded) -> Option<Vec<String>> {
    match export(&session.journal, &session.events) {
        Ok(text) => {
            let wrong = differences(session, &text);
            if std::env::var("MIDTURN_SHOW").is_ok() && !wrong.is_empty() {
                for e in &session.events {
                    eprintln!("{}", serde_json::to_string(e).unwrap());
                }
                eprintln!("{text}");
            }
            Some(wrong)
        }
        Err(ExportError::Unfinished { .. }) if is_unfinished(&session.events) => None,
        Err(error) => Some(vec![error.to_string()]),
    }
}

#[test]
fn a_random_session_comes_back_from_its_export() {
    let (first, seeds) = (number("MIDTURN_FIRST", 0), number("MIDTURN_RANDOM", 25));
    let level: u64 = number("MIDTURN_LEVEL", 0);
    let machine: u64 = number("MIDTURN_MACHINE", 9);
    let kinds = Kinds::from_env();
    let mut told = Vec::new();
    let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for level in if level == 0 { 1..=4 } else { level..=level } {
        for seed in first..first + seeds {
            let made = generate_with(level as u32, seed, &kinds.made);
            let text = yaml::write(&made);
            let Ok(scenario) = file::parse("random.yaml".into(), text.as_bytes()) else { continue };
            for slow in [0, 1].into_iter().filter(|m| machine == 9 || machine == *m) {
                let session = std::panic::catch_unwind(|| match slow {
                    0 => played(&scenario),
                    _ => played_slowly(&scenario, JITTER.iter().map(|takes| Span(*takes)).collect()),
                });
                let Ok(session) = session else { continue };
                let count = counts.entry(format!("level {level} machine {slow}")).or_default();
                let Some(wrong) = lost(&session) else { continue };
                count.1 += 1;
                if wrong.is_empty() {
                    count.0 += 1;
                } else {
                    told.push(format!(
                        "level {level} seed {seed} machine {slow}:\n    {}",
                        wrong.join("\n    ")
                    ));
                }
            }
        }
    }
    eprintln!("{counts:?}");
    assert!(told.is_empty(), "{} do not:\n{}", told.len(), told.join("\n"));
}

/// How long commits take on the slow machine, in microseconds.
const JITTER: [u64; 7] = [400, 1_100, 700, 3_000, 50, 900, 2_200];
