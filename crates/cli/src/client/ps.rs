//! `midturn ps`: the agents of a session and what they do, as a table.

use midturn_client::{Path, Trouble};
use midturn_core::rules::event::Outcome;
use midturn_core::rules::time::{Micros, Span};
use midturn_view::agents::tries_again;
use midturn_view::words::{self};
use midturn_wire::agent::{Activity, Agent, Agents, State, What};
use midturn_wire::process::Health;
use midturn_wire::session::{Session, Sessions};
use midturn_wire::spent::Spent;

use super::table::{Side, count, duration, table};
use super::{Answer, Asking, now};
use crate::run::progress;

/// How many levels are shown by indenting.
const DEPTH_MAX: usize = 8;

/// The table, with the session above it.
pub(super) async fn ps(asking: &Asking) -> Result<Answer, Trouble> {
    let value = asking.client.get(&asking.path(&["agents"])).await?;
    if asking.json {
        return Ok(Answer::good(value, String::new()));
    }
    let agents: Agents = asking.client.read(&value)?;
    let session: Session = asking.client.get(&asking.path(&[])).await?;
    let all: Sessions = asking.client.get(&Path::of(&["sessions"])).await?;
    let age = now().since(session.began_at);
    let others = all.sessions.iter().filter(|other| other.lives_here() && other.session != session.session);
    let health: Health = asking.client.get(&Path::of(&["health"])).await?;
    let text = head(&session, &health, age) + &rows(&agents.agents, Micros(age.0)) + &also(others);
    Ok(Answer::good(value, text))
}

fn head(session: &Session, health: &Health, age: Span) -> String {
    let age = duration(age);
    let over = if session.live { "" } else { "; no process carries it: `midturn resume` goes on with it" };
    let begun = format!("{}, begun {age} ago{over}: {}\n", session.session, words::short(&session.title));
    // What holds the agents of a session that nobody carries is decided when it is taken up.
    let safety = Some(&health.safety).filter(|safety| session.live && !safety.is_empty());
    begun + &safety.map(|safety| format!("{safety}\n")).unwrap_or_default() + "\n"
}

fn also<'a>(others: impl Iterator<Item = &'a Session>) -> String {
    let others: Vec<&str> = others.map(|other| other.session.as_str()).collect();
    match others.is_empty() {
        true => String::new(),
        false => format!("\nalso running here: {} (`--session ID` shows them)\n", others.join(", ")),
    }
}

fn rows(agents: &[Agent], now: Micros) -> String {
    let columns = [
        ("AGENT", Side::Left),
        ("STATE", Side::Left),
        ("RUN", Side::Right),
        ("TURN", Side::Right),
        ("NOW", Side::Left),
        ("MAIL", Side::Right),
        ("TOKENS", Side::Right),
        ("COST", Side::Right),
        ("BRANCH", Side::Left),
    ];
    let rows: Vec<Vec<String>> =
        in_tree(agents).into_iter().map(|(agent, depth)| row(agent, depth, now)).collect();
    table(&columns, &rows)
}

fn row(agent: &Agent, depth: usize, now: Micros) -> Vec<String> {
    let figure = |figure: u64| if figure == 0 { String::new() } else { count(figure) };
    vec![
        format!("{}{}", "  ".repeat(depth), agent.name),
        state(agent),
        figure(agent.run),
        figure(agent.turn.into()),
        doing(&agent.activity, now),
        figure(agent.pending),
        count(agent.tokens),
        Spent::of_agents([agent]).money(),
        agent.branch.clone().unwrap_or_default(),
    ]
}

/// What it is; of one that rests, how its last run ended, or the limit that holds it.
fn state(agent: &Agent) -> String {
    let end = agent.last_end.as_ref().map(|end| Outcome::from(end.outcome).as_str());
    let word = progress::standing(agent.state);
    match (agent.state, &agent.limit, end) {
        (State::Closed, ..) => word.to_owned(),
        (_, Some(limit), _) => format!("{word} (limit: {limit})"),
        (State::Idle, None, Some(end)) => format!("idle ({end})"),
        (_, None, _) => word.to_owned(),
    }
}

/// What has lasted longest, and how much else there is; what waits for a person comes first.
fn doing(activity: &[Activity], now: Micros) -> String {
    let oldest = |activity: &&Activity| activity.since;
    let is_asked = |activity: &Activity| activity.what == What::Approval;
    let asked = activity.iter().filter(|activity| is_asked(activity)).min_by_key(oldest);
    let Some(first) = asked.or_else(|| activity.iter().min_by_key(oldest)) else {
        return String::new();
    };
    let what = match (&first.name, first.call) {
        (Some(tool), _) if is_asked(first) => format!("asks: {tool}"),
        (Some(tool), _) if first.what == What::Slot => format!("waits for a slot: {tool}"),
        (Some(tool), _) => tool.clone(),
        (None, Some(call)) => format!("model (call {call})"),
        (None, None) if first.what == What::Budget => "budget".to_owned(),
        (None, None) if first.what == What::Retry => return waits(first, now),
        (None, None) => "?".to_owned(),
    };
    let more = if activity.len() > 1 { format!(" +{}", activity.len() - 1) } else { String::new() };
    format!("{what} {}{more}", duration(now.since(first.since)))
}

/// What of a failed model call is waited for: which attempt, and until when (semantics.md, section 7).
fn waits(retry: &Activity, now: Micros) -> String {
    let attempt = retry.attempt.map(|attempt| format!(" (attempt {attempt})")).unwrap_or_default();
    let again = retry.until.map_or_else(|| "tries again".to_owned(), |until| tries_again(until, now));
    format!("{again}{attempt}")
}

/// Parents before their children, each with its depth.
fn in_tree(agents: &[Agent]) -> Vec<(&Agent, usize)> {
    let is_child = |agent: &Agent, of: &Agent| agent.parent.as_ref() == Some(&of.name);
    let is_root = |agent: &&Agent| !agents.iter().any(|other| is_child(agent, other));
    let mut ordered = Vec::new();
    let mut waiting: Vec<(&Agent, usize)> =
        agents.iter().rev().filter(is_root).map(|agent| (agent, 0)).collect();
    while let Some((agent, depth)) = waiting.pop() {
        ordered.push((agent, depth));
        let children = agents.iter().rev().filter(|other| is_child(other, agent));
        waiting.extend(children.map(|child| (child, (depth + 1).min(DEPTH_MAX))));
    }
    ordered
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::agent;
    use super::*;

    fn agents(agents: serde_json::Value) -> Vec<Agent> {
        agents.as_array().unwrap().iter().map(agent).collect()
    }

    #[test]
    fn children_stand_below_their_parents_with_what_they_do_and_for_how_long() {
        let agents = agents(json!([
            {"name": "lead", "role": "lead", "state": "running", "run": 1, "turn": 4, "pending": 0, "tokens": 12345, "plan": [],
             "activity": [{"what": "tool", "tool": "w", "name": "wait_agents", "since": 100.0}]},
            {"name": "a", "role": "subagent", "parent": "lead", "state": "idle", "run": 1, "turn": 2, "tokens": 900, "branch": "midturn/x/a",
             "last_end": {"run": 1, "outcome": "finished", "text": "done"}},
            {"name": "b", "role": "subagent", "parent": "lead", "state": "running", "run": 2, "turn": 1, "pending": 3, "tokens": 5, "activity": [
                {"what": "tool", "tool": "r2", "name": "grep", "since": 171.0},
                {"what": "tool", "tool": "r1", "name": "read", "since": 170.5}]},
            {"name": "c", "role": "subagent", "parent": "a", "state": "running", "run": 1, "turn": 1, "tokens": 0,
             "activity": [{"what": "model", "call": 7, "since": 51.0}]},
            {"name": "e", "role": "subagent", "parent": "lead", "state": "idle", "run": 1, "turn": 9, "tokens": 0, "limit": "max_turns",
             "last_end": {"run": 1, "outcome": "limit", "text": "limit reached: max_turns"}},
            {"name": "d", "role": "subagent", "parent": "lead", "state": "running", "run": 1, "turn": 1, "tokens": 0, "activity": [
                {"what": "tool", "tool": "e", "name": "read", "since": 101.0},
                {"what": "approval", "tool": "x", "name": "bash", "since": 111.0}]},
        ]));
        let expected = "\
AGENT  STATE                    RUN  TURN  NOW                        MAIL  TOKENS  BRANCH
lead   running                    1     4  wait_agents 1 min 11 s            12.3k
  a    idle (finished)            1     2                                      900  midturn/x/a
    c  running                    1     1  model (call 7) 2 min 00 s             0
  b    running                    2     1  read 1.0 s +1                 3       5
  e    idle (limit: max_turns)    1     9                                        0
  d    running                    1     1  asks: bash 1 min 00 s +1              0
";
        assert_eq!(rows(&agents, Micros(171_500_000)), expected);
    }

    #[test]
    fn a_wait_for_the_model_says_until_when_and_which_attempt_comes() {
        for (more, expected) in [
            (json!({"until": 186.0, "attempt": 7}), "tries again in 15 s (attempt 7)"),
            (json!({}), "tries again"),
        ] {
            let mut retry = json!({"what": "retry", "since": 170.0});
            retry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let retry: Activity = serde_json::from_value(retry).unwrap();
            assert_eq!(doing(&[retry], Micros(171_500_000)), expected);
        }
    }

    #[test]
    fn parents_that_go_round_in_a_circle_hang_nobody() {
        let agents = agents(json!([
            {"name": "a", "role": "subagent", "parent": "b", "state": "idle"},
            {"name": "b", "role": "subagent", "parent": "a", "state": "idle"},
        ]));
        assert_eq!(in_tree(&agents).len(), 0);
    }
}
