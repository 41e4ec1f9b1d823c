//! `midturn withdraw`, `midturn stop`, `midturn supersede`, `midturn close` and `midturn limit`.

use midturn_client::Trouble;
use midturn_core::rules::id::AgentName;
use midturn_core::rules::limits::Money;
use midturn_core::rules::settings::LimitsPatch;
use midturn_wire::agent::{Agent, Agents, State};
use midturn_wire::message::{Receipt, Withdrawn};
use midturn_wire::text::Text;
use midturn_wire::work::{Closed, Empty, Limits, Scope, Stop, Stopped, Supersede};

use super::{Answer, Asking, receipt};
use crate::run::session::attending;

/// Takes a message back.
pub(super) async fn withdraw(asking: &Asking, id: &str) -> Result<Answer, Trouble> {
    let value = asking.client.post(&asking.path(&["messages", id, "withdraw"]), &Empty {}).await?;
    let text = match asking.client.read::<Withdrawn>(&value)?.returned {
        1 => format!("{id}: taken back; nobody has read it\n"),
        count => format!("{id}: taken back from {count} mailboxes\n"),
    };
    Ok(Answer::good(value, text))
}

/// Stops an agent's run.
pub(super) async fn stop(asking: &Asking, agent: &AgentName, subtree: bool) -> Result<Answer, Trouble> {
    let scope = Some(if subtree { Scope::Subtree } else { Scope::Agent });
    let path = asking.path(&["agents", agent.as_str(), "stop"]);
    let value = asking.client.post(&path, &Stop { scope, stream_run_id: None }).await?;
    let stopped: Stopped = asking.client.read(&value)?;
    Ok(Answer::good(value, told(agent, &stopped)))
}

/// Stops an agent's run and begins its next one with this text, as one action.
pub(super) async fn supersede(asking: &Asking, agent: &AgentName, text: &str) -> Result<Answer, Trouble> {
    let path = asking.path(&["agents", agent.as_str(), "supersede"]);
    let supersede = Supersede { text: Text(text.to_owned()), id: None, stream_run_id: None };
    let value = asking.client.post(&path, &supersede).await?;
    let receipt: Receipt = asking.client.read(&value)?;
    Ok(Answer::good(value, receipt::told(&receipt, None)))
}

/// Closes an agent and all below it.
pub(super) async fn close(asking: &Asking, agent: &AgentName) -> Result<Answer, Trouble> {
    let value = asking.client.post(&asking.path(&["agents", agent.as_str(), "close"]), &Empty {}).await?;
    let closed: Closed = asking.client.read(&value)?;
    Ok(Answer::good(value, format!("{}\n", attending::told_closed(&closed.closed))))
}

/// Sets limits of an agent, or of all of them together.
pub(super) async fn limit(
    asking: &Asking,
    agent: Option<&AgentName>,
    limits: &LimitsPatch,
) -> Result<Answer, Trouble> {
    let path = match agent {
        Some(agent) => asking.path(&["agents", agent.as_str(), "limits"]),
        None => asking.path(&["limits"]),
    };
    let value = asking.client.post(&path, &Limits::from(limits.clone())).await?;
    let text = match agent {
        Some(_) => set(&asking.client.read(&value)?, limits),
        None => {
            let all: Agents = asking.client.get(&asking.path(&["agents"])).await?;
            format!("all together: {}\n{}", limits.words(), unpriced(limits, &all.agents))
        }
    };
    Ok(Answer::good(value, text))
}

/// Said of a limit in money that nothing is counted against.
const UNPRICED: &str = "nobody has said what a model there costs, so max_cost is never reached: set `input` and `output` in \
    [models.\"PROVIDER/NAME\"] of your own configuration file, and resume the session\n";

fn unpriced(limits: &LimitsPatch, agents: &[Agent]) -> &'static str {
    let counts = limits.max_cost.is_some_and(|cost| cost > Money::ZERO);
    let is_unpriced = |agent: &Agent| agent.model.is_some() && agent.cost.is_none();
    if counts && agents.iter().any(is_unpriced) { UNPRICED } else { "" }
}

/// What was set, and what that leaves the agent to do.
fn set(agent: &Agent, limits: &LimitsPatch) -> String {
    let then = match (&agent.limit, agent.state) {
        (Some(limit), _) => format!("; it rests at {limit}, until that is raised"),
        (None, State::Running | State::Ending) => "; it is at work".to_owned(),
        (None, _) => String::new(),
    };
    let unpriced = unpriced(limits, std::slice::from_ref(agent));
    format!("{}: {}{then}\n{unpriced}", agent.name, limits.words())
}

fn told(agent: &AgentName, stopped: &Stopped) -> String {
    let mut text = match (stopped.stopped.as_slice(), &stopped.note) {
        ([], Some(note)) => format!("{agent}: {note}\n"),
        ([], None) => format!("{agent}: there was nothing to stop\n"),
        (names, note) => {
            let note = note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
            format!("stopped: {}{note}\n", names.join(", "))
        }
    };
    if !stopped.still_queued.is_empty() {
        text.push_str(&format!("still queued for the next run: {}\n", stopped.still_queued.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::agent;
    use super::*;

    #[test]
    fn a_limit_says_what_was_set_and_whether_another_holds_the_agent() {
        let at_work = json!({"state": "running"});
        let held = json!({"limit": "session.max_cost"});
        let limits = serde_json::from_value(json!({"max_turns": 60, "max_cost": "2.5"})).unwrap();
        for (more, expected) in [
            (at_work, "a: max_turns 60, max_cost 2.50; it is at work\n"),
            (held, "a: max_turns 60, max_cost 2.50; it rests at session.max_cost, until that is raised\n"),
            (json!({}), "a: max_turns 60, max_cost 2.50\n"),
        ] {
            let mut more = more;
            more["cost"] = "0.10".into();
            assert_eq!(set(&agent(&more), &limits), expected);
            more["cost"] = serde_json::Value::Null;
            more["model"] = "local/qwen".into();
            assert_eq!(set(&agent(&more), &limits), format!("{expected}{UNPRICED}"));
        }
    }

    #[test]
    fn a_stop_says_who_was_stopped_and_what_stays_queued() {
        for (answer, expected) in [
            (json!({"stopped": ["a", "b"], "still_queued": []}), "stopped: a, b\n"),
            (
                json!({"stopped": ["a"], "still_queued": ["m1", "m2"]}),
                "stopped: a\nstill queued for the next run: m1, m2\n",
            ),
            (json!({"stopped": [], "still_queued": [], "note": "a is idle"}), "a: a is idle\n"),
            (json!({"stopped": [], "still_queued": []}), "a: there was nothing to stop\n"),
        ] {
            let agent = AgentName::new("a").unwrap();
            assert_eq!(told(&agent, &serde_json::from_value(answer).unwrap()), expected);
        }
    }
}
