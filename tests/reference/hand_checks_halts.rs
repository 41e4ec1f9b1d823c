//! Cases worked out by hand: who is at work when, stops, closes and supersedes of it, reports, resume.

use super::hand_checks::*;
use super::model::*;
use super::result::*;
use serde_json::json;

fn stop(id: &str, at: u64, agent: usize, by: Option<usize>) -> Item {
    action(id, at, Act::Stop { agent, by, subtree: false })
}

fn instead(id: &str, at: u64) -> Item {
    action(id, at, Act::Supersede { agent: 1, text: format!("text of {id}") })
}

fn withdraw(id: &str, at: u64, message: &str) -> Item {
    action(id, at, Act::Withdraw { message: message.into(), by: None })
}

/// A worker whose first call takes a second to abort, a peer and a grandchild.
fn slow_to_stop() -> Scenario {
    let mut slow = call("e", "edit", 5000);
    slow.abort_takes = 1000 * MS;
    let mut sc = pair(vec![reply(0, vec![slow]), reply(0, vec![]), reply(0, vec![])]);
    sc.agents.push(Agent { name: "peer".into(), parent: Some(0), ..Agent::default() });
    sc
}

fn returned(reason: &'static str, at: u64) -> Fate {
    Fate::Returned { reason, at: at * MS }
}

/// "A prompt's run is there from the spawn on: a stop in the same instant begins and stops it (the prompt is in the
/// conversation), so do a close and a supersede."
#[test]
fn a_prompts_run_is_there_from_the_spawn_on() {
    let mut sc = pair(vec![reply(1000, vec![]), reply(0, vec![])]);
    sc.items.push(stop("s", 0, 1, None));
    sc.items.push(action("r", 1000, Act::Resume { agent: Some(1) }));
    let f = play(&sc);
    assert_eq!(run(&f, 1), (Outcome::Stopped, 0));
    assert_eq!(f.run(1, 1).map(|r| (r.turns, r.model_calls)), Some((0, 0)));
    // The prompt is there to go on with.
    assert_eq!(run(&f, 2), (Outcome::Finished, 2000));
    sc.items[0] = action("s", 0, Act::Close { agent: 1, by: None });
    assert_eq!(run(&play(&sc), 1), (Outcome::Stopped, 0));
    sc.items = vec![instead("s", 0)];
    let f = play(&sc);
    assert_eq!(run(&f, 1), (Outcome::Stopped, 0));
    assert_eq!(place(&f, "s", 1), (Point::Start, 2, 0, 0));
}

/// "Whoever was stopped and is asked for again by somebody who may wake it is at work for everybody from that moment on,
/// while its last calls end too": others' mail is returned at once until then, "and from then on it waits for that run".
#[test]
fn mail_waits_for_a_run_that_somebody_has_asked_for() {
    let mut sc = slow_to_stop();
    sc.items.push(stop("s", 1000, 1, None));
    sc.items.push(message("early", 1200, Some(2), 1, AFTER));
    sc.items.push(message("asks", 1400, None, 1, AFTER));
    sc.items.push(message("late", 1600, Some(2), 1, AFTER));
    let f = play(&sc);
    assert_eq!(fate(&f, "early", 1), returned("stopped", 1200));
    assert_eq!(place(&f, "asks", 1), (Point::Start, 2, 0, 2000));
    assert_eq!(place(&f, "late", 1), (Point::Start, 2, 0, 2000));
    // `resume` asks as well.
    sc.items[2] = action("r", 1400, Act::Resume { agent: Some(1) });
    assert_eq!(place(&play(&sc), "late", 1), (Point::Start, 2, 0, 2000));
}

/// "When nobody who may wake a stopped agent asks for that run any more, before it has begun (withdrawn, expired; a
/// replacement asks in the same step), the agent is one that was stopped, after a supersede too."
#[test]
fn a_start_that_nobody_asks_for_any_more_is_off() {
    let mut sc = slow_to_stop();
    sc.items.push(stop("s", 1000, 1, None));
    sc.items.push(message("asks", 1200, None, 1, AFTER));
    sc.items.push(message("waits", 1400, Some(2), 1, AFTER));
    sc.items.push(withdraw("w", 1600, "asks"));
    sc.items.push(message("after", 3000, Some(2), 1, AFTER));
    let f = play(&sc);
    assert_eq!(fate(&f, "waits", 1), returned("stopped", 1600));
    assert_eq!(fate(&f, "after", 1), returned("stopped", 3000));
    assert!(f.run(1, 2).is_none());
    // A8: after a supersede too.
    sc.items[0] = instead("s", 1000);
    sc.items[1] = stop("nothing", 0, 0, None);
    sc.items[3] = withdraw("w", 1600, "s");
    let f = play(&sc);
    assert_eq!(fate(&f, "waits", 1), returned("stopped", 1600));
    assert!(f.run(1, 2).is_none());
    // A replacement asks in the same step.
    let mut new = message("new", 1600, None, 1, AFTER);
    if let Act::Message(m) = &mut new.act {
        m.supersedes = Some("s".into());
    }
    sc.items[3] = new;
    let f = play(&sc);
    assert_eq!(fate(&f, "s", 1), returned("superseded", 1600));
    assert_eq!(place(&f, "waits", 1), (Point::Start, 2, 0, 2000));
}

/// The same by expiry, and in the instant in which an idle agent that was stopped is woken.
#[test]
fn a_start_expires_with_who_asked_for_it() {
    let mut sc = slow_to_stop();
    sc.items.push(stop("s", 1000, 1, None));
    let mut asks = message("asks", 1200, None, 1, AFTER);
    if let Act::Message(m) = &mut asks.act {
        m.expires_after = Some(300 * MS);
    }
    sc.items.push(asks);
    sc.items.push(message("waits", 1400, Some(2), 1, AFTER));
    assert_eq!(fate(&play(&sc), "waits", 1), returned("stopped", 1500));
    // Idle: woken and taken back in one instant, behind it a peer's message.
    sc.items = vec![stop("s", 1000, 1, None), message("asks", 3000, None, 1, AFTER)];
    sc.items.push(message("waits", 3000, Some(2), 1, AFTER));
    sc.items.push(withdraw("w", 3000, "asks"));
    sc.items.push(message("after", 3000, Some(2), 1, AFTER));
    let f = play(&sc);
    assert_eq!(fate(&f, "waits", 1), returned("stopped", 3000));
    assert_eq!(fate(&f, "after", 1), returned("stopped", 3000));
    assert!(f.run(1, 2).is_none());
}

/// "A stop during that time takes the start back: that mail is then pending at a stop, the superseding message too."
#[test]
fn a_stop_takes_the_start_of_a_supersede_back() {
    let mut sc = slow_to_stop();
    sc.items.push(instead("i", 1000));
    sc.items.push(message("peers", 1200, Some(2), 1, AFTER));
    sc.items.push(stop("s", 1400, 1, None));
    let f = play(&sc);
    assert_eq!(fate(&f, "i", 1), Fate::Queued);
    assert_eq!(fate(&f, "peers", 1), returned("stopped", 1400));
    assert!(f.run(1, 2).is_none());
}

/// The texts of what the lead's prompt got.
fn told(f: &Findings) -> Vec<String> {
    f.injections.iter().filter(|i| i.agent == 0).flat_map(|i| i.text.clone()).collect()
}

/// "The report on a run that the next one follows at once says `[NAME was superseded by the user and goes on: REPORT]`,
/// after a stop `was stopped and goes on`; it ends no wait, neither as an answer nor as other mail."
#[test]
fn a_run_that_the_next_one_follows_ends_no_wait() {
    let mut wait = call("w", "wait_agents", 0);
    wait.input = Some(json!({"names": ["worker"], "mode": "any"}));
    let mut sc = pair(vec![reply(3000, vec![]), reply(2000, vec![])]);
    sc.agents[0].model = Some(vec![reply(0, vec![wait]), reply(0, vec![])]);
    sc.agents[0].prompt = Some("Go.".into());
    sc.items.push(instead("i", 1000));
    let f = play(&sc);
    assert_eq!(f.tool(0, "w").map(|t| (t.status, t.ended / MS)), Some((Status::Completed, 3000)));
    assert_eq!(f.injections.iter().filter(|i| i.point == Point::Wait).map(|i| i.reports).sum::<usize>(), 1);
    assert_eq!(told(&f), [format!("[worker was superseded by the user and goes on: {UNSAID}]")]);
    // After a stop, with somebody who asks while the last call ends.
    let mut sc = slow_to_stop();
    sc.agents[0].model = Some(vec![reply(9000, vec![]), reply(0, vec![])]);
    sc.agents[0].prompt = Some("Go.".into());
    sc.items.push(stop("s", 1000, 1, None));
    sc.items.push(message("asks", 1200, None, 1, AFTER));
    let texts = told(&play(&sc)).join("\n");
    assert!(texts.starts_with(&format!("[worker was stopped and goes on: {UNSAID}]")), "{texts}");
}

/// A5. "Unless the parent itself stopped it: then it is the result of that call, or, if that call is cut or lost in a
/// crash before it has its result, mail after all."
#[test]
fn a_report_whose_call_is_cut_is_mail_after_all() {
    let mut halt = call("h", "stop_agent", 0);
    halt.input = Some(json!({"name": "worker", "scope": "subtree"}));
    let mut slow = call("g", "bash", 9000);
    slow.abort_takes = 1500 * MS;
    let mut sc = pair(vec![reply(9000, vec![])]);
    sc.agents[0].model = Some(vec![reply(1000, vec![halt]), reply(5000, vec![]), reply(0, vec![])]);
    sc.agents[0].prompt = Some("Go.".into());
    sc.agents.push(Agent {
        name: "grandchild".into(),
        parent: Some(1),
        prompt: Some("Go.".into()),
        model: Some(vec![reply(0, vec![slow])]),
        ..Agent::default()
    });
    let reports =
        |f: &Findings| f.injections.iter().filter(|i| i.agent == 0).map(|i| i.reports).sum::<usize>();
    let f = play(&sc);
    assert_eq!(f.tool(0, "h").map(|t| (t.status, t.ended / MS)), Some((Status::Completed, 2500)));
    assert_eq!(reports(&f), 0);
    sc.items.push(message("u", 1500, None, 0, URGENT));
    let f = play(&sc);
    assert_eq!(f.tool(0, "h").map(|t| (t.status, t.ended / MS)), Some((Status::Interrupted, 1500)));
    assert_eq!(reports(&f), 1);
    assert!(told(&f).contains(&format!("[worker was stopped: {UNSAID}]")), "{:?}", told(&f));
    sc.items[0] = action("c", 1500, Act::Crash { down: 1000 * MS });
    assert_eq!(reports(&play(&sc)), 1);
}

/// "`resume` starts an agent that rests with work unfinished: one that was stopped, or whose last run failed. With
/// neither mail nor anything unanswered no run starts, it only becomes one that anybody may wake."
#[test]
fn resume_goes_on_with_what_is_unfinished() {
    let mut sc = pair(vec![reply(1000, vec![]), reply(0, vec![])]);
    sc.agents.push(Agent { name: "peer".into(), parent: Some(0), ..Agent::default() });
    // The reply ends in the instant of the stop: all is answered.
    sc.items.push(stop("s", 1000, 1, None));
    sc.items.push(action("r", 2000, Act::Resume { agent: Some(1) }));
    sc.items.push(message("m", 3000, Some(2), 1, AFTER));
    let f = play(&sc);
    assert_eq!(run(&f, 1), (Outcome::Stopped, 1000));
    assert_eq!(place(&f, "m", 1), (Point::Start, 2, 0, 3000));
    // One whose last run failed, as it stood.
    let fails = Entry { error: Some(ModelError::InvalidRequest), ..Entry::default() };
    let mut sc = pair(vec![fails, reply(500, vec![])]);
    sc.items.push(action("r", 2000, Act::Resume { agent: Some(1) }));
    let f = play(&sc);
    assert_eq!((run(&f, 1), run(&f, 2)), ((Outcome::Failed, 0), (Outcome::Finished, 2500)));
}

/// "With no name: all of them, in spawn order, but for a failed one whose end its parent has read."
#[test]
fn resume_all_leaves_out_what_a_parent_has_read() {
    let fails = Entry { error: Some(ModelError::InvalidRequest), ..Entry::default() };
    let mut sc = pair(vec![fails, reply(500, vec![])]);
    sc.items.push(action("r", 2000, Act::Resume { agent: None }));
    // A lead that is a name only has read nothing.
    assert_eq!(run(&play(&sc), 2), (Outcome::Finished, 2500));
    sc.agents[0].model = Some(vec![reply(0, vec![])]);
    assert!(play(&sc).run(1, 2).is_none());
}

/// "`stop_requested.reason`": stop, supersede, close or shutdown; a person's mail is `still_queued`.
#[test]
fn a_stop_says_why_and_what_stays() {
    let mut sc = slow_to_stop();
    sc.items.push(message("p", 500, None, 1, AFTER));
    sc.items.push(stop("s", 1000, 1, Some(0)));
    let f = play(&sc);
    let stop = &f.stops[0];
    assert_eq!(
        (stop.reason, stop.by.as_str(), stop.still_queued.as_slice()),
        ("stop", "lead", &["p".to_string()][..])
    );
    sc.items[1] = action("d", 1000, Act::Shutdown { down: 1000 * MS });
    assert_eq!(play(&sc).stops[0].reason, "shutdown");
}
