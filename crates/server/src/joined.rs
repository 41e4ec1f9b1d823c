//! What is seen of sessions of other programs that have joined (docs/bridges.md): all of it is in their feeds.

use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Role;
use midturn_core::rules::time::Micros;
use midturn_core::rules::view::View;
use midturn_wire::agent::Agent;
use midturn_wire::session::Session;

use crate::host::Joined;

/// A joined session, as a list shows it.
pub(crate) fn session(joined: &dyn Joined) -> Session {
    let feed = joined.feed();
    let (agents, running, lead) = feed.see(|view| {
        let working = view.agents().filter(|(_, agent)| agent.is_working()).count();
        (view.agents().count() as u64, working as u64, lead(view))
    });
    let folder = joined.folder();
    let place = folder.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/");
    Session {
        session: joined.id().to_owned(),
        title: format!("Claude Code in {place}"),
        began_at: Micros(joined.began_at()),
        epoch: 1,
        live: joined.lives(),
        lead,
        agents,
        running,
        busy: running > 0,
        last_seq: feed.last(),
        spent: None,
        shared: None,
        joined: Some(joined.program()),
        folder,
    }
}

fn lead(view: &View) -> Option<AgentName> {
    view.agents().find(|(_, agent)| agent.role == Some(Role::Lead)).map(|(name, _)| name.clone())
}

/// Its agents, the main one first.
pub(crate) fn agents(joined: &dyn Joined) -> Vec<Agent> {
    let mut agents: Vec<Agent> =
        joined.feed().see(|view| view.agents().map(|(name, agent)| Agent::seen(name, agent)).collect());
    agents.sort_by_key(|agent| agent.parent.is_some());
    agents
}
