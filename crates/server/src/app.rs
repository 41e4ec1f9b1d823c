//! What all requests share: the process, its tokens, what is bounded, and the tasks that
//! outlive a request. What is asked for happens whole in the engine and in the process,
//! whether or not the client is still there.

use std::sync::Arc;
use std::time::Duration;

use midturn_core::engine::AgentStatus;
use midturn_core::engine::ports::archive::SessionSummary;
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_wire::text::is_id;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::host::{Host, Joined, Live};
use crate::metrics::Metrics;
use crate::pages::Pages;
use crate::problem::{Refused, shown};
use crate::replays::Replays;
use crate::security::Tokens;

/// What all requests share.
pub(crate) struct App {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) waits: Arc<Semaphore>,
    pub(crate) pages: Pages,
    pub(crate) replays: Replays,
    /// After how long a session that its pages have left is stopped; `None`: it goes on.
    pub(crate) stops_when_left: Option<Duration>,
}

/// A session that somebody named.
pub(crate) enum Named {
    /// It lives here.
    Live(Box<Live>),
    /// It runs in another program.
    Joined(Arc<dyn Joined>),
    /// It is only stored, if it is at all.
    Stored(SessionId),
}

impl App {
    /// The session of that id, or the last one that lives for `current`.
    pub(crate) fn named(&self, session: &str) -> Result<Named, Refused> {
        if session == "current" {
            let detail = "no session lives here; begin or resume one";
            let live = self.host.live().pop().ok_or_else(|| Refused::not_found("no_session", detail))?;
            return Ok(Named::Live(Box::new(live)));
        }
        match self.host.find(session) {
            Some(live) => Ok(Named::Live(Box::new(live))),
            None if let Some(joined) = self.joined(session) => Ok(Named::Joined(joined)),
            None if is_id(session) => Ok(Named::Stored(SessionId::new(session))),
            None => Err(unknown_session(session)),
        }
    }

    /// The same, brought to where it is by now.
    pub(crate) async fn seen(&self, session: &str) -> Result<Named, Refused> {
        let named = self.named(session)?;
        if let Named::Joined(joined) = &named {
            joined.look().await?;
        }
        Ok(named)
    }

    fn joined(&self, session: &str) -> Option<Arc<dyn Joined>> {
        self.host.joined().into_iter().find(|joined| joined.id() == session)
    }

    /// A session that lives here: only such a one can be changed.
    pub(crate) async fn live(&self, session: &str) -> Result<Live, Refused> {
        match self.named(session)? {
            Named::Live(live) => Ok(*live),
            Named::Joined(joined) => Err(not_here(&*joined)),
            Named::Stored(id) => {
                self.summary(&id).await?;
                let detail = format!("the session `{id}` is only stored; resume it first");
                Err(Refused::conflict("not_live", detail))
            }
        }
    }

    /// The id of the session of that name.
    pub(crate) fn id(&self, session: &str) -> Result<SessionId, Refused> {
        Ok(match self.named(session)? {
            Named::Live(live) => live.record.id.clone(),
            Named::Joined(joined) => SessionId::new(joined.id()),
            Named::Stored(id) => id,
        })
    }

    /// The number of a session's last event. Asked before the session is looked at: what is seen then
    /// is at least as new.
    pub(crate) async fn as_of(&self, session: &str) -> Result<u64, Refused> {
        match self.seen(session).await? {
            Named::Live(live) => Ok(live.feed.last()),
            Named::Joined(joined) => Ok(joined.feed().last()),
            Named::Stored(id) => Ok(self.summary(&id).await?.last_seq),
        }
    }

    /// A session that is stored.
    pub(crate) async fn summary(&self, id: &SessionId) -> Result<SessionSummary, Refused> {
        let all = self.host.archive().sessions().await?;
        let found = all.into_iter().find(|summary| summary.record.id == *id);
        found.ok_or_else(|| unknown_session(id.as_str()))
    }

    /// Room for one more event stream.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, Refused> {
        room(&self.streams, "too_many_streams", "too many event streams are open; close one")
    }

    /// Room for one more client that waits.
    pub(crate) fn wait(&self) -> Result<OwnedSemaphorePermit, Refused> {
        room(&self.waits, "too_many_waits", "too many clients wait for receipts; read the events instead")
    }
}

fn room(of: &Arc<Semaphore>, code: &'static str, detail: &str) -> Result<OwnedSemaphorePermit, Refused> {
    of.clone().try_acquire_owned().map_err(|_| Refused::too_many(code, detail, 5))
}

/// There is no such session.
pub(crate) fn unknown_session(session: &str) -> Refused {
    let detail = format!("there is no session `{}`; `GET /v1/sessions` lists them", shown(session));
    Refused::not_found("unknown_session", detail)
}

/// The name of an agent that somebody asks for; a text that can't be a name is nobody's.
pub(crate) fn agent_name(text: &str) -> Result<AgentName, Refused> {
    AgentName::new(text).map_err(|_| unknown_agent(text))
}

/// An agent of a session that lives.
pub(crate) fn present(live: &Live, agent: &str) -> Result<AgentStatus, Refused> {
    live.coordinator.agent(agent).ok_or_else(|| unknown_agent(agent))
}

/// Nobody has that name.
pub(crate) fn unknown_agent(text: &str) -> Refused {
    Refused::not_found("unknown_agent", format!("there is no agent `{}` in this session", shown(text)))
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
