//! Cases worked out by hand: several agents and the coordinator's own tools.

use super::hand_checks::*;
use super::model::*;
use super::result::*;
use serde_json::json;

fn tooled(id: &str, name: &str, input: serde_json::Value) -> Call {
    let mut c = call(id, name, 0);
    c.input = Some(input);
    c
}

/// A boss at index 0 with a model, two workers below.
fn team(boss: Vec<Entry>, one: Vec<Entry>, two: Vec<Entry>) -> Scenario {
    let agent = |name: &str, parent, model| Agent {
        name: name.into(),
        parent,
        prompt: Some("Go.".into()),
        model: Some(model),
        ..Agent::default()
    };
    let mut lead = agent("boss", None, boss);
    lead.lead = true;
    Scenario {
        name: "team".into(),
        agents: vec![lead, agent("one", Some(0), one), agent("two", Some(0), two)],
        ..Scenario::default()
    }
}

fn boss_tool(f: &Findings, id: &str) -> (Status, u64) {
    let t = f.tool(0, id).unwrap_or_else(|| panic!("no call {id}"));
    (t.status, t.ended / MS)
}

#[test]
fn a_wait_takes_the_answers_it_returns() {
    let wait = tooled("w", "wait_agents", json!({"names": ["one", "two"]}));
    let sc = team(
        vec![reply(0, vec![wait]), reply(0, vec![])],
        vec![reply(1000, vec![])],
        vec![reply(2000, vec![])],
    );
    let f = play(&sc);
    assert_eq!(boss_tool(&f, "w"), (Status::Completed, 2000));
    assert_eq!(f.injections.len(), 1);
    assert_eq!((f.injections[0].point, f.injections[0].reports), (Point::Wait, 2));
    assert_eq!(f.run(0, 1).map(|r| (r.outcome, r.turns)), Some((Outcome::Finished, 2)));
}

#[test]
fn a_wait_for_any_leaves_the_other_answer_as_mail() {
    let wait = tooled("w", "wait_agents", json!({"names": ["one", "two"], "mode": "any"}));
    let tools = vec![wait, call("e", "edit", 3000)];
    let sc =
        team(vec![reply(0, tools), reply(0, vec![])], vec![reply(1000, vec![])], vec![reply(2000, vec![])]);
    let f = play(&sc);
    assert_eq!(boss_tool(&f, "w"), (Status::Completed, 1000));
    assert_eq!((f.injections[1].point, f.injections[1].at / MS), (Point::D, 4000));
    assert_eq!(f.injections[1].text.as_deref(), Some("[two finished: one two three four]"));
}

#[test]
fn a_wait_returns_early_on_mail_and_is_interrupted_by_urgent() {
    let wait = tooled("w", "wait_agents", json!({"names": ["one"], "timeout": "5s"}));
    let boss = vec![reply(0, vec![wait, call("e", "edit", 10)]), reply(0, vec![])];
    let mut sc = team(boss, vec![reply(9000, vec![])], vec![reply(9000, vec![])]);
    sc.items.push(message("m", 1000, None, 0, BOUNDARY));
    let f = play(&sc);
    assert_eq!(boss_tool(&f, "w"), (Status::Completed, 1000));
    assert_eq!(boss_tool(&f, "e").0, Status::Skipped);
    assert_eq!(place(&f, "m", 0), (Point::C, 1, 1, 1000));
    sc.items[0] = message("m", 1000, None, 0, URGENT);
    let f = play(&sc);
    assert_eq!(boss_tool(&f, "w"), (Status::Interrupted, 1000));
    sc.items.clear();
    let f = play(&sc);
    assert_eq!(boss_tool(&f, "w"), (Status::Completed, 5000));
}

#[test]
fn a_cycle_of_waits_is_refused() {
    let wait =
        |names: serde_json::Value| vec![reply(0, vec![tooled("w", "wait_agents", names)]), reply(0, vec![])];
    let sc = team(
        vec![reply(5000, vec![])],
        wait(json!({"names": ["two"]})),
        wait(json!({"names": ["one", "boss"], "mode": "all"})),
    );
    let f = play(&sc);
    let two = f.tool(2, "w").map(|t| t.status);
    assert_eq!(two, Some(Status::Failed));
    // With `any` and a name outside the set there is a way out.
    let sc = team(
        vec![reply(5000, vec![])],
        wait(json!({"names": ["two"]})),
        wait(json!({"names": ["one", "boss"], "mode": "any"})),
    );
    let f = play(&sc);
    assert_eq!(f.tool(2, "w").map(|t| (t.status, t.ended / MS)), Some((Status::Completed, 5000)));
}

#[test]
fn stop_agent_answers_when_the_run_has_ended_and_sends_no_report() {
    let stop = tooled("s", "stop_agent", json!({"name": "one"}));
    let mut slow = call("e", "edit", 9000);
    slow.abort_takes = 500 * MS;
    let boss = vec![reply(1000, vec![stop]), reply(0, vec![])];
    let sc = team(boss, vec![reply(0, vec![slow])], vec![reply(0, vec![])]);
    let f = play(&sc);
    assert_eq!(boss_tool(&f, "s"), (Status::Completed, 1500));
    assert_eq!(run(&f, 1), (Outcome::Stopped, 1500));
    let text = f.tool(1, "e").and_then(|t| t.text.clone()).unwrap_or_default();
    assert_eq!(text, "[Stopped by boss after 1.0 s. It may have taken effect in part.]");
    // Only the report of `two` comes.
    assert_eq!(f.injections.iter().map(|i| i.reports).sum::<usize>(), 1);
}

#[test]
fn spawn_send_and_all() {
    let spawn = tooled("sp", "spawn_agent", json!({"name": "one", "prompt": "Begin."}));
    let send = tooled("se", "send_message", json!({"to": "all", "text": "hello", "id": "hi"}));
    let again = tooled("sp2", "spawn_agent", json!({"name": "one", "prompt": "Again."}));
    let boss = vec![reply(1000, vec![spawn, send, again]), reply(0, vec![]), reply(0, vec![])];
    let mut sc =
        team(boss, vec![reply(500, vec![]), reply(500, vec![])], vec![reply(5000, vec![]), reply(0, vec![])]);
    sc.agents[1].spawned = true;
    sc.agents[1].prompt = None;
    let f = play(&sc);
    assert_eq!(boss_tool(&f, "sp"), (Status::Completed, 1000));
    assert_eq!(boss_tool(&f, "sp2"), (Status::Failed, 1000));
    // Both get their own copy, in spawn order.
    let to: Vec<usize> = f.messages.iter().filter(|m| m.id == "hi").map(|m| m.to).collect();
    assert_eq!(to, [2, 1]);
    assert_eq!(place(&f, "hi", 1), (Point::B, 1, 1, 1500));
    assert_eq!(place(&f, "hi", 2), (Point::B, 1, 1, 5000));
}

#[test]
fn urgent_among_agents() {
    let mut sc = team(vec![reply(9000, vec![])], vec![reply(20_000, vec![])], vec![reply(9000, vec![])]);
    sc.agents[1].model.as_mut().expect("a model").extend((0..8).map(|_| reply(20_000, vec![])));
    sc.items.push(message("p", 500, Some(2), 1, URGENT));
    for i in 0..7 {
        sc.items.push(message(&format!("u{i}"), 1000 + 500 * i, Some(0), 1, URGENT));
    }
    let f = play(&sc);
    let fate = |id: &str| f.message(id, 1).map(|m| m.fate.clone());
    assert_eq!(fate("p"), Some(Fate::Refused { reason: "urgent_not_allowed", at: 500 * MS }));
    assert_eq!(place(&f, "u5", 1), (Point::Stream, 1, 6, 3500));
    assert_eq!(fate("u6"), Some(Fate::Refused { reason: "urgent_rate", at: 4000 * MS }));
}

#[test]
fn close_returns_everything_and_reports_to_the_parent() {
    let mut sc =
        team(vec![reply(9000, vec![]), reply(0, vec![])], vec![reply(5000, vec![])], vec![reply(0, vec![])]);
    sc.agents[2].parent = Some(1);
    sc.items.push(message("m", 1000, None, 1, AFTER));
    sc.items.push(action("c", 2000, Act::Close { agent: 1, by: None }));
    sc.items.push(message("n", 3000, None, 2, AFTER));
    let f = play(&sc);
    let fate = |id: &str, to| f.message(id, to).map(|m| m.fate.clone());
    assert_eq!(run(&f, 1), (Outcome::Stopped, 2000));
    assert_eq!(fate("m", 1), Some(Fate::Returned { reason: "closed", at: 2000 * MS }));
    assert_eq!(fate("n", 2), Some(Fate::Returned { reason: "closed", at: 3000 * MS }));
    assert_eq!(f.injections.last().map(|i| (i.point, i.reports)), Some((Point::B, 1)));
}
