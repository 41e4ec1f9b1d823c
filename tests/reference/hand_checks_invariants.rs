//! What must hold of the reference's own findings on every random scenario (semantics.md section 10, as far as it
//! can be seen from outside): a slip of the simulator should fail here, not look like one of the engine.

use super::generate::generate;
use super::model::*;
use super::reading::Reading;
use super::result::*;
use super::simulate::simulate;
use std::collections::{BTreeMap, BTreeSet};

fn each(check: impl Fn(&Scenario, &Findings)) {
    for level in 1..=3 {
        for seed in 0..400 {
            let sc = generate(level, seed);
            let found = simulate(&sc, &Reading::default());
            check(&sc, &found);
        }
    }
}

#[test]
fn a_turns_calls_have_one_result_each_or_none_has_any() {
    each(|sc, found| {
        let mut seen = BTreeSet::new();
        for t in &found.tools {
            assert!(seen.insert((t.agent, t.id.clone())), "{}: {} has two results", sc.name, t.id);
            assert!(t.started.is_none_or(|s| s <= t.ended));
            assert_eq!(t.started.is_none(), t.status == Status::Skipped, "{}: {}", sc.name, t.id);
        }
        for (a, agent) in sc.agents.iter().enumerate() {
            for entry in agent.model.iter().flatten() {
                let with = entry.tools.iter().filter(|c| seen.contains(&(a, c.id.clone()))).count();
                assert!(with == 0 || with == entry.tools.len(), "{}: a torn turn of {}", sc.name, agent.name);
            }
        }
    });
}

#[test]
fn mail_is_injected_once_and_in_order_of_arrival() {
    each(|sc, found| {
        let mut rank = BTreeMap::new();
        for (n, m) in found.messages.iter().enumerate() {
            assert!(rank.insert((m.to, m.id.clone()), n).is_none(), "{}: {} sent twice", sc.name, m.id);
        }
        let mut injected = BTreeSet::new();
        for (n, i) in found.injections.iter().enumerate() {
            let ranks: Vec<usize> = i.messages.iter().map(|m| rank[&(i.agent, m.clone())]).collect();
            assert!(ranks.is_sorted(), "{}: out of order", sc.name);
            for r in ranks {
                assert!(injected.insert(r), "{}: injected twice", sc.name);
                assert_eq!(found.messages[r].fate, Fate::Injected(n));
                assert!(found.messages[r].sent <= i.at);
            }
        }
        let claimed = found.messages.iter().filter(|m| matches!(m.fate, Fate::Injected(_))).count();
        assert_eq!(claimed, injected.len());
    });
}

#[test]
fn runs_of_an_agent_follow_each_other_and_hold_their_tools() {
    each(|sc, found| {
        for agent in 0..sc.agents.len() {
            let runs: Vec<&RunResult> = found.runs.iter().filter(|r| r.agent == agent).collect();
            for (n, r) in runs.iter().enumerate() {
                assert_eq!(r.run as usize, n + 1);
                let end =
                    r.ended.unwrap_or_else(|| panic!("{}: run {} of {agent} waits for ever", sc.name, r.run));
                assert!(r.started <= end);
                assert!(runs.get(n + 1).is_none_or(|next| end <= next.started), "{}: runs overlap", sc.name);
            }
        }
        for t in &found.tools {
            let end = found.run(t.agent, t.run).and_then(|r| r.ended);
            assert!(end.is_some_and(|e| t.ended <= e), "{}: {} ends after its run", sc.name, t.id);
        }
    });
}

#[test]
fn urgent_mail_leaves_at_once_unless_something_holds_it() {
    each(|sc, found| {
        let holds = |c: &Call| !c.abortable || c.abort_takes > 0;
        let calls = sc.agents.iter().flat_map(|a| a.model.iter().flatten()).flat_map(|e| &e.tools);
        let cuts = |s: &Settings| s.urgent_cuts_stream != Some(false);
        let free = cuts(&sc.settings) && sc.agents.iter().all(|a| cuts(&a.settings));
        if calls.into_iter().any(holds) || !free {
            return;
        }
        for m in found.messages.iter().filter(|m| m.urgency == Urgency::Urgent) {
            if let Fate::Injected(i) = m.fate {
                let i = &found.injections[i];
                // What a stop or a failed run left queued waits for the next run.
                assert!(i.at == m.sent || i.point == Point::Start, "{}: {} waits", sc.name, m.id);
            }
        }
    });
}
