//! Cases worked out by hand: crashes, shutdowns and the take-up.

use super::hand_checks::*;
use super::model::*;
use super::result::*;
use serde_json::json;

fn crash(at: u64) -> Item {
    action("c", at, Act::Crash { down: 2000 * MS })
}

fn shutdown(at: u64) -> Item {
    action("d", at, Act::Shutdown { down: 2000 * MS })
}

fn text(f: &Findings, id: &str) -> String {
    f.tool(1, id).and_then(|t| t.text.clone()).unwrap_or_default()
}

const LOST: &str =
    "[Unknown: the process ended while this ran. It may have taken effect in part or in full.]";

/// "What would arrive while no process lives arrives at the take-up, behind it, in order", and "in (3) each agent goes on
/// from its record": a lost call is `unknown`, one that never started `skipped`; "what a crash took counts for nothing".
#[test]
fn a_crash_takes_the_calls_that_ran() {
    let tools = vec![call("a", "read", 500), call("b", "read", 3000), call("e", "edit", 10)];
    let mut sc = pair(vec![reply(1000, tools), reply(500, vec![])]);
    sc.items.push(message("before", 1200, None, 1, BOUNDARY));
    sc.items.push(crash(2000));
    sc.items.push(message("same", 2000, None, 1, AFTER));
    sc.items.push(message("down", 3000, None, 1, AFTER));
    let f = play(&sc);
    assert_eq!(f.resumed, [4000 * MS]);
    assert_eq!(tool(&f, "a"), (Status::Completed, 1500));
    assert_eq!(tool(&f, "b"), (Status::Unknown, 4000));
    assert_eq!((tool(&f, "e").0, text(&f, "b").as_str()), (Status::Skipped, LOST));
    assert_eq!(text(&f, "e"), "[Skipped: the process ended before this ran]");
    assert_eq!(place(&f, "before", 1), (Point::D, 1, 1, 4000));
    let injection = f.injection("down", 1).expect("it is injected");
    assert_eq!(injection.messages, ["before", "same", "down"]);
    assert!(injection.skipped.is_empty() && injection.interrupted.is_empty());
    assert_eq!(run(&f, 1), (Outcome::Finished, 4500));
    assert_eq!(f.message("same", 1).map(|m| m.sent), Some(4000 * MS));
}

/// "Nothing of a lost call goes on"; "a wait for a retry is over as if cut (point `stream`)"; "used entries stay used".
#[test]
fn a_crash_takes_the_model_call() {
    let mut sc = pair(vec![reply(3000, vec![]), reply(500, vec![])]);
    sc.items.push(message("m", 500, None, 1, LATER));
    sc.items.push(message("n", 600, None, 1, AFTER));
    sc.items.push(crash(1000));
    let f = play(&sc);
    assert_eq!(f.calls[0].cut, Some(Cut { at: 3000 * MS, said: None, reason: Some("error") }));
    assert_eq!(place(&f, "n", 1), (Point::Stream, 1, 1, 3000));
    assert_eq!(place(&f, "m", 1), (Point::B, 1, 2, 3500));
    let fails = Entry { error: Some(ModelError::Overloaded), ..Entry::default() };
    let mut sc = pair(vec![fails, reply(500, vec![]), reply(0, vec![])]);
    sc.items.push(message("n", 100, None, 1, AFTER));
    sc.items.push(crash(200));
    let f = play(&sc);
    assert_eq!(place(&f, "n", 1), (Point::Stream, 1, 1, 2200));
    assert_eq!(run(&f, 1), (Outcome::Finished, 2700));
}

/// E3, E4. "After a crash it is committed once a result that it cost is recorded, and its receipt names those calls."
#[test]
fn mail_is_committed_by_what_is_recorded() {
    let mut slow = call("b", "read", 9000);
    slow.abort_takes = 1500 * MS;
    let mut sc = pair(vec![reply(0, vec![call("a", "read", 9000), slow]), reply(0, vec![])]);
    let mut urgent = message("u", 1000, None, 1, URGENT);
    if let Act::Message(m) = &mut urgent.act {
        m.expires_after = Some(1500 * MS);
    }
    sc.items.push(urgent);
    sc.items.push(crash(2000));
    let f = play(&sc);
    assert_eq!((tool(&f, "a"), tool(&f, "b")), ((Status::Interrupted, 1000), (Status::Unknown, 4000)));
    assert_eq!(place(&f, "u", 1), (Point::C, 1, 1, 4000));
    assert_eq!(f.injection("u", 1).map(|i| i.interrupted.clone()), Some(vec!["a".to_string()]));
    // Nothing that it cost is recorded: "what expired meanwhile is returned in (1), with that `t`".
    if let Some(calls) = sc.agents[1].model.as_mut().map(|m| &mut m[0].tools) {
        calls.remove(0);
    }
    let f = play(&sc);
    assert_eq!(fate(&f, "u", 1), Fate::Returned { reason: "expired", at: 4000 * MS });
    assert_eq!(tool(&f, "b"), (Status::Unknown, 4000));
}

/// "A stop, a close, a supersede, a withdraw and a resume are durable when they are answered: after a crash they have
/// happened, each with its own reason."
#[test]
fn what_was_asked_for_has_happened_after_a_crash() {
    let mut slow = call("e", "edit", 9000);
    slow.abort_takes = 1900 * MS;
    let mut sc = pair(vec![reply(0, vec![slow]), reply(500, vec![])]);
    sc.items.push(action("s", 1000, Act::Supersede { agent: 1, text: "instead".into() }));
    sc.items.push(crash(2000));
    let f = play(&sc);
    assert_eq!((tool(&f, "e").0, text(&f, "e").as_str()), (Status::Unknown, LOST));
    assert_eq!(run(&f, 1), (Outcome::Stopped, 4000));
    assert_eq!(place(&f, "s", 1), (Point::Start, 2, 0, 4000));
    // A7: a close.
    sc.items[0] = action("s", 1000, Act::Close { agent: 1, by: None });
    sc.items.push(message("m", 5000, None, 1, AFTER));
    let f = play(&sc);
    assert_eq!(run(&f, 1), (Outcome::Stopped, 4000));
    assert_eq!(fate(&f, "m", 1), Fate::Returned { reason: "closed", at: 5000 * MS });
}

/// A crash in the instant in which a run ended: its parent, who has not been told, is told.
#[test]
fn an_end_that_was_not_told_is_told() {
    let mut sc = pair(vec![reply(1000, vec![])]);
    sc.agents[0].model = Some(vec![reply(0, vec![])]);
    let when = When::After { agent: 1, event: "run_finished".into(), of: "any".into(), plus: None };
    sc.items.push(Item { id: "c".into(), when, act: Act::Crash { down: 2000 * MS } });
    let f = play(&sc);
    assert_eq!(f.injections.iter().map(|i| (i.agent, i.at / MS)).collect::<Vec<_>>(), [(0, 3000)]);
}

/// "A run is there from the message on": woken in the instant of the crash, the agent begins at the take-up.
#[test]
fn a_run_that_was_asked_for_begins_at_the_take_up() {
    let mut sc = pair(vec![reply(0, vec![]), reply(500, vec![])]);
    sc.items.push(message("m", 1000, None, 1, AFTER));
    sc.items.push(crash(1000));
    let f = play(&sc);
    assert_eq!(place(&f, "m", 1), (Point::Start, 2, 0, 3000));
    assert_eq!(f.run(1, 2).map(|r| r.started / MS), Some(3000));
}

/// "A shutdown stops all": "from its first moment no message is accepted (`shutting_down`)"; "mail stays queued …, and no
/// parent is told of a run that it stopped: that one is resumed".
#[test]
fn a_shutdown_costs_no_more_than_a_crash() {
    let mut slow = call("e", "edit", 9000);
    slow.abort_takes = 500 * MS;
    let mut sc = pair(vec![reply(0, vec![slow, call("f", "edit", 10)]), reply(500, vec![])]);
    sc.agents.push(Agent { name: "peer".into(), parent: Some(0), ..Agent::default() });
    sc.agents[0].model = Some(vec![reply(0, vec![]), reply(0, vec![])]);
    sc.items.push(message("m", 500, Some(2), 1, AFTER));
    sc.items.push(shutdown(1000));
    sc.items.push(message("n", 1200, None, 1, AFTER));
    sc.items.push(message("o", 2000, None, 1, AFTER));
    let f = play(&sc);
    assert_eq!(text(&f, "e"), "[Stopped by a shutdown after 1.0 s. It may have taken effect in part.]");
    assert_eq!(text(&f, "f"), "[Skipped: stopped by a shutdown]");
    assert_eq!(run(&f, 1), (Outcome::Stopped, 1500));
    assert_eq!(fate(&f, "n", 1), Fate::Refused { reason: "shutting_down", at: 1200 * MS });
    // Taken up 2 s after all has ended.
    assert_eq!(f.resumed, [3500 * MS]);
    assert_eq!(place(&f, "m", 1), (Point::Start, 2, 0, 3500));
    assert_eq!(place(&f, "o", 1), (Point::Start, 2, 0, 3500));
    assert_eq!(run(&f, 2), (Outcome::Finished, 4000));
    // Only the end of the second run is told.
    assert_eq!(f.injections.iter().filter(|i| i.agent == 0).map(|i| i.reports).sum::<usize>(), 1);
}

/// "Nothing holds it up beyond the abort deadline: what has not ended by then is `unknown`, also what can't be aborted."
#[test]
fn a_shutdown_waits_for_the_deadline_and_no_longer() {
    let mut deaf = call("e", "edit", 9000);
    deaf.abortable = false;
    let mut sc = pair(vec![reply(0, vec![deaf]), reply(500, vec![])]);
    sc.items.push(shutdown(1000));
    let f = play(&sc);
    assert_eq!(tool(&f, "e"), (Status::Unknown, 3000));
    assert_eq!(f.resumed, [5000 * MS]);
    assert_eq!(run(&f, 2), (Outcome::Finished, 5500));
}

/// "Nobody is woken, and reports wait in their mailboxes for the next start"; "starts that were asked for stay asked
/// for"; "a stop, a close and a withdraw are taken".
#[test]
fn behind_the_fence_nobody_is_woken() {
    let mut slow = call("e", "edit", 9000);
    slow.abort_takes = 1000 * MS;
    let mut sc = pair(vec![reply(0, vec![slow]), reply(500, vec![])]);
    sc.agents[0].model = Some(vec![reply(0, vec![]), reply(0, vec![])]);
    sc.items.push(action("s", 1000, Act::Stop { agent: 1, by: None, subtree: false }));
    sc.items.push(message("asks", 1200, None, 1, AFTER));
    sc.items.push(shutdown(1500));
    let f = play(&sc);
    assert_eq!(run(&f, 1), (Outcome::Stopped, 2000));
    assert_eq!(f.resumed, [4000 * MS]);
    assert_eq!(place(&f, "asks", 1), (Point::Start, 2, 0, 4000));
    assert_eq!(f.injections.iter().find(|i| i.agent == 0).map(|i| i.at / MS), Some(4000));
    // The person's message is withdrawn behind the fence: nobody asks any more.
    sc.items.push(action("w", 1700, Act::Withdraw { message: "asks".into(), by: None }));
    assert!(play(&sc).run(1, 2).is_none());
}

/// What a lost `send_message` would have sent is not sent, and its call is `unknown`.
#[test]
fn a_message_on_its_way_is_lost_with_its_call() {
    let mut send = call("s", "send_message", 0);
    send.input = Some(json!({"to": "worker", "text": "hello", "id": "hello"}));
    let mut sc = pair(vec![reply(9000, vec![]), reply(0, vec![])]);
    sc.agents[0].model = Some(vec![reply(1000, vec![send]), reply(0, vec![])]);
    sc.agents[0].prompt = Some("Go.".into());
    let when = When::After { agent: 0, event: "tool_started".into(), of: "s".into(), plus: None };
    sc.items.push(Item { id: "c".into(), when, act: Act::Crash { down: 2000 * MS } });
    let f = play(&sc);
    assert!(f.message("hello", 1).is_none());
    assert_eq!(f.tool(0, "s").map(|t| (t.status, t.ended / MS)), Some((Status::Unknown, 3000)));
}
