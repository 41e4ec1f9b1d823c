//! Sessions of Claude Code that have joined, as this process shows them: a mirror of each that somebody has asked for.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use midturn_bridges::claude::{Known, Mirror, is_deaf, known};
use midturn_bridges::spool::{Mailbox, Program, Spool, Withdrawn};
use midturn_core::engine;
use midturn_core::engine::ports::Observer;
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::{Refusal, Relation, Sender};
use midturn_server::{Feed, HostError, Joined};
use midturn_wire::message::Receipt;
use parking_lot::Mutex;

use crate::env::{Env, now};
use crate::joined::{Draft, doesnt_look, receipt, refusal, stands};

/// How often a session is looked at that somebody follows: nothing tells when its program writes a transcript.
const LOOK: Duration = Duration::from_millis(150);

/// The joined sessions that this process shows.
pub(crate) struct JoinedSessions {
    /// `None`: there is no home.
    state: Option<PathBuf>,
    known: Mutex<HashMap<String, Arc<Session>>>,
}

impl JoinedSessions {
    pub(crate) fn of(env: &Env) -> Self {
        Self { state: env.state_folder(), known: Mutex::default() }
    }

    /// Those whose programs run, the newest first.
    pub(crate) fn live(&self) -> Vec<Arc<dyn Joined>> {
        let Some(state) = &self.state else { return Vec::new() };
        let sessions = Spool::of(state, now().0).sessions().unwrap_or_else(|error| {
            tracing::warn!(%error, "joined sessions can't be shown");
            Vec::new()
        });
        let live = sessions.into_iter().filter_map(|joined| {
            let program = joined.program().filter(Program::lives)?;
            Some((joined, program))
        });
        let mut known = self.known.lock();
        let mut shown = HashMap::new();
        let all = live.map(|(joined, program)| {
            let session =
                known.remove(&joined.id).filter(|session| session.program.is_same_process(&program));
            let session = session.unwrap_or_else(|| Arc::new(Session::new(state.clone(), &joined, program)));
            shown.insert(joined.id.clone(), session.clone());
            Arc::new(Shown(session)) as Arc<dyn Joined>
        });
        let all = all.collect();
        // The others have ended, or go on in another process.
        let unfollowed = known.values().filter(|gone| !gone.is_followed.load(Ordering::Acquire));
        unfollowed.for_each(|gone| gone.feed.end());
        *known = shown;
        all
    }
}

/// One of them.
struct Session {
    state: PathBuf,
    id: String,
    program: Program,
    mirror: Arc<Mutex<Mirror>>,
    feed: Arc<Feed>,
    is_followed: AtomicBool,
}

/// An agent that is written to.
struct Receiver {
    name: AgentName,
    agent: Known,
    joined: midturn_bridges::spool::Joined,
    mailbox: Mailbox,
}

impl Session {
    fn new(state: PathBuf, joined: &midturn_bridges::spool::Joined, program: Program) -> Self {
        let mirror = Arc::new(Mutex::new(Mirror::of(joined)));
        let (feed, is_followed) = (Arc::new(Feed::default()), AtomicBool::new(false));
        Self { state, id: joined.id.clone(), program, mirror, feed, is_followed }
    }

    fn spool(&self) -> Spool {
        Spool::of(&self.state, now().0)
    }

    /// Whether its program has ended. Reads files: not on a thread that others wait for.
    fn reads(&self) -> io::Result<bool> {
        let mut mirror = self.mirror.lock();
        for event in mirror.look(&self.spool())? {
            self.feed.event(&event);
        }
        Ok(mirror.is_over())
    }

    /// All agents that can be written to.
    fn receivers(&self) -> Vec<Receiver> {
        let Some(joined) = self.spool().session(&self.id) else { return Vec::new() };
        let agents = known(&joined);
        let mirror = self.mirror.lock();
        let receivers = mirror.agents().filter_map(|(name, id)| {
            let agent = agents.iter().find(|agent| agent.id == id)?.clone();
            let mailbox = joined.mailbox(id)?;
            Some(Receiver { name: name.clone(), agent, joined: joined.clone(), mailbox })
        });
        receivers.collect()
    }

    fn sends(&self, message: engine::Message) -> Result<Receipt, HostError> {
        let engine::Message {
            from,
            to,
            text,
            urgency,
            id,
            expires_after,
            supersedes,
            if_queued,
            only_run,
            expects_run,
        } = message;
        if only_run.is_some() || expects_run.is_some() {
            let text =
                "`only_run`, `stream_run_id`: the runs of a joined session are its program's".to_owned();
            return Err(HostError::Invalid(text));
        }
        let receiver = self.receivers().into_iter().find(|receiver| receiver.name.as_str() == to);
        let receiver = receiver.ok_or(Refusal::UnknownAgent(to))?;
        if is_deaf(&receiver.joined, &receiver.agent.id) {
            let text = doesnt_look(receiver.name.as_str());
            return Err(HostError::Conflict { code: "deaf", text });
        }
        let relation = if from == Sender::User { Relation::Person } else { Relation::Other };
        let from = from.to_string();
        let draft = Draft { from, relation, text: text.to_string(), urgency, id, expires_after };
        let message = draft.message(&receiver.agent)?;
        let sent = receiver.mailbox.send(&message, supersedes.as_ref(), if_queued);
        let accepted = match sent {
            Ok(accepted) => accepted,
            Err(refused) => {
                return Err(refusal(refused, &receiver.name, &message, supersedes.as_ref())
                    .map_err(broken)?
                    .into());
            }
        };
        let receipt = receipt(&message.id, receiver.name.as_str(), accepted.state, None);
        Ok(Receipt { too_late_to_supersede: accepted.too_late.then_some(true), ..receipt })
    }

    fn finds(&self, from: &str, id: &MessageId) -> io::Result<Vec<Receipt>> {
        let mut receipts = Vec::new();
        for Receiver { name, agent, joined, mailbox } in self.receivers() {
            if let Some(state) = stands(&joined, &agent.id, &mailbox, from, id)? {
                receipts.push(receipt(id, name.as_str(), state, mailbox.landed(from, id)?));
            }
        }
        Ok(receipts)
    }

    fn takes_back(&self, from: &str, id: &MessageId) -> Result<usize, HostError> {
        let (mut is_known, mut returned) = (false, 0);
        for Receiver { mailbox, .. } in self.receivers() {
            let withdrawn = mailbox.withdraw(from, id).map_err(broken)?;
            is_known |= withdrawn != Withdrawn::Unknown;
            returned += usize::from(withdrawn == Withdrawn::Now);
        }
        if is_known { Ok(returned) } else { Err(Refusal::UnknownMessage(id.clone()).into()) }
    }
}

/// A session, as the interface asks it.
struct Shown(Arc<Session>);

#[async_trait]
impl Joined for Shown {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn program(&self) -> String {
        self.0.program.named()
    }

    fn folder(&self) -> String {
        self.0.program.cwd.clone()
    }

    fn began_at(&self) -> u64 {
        self.0.mirror.lock().began()
    }

    fn lives(&self) -> bool {
        self.0.program.lives()
    }

    fn feed(&self) -> Arc<Feed> {
        self.0.feed.clone()
    }

    async fn look(&self) -> Result<(), HostError> {
        aside(&self.0, Session::reads).await?.map(drop).map_err(broken)
    }

    fn follow(&self) {
        if !self.0.is_followed.swap(true, Ordering::AcqRel) {
            // It ends with its readers, and with the process.
            tokio::spawn(followed(self.0.clone()));
        }
    }

    async fn send(&self, message: engine::Message) -> Result<Receipt, HostError> {
        aside(&self.0, |session| session.sends(message)).await?
    }

    async fn receipts(&self, from: &Sender, id: &MessageId) -> Result<Vec<Receipt>, HostError> {
        let (from, id) = (from.to_string(), id.clone());
        aside(&self.0, move |session| session.finds(&from, &id)).await?.map_err(broken)
    }

    async fn withdraw(&self, from: &Sender, id: &MessageId) -> Result<usize, HostError> {
        let (from, id) = (from.to_string(), id.clone());
        aside(&self.0, move |session| session.takes_back(&from, &id)).await?
    }
}

/// Looks again and again, while anybody reads what is told.
async fn followed(session: Arc<Session>) {
    loop {
        tokio::time::sleep(LOOK).await;
        match aside(&session, Session::reads).await {
            Ok(Ok(false)) if session.feed.is_read() => {}
            Ok(Ok(is_over)) => {
                if is_over {
                    session.feed.end();
                }
                break;
            }
            Ok(Err(error)) => tracing::warn!(%error, "a joined session can't be looked at"),
            Err(error) => tracing::warn!(%error, "a joined session isn't looked at any more"),
        }
    }
    session.is_followed.store(false, Ordering::Release);
}

/// Files are read and written on a thread that nobody else waits for.
async fn aside<T: Send + 'static>(
    session: &Arc<Session>,
    work: impl FnOnce(&Session) -> T + Send + 'static,
) -> Result<T, HostError> {
    let session = session.clone();
    let done = tokio::task::spawn_blocking(move || work(&session)).await;
    done.map_err(|error| HostError::Failed(format!("the joined session can't be looked at: {error}")))
}

fn broken(error: io::Error) -> HostError {
    HostError::Failed(format!("the mailboxes of joined agents can't be used: {error}"))
}
