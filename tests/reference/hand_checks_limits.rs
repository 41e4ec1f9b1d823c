//! Cases worked out by hand: limits over a life, what they refuse, and what raising them does.

use super::hand_checks::*;
use super::model::*;
use super::result::*;

fn turn(id: &str) -> Entry {
    reply(1000, vec![call(id, "edit", 1000)])
}

fn raise(id: &str, at: u64, agent: Option<usize>, turns: u64) -> Item {
    let limits = Limits { turns: Some(turns), ..Limits::default() };
    action(id, at, Act::Raise { agent, limits })
}

fn refused(at: u64) -> Fate {
    Fate::Refused { reason: "limit", at: at * MS }
}

fn limited(turns: u64) -> Scenario {
    let mut sc = pair(vec![turn("a"), turn("b"), reply(1000, vec![]), reply(1000, vec![])]);
    sc.settings.limits.turns = Some(turns);
    sc
}

/// A12. "One that has reached a limit is woken by nobody until a person raises it: a message to it is refused (`limit`),
/// nothing is queued." "Reached once it has begun to end a run, or a run has ended with nothing left for another turn."
#[test]
fn a_limit_refuses_once_it_is_reached() {
    let mut sc = limited(2);
    sc.items.push(message("m", 3500, None, 1, AFTER));
    sc.items.push(message("n", 5000, None, 1, AFTER));
    let f = play(&sc);
    assert_eq!(run(&f, 1), (Outcome::Limit, 4000));
    // Still at work when it came: injected at D, unanswered.
    assert_eq!(place(&f, "m", 1), (Point::D, 1, 2, 4000));
    assert_eq!(fate(&f, "n", 1), refused(5000));
    // A run that ends with nothing left.
    let mut sc = limited(3);
    sc.items.push(message("n", 5001, None, 1, AFTER));
    let f = play(&sc);
    assert_eq!(run(&f, 1), (Outcome::Finished, 5000));
    assert_eq!(fate(&f, "n", 1), refused(5001));
    // Before the run's end it is injected at B, and the limit ends the run.
    sc.items[0] = message("n", 5000, None, 1, AFTER);
    let f = play(&sc);
    assert_eq!(place(&f, "n", 1), (Point::B, 1, 3, 5000));
    assert_eq!(run(&f, 1), (Outcome::Limit, 5000));
}

/// "Raised, it lets waiting mail wake its agent, and starts again whoever's run it had ended, as `resume` does."
#[test]
fn a_raised_limit_starts_again_whose_run_it_ended() {
    let mut sc = limited(2);
    sc.items.push(raise("r", 6000, Some(1), 3));
    sc.items.push(message("m", 9000, None, 1, AFTER));
    let f = play(&sc);
    assert_eq!(run(&f, 2), (Outcome::Finished, 7000));
    assert_eq!(f.run(1, 2).map(|r| r.turns), Some(1));
    assert_eq!(fate(&f, "m", 1), refused(9000));
    // "Never below what is spent."
    sc.items[0] = raise("r", 6000, Some(1), 1);
    assert!(play(&sc).invalid.is_some());
    // To what is spent: nothing is left.
    sc.items[0] = raise("r", 6000, Some(1), 2);
    assert!(play(&sc).run(1, 2).is_none());
}

/// "What would be returned at once is" returned, not refused; `resume` of one at a limit is refused.
#[test]
fn who_was_stopped_at_a_limit_rests() {
    let mut sc = limited(2);
    sc.agents.push(Agent { name: "peer".into(), parent: Some(0), ..Agent::default() });
    sc.items.push(message("p", 3000, None, 1, LATER));
    sc.items.push(action("s", 3500, Act::Stop { agent: 1, by: None, subtree: false }));
    sc.items.push(message("m", 5000, Some(2), 1, AFTER));
    sc.items.push(message("n", 5000, Some(0), 1, AFTER));
    sc.items.push(action("r", 6000, Act::Resume { agent: Some(1) }));
    let f = play(&sc);
    assert_eq!(run(&f, 1), (Outcome::Stopped, 3500));
    assert_eq!(fate(&f, "m", 1), Fate::Returned { reason: "stopped", at: 5000 * MS });
    assert_eq!(fate(&f, "n", 1), refused(5000));
    assert!(f.run(1, 2).is_none());
}

/// "A session's is then every resting agent's"; "where a session's limit is reached, a spawn is refused".
#[test]
fn a_sessions_limit_is_every_resting_agents() {
    let mut sc = pair(vec![turn("a"), turn("b"), reply(0, vec![])]);
    let mut two = sc.agents[1].clone();
    two.name = "two".into();
    two.model = Some(vec![reply(500, vec![]), reply(0, vec![]), reply(0, vec![])]);
    sc.agents.push(two);
    sc.settings.session.turns = Some(3);
    // The third turn is taken at 2 s; the limit is reached when it ends a run.
    sc.items.push(message("m", 3900, None, 2, AFTER));
    sc.items.push(message("n", 4500, None, 2, AFTER));
    sc.items.push(raise("r", 5000, None, 9));
    sc.items.push(message("o", 6000, None, 2, AFTER));
    let f = play(&sc);
    // Not reached yet: a run begins, and ends without a turn; by that it is reached.
    assert_eq!(f.run(2, 2).map(|r| (r.outcome, r.turns)), Some((Outcome::Limit, 0)));
    assert_eq!(run(&f, 1), (Outcome::Limit, 4000));
    assert_eq!(fate(&f, "n", 2), refused(4500));
    // Raised, both go on.
    assert_eq!(run(&f, 2), (Outcome::Finished, 5000));
    assert_eq!(f.run(2, 3).map(|r| r.outcome), Some(Outcome::Finished));
    assert_eq!(place(&f, "o", 2), (Point::Start, 4, 0, 6000));
}

/// "Only a stop, …, a limit in time or a shutdown cancels the run's token." `[Stopped by the limit max_time after …]`
#[test]
fn a_limit_in_time_cuts_what_runs() {
    let mut slow = call("e", "edit", 9000);
    slow.abort_takes = 500 * MS;
    let mut sc = pair(vec![reply(1000, vec![slow]), reply(0, vec![])]);
    sc.settings.limits.time = Some(3000 * MS);
    sc.items.push(message("k", 2000, None, 1, AFTER));
    sc.items.push(message("m", 3200, None, 1, AFTER));
    let f = play(&sc);
    assert_eq!(tool(&f, "e"), (Status::Stopped, 3500));
    let text = f.tool(1, "e").and_then(|t| t.text.clone());
    let want = "[Stopped by the limit max_time after 2.0 s. It may have taken effect in part.]";
    assert_eq!(text.as_deref(), Some(want));
    assert_eq!(run(&f, 1), (Outcome::Limit, 3500));
    // "Reached once it has begun to end a run"; "keeps its mail".
    assert_eq!(fate(&f, "m", 1), refused(3200));
    assert_eq!(fate(&f, "k", 1), Fate::Queued);
    // A stop that comes as well wins: the run ends as stopped.
    sc.items.push(action("s", 3300, Act::Stop { agent: 1, by: None, subtree: false }));
    assert_eq!(run(&play(&sc), 1), (Outcome::Stopped, 3500));
}

/// Tokens are what the replies used; the limit is looked at when a turn would begin.
#[test]
fn tokens_are_counted_over_a_life() {
    let mut sc = limited(9);
    sc.settings.limits.tokens = Some(100);
    for entry in sc.agents[1].model.iter_mut().flatten() {
        entry.usage = Some((40, 10));
    }
    let f = play(&sc);
    assert_eq!(f.run(1, 1).map(|r| (r.outcome, r.turns)), Some((Outcome::Limit, 2)));
    assert_eq!(f.undetermined, None);
}
