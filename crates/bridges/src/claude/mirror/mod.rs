//! A joined session as events of Midturn's own vocabulary (scenarios.md, section 4), so that whoever shows a session
//! shows this one: what its program's transcripts say, and where its mail stands. It reads and writes nothing of the
//! program's, and knows of nobody who looks.
//!
//! A transcript is some hundred milliseconds behind, and says when calls end, not when they start: a call is taken to
//! start with its reply, or behind the serial call before it.

mod agent;
mod letters;
mod lines;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use midturn_core::rules::event::{Event, EventKind, Place, VERSION};
use midturn_core::rules::id::{AgentName, SessionId};
use midturn_core::rules::time::Micros;

use self::agent::Followed;
use super::agents::{Known, known};
use super::sweep::settled;
use crate::spool::{Joined, MAIN, Spool, tame};

/// As many agents of one session are followed.
const MOST_AGENTS: usize = 256;

/// Something that happened, and when: in microseconds since 1970.
struct Timed {
    at: u64,
    place: Place,
    kind: EventKind,
}

/// What is followed of a joined session.
pub struct Mirror {
    id: String,
    /// When it began, in microseconds since 1970; unknown before the first look.
    began: Option<u64>,
    seq: u64,
    t: Micros,
    agents: Vec<Followed>,
    is_over: bool,
}

impl Mirror {
    /// Of the joined session with this id.
    pub fn of(joined: &Joined) -> Self {
        let id = joined.id.clone();
        Self { id, began: None, seq: 0, t: Micros(0), agents: Vec::new(), is_over: false }
    }

    /// When the session began, in microseconds since 1970; 0 before the first look.
    pub fn began(&self) -> u64 {
        self.began.unwrap_or_default()
    }

    /// Whether its program has ended: nothing more comes.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Its agents, and what the program calls each: the name of its mailbox.
    pub fn agents(&self) -> impl Iterator<Item = (&AgentName, &str)> {
        self.agents.iter().map(|followed| (&followed.name, followed.id.as_str()))
    }

    /// What has happened since the last look, in order; all there is at the first. `spool` says what time it is.
    ///
    /// # Errors
    /// The spool can't be used.
    pub fn look(&mut self, spool: &Spool) -> io::Result<Vec<Event>> {
        let Some(joined) = spool.session(&self.id).filter(|_| !self.is_over) else { return Ok(Vec::new()) };
        // Asked first: what a program writes before it dies is there at the last look.
        let is_over = !settled(&joined)?;
        self.meets(&joined);
        let now = spool.now();
        let mut news = Vec::new();
        // Where one can't be looked at nothing is fetched: what the others have told is told by the next look.
        self.agents.iter_mut().try_for_each(|agent| agent.look(&joined, now))?;
        self.is_over = is_over;
        for agent in &mut self.agents {
            if self.is_over {
                agent.closes(now);
            }
            news.append(&mut agent.told());
        }
        // Each agent's are in order already, and stay so.
        news.sort_by_key(|timed| timed.at);
        let begins = self.begins(&news, now);
        Ok(begins.into_iter().chain(news).map(|timed| self.numbered(timed)).collect())
    }

    /// Agents that were not followed yet.
    fn meets(&mut self, joined: &Joined) {
        let mut found = known(joined);
        // Subagents come the newest first.
        found[1..].reverse();
        for known in found {
            let is_followed = self.agents.iter().any(|followed| followed.id == known.id);
            if !is_followed && self.agents.len() < MOST_AGENTS {
                let followed = Followed::new(&known, self.named(&known), self.parent(&known));
                self.agents.push(followed);
            }
        }
    }

    /// A name that nobody else has here: what people call it, else the program's id of it.
    fn named(&self, known: &Known) -> AgentName {
        let taken: BTreeSet<&str> = self.agents.iter().map(|followed| followed.name.as_str()).collect();
        let words = [known.called().to_owned(), known.id.clone(), format!("{}-{}", known.called(), known.id)];
        let free = words.iter().filter_map(|word| tame(word)).find(|name| !taken.contains(name.as_str()));
        let counted =
            || (0..).find_map(|n| tame(&format!("agent-{n}")).filter(|name| !taken.contains(name.as_str())));
        free.or_else(counted).unwrap_or_else(|| unreachable!("there are more numbers than agents"))
    }

    fn parent(&self, known: &Known) -> Option<AgentName> {
        if known.id == MAIN {
            return None;
        }
        let parent = known.parent.as_deref().unwrap_or(MAIN);
        self.agents.iter().find(|followed| followed.id == parent).map(|followed| followed.name.clone())
    }

    /// The event that a session begins with.
    fn begins(&mut self, news: &[Timed], now: u64) -> Option<Timed> {
        if self.began.is_some() {
            return None;
        }
        let at = news.first().map_or(now, |first| first.at);
        self.began = Some(at);
        let session = SessionId::new(self.id.as_str());
        let version = Arc::from(env!("CARGO_PKG_VERSION"));
        let kind = EventKind::SessionStarted { session, version, virtual_time: false, scenario: None };
        Some(Timed { at, place: Place::default(), kind })
    }

    fn numbered(&mut self, timed: Timed) -> Event {
        self.seq += 1;
        // What is found later than it happened is told when it is found.
        self.t = self.t.max(Micros(timed.at.saturating_sub(self.began())));
        Event { v: VERSION, seq: self.seq, t: self.t, at: timed.place, kind: timed.kind }
    }
}
