//! What agents of a session elsewhere ask a person, and the person's word on it, over the
//! interface. Which request is meant is decided by whoever read the word.

use serde_json::{Value, json};

use super::http::{Client, Path, Trouble};
use super::wire::{Approval, Approvals};
use crate::run::session::attending::{Asked, Request};
use crate::run::steering::Said;

/// The requests of one session.
pub(super) struct Elsewhere<'a> {
    pub(super) client: &'a Client,
    pub(super) session: &'a str,
}

impl Elsewhere<'_> {
    /// They, the oldest first, and the JSON that says so.
    pub(super) async fn open(&self) -> Result<(Value, Vec<Approval>), Trouble> {
        let value = self.client.get(&Path::of(&["sessions", self.session, "approvals"])).await?;
        let open: Approvals = self.client.read(&value)?;
        Ok((value, open.approvals))
    }

    /// Gives the word on one.
    pub(super) async fn give(&self, request: &Request, said: &Said) -> Result<Value, Trouble> {
        let (agent, tool) = (request.agent.as_str(), request.tool.as_str());
        let path = Path::of(&["sessions", self.session, "agents", agent, "approvals", tool]);
        let mut word = word(said);
        word["since"] = json!(request.since);
        self.client.post(&path, &word).await
    }
}

impl Asked for Elsewhere<'_> {
    async fn requests(&self) -> Result<Vec<Request>, String> {
        let (_, open) = self.open().await.map_err(|trouble| trouble.to_string())?;
        Ok(open.into_iter().map(Request::from).collect())
    }

    async fn answer(&self, request: &Request, said: &Said) -> Result<(), String> {
        self.give(request, said).await.map(drop).map_err(|trouble| trouble.to_string())
    }
}

impl From<Approval> for Request {
    fn from(approval: Approval) -> Self {
        let Approval { agent, tool, name, input, always, since, .. } = approval;
        Self { agent, tool, name, input, always, since }
    }
}

/// The body of the request: only what was said.
fn word(said: &Said) -> Value {
    match said {
        Said::Once => json!({"decision": "once"}),
        Said::Always(None) => json!({"decision": "session"}),
        Said::Always(Some(rule)) => json!({"decision": "session", "rule": rule}),
        Said::No(None) => json!({"decision": "denied"}),
        Said::No(Some(reason)) => json!({"decision": "denied", "reason": reason}),
    }
}
