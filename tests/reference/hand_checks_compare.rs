//! The comparer against events made from the reference's own findings: none may differ, every change must show.

use super::compare::compare;
use super::generate::generate;
use super::model::*;
use super::reading::Reading;
use super::result::*;
use super::simulate::simulate;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Stops, take-ups, limits and spawns, as an engine that agrees would print them.
fn told_of_the_session(sc: &Scenario, f: &Findings, out: &mut Vec<Value>) {
    let name = |i: usize| sc.agents[i].name.clone();
    let t = |us: Micros| us as f64 / 1e6;
    for s in &f.stops {
        let queued: Vec<String> = s.still_queued.iter().map(|m| format!("engine-{m}")).collect();
        out.push(json!({"type": "stop_requested", "t": t(s.at), "agent": name(s.agent), "run": s.run,
            "reason": s.reason, "by": s.by, "still_queued": queued}));
    }
    out.extend(f.resumed.iter().map(|at| json!({"type": "session_resumed", "t": t(*at)})));
    for (at, agent) in &f.raised {
        out.push(json!({"type": "limit_raised", "t": t(*at), "agent": agent.map(name)}));
    }
    for (agent, prompt) in &f.prompts {
        out.push(json!({"type": "agent_spawned", "t": 0.0, "agent": name(*agent), "prompt": prompt}));
    }
}

/// What an engine that agrees would print.
fn as_events(sc: &Scenario, f: &Findings) -> Vec<Value> {
    let name = |i: usize| sc.agents[i].name.clone();
    let t = |us: Micros| us as f64 / 1e6;
    let mut out = Vec::new();
    for r in &f.runs {
        out.push(json!({"type": "run_started", "t": t(r.started), "agent": name(r.agent), "run": r.run}));
        if let Some(end) = r.ended {
            out.push(json!({"type": "run_finished", "t": t(end), "agent": name(r.agent), "run": r.run,
                "outcome": r.outcome.word(), "error": r.error, "turns": r.turns}));
        }
    }
    for c in &f.calls {
        let (agent, run, turn) = (name(c.agent), c.run, c.turn);
        out.push(json!({"type": "model_started", "t": t(c.started), "agent": agent, "run": run, "turn": turn, "call": c.call}));
        if let Some(cut) = &c.cut {
            let (words, text) = cut.said.clone().unwrap_or_default();
            out.push(
                json!({"type": "model_interrupted", "t": t(cut.at), "agent": agent, "partial_tokens": words,
                "text": text, "reason": cut.reason}),
            );
        }
        if let Some(inputs) = &c.inputs {
            let tools: Vec<Value> =
                inputs.iter().map(|(id, input)| json!({"id": id, "input": input})).collect();
            out.push(json!({"type": "model_finished", "t": t(c.started), "agent": agent, "tools": tools}));
        }
    }
    for c in &f.tools {
        let (agent, run, turn) = (name(c.agent), c.run, c.turn);
        if let Some(at) = c.started {
            out.push(json!({"type": "tool_started", "t": t(at), "agent": agent, "run": run, "turn": turn, "tool": c.id}));
        }
        out.push(json!({"type": "tool_finished", "t": t(c.ended), "agent": agent, "run": run, "turn": turn,
            "tool": c.id, "status": c.status.word(), "is_error": c.status != Status::Completed, "output": c.text}));
    }
    for m in &f.messages {
        let (agent, id) = (name(m.to), format!("engine-{}", m.id));
        if let Fate::Refused { reason, at } = m.fate {
            out.push(json!({"type": "message_refused", "t": t(at), "agent": agent, "message": m.id, "from": "x", "reason": reason}));
            continue;
        }
        out.push(
            json!({"type": "message_queued", "t": t(m.sent), "agent": agent, "message": id, "from": "x",
            "urgency": m.urgency.word(), "text": m.text}),
        );
        if let Fate::Returned { reason, at } = m.fate {
            out.push(json!({"type": "message_returned", "t": t(at), "agent": agent, "message": id, "reason": reason}));
        }
    }
    told_of_the_session(sc, f, &mut out);
    for i in &f.injections {
        let mut ids: Vec<String> = i.messages.iter().map(|m| format!("engine-{m}")).collect();
        ids.extend((0..i.reports).map(|n| format!("report-{n}")));
        out.push(json!({"type": "message_injected", "t": t(i.at), "agent": name(i.agent), "run": i.run, "turn": i.turn,
            "messages": ids, "point": i.point.word(), "text": i.text, "skipped": i.skipped, "interrupted": i.interrupted}));
    }
    out
}

#[test]
fn agreement_shows_no_difference_and_a_change_shows() {
    for seed in 0..60 {
        let sc = generate(3, seed);
        let found = simulate(&sc, &Reading::default());
        let events = as_events(&sc, &found);
        assert_eq!(compare(&sc, &found, &events), [], "{}", sc.name);
        for n in 0..events.len() {
            let mut fewer = events.clone();
            fewer.remove(n);
            let kind = events[n]["type"].as_str().unwrap_or("").to_string();
            assert!(!compare(&sc, &found, &fewer).is_empty(), "{}: {kind} left out unseen", sc.name);
        }
    }
}

/// Every status, point, outcome and reason that the findings of many seeds hold.
fn reached() -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for level in 1..=3 {
        for seed in 0..600 {
            let found = simulate(&generate(level, seed), &Reading::default());
            seen.extend(found.tools.iter().map(|t| t.status.word().to_string()));
            seen.extend(found.injections.iter().map(|i| format!("point {}", i.point.word())));
            seen.extend(found.runs.iter().map(|r| format!("run {}", r.outcome.word())));
            seen.extend(found.messages.iter().map(|m| match m.fate {
                Fate::Queued => "queued".to_string(),
                Fate::Injected(_) => "injected".to_string(),
                Fate::Returned { reason, .. } => format!("returned {reason}"),
                Fate::Refused { reason, .. } => format!("refused {reason}"),
            }));
        }
    }
    seen
}

#[test]
fn the_generator_reaches_every_case() {
    let seen = reached();
    let statuses = "completed failed interrupted skipped stopped unknown queued injected";
    let prefixed = [
        ("point", "start stream A B C D wait"),
        ("run", "finished stopped failed limit"),
        ("returned", "closed stopped expired withdrawn superseded error"),
        ("refused", "stale_run urgent_not_allowed urgent_rate mailbox_full"),
    ];
    let mut wanted: Vec<String> = statuses.split(' ').map(str::to_string).collect();
    for (prefix, words) in prefixed {
        wanted.extend(words.split(' ').map(|w| format!("{prefix} {w}")));
    }
    wanted.retain(|w| !seen.contains(w));
    assert!(wanted.is_empty(), "never reached: {wanted:?}; reached {seen:?}");
}
