//! An agent of which its events are all that is known.

use midturn_core::rules::id::AgentName;
use midturn_core::rules::mail::Role;
use midturn_core::rules::view;

use crate::agent::{Activity, Agent, Context, LastEnd, What, steps};

impl Agent {
    /// An agent of which its events are all that is known.
    pub fn seen(name: &AgentName, agent: &view::Agent) -> Self {
        let standing = agent.standing();
        let ended = agent.outcome.filter(|_| !agent.is_working());
        Self {
            name: name.clone(),
            role: agent.role.unwrap_or(Role::Subagent).into(),
            parent: agent.parent.clone(),
            model: agent.model.as_ref().map(ToString::to_string),
            state: standing.into(),
            run: agent.run,
            turn: agent.turn,
            limit: None,
            limit_used: None,
            pending: agent.queue.len() as u64,
            activity: agent
                .request
                .iter()
                .map(Activity::from)
                .chain(agent.calls.iter().map(Activity::from))
                .collect(),
            tokens: agent.usage.total(),
            usage: agent.usage.into(),
            cost: None,
            priced_at: None,
            context: Context::default(),
            branch: None,
            conflict: None,
            last_end: ended.map(|outcome| LastEnd {
                run: agent.run,
                outcome: outcome.into(),
                text: agent.text.to_string(),
            }),
            plan: steps(&agent.plan),
        }
    }
}

impl From<&view::Request> for Activity {
    fn from(request: &view::Request) -> Self {
        Self { call: Some(request.call), ..Self::bare(What::Model, request.since) }
    }
}

impl From<&view::Call> for Activity {
    fn from(call: &view::Call) -> Self {
        let (tool, name) = (Some(call.id.to_string()), Some(call.name.to_string()));
        Self { tool, name, ..Self::bare(What::Tool, call.since) }
    }
}
