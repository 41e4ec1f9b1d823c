//! `midturn withdraw` and `midturn stop`.

use midturn_core::rules::id::AgentName;
use serde_json::json;

use super::http::Trouble;
use super::wire::{Stopped, Withdrawn};
use super::{Answer, Asking};

/// Takes a message back.
pub(super) async fn withdraw(asking: &Asking, id: &str) -> Result<Answer, Trouble> {
    let value = asking.client.post(&asking.path(&["messages", id, "withdraw"]), &json!({})).await?;
    let text = match asking.client.read::<Withdrawn>(&value)?.returned {
        1 => format!("{id}: taken back; nobody has read it\n"),
        count => format!("{id}: taken back from {count} mailboxes\n"),
    };
    Ok(Answer::good(value, text))
}

/// Stops an agent's run.
pub(super) async fn stop(asking: &Asking, agent: &AgentName, subtree: bool) -> Result<Answer, Trouble> {
    let scope = if subtree { "subtree" } else { "agent" };
    let path = asking.path(&["agents", agent.as_str(), "stop"]);
    let value = asking.client.post(&path, &json!({"scope": scope})).await?;
    let stopped: Stopped = asking.client.read(&value)?;
    Ok(Answer::good(value, told(agent, &stopped)))
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
    use super::*;

    #[test]
    fn a_stop_says_who_was_stopped_and_what_stays_queued() {
        for (answer, expected) in [
            (json!({"stopped": ["a", "b"], "still_queued": []}), "stopped: a, b\n"),
            (
                json!({"stopped": ["a"], "still_queued": ["m1", "m2"]}),
                "stopped: a\nstill queued for the next run: m1, m2\n",
            ),
            (json!({"stopped": [], "still_queued": [], "note": "a is idle"}), "a: a is idle\n"),
            (json!({}), "a: there was nothing to stop\n"),
        ] {
            let agent = AgentName::new("a").unwrap();
            assert_eq!(told(&agent, &serde_json::from_value(answer).unwrap()), expected);
        }
    }
}
