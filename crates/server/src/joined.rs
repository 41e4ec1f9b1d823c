//! The port to sessions of other programs that have joined (docs/bridges.md). They are shown and written to like any
//! other; whatever else is done to them is done in their program.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::Message;
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::Sender;
use midturn_core::rules::view::View;
use midturn_wire::agent::Agent;
use midturn_wire::message::Receipt;
use midturn_wire::session::Session;

use crate::feed::Feed;
use crate::host::HostError;
use crate::problem::Refused;

/// A session of another program.
#[async_trait]
pub trait Joined: Send + Sync {
    /// Its id, which is the program's.
    fn id(&self) -> &str;

    /// The program and its version, as it names itself.
    fn program(&self) -> String;

    /// The folder it works in.
    fn folder(&self) -> String;

    /// When it began, in microseconds since 1970.
    fn began_at(&self) -> u64;

    /// Whether its program still runs.
    fn lives(&self) -> bool;

    /// What is told of it. Nobody records that.
    fn feed(&self) -> Arc<Feed>;

    /// Brings the feed to where the session is by now.
    async fn look(&self) -> Result<(), HostError>;

    /// Goes on with that for as long as anybody reads the feed.
    fn follow(&self);

    /// Puts a message into the mailbox of one of its agents.
    async fn send(&self, message: Message) -> Result<Receipt, HostError>;

    /// The receipts of a message.
    async fn receipts(&self, from: &Sender, id: &MessageId) -> Result<Vec<Receipt>, HostError>;

    /// Takes a message back: from how many mailboxes.
    async fn withdraw(&self, from: &Sender, id: &MessageId) -> Result<usize, HostError>;
}

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
        began_at: midturn_core::rules::time::Micros(joined.began_at()),
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
    let is_lead =
        |agent: &midturn_core::rules::view::Agent| agent.role == Some(midturn_core::rules::mail::Role::Lead);
    view.agents().find(|(_, agent)| is_lead(agent)).map(|(name, _)| name.clone())
}

/// Its agents, the main one first.
pub(crate) fn agents(joined: &dyn Joined) -> Vec<Agent> {
    let mut agents: Vec<Agent> =
        joined.feed().see(|view| view.agents().map(|(name, agent)| Agent::seen(name, agent)).collect());
    agents.sort_by_key(|agent| agent.parent.is_some());
    agents
}

/// What can only be done in its program.
pub(crate) fn not_here(joined: &dyn Joined) -> Refused {
    let detail = format!(
        "the session `{}` runs in {}: here it is shown, and its agents are written to; do the rest of it there",
        joined.id(),
        joined.program()
    );
    Refused::conflict("joined", detail)
}
