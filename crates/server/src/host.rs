//! The `Host` port: what the interface needs of the process it is in. The command line
//! implements it; the interface itself neither opens stores nor makes models.

use std::sync::Arc;

use async_trait::async_trait;
use midturn_core::engine::ports::archive::SessionRecord;
use midturn_core::engine::ports::{Archive, Diff, Merge};
use midturn_core::engine::{Attached, Coordinator, Message};
use midturn_core::rules::id::{AgentName, MessageId, SessionId};
use midturn_core::rules::mail::{Refusal, Sender};
use midturn_wire::message::Receipt;
use midturn_wire::replay::Played;
use midturn_wire::session::{NewSession, Remove, Removed};

use crate::feed::Feed;

/// An agent somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAgent {
    /// Its name.
    pub name: AgentName,
    /// What starts its first run; without one it is idle until mail comes.
    pub prompt: Option<String>,
    /// The definition it is made of.
    pub agent: Option<String>,
    /// Whose child it is; the lead's without it.
    pub parent: Option<AgentName>,
}

/// Why the host didn't do it. Each carries a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// There is no such thing: 404.
    #[error("{0}")]
    NotFound(String),
    /// What was asked for makes no sense: 422.
    #[error("{0}")]
    Invalid(String),
    /// It can't be now: 409.
    #[error("{text}")]
    Conflict {
        /// The problem's `code`, stable.
        code: &'static str,
        /// The sentence.
        text: String,
    },
    /// A message is not accepted.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The process ends: 503, and worth another try after the next start.
    #[error("{0}")]
    ShuttingDown(String),
    /// It should have been done and could not: 503.
    #[error("{0}")]
    Failed(String),
}

/// A session that lives in this process.
#[derive(Clone)]
pub struct Live {
    /// As it was begun.
    pub record: SessionRecord,
    /// How often it was taken up: 1 when it was begun.
    pub epoch: u64,
    /// The agent a person talks to.
    pub lead: Option<AgentName>,
    /// What a person is told where its agents share a folder (docs/decisions/0041).
    pub shared: Option<String>,
    /// Its agents, and everything that can be done to them.
    pub coordinator: Coordinator,
    /// What is told of it. One of the coordinator's observers.
    pub feed: Arc<Feed>,
}

/// A session that lives from now on.
pub struct Entered {
    /// The session.
    pub live: Live,
    /// The agents that go on.
    pub working: Vec<AgentName>,
    /// Whoever is about to follow it, attached before its agents began.
    pub attached: Option<Arc<Attached>>,
}

/// What is to be played again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// A scenario's text.
    Scenario(String),
    /// A session that is recorded here.
    Session(SessionId),
}

/// A session of another program that has joined (docs/bridges.md). It is shown and written to like any other; whatever
/// else is done to it is done in its program.
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

/// The process that the interface speaks for.
#[async_trait]
pub trait Host: Send + Sync {
    /// The sessions that live, in the order in which they were begun or taken up.
    fn live(&self) -> Vec<Live>;

    /// The session of that id, if it lives.
    fn find(&self, id: &str) -> Option<Live>;

    /// The sessions of other programs that have joined and whose programs run, the newest first.
    fn joined(&self) -> Vec<Arc<dyn Joined>> {
        Vec::new()
    }

    /// Begins a session: whole, whether or not the asker still waits for it.
    async fn begin(self: Arc<Self>, session: NewSession) -> Result<Entered, HostError>;

    /// Takes a stored session up and starts what was under way. `attended`: somebody is about
    /// to follow it who answers what agents ask. Whole, as above.
    async fn resume(self: Arc<Self>, session: SessionId, attended: bool) -> Result<Entered, HostError>;

    /// Adds an agent to a session that lives.
    async fn spawn(&self, session: &SessionId, agent: NewAgent) -> Result<(), HostError>;

    /// What an agent of a session that is only stored changed, as far as it is still there.
    async fn diff(&self, session: &SessionId, agent: &AgentName) -> Result<Diff, HostError>;

    /// Merges the branch of an agent of a session that is only stored. Whole, as above.
    async fn merge(self: Arc<Self>, session: SessionId, agent: AgentName) -> Result<Merge, HostError>;

    /// Removes what is left of a session that is only stored, if it still is as somebody has seen it. Whole, as above.
    async fn remove(self: Arc<Self>, session: SessionId, seen: Remove) -> Result<Removed, HostError>;

    /// Plays something as it is and with messages moved, each `ID=±DURATION` (docs/scenarios.md, section 3). Tools are
    /// simulated, nothing is stored.
    async fn play(self: Arc<Self>, script: Script, shift: Vec<String>) -> Result<Played, HostError>;

    /// Somebody is there and doesn't look: what waits in a session under this id is told in the person's own way, once.
    fn unseen(&self, _session: &SessionId, _need: String) {}

    /// What is stored.
    fn archive(&self) -> Arc<dyn Archive>;

    /// What agents may do unasked and what holds their commands, in one line for people:
    /// `mode auto; sandbox: bubblewrap (no network, cgroup v2 limits)`.
    fn safety(&self) -> String;
}
