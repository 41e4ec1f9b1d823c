//! What a person asks of one session: messages and what becomes of them, stops, answers, limits.

use midturn_core::rules::id::{AgentName, CallId, MessageId};
use midturn_core::rules::settings::LimitsPatch;
use midturn_core::rules::time::Micros;
use midturn_wire::agent::{Agent, Agents};
use midturn_wire::approval::{Answer, Approvals, Decision};
use midturn_wire::message::{Message, Receipt, Withdrawn};
use midturn_wire::replay::{Played, Replay};
use midturn_wire::session::Session;
use midturn_wire::text::{Id, Since, Text};
use midturn_wire::work::{Closed, Diff, Empty, Limits, Log, Started, Stop, Stopped, Supersede};
use serde_json::Value;

use crate::http::{Client, Path, Trouble};

/// A session, and the way to the process that has it.
#[derive(Debug, Clone)]
pub struct SessionClient {
    /// The process.
    pub client: Client,
    /// The session's id.
    pub id: String,
}

/// What is said to a request for a person's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// This call may run.
    Once,
    /// This call, and all that the rule allows; without one, that the request itself names.
    Always(Option<String>),
    /// It may not, and perhaps why.
    No(Option<String>),
}

impl SessionClient {
    /// The session of this id.
    pub fn new(client: &Client, id: &str) -> Self {
        Self { client: client.clone(), id: id.to_owned() }
    }

    /// A path below the session's own.
    pub fn path(&self, parts: &[&str]) -> Path {
        Path::in_session(&self.id, parts)
    }

    fn of(&self, agent: &AgentName, more: &[&str]) -> Path {
        self.path(&[&["agents", agent.as_str()], more].concat())
    }

    /// What there is to say of it as a whole.
    ///
    /// # Errors
    /// [`Trouble`], as for all that is asked here.
    pub async fn summary(&self) -> Result<Session, Trouble> {
        self.client.get(&self.path(&[])).await
    }

    /// Who is there.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn agents(&self) -> Result<Vec<Agent>, Trouble> {
        self.client.get::<Agents>(&self.path(&["agents"])).await.map(|all| all.agents)
    }

    /// What agents ask, the oldest first, and the JSON that says so.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn approvals(&self) -> Result<(Value, Approvals), Trouble> {
        let value: Value = self.client.get(&self.path(&["approvals"])).await?;
        let open = self.client.read(&value)?;
        Ok((value, open))
    }

    /// Answers the request about this call that was made then, and no later one.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn answer(
        &self,
        agent: &AgentName,
        call: &CallId,
        since: Micros,
        said: &Said,
    ) -> Result<Value, Trouble> {
        let (decision, rule, reason) = match said.clone() {
            Said::Once => (Decision::Once, None, None),
            Said::Always(rule) => (Decision::Session, rule, None),
            Said::No(reason) => (Decision::Denied, None, reason),
        };
        let answer =
            Answer { decision, rule: rule.map(Text), reason: reason.map(Text), since: Some(Since(since)) };
        self.client.post(&self.of(agent, &["approvals", call.as_str()]), &answer).await
    }

    /// Sends a message to one agent.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn send(&self, to: &AgentName, message: &Message) -> Result<Receipt, Trouble> {
        self.client.post(&self.of(to, &["messages"]), message).await
    }

    /// Stops an agent's run and begins another with this message, as one action.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn supersede(
        &self,
        to: &AgentName,
        id: Option<&MessageId>,
        text: &str,
    ) -> Result<Receipt, Trouble> {
        let id = id.cloned().map(Id);
        let supersede = Supersede { text: Text(text.to_owned()), id, stream_run_id: None };
        self.client.post(&self.of(to, &["supersede"]), &supersede).await
    }

    /// Closes an agent and all below it.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn close(&self, agent: &AgentName) -> Result<Closed, Trouble> {
        self.client.post(&self.of(agent, &["close"]), &Empty {}).await
    }

    /// Takes a message back from all mailboxes that it still waits in.
    ///
    /// # Errors
    /// [`Trouble`]; `too_late` when it has acted already.
    pub async fn withdraw(&self, id: &MessageId) -> Result<Withdrawn, Trouble> {
        self.client.post(&self.path(&["messages", id.as_str(), "withdraw"]), &Empty {}).await
    }

    /// Stops an agent's run.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn stop(&self, agent: &AgentName, stop: &Stop) -> Result<Stopped, Trouble> {
        self.client.post(&self.of(agent, &["stop"]), stop).await
    }

    /// Plays what was recorded of it again, with a message moved: `ID=+500ms`.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn replay(&self, shift: &str) -> Result<Played, Trouble> {
        let (session, shift) = (Some(self.id.clone()), vec![shift.to_owned()]);
        self.client.post(&Path::of(&["replays"]), &Replay { session, shift, ..Replay::default() }).await
    }

    /// Sends a stopped agent on.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn resume(&self, agent: &AgentName) -> Result<Started, Trouble> {
        self.client.post(&self.of(agent, &["resume"]), &Empty {}).await
    }

    /// Sets limits of an agent, or of all of them together.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn limit(&self, agent: Option<&AgentName>, limits: &LimitsPatch) -> Result<Value, Trouble> {
        let path = agent.map_or_else(|| self.path(&["limits"]), |agent| self.of(agent, &["limits"]));
        self.client.post(&path, &Limits::from(limits.clone())).await
    }

    /// The last events of an agent before the one of this number.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn log(&self, agent: &AgentName, before: u64) -> Result<Log, Trouble> {
        let path = self.path(&["log"]).with("agent", agent.as_str());
        self.client.get(&path.with("before", &before.to_string()).with("limit", "1000")).await
    }

    /// What an agent's branch changed.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn diff(&self, agent: &AgentName) -> Result<Diff, Trouble> {
        self.client.get(&self.of(agent, &["diff"])).await
    }
}
