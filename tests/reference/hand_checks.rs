//! Cases worked out by hand from the pages: one worker, mail, the points, the guard, stop and its kin.

use super::model::*;
use super::reading::Reading;
use super::result::*;
use super::simulate::simulate;

pub const MS: Micros = 1_000;

/// A lead without a model and a worker below it.
pub fn pair(model: Vec<Entry>) -> Scenario {
    let lead = Agent { name: "lead".into(), lead: true, ..Agent::default() };
    let worker = Agent {
        name: "worker".into(),
        parent: Some(0),
        prompt: Some("Go.".into()),
        model: Some(model),
        ..Agent::default()
    };
    Scenario { name: "by hand".into(), agents: vec![lead, worker], ..Scenario::default() }
}

/// A reply.
pub fn reply(takes_ms: u64, tools: Vec<Call>) -> Entry {
    Entry { text: Some("one two three four".into()), takes: takes_ms * MS, tools, ..Entry::default() }
}

/// A call.
pub fn call(id: &str, name: &str, takes_ms: u64) -> Call {
    Call::new(id, name, takes_ms * MS)
}

/// A message at an instant.
pub fn message(id: &str, at_ms: u64, from: Option<usize>, to: usize, wish: Wish) -> Item {
    let text = format!("text of {id}");
    let m = Message::new(from, To::Agent(to), &text, wish);
    Item { id: id.into(), when: When::At(at_ms * MS), act: Act::Message(m) }
}

/// An action at an instant.
pub fn action(id: &str, at_ms: u64, act: Act) -> Item {
    Item { id: id.into(), when: When::At(at_ms * MS), act }
}

pub const URGENT: Wish = Wish::Full(Urgency::Urgent);
pub const BOUNDARY: Wish = Wish::Full(Urgency::NextBoundary);
pub const AFTER: Wish = Wish::Full(Urgency::AfterTools);
pub const LATER: Wish = Wish::Full(Urgency::FollowUp);

/// Plays with the default readings.
pub fn play(sc: &Scenario) -> Findings {
    let found = simulate(sc, &Reading::default());
    assert_eq!(found.broken, None);
    found
}

/// Point, run, turn and milliseconds of a message's injection.
pub fn place(found: &Findings, id: &str, to: usize) -> (Point, u32, u32, u64) {
    let i =
        found.injection(id, to).unwrap_or_else(|| panic!("{id} not injected: {:?}", found.message(id, to)));
    (i.point, i.run, i.turn, i.at / MS)
}

/// Status and end in milliseconds of a worker's call.
pub fn tool(found: &Findings, id: &str) -> (Status, u64) {
    let t = found.tool(1, id).unwrap_or_else(|| panic!("no call {id}"));
    (t.status, t.ended / MS)
}

/// Outcome and end in milliseconds of a worker's run.
pub fn run(found: &Findings, id: u32) -> (Outcome, u64) {
    let r = found.run(1, id).unwrap_or_else(|| panic!("no run {id}"));
    (r.outcome, r.ended.unwrap_or(u64::MAX) / MS)
}

/// What became of a message at one receiver.
pub fn fate(found: &Findings, id: &str, to: usize) -> Fate {
    found.message(id, to).map(|m| m.fate.clone()).unwrap_or_else(|| panic!("no message {id}"))
}

fn edits() -> Vec<Call> {
    vec![call("e1", "edit", 1000), call("e2", "edit", 1000), call("r1", "read", 500)]
}

#[test]
fn the_example_of_the_page() {
    let mut sc = pair(vec![reply(1000, edits()), reply(0, vec![])]);
    sc.items.push(message("fix", 1500, Some(0), 1, Wish::Default));
    let f = play(&sc);
    assert_eq!(tool(&f, "e1"), (Status::Completed, 2000));
    assert_eq!(tool(&f, "e2").0, Status::Skipped);
    assert_eq!(tool(&f, "r1").0, Status::Skipped);
    assert_eq!(place(&f, "fix", 1), (Point::C, 1, 1, 2000));
    assert_eq!(run(&f, 1), (Outcome::Finished, 2000));
    assert_eq!(f.run(1, 1).map(|r| (r.model_calls, r.turns)), Some((2, 2)));
    let injection = f.injection("fix", 1);
    assert_eq!(injection.and_then(|i| i.text.as_deref()), Some("[Message from lead: text of fix]"));
    let text = f.tool(1, "e2").and_then(|t| t.text.clone());
    assert_eq!(text.as_deref(), Some("[Skipped: message received from lead before this ran]"));
}

#[test]
fn urgent_cuts_tools_and_streams_but_not_what_ends_then() {
    let mut sc = pair(vec![reply(1000, edits()), reply(1000, vec![]), reply(0, vec![])]);
    sc.agents[1].model.as_mut().expect("a model")[0].tools[0].output = vec![(200 * MS, "a".into())];
    sc.items.push(message("u1", 1250, None, 1, URGENT));
    sc.items.push(message("u2", 1750, None, 1, URGENT));
    let f = play(&sc);
    assert_eq!(tool(&f, "e1"), (Status::Interrupted, 1250));
    let text = f.tool(1, "e1").and_then(|t| t.text.clone()).unwrap_or_default();
    let want = "[Interrupted after 0.2 s: message received from the user. It may have taken effect in part.]\n\
                Output so far:\na";
    assert_eq!(text, want);
    assert_eq!(place(&f, "u1", 1), (Point::C, 1, 1, 1250));
    assert_eq!(place(&f, "u2", 1), (Point::Stream, 1, 2, 1750));
    let cut = f.calls[1].cut.clone().expect("a cut");
    assert_eq!((cut.at, cut.said), (1750 * MS, Some((2, "one two".to_string()))));
    // The same message at the instant of the call's end: it has ended, the rest is skipped.
    sc.items[0] = message("u1", 2000, None, 1, URGENT);
    sc.items.truncate(1);
    let f = play(&sc);
    assert_eq!(tool(&f, "e1"), (Status::Completed, 2000));
    assert_eq!(place(&f, "u1", 1), (Point::C, 1, 1, 2000));
    // And at the reply's end: the reply is whole and every call is skipped.
    sc.items[0] = message("u1", 1000, None, 1, URGENT);
    let f = play(&sc);
    assert_eq!(place(&f, "u1", 1), (Point::A, 1, 1, 1000));
}

#[test]
fn after_tools_waits_for_d_and_follow_up_for_b() {
    let mut sc = pair(vec![reply(1000, edits()), reply(500, vec![]), reply(0, vec![])]);
    sc.items.push(message("late", 1100, None, 1, LATER));
    sc.items.push(message("soon", 1200, None, 1, AFTER));
    let f = play(&sc);
    assert_eq!(place(&f, "soon", 1), (Point::D, 1, 1, 3500));
    assert_eq!(place(&f, "late", 1), (Point::B, 1, 2, 4000));
    assert_eq!(run(&f, 1), (Outcome::Finished, 4000));
}

#[test]
fn what_acts_takes_after_tools_along_in_order_of_arrival() {
    let mut sc = pair(vec![reply(1000, edits()), reply(0, vec![])]);
    sc.items.push(message("a", 1100, None, 1, AFTER));
    sc.items.push(message("b", 1200, None, 1, BOUNDARY));
    let f = play(&sc);
    assert_eq!(f.injections[0].messages, ["a", "b"]);
    assert_eq!(
        f.injections[0].text.as_deref(),
        Some("[User feedback: text of a]\n\n[User feedback: text of b]")
    );
    assert_eq!(f.injections[0].skipped, ["e2", "r1"]);
}

#[test]
fn the_guard_protects_the_third_turn() {
    let turn = |id: &str| reply(1000, vec![call(id, "edit", 1000), call(&format!("{id}x"), "edit", 500)]);
    let mut sc = pair(vec![turn("a"), turn("b"), turn("c"), turn("d"), reply(0, vec![])]);
    sc.items.push(message("m1", 500, None, 1, BOUNDARY));
    sc.items.push(message("m2", 1500, None, 1, BOUNDARY));
    sc.items.push(message("m3", 2500, None, 1, BOUNDARY));
    let f = play(&sc);
    assert_eq!(place(&f, "m1", 1), (Point::A, 1, 1, 1000));
    assert_eq!(place(&f, "m2", 1), (Point::A, 1, 2, 2000));
    // Taken as after_tools: both calls of the third turn run.
    assert_eq!(place(&f, "m3", 1), (Point::D, 1, 3, 4500));
    assert_eq!(tool(&f, "cx"), (Status::Completed, 4500));
}

#[test]
fn a_full_batch_skips_waiting_calls_only_for_urgent() {
    let reads = |n: u32| -> Vec<Call> { (0..n).map(|i| call(&format!("r{i}"), "read", 1000)).collect() };
    let mut sc = pair(vec![reply(0, reads(3)), reply(0, vec![])]);
    sc.settings.max_parallel_tools = Some(2);
    sc.items.push(message("m", 500, None, 1, BOUNDARY));
    let f = play(&sc);
    assert_eq!(tool(&f, "r2"), (Status::Completed, 2000));
    assert_eq!(place(&f, "m", 1), (Point::D, 1, 1, 2000));
    sc.items[0] = message("m", 500, None, 1, URGENT);
    let f = play(&sc);
    assert_eq!(tool(&f, "r0"), (Status::Interrupted, 500));
    assert_eq!(tool(&f, "r2").0, Status::Skipped);
    assert_eq!(place(&f, "m", 1), (Point::C, 1, 1, 500));
}

#[test]
fn an_abort_that_takes_too_long_is_unknown_and_what_cannot_be_aborted_ends() {
    let mut slow = call("slow", "bash", 10_000);
    slow.abort_takes = 3_000 * MS;
    let mut deaf = call("deaf", "bash", 4_000);
    deaf.abortable = false;
    let mut sc =
        pair(vec![reply(0, vec![slow]), reply(0, vec![deaf, call("x", "bash", 1)]), reply(0, vec![])]);
    sc.items.push(message("m", 1000, None, 1, URGENT));
    sc.items.push(message("n", 4000, None, 1, URGENT));
    let f = play(&sc);
    assert_eq!(tool(&f, "slow"), (Status::Unknown, 3000));
    assert_eq!(place(&f, "m", 1), (Point::C, 1, 1, 3000));
    assert_eq!(tool(&f, "deaf"), (Status::Completed, 7000));
    assert_eq!(tool(&f, "x").0, Status::Skipped);
    assert_eq!(place(&f, "n", 1), (Point::C, 1, 2, 7000));
}

#[test]
fn continuations_are_gathered_before_d_and_commit_the_mail_that_skipped() {
    let mut c = call("c", "bash", 1000);
    c.continues = Some(3000 * MS);
    let mut sc =
        pair(vec![reply(0, vec![c, call("e", "edit", 1000), call("f", "edit", 500)]), reply(0, vec![])]);
    sc.items.push(message("m", 1500, None, 1, BOUNDARY));
    sc.items.push(action("w", 2500, Act::Withdraw { message: "m".into(), by: None }));
    let f = play(&sc);
    assert_eq!(tool(&f, "e"), (Status::Completed, 2000));
    assert_eq!(tool(&f, "f").0, Status::Skipped);
    assert_eq!(tool(&f, "c"), (Status::Completed, 4000));
    assert_eq!(place(&f, "m", 1), (Point::C, 1, 1, 4000));
}

#[test]
fn stop_keeps_a_persons_mail_and_returns_an_agents() {
    let mut sc = pair(vec![reply(0, vec![call("e", "edit", 2000), call("f", "edit", 10)]), reply(0, vec![])]);
    sc.items.push(message("p", 500, None, 1, AFTER));
    sc.items.push(message("a", 600, Some(0), 1, AFTER));
    sc.items.push(action("s", 1000, Act::Stop { agent: 1, by: None, subtree: false }));
    sc.items.push(message("q", 3000, None, 1, AFTER));
    let f = play(&sc);
    assert_eq!(tool(&f, "e"), (Status::Stopped, 1000));
    assert_eq!(tool(&f, "f").0, Status::Skipped);
    assert_eq!(run(&f, 1), (Outcome::Stopped, 1000));
    assert_eq!(fate(&f, "a", 1), Fate::Returned { reason: "stopped", at: 1000 * MS });
    assert_eq!(place(&f, "p", 1), (Point::Start, 2, 0, 3000));
    assert_eq!(place(&f, "q", 1), (Point::Start, 2, 0, 3000));
    assert_eq!(f.injections[0].text.as_deref(), Some("text of p\n\ntext of q"));
}

#[test]
fn mail_while_a_stopped_run_ends() {
    let mut slow = call("e", "edit", 5000);
    slow.abort_takes = 1000 * MS;
    let mut sc = pair(vec![reply(0, vec![slow]), reply(0, vec![])]);
    sc.agents.push(Agent { name: "peer".into(), parent: Some(0), ..Agent::default() });
    sc.items.push(action("s", 1000, Act::Stop { agent: 1, by: None, subtree: false }));
    sc.items.push(message("peers", 1200, Some(2), 1, AFTER));
    sc.items.push(message("leads", 1400, Some(0), 1, AFTER));
    let f = play(&sc);
    assert_eq!(fate(&f, "peers", 1), Fate::Returned { reason: "stopped", at: 1200 * MS });
    assert_eq!(run(&f, 1), (Outcome::Stopped, 2000));
    assert_eq!(place(&f, "leads", 1), (Point::Start, 2, 0, 2000));
    // A second stop takes the start back.
    sc.items.push(action("t", 1600, Act::Stop { agent: 1, by: None, subtree: false }));
    let f = play(&sc);
    assert_eq!(fate(&f, "leads", 1), Fate::Returned { reason: "stopped", at: 1600 * MS });
    assert!(f.run(1, 2).is_none());
    // After a supersede a peer's mail is accepted as by a running agent.
    sc.items.pop();
    sc.items[0] = action("s", 1000, Act::Supersede { agent: 1, text: "new".into() });
    let f = play(&sc);
    assert_eq!(place(&f, "peers", 1), (Point::Start, 2, 0, 2000));
    assert_eq!(place(&f, "s", 1), (Point::Start, 2, 0, 2000));
}

#[test]
fn expiry_only_run_supersedes_and_withdraw() {
    let mut sc = pair(vec![reply(0, vec![call("e", "edit", 2000)]), reply(0, vec![]), reply(0, vec![])]);
    let with = |id: &str, at: u64, change: &dyn Fn(&mut Message)| {
        let mut item = message(id, at, None, 1, AFTER);
        if let Act::Message(m) = &mut item.act {
            change(m);
        }
        item
    };
    sc.items.push(with("x", 1000, &|m| m.expires_after = Some(1000 * MS)));
    sc.items.push(with("old", 1100, &|_| {}));
    sc.items.push(with("new", 1200, &|m| m.supersedes = Some("old".into())));
    sc.items.push(with("w", 1300, &|_| {}));
    sc.items.push(action("wd", 1400, Act::Withdraw { message: "w".into(), by: None }));
    sc.items.push(with("other", 1500, &|m| m.only_run = Some(2)));
    sc.items.push(with("mine", 1500, &|m| m.only_run = Some(1)));
    let f = play(&sc);
    // By timer, at its instant, before the boundary.
    assert_eq!(fate(&f, "x", 1), Fate::Returned { reason: "expired", at: 2000 * MS });
    assert_eq!(fate(&f, "old", 1), Fate::Returned { reason: "superseded", at: 1200 * MS });
    assert_eq!(fate(&f, "w", 1), Fate::Returned { reason: "withdrawn", at: 1400 * MS });
    assert_eq!(fate(&f, "other", 1), Fate::Refused { reason: "stale_run", at: 1500 * MS });
    assert_eq!(place(&f, "new", 1), (Point::D, 1, 1, 2000));
    assert_eq!(place(&f, "mine", 1), (Point::D, 1, 1, 2000));
}

#[test]
fn retries_belong_to_one_turn_and_urgent_ends_the_wait() {
    let fails = |takes| Entry { takes: takes * MS, error: Some(ModelError::Overloaded), ..Entry::default() };
    let mut sc = pair(vec![fails(1000), fails(1000), reply(0, vec![])]);
    let f = play(&sc);
    // 1 s, wait 0.5 s, 1 s, wait 1 s.
    assert_eq!(run(&f, 1), (Outcome::Finished, 3500));
    assert_eq!(f.run(1, 1).map(|r| (r.model_calls, r.turns)), Some((3, 1)));
    sc.items.push(message("u", 1250, None, 1, URGENT));
    let f = play(&sc);
    assert_eq!(place(&f, "u", 1), (Point::Stream, 1, 1, 1250));
    // A fresh budget: the second failure is the first of turn 2.
    assert_eq!(run(&f, 1), (Outcome::Finished, 2750));
}

#[test]
fn scripts_that_run_out_fail_and_keep_their_mail() {
    let mut sc = pair(vec![reply(0, vec![call("e", "edit", 1000)])]);
    sc.items.push(message("m", 500, None, 1, LATER));
    let f = play(&sc);
    assert_eq!(run(&f, 1), (Outcome::Failed, 1000));
    assert_eq!(fate(&f, "m", 1), Fate::Queued);
    assert_eq!(f.run(1, 1).and_then(|r| r.error.clone()).as_deref(), Some("script exhausted"));
}
