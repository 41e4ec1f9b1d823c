//! Agents that run in somebody's own Claude Code, seen from the command line: who they are, a message to one, and
//! taking it back. They need no running Midturn: their mailboxes are files (docs/bridges.md).

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use midturn_bridges::claude::{Known, Mirror, is_deaf, known, meant, rests, sweep};
use midturn_bridges::spool::{
    Accepted, Joined, Landed, MAIN, Mailbox, Message, Refused, Spool, State, Withdrawn,
};
use midturn_core::rules::event::Event;
use midturn_core::rules::id::{AgentName, MessageId};
use midturn_core::rules::mail::{Relation, Urgency};
use midturn_core::rules::time::Span;
use midturn_view::clean::clean;
use midturn_wire::message::Receipt;
use serde_json::{Value, json};

use super::receipt;
use super::table::{Side, table};
use crate::args::SendArgs;
use crate::commands::print;
use crate::env::{Env, now};
use crate::failure::{End, Failure};
use crate::joined::{self, Draft, stands};

/// How often the spool is looked at while somebody waits: nothing tells when a program writes its transcript.
const LOOK: Duration = Duration::from_millis(40);

/// The joined sessions of this person, brought to where they are by now.
pub(super) struct Sessions {
    spool: Spool,
    state: PathBuf,
    live: Vec<Joined>,
}

/// A session that is looked at again and again.
pub(super) struct Watched {
    mirror: Mirror,
    state: PathBuf,
    pub(super) id: String,
}

impl Watched {
    /// What is new in it, and whether its program has ended.
    ///
    /// # Errors
    /// [`Failure::Failed`]: the spool can't be used.
    pub(super) fn look(&mut self) -> Result<(Vec<Event>, bool), Failure> {
        let events = self.mirror.look(&Spool::of(&self.state, now().0)).map_err(broken)?;
        Ok((events, self.mirror.is_over()))
    }

    /// Whether it has an agent of this name.
    pub(super) fn has(&self, agent: &AgentName) -> bool {
        self.mirror.agents().any(|(name, _)| name == agent)
    }
}

/// An agent that was meant.
pub(super) struct Receiver {
    joined: Joined,
    agent: Known,
}

/// What is said of a message.
struct Told<'a> {
    message: &'a Message,
    accepted: &'a Accepted,
    state: State,
    landed: Option<Landed>,
}

impl Sessions {
    /// # Errors
    /// [`Failure::Failed`]: the spool can't be used.
    pub(super) fn of(env: &Env) -> Result<Self, Failure> {
        let state = env.state_folder().ok_or_else(|| Failure::usage("there is no home: set HOME"))?;
        let spool = Spool::of(&state, now().0);
        sweep(&spool).map_err(broken)?;
        let sessions = spool.sessions().map_err(broken)?;
        let live =
            sessions.into_iter().filter(|joined| joined.program().is_some_and(|program| program.lives()));
        Ok(Self { live: live.collect(), spool, state })
    }

    /// Whom a word means: `SESSION/AGENT`, or AGENT alone, of a session in this folder before any other.
    ///
    /// # Errors
    /// [`Failure::Usage`]: several are meant, or SESSION is none.
    pub(super) fn receiver(&self, word: &str, here: &Path) -> Result<Option<Receiver>, Failure> {
        let (session, agent) = match word.split_once('/') {
            Some((session, agent)) => (Some(session), agent),
            None => (None, word),
        };
        let among = self.live.iter().filter(|joined| session.is_none_or(|id| joined.id.starts_with(id)));
        let found: Vec<Receiver> = among.filter_map(|joined| Receiver::of(joined, agent)).collect();
        if found.is_empty() && session.is_some() {
            return Err(Failure::usage(format!(
                "{word}: no joined session has such an agent; `midturn ps` lists them"
            )));
        }
        let (mut near, far): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|receiver| receiver.works_in(here));
        if near.is_empty() {
            near = far;
        }
        match near.len() {
            0 => Ok(None),
            1 => Ok(near.pop()),
            _ => {
                let all: Vec<String> = near.iter().map(Receiver::address).collect();
                Err(Failure::usage(format!("{word} is in several sessions: {}; write which", all.join(", "))))
            }
        }
    }

    /// The session that is watched: by its id or the beginning of that; `current` is the newest in this folder.
    pub(super) fn watched(&self, asked: &str, here: &Path) -> Option<Watched> {
        let is_here = |joined: &&Joined| {
            joined.program().is_some_and(|program| Path::new(&program.cwd).starts_with(here))
        };
        let found = match asked {
            "current" => self.live.iter().find(is_here),
            id => self.live.iter().find(|joined| joined.id.starts_with(id)),
        };
        Some(Watched { mirror: Mirror::of(found?), state: self.state.clone(), id: found?.id.clone() })
    }

    /// Takes a message of a person's back, wherever it is. `None`: no joined agent was sent one with this id.
    ///
    /// # Errors
    /// [`Failure::Failed`]: it is too late, or the spool can't be used.
    pub(super) fn withdraw(&self, id: &str, as_json: bool) -> Result<Option<End>, Failure> {
        let id = MessageId::new(id);
        for joined in &self.spool.sessions().map_err(broken)? {
            for agent in joined.agents().map_err(broken)? {
                let Some(mailbox) = joined.mailbox(&agent) else { continue };
                let text = match mailbox.withdraw(&sender(), &id).map_err(broken)? {
                    Withdrawn::Unknown => continue,
                    Withdrawn::Now => format!("{id}: taken back; nobody has read it\n"),
                    Withdrawn::Before => format!("{id}: was returned before; nobody has read it\n"),
                    Withdrawn::TooLate => {
                        return Err(Failure::failed(format!(
                            "{id}: too late, it was read or has cost a call"
                        )));
                    }
                };
                let whole = json!({"returned": 1});
                return if as_json { print(&format!("{whole}\n")) } else { print(&clean(&text)) }.map(Some);
            }
        }
        Ok(None)
    }

    /// All of them as a table; nothing where there is none.
    pub(super) fn told(&self) -> String {
        if self.live.is_empty() {
            return String::new();
        }
        let columns = [
            ("JOINED", Side::Left),
            ("STATE", Side::Left),
            ("MAIL", Side::Right),
            ("AGENT", Side::Left),
            ("WHERE", Side::Left),
        ];
        let rows: Vec<Vec<String>> = self.live.iter().flat_map(rows).collect();
        clean(&table(&columns, &rows))
    }

    /// The same for programs.
    pub(super) fn value(&self) -> Value {
        let sessions = self.live.iter().map(|joined| {
            let agents: Vec<Value> = known(joined).iter().map(|agent| agent_value(joined, agent)).collect();
            let program = joined.program().unwrap_or_default();
            json!({"session": joined.id, "program": program.agent, "folder": program.cwd, "agents": agents})
        });
        Value::Array(sessions.collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }
}

impl Receiver {
    fn of(joined: &Joined, word: &str) -> Option<Self> {
        let agents = known(joined);
        let agent = meant(&agents, word)?.clone();
        Some(Self { joined: joined.clone(), agent })
    }

    fn works_in(&self, here: &Path) -> bool {
        self.joined.program().is_some_and(|program| Path::new(&program.cwd).starts_with(here))
    }

    fn address(&self) -> String {
        format!("{}/{}", self.joined.id, self.agent.called())
    }

    fn mailbox(&self) -> Result<Mailbox, Failure> {
        self.joined
            .mailbox(&self.agent.id)
            .ok_or_else(|| Failure::failed("the program's id of it can't be a name of a folder"))
    }

    /// Sends, and waits if that is asked for.
    ///
    /// # Errors
    /// [`Failure`]: it is refused, or did not come as far as was asked.
    pub(super) fn send(&self, args: &SendArgs) -> Result<End, Failure> {
        let began = Instant::now();
        if let Some(state) = args.wait.as_deref().filter(|state| *state != "injected") {
            return Err(Failure::usage(format!(
                "--wait {state}: what is known of a joined agent ends at `injected`"
            )));
        }
        let message = self.message(args)?;
        self.listens()?;
        let mailbox = self.mailbox()?;
        let supersedes = args.supersedes.as_deref().map(MessageId::new);
        let accepted = mailbox.send(&message, supersedes.as_ref(), args.if_queued).map_err(refused)?;
        let state = match &args.wait {
            Some(_) => self.wait(&mailbox, &message, began, args.timeout)?,
            None => accepted.state,
        };
        let landed = mailbox.landed(&message.from, &message.id).map_err(broken)?;
        let told = Told { message: &message, accepted: &accepted, state, landed };
        self.say(told, args.client.json, args.wait.as_ref().map(|_| began))?;
        match state {
            State::Returned(_) => Err(Failure::failed("the message will not be read")),
            State::Queued if args.wait.is_some() => Err(Failure::failed(format!(
                "{} is not injected after {}; `midturn ps` tells what {} does",
                message.id,
                args.timeout,
                self.agent.called()
            ))),
            State::Queued | State::Injected => Ok(End::Finished),
        }
    }

    /// What would never be read isn't sent.
    fn listens(&self) -> Result<(), Failure> {
        if !is_deaf(&self.joined, &self.agent.id) {
            return Ok(());
        }
        Err(Failure::failed(joined::doesnt_look(self.agent.called())))
    }

    fn message(&self, args: &SendArgs) -> Result<Message, Failure> {
        let from = sender();
        // The command of an agent of its own session is its coordinator's, or it wouldn't know the name.
        let relation = if from == "user" { Relation::Person } else { Relation::Ancestor };
        let draft = Draft {
            from,
            relation,
            text: args.text.clone(),
            urgency: if args.urgent { Some(Urgency::Urgent) } else { args.urgency.map(Into::into) },
            id: args.id.as_deref().map(MessageId::new),
            expires_after: args.expires_after,
        };
        draft.message(&self.agent).map_err(Failure::usage)
    }

    fn wait(
        &self,
        mailbox: &Mailbox,
        message: &Message,
        began: Instant,
        timeout: Span,
    ) -> Result<State, Failure> {
        loop {
            let stands = stands(&self.joined, &self.agent.id, mailbox, &message.from, &message.id);
            let state = stands.map_err(broken)?.unwrap_or(State::Queued);
            if state != State::Queued || began.elapsed() >= timeout.duration() {
                return Ok(state);
            }
            if !self.joined.program().is_some_and(|program| program.lives()) {
                return Err(Failure::failed(format!("{}: its session has ended", self.agent.called())));
            }
            thread::sleep(LOOK);
        }
    }

    fn say(&self, told: Told<'_>, as_json: bool, began: Option<Instant>) -> Result<(), Failure> {
        let Told { message, accepted, state, landed } = told;
        let receipt = joined::receipt(&message.id, self.agent.called(), state, landed);
        let receipt = Receipt { too_late_to_supersede: accepted.too_late.then_some(true), ..receipt };
        let took = began.map(|began| Span::from(began.elapsed()));
        let mut text = receipt::told(&receipt, took);
        if state == State::Queued && self.waits() {
            text.push_str(
                "  it rests, and nothing can wake it from outside: it is read with its next prompt\n",
            );
        }
        let told = if as_json { print(&format!("{}\n", json!(receipt))) } else { print(&clean(&text)) };
        told.map(drop)
    }

    /// Whether nobody looks into its mailbox before somebody else begins something there: a hook waits for the main
    /// agent of a session in front of which somebody sits, and for nobody else.
    fn waits(&self) -> bool {
        rests(&self.joined, &self.agent.id) && !(self.agent.id == MAIN && self.joined.is_waited_for())
    }
}

/// Who sends from this command line: a person, but for a command of an agent's, which never has a person's authority.
fn sender() -> String {
    let is_an_agents = std::env::var("AI_AGENT").is_ok_and(|agent| agent.ends_with("_agent"));
    if is_an_agents { MAIN.to_owned() } else { "user".to_owned() }
}

fn rows(joined: &Joined) -> Vec<Vec<String>> {
    let place = joined.program().unwrap_or_default().cwd;
    let row = |agent: &Known| {
        let queued = queued(joined, agent);
        vec![
            format!("{}/{}", joined.id.get(..8).unwrap_or(&joined.id), agent.called()),
            state(joined, agent).to_owned(),
            if queued == 0 { String::new() } else { queued.to_string() },
            agent.kind.clone().unwrap_or_default(),
            place.clone(),
        ]
    };
    known(joined).iter().map(row).collect()
}

fn agent_value(joined: &Joined, agent: &Known) -> Value {
    json!({"id": agent.id, "name": agent.called(), "kind": agent.kind, "parent": agent.parent,
        "state": state(joined, agent), "pending": queued(joined, agent)})
}

fn state(joined: &Joined, agent: &Known) -> &'static str {
    match (is_deaf(joined, &agent.id), rests(joined, &agent.id)) {
        (true, _) => "deaf",
        (false, true) => "idle",
        (false, false) => "working",
    }
}

fn queued(joined: &Joined, agent: &Known) -> usize {
    let pending = joined.mailbox(&agent.id).and_then(|mailbox| mailbox.pending().ok());
    pending.map_or(0, |names| names.iter().filter(|name| !name.own).count())
}

fn refused(refused: Refused) -> Failure {
    Failure::failed(refused)
}

fn broken(error: std::io::Error) -> Failure {
    Failure::failed(format!("the mailboxes of joined agents can't be used: {error}"))
}
