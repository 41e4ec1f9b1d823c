//! `midturn ps`: the agents of a session and what they do, as a table.

use std::time::{SystemTime, UNIX_EPOCH};

use midturn_core::rules::event::Outcome;

use super::http::{Path, Trouble};
use super::table::{Side, count, duration, table};
use super::wire::{Activity, Agent, AgentState, Agents, Health, Session, Sessions};
use super::{Answer, Asking};
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
    let session: Session = asking.client.read(&asking.client.get(&asking.path(&[])).await?)?;
    let all: Sessions = asking.client.read(&asking.client.get(&Path::of(&["sessions"])).await?)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let since_begin = (now - session.began_at).max(0.0);
    let others = all.sessions.iter().filter(|other| other.live && other.session != session.session);
    let health: Health = asking.client.read(&asking.client.get(&Path::of(&["health"])).await?)?;
    let text = head(&session, &health, since_begin) + &rows(&agents.agents, since_begin) + &also(others);
    Ok(Answer::good(value, text))
}

fn head(session: &Session, health: &Health, since_begin: f64) -> String {
    let age = duration(since_begin);
    let over = if session.live { "" } else { "; no process carries it: `midturn resume` goes on with it" };
    let begun = format!("{}, begun {age} ago{over}: {}\n", session.session, progress::short(&session.title));
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

fn rows(agents: &[Agent], now: f64) -> String {
    let columns = [
        ("AGENT", Side::Left),
        ("STATE", Side::Left),
        ("RUN", Side::Right),
        ("TURN", Side::Right),
        ("NOW", Side::Left),
        ("MAIL", Side::Right),
        ("TOKENS", Side::Right),
        ("BRANCH", Side::Left),
    ];
    let rows: Vec<Vec<String>> =
        in_tree(agents).into_iter().map(|(agent, depth)| row(agent, depth, now)).collect();
    table(&columns, &rows)
}

fn row(agent: &Agent, depth: usize, now: f64) -> Vec<String> {
    let figure = |figure: u64| if figure == 0 { String::new() } else { count(figure) };
    vec![
        format!("{}{}", "  ".repeat(depth), agent.name),
        state(agent),
        figure(agent.run),
        figure(agent.turn.into()),
        doing(&agent.activity, now),
        figure(agent.pending),
        count(agent.tokens),
        agent.branch.clone().unwrap_or_default(),
    ]
}

/// What it is; of one that rests, how its last run ended, or the limit that holds it.
fn state(agent: &Agent) -> String {
    let end = agent.last_end.as_ref().map(|end| match end.outcome {
        Outcome::Finished => "finished",
        Outcome::Stopped => "stopped",
        Outcome::Failed => "failed",
        Outcome::Limit => "limit",
    });
    match (agent.state, &agent.limit, end) {
        (AgentState::Closed, ..) => agent.state.as_str().to_owned(),
        (state, Some(limit), _) => format!("{} (limit: {limit})", state.as_str()),
        (AgentState::Idle, None, Some(end)) => format!("idle ({end})"),
        (state, None, _) => state.as_str().to_owned(),
    }
}

/// What has lasted longest, and how much else there is; what waits for a person comes first.
fn doing(activity: &[Activity], now: f64) -> String {
    let oldest = |a: &&Activity, b: &&Activity| a.since.total_cmp(&b.since);
    let asked = activity.iter().filter(|activity| activity.is_approval()).min_by(oldest);
    let Some(first) = asked.or_else(|| activity.iter().min_by(oldest)) else {
        return String::new();
    };
    let what = match (&first.name, first.call) {
        (Some(tool), _) if first.is_approval() => format!("asks: {tool}"),
        (Some(tool), _) => tool.clone(),
        (None, Some(call)) => format!("model (call {call})"),
        (None, None) => first.what.clone(),
    };
    let more = if activity.len() > 1 { format!(" +{}", activity.len() - 1) } else { String::new() };
    format!("{what} {}{more}", duration(now - first.since))
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

    use super::*;

    fn agents(agents: serde_json::Value) -> Vec<Agent> {
        serde_json::from_value(agents).unwrap()
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
        assert_eq!(rows(&agents, 171.5), expected);
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
