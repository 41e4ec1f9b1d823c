//! Going on with a session that another process carries, or is to carry.

use midturn_wire::agent::{Agent, Agents, Outcome, State};
use midturn_wire::session::{Resume, Resumed};
use midturn_wire::work::{Empty, Started};

use crate::http::{Client, Path, Trouble};

/// What taking a session up did.
#[derive(Debug, Default)]
pub struct TakenUp {
    /// The agents that work by that.
    pub working: Vec<String>,
    /// What became of the others that were stopped.
    pub notes: Vec<String>,
}

/// Takes a session up; of one that lives already the stopped agents are sent on. `answers`: whoever
/// asks follows its events next and answers what agents ask.
///
/// # Errors
/// [`Trouble`]; agents that were sent on before it go on.
pub async fn take_up(client: &Client, id: &str, answers: bool) -> Result<TakenUp, Trouble> {
    match client.post_patiently(&Path::in_session(id, &["resume"]), &Resume { answers }).await {
        Ok(Resumed { resumed: working }) => Ok(TakenUp { working, notes: Vec::new() }),
        Err(trouble) if trouble.code() == Some("already_live") => send_on(client, id).await,
        Err(trouble) => Err(trouble),
    }
}

/// Whether it was stopped, or failed and has no parent: what became of another's run is its parent's to act on
/// (semantics.md, section 6).
fn rests_unfinished(agent: &Agent) -> bool {
    let failed = agent.last_end.as_ref().is_some_and(|end| end.outcome == Outcome::Failed);
    agent.state == State::Stopped || agent.state == State::Idle && failed && agent.parent.is_none()
}

async fn send_on(client: &Client, id: &str) -> Result<TakenUp, Trouble> {
    let all: Agents = client.get(&Path::in_session(id, &["agents"])).await?;
    let mut taken = TakenUp::default();
    for agent in all.agents.iter().filter(|agent| rests_unfinished(agent)) {
        let path = Path::in_session(id, &["agents", agent.name.as_str(), "resume"]);
        let started = match client.post(&path, &Empty {}).await {
            Err(trouble) if trouble.code() == Some("limit") => {
                taken.notes.push(trouble.to_string());
                continue;
            }
            started => started?,
        };
        match started {
            Started { started: true, .. } => taken.working.push(agent.name.to_string()),
            Started { note: Some(note), .. } => taken.notes.push(format!("{}: {note}", agent.name)),
            Started { note: None, .. } => {}
        }
    }
    Ok(taken)
}
