//! A session of another process, steered by what is typed here: who is there, what agents ask a
//! person, and what the person says to them. Which agent or request is meant is decided by whoever
//! read the word.

use midturn_client::{Said, SessionClient, Trouble};
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::mail::Urgency;
use midturn_core::rules::view::Ask;
use midturn_wire::agent::Agent;
use midturn_wire::approval::Approval;
use midturn_wire::message::Message;
use midturn_wire::text::Text;
use midturn_wire::work::{Stop, Stopped};

use crate::run::session::attending::Steered;

impl Steered for SessionClient {
    async fn requests(&self) -> Result<Vec<Ask>, String> {
        let (_, open) = self.approvals().await.map_err(sentence)?;
        Ok(open.approvals.into_iter().map(ask).collect())
    }

    async fn answer(&self, request: &Ask, said: &Said) -> Result<(), String> {
        let Ask { agent, tool, since, .. } = request;
        Self::answer(self, agent, tool, *since, said).await.map(drop).map_err(sentence)
    }

    async fn agents(&self) -> Result<Vec<Agent>, String> {
        Self::agents(self).await.map_err(sentence)
    }

    async fn supersede(&self, to: &AgentName, text: &str) -> Result<(), String> {
        Self::supersede(self, to, None, text).await.map(drop).map_err(sentence)
    }

    async fn close(&self, agent: &AgentName) -> Result<Vec<String>, String> {
        Self::close(self, agent).await.map(|closed| closed.closed).map_err(sentence)
    }

    async fn send(&self, to: &AgentName, text: &str, urgency: Option<Urgency>) -> Result<(), String> {
        let urgency = urgency.map(Into::into);
        let message = Message { text: Text(text.to_owned()), urgency, ..Message::default() };
        Self::send(self, to, &message).await.map(drop).map_err(sentence)
    }

    async fn stop(&self, agent: &AgentName) -> Result<Stopped, String> {
        Self::stop(self, agent, &Stop::default()).await.map_err(sentence)
    }
}

fn sentence(trouble: Trouble) -> String {
    trouble.to_string()
}

/// A request as the session's events would tell of it.
pub(super) fn ask(open: Approval) -> Ask {
    let Approval { agent, tool, name, input, always, since, .. } = open;
    Ask { agent, tool: CallId::new(tool), name: name.into(), input, always: always.into(), since }
}
