//! tmp
#![allow(dead_code, unused, unreachable_pub, missing_docs)]
#[path = "../../../../tests/reference/mod.rs"]
mod reference;
use midturn_core::rules::time::Span;
use midturn_scenario::export::{ExportError, scenario as export};
use crate::recorded::*;
pub(crate) fn run() {
    let get = |n: &str, d: u64| std::env::var(n).ok().and_then(|v| v.parse().ok()).unwrap_or(d);
    let (from, to) = (get("FROM", 1), get("TO", 200));
    let slow = get("SLOW", 1);
    let show = get("PRINT", 0);
    let mut counts = std::collections::BTreeMap::<String, u64>::new();
    for level in get("LEVEL", 1)..=get("LEVEL", 4) as u64 {
    for seed in from..to {
        let sc = reference::generate::generate(level as u32, seed);
        let yaml = reference::yaml::write(&sc);
        let Ok(scenario) = midturn_scenario::file::parse("r".into(), yaml.as_bytes()) else { *counts.entry("unread".into()).or_default() += 1; continue };
        let session = if slow == 0 { match std::panic::catch_unwind(|| played(&scenario)) { Ok(s) => s, Err(_) => continue } } else {
            let mut s = seed * 7919 + 13;
            let mut next = move || { s ^= s << 13; s ^= s >> 7; s ^= s << 17; s };
            let scale = [20, 300, 2_000, 12_000, 60_000][(seed % 5) as usize];
            let takes: Vec<Span> = (0..37).map(|_| Span(if next() % 4 == 0 { next() % 20 } else { next() % scale })).collect();
            match std::panic::catch_unwind(|| played_slowly(&scenario, takes)) { Ok(s) => s, Err(_) => continue } };
        let what = match export(&session.journal, &session.events) {
            Ok(text) => {
                let mut wrong: Vec<String> = midturn_scenario::check_text("export", &text).unwrap().iter().filter(|f| !f.expected.contains("the invariants")).map(|f| f.expected.clone()).collect();
                if slow == 0 { wrong.extend(crate::differences(&session, &text)); }
                let said = text.contains("orders of the session");
                if show == seed { println!("{yaml}\n----"); for e in &session.events { println!("{}", serde_json::to_string(e).unwrap().chars().take(230).collect::<String>()); } println!("{text}"); 
                    for f in midturn_scenario::check_text("export", &text).unwrap() { println!("{f}"); } }
                if wrong.is_empty() { if said {"fine, said".into()} else {"fine".to_string()} } else { println!("level {level} seed {seed} said {said}: {}", wrong.iter().take(4).cloned().collect::<Vec<_>>().join(" | ")); if said {"wrong, said".into()} else {"WRONG".into()} }
            }
            Err(ExportError::Unfinished { .. }) => "unfinished".to_string(),
            Err(e) => { println!("level {level} seed {seed}: {e}"); "error".into() }
        };
        *counts.entry(what).or_default() += 1;
    } }
    println!("{counts:?}");
}
