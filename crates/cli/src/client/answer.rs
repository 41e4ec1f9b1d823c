//! What agents of a session elsewhere ask a person, and the person's word on it, over the
//! interface. Which request is meant is decided by whoever read the word.

use midturn_client::{Client, Path, Trouble};
use midturn_core::rules::id::CallId;
use midturn_core::rules::view::Ask;
use midturn_wire::approval::{Answer, Approval, Approvals, Decision};
use midturn_wire::text::{Since, Text};
use serde_json::Value;

use crate::run::session::attending::Asked;
use crate::run::steering::Said;

/// The requests of one session.
pub(super) struct Elsewhere<'a> {
    pub(super) client: &'a Client,
    pub(super) session: &'a str,
}

impl Elsewhere<'_> {
    /// They, the oldest first, and the JSON that says so.
    pub(super) async fn open(&self) -> Result<(Value, Vec<Approval>), Trouble> {
        let value = self.client.get(&Path::in_session(self.session, &["approvals"])).await?;
        let open: Approvals = self.client.read(&value)?;
        Ok((value, open.approvals))
    }

    /// Gives the word on one.
    pub(super) async fn give(&self, request: &Ask, said: &Said) -> Result<Value, Trouble> {
        let (agent, tool) = (request.agent.as_str(), request.tool.as_str());
        let path = Path::in_session(self.session, &["agents", agent, "approvals", tool]);
        self.client.post(&path, &word(said, request)).await
    }
}

impl Asked for Elsewhere<'_> {
    async fn requests(&self) -> Result<Vec<Ask>, String> {
        let (_, open) = self.open().await.map_err(|trouble| trouble.to_string())?;
        Ok(open.into_iter().map(ask).collect())
    }

    async fn answer(&self, request: &Ask, said: &Said) -> Result<(), String> {
        self.give(request, said).await.map(drop).map_err(|trouble| trouble.to_string())
    }
}

/// A request as the session's events would tell of it.
pub(super) fn ask(open: Approval) -> Ask {
    let Approval { agent, tool, name, input, always, since, .. } = open;
    Ask { agent, tool: CallId::new(tool), name: name.into(), input, always: always.into(), since }
}

/// The word as it is sent: about this request, and no later one of that call.
fn word(said: &Said, request: &Ask) -> Answer {
    let (decision, rule, reason) = match said {
        Said::Once => (Decision::Once, None, None),
        Said::Always(rule) => (Decision::Session, rule.clone(), None),
        Said::No(reason) => (Decision::Denied, None, reason.clone()),
    };
    Answer { decision, rule: rule.map(Text), reason: reason.map(Text), since: Some(Since(request.since)) }
}
