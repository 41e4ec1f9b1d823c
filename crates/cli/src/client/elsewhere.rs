//! A session of another process, asked over its interface: who is there, what agents ask a
//! person, and what the person says to them. Which agent or request is meant is decided by
//! whoever read the word.

use midturn_client::{Client, Path, Trouble};
use midturn_core::rules::id::{AgentName, CallId};
use midturn_core::rules::view::Ask;
use midturn_wire::agent::{Agent, Agents};
use midturn_wire::approval::{Answer, Approval, Approvals, Decision};
use midturn_wire::message::{Message, Receipt};
use midturn_wire::text::{Since, Text};
use midturn_wire::work::{Stop, Stopped};
use serde_json::Value;

use crate::run::session::attending::Steered;
use crate::run::steering::Said;

/// A session, and the way to the process that carries it.
pub(super) struct Elsewhere {
    pub(super) client: Client,
    pub(super) session: String,
}

impl Elsewhere {
    /// The session of this id.
    pub(super) fn new(client: &Client, session: &str) -> Self {
        Self { client: client.clone(), session: session.to_owned() }
    }

    /// A path below the session's own.
    pub(super) fn path(&self, parts: &[&str]) -> Path {
        Path::in_session(&self.session, parts)
    }

    /// What is asked, the oldest first, and the JSON that says so.
    pub(super) async fn open(&self) -> Result<(Value, Vec<Approval>), Trouble> {
        let value = self.client.get(&self.path(&["approvals"])).await?;
        let open: Approvals = self.client.read(&value)?;
        Ok((value, open.approvals))
    }

    /// Gives the word on one request, and on no later one of that call.
    pub(super) async fn give(&self, request: &Ask, said: &Said) -> Result<Value, Trouble> {
        let (agent, tool) = (request.agent.as_str(), request.tool.as_str());
        let (decision, rule, reason) = match said {
            Said::Once => (Decision::Once, None, None),
            Said::Always(rule) => (Decision::Session, rule.clone(), None),
            Said::No(reason) => (Decision::Denied, None, reason.clone()),
        };
        let since = Some(Since(request.since));
        let word = Answer { decision, rule: rule.map(Text), reason: reason.map(Text), since };
        self.client.post(&self.path(&["agents", agent, "approvals", tool]), &word).await
    }
}

impl Steered for Elsewhere {
    async fn requests(&self) -> Result<Vec<Ask>, String> {
        let (_, open) = self.open().await.map_err(sentence)?;
        Ok(open.into_iter().map(ask).collect())
    }

    async fn answer(&self, request: &Ask, said: &Said) -> Result<(), String> {
        self.give(request, said).await.map(drop).map_err(sentence)
    }

    async fn agents(&self) -> Result<Vec<Agent>, String> {
        let all = self.client.get::<Agents>(&self.path(&["agents"])).await;
        all.map(|all| all.agents).map_err(sentence)
    }

    async fn send(&self, to: &AgentName, text: &str, urgent: bool) -> Result<(), String> {
        let message = Message { text: Text(text.to_owned()), urgent: Some(urgent), ..Message::default() };
        let path = self.path(&["agents", to.as_str(), "messages"]);
        self.client.post::<Receipt>(&path, &message).await.map(drop).map_err(sentence)
    }

    async fn stop(&self, agent: &AgentName) -> Result<Stopped, String> {
        let path = self.path(&["agents", agent.as_str(), "stop"]);
        self.client.post(&path, &Stop::default()).await.map_err(sentence)
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
